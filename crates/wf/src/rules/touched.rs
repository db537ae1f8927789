//! `touched_files.txt`: one path per line, each ended by a line break, sorted by bytes.

use model::escape::escape_line;

/// Renders the list. A name with a line break is escaped, because it would read as two names.
pub(crate) fn render_touched(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for path in paths {
        if path.iter().any(u8::is_ascii_control) {
            text.extend_from_slice(escape_line(&String::from_utf8_lossy(path)).as_bytes());
        } else {
            text.extend_from_slice(path);
        }
        text.push(b'\n');
    }
    text
}

/// Parses the list and skips blank lines.
pub(crate) fn parse_touched(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_has_no_names() {
        assert_eq!(parse_touched(b"").count(), 0);
        assert_eq!(parse_touched(b"\n \n").count(), 0);
        assert_eq!(render_touched(&[]), b"");
    }

    #[test]
    fn names_survive_and_line_breaks_are_shown() {
        let names = vec![b"a b".to_vec(), "é".as_bytes().to_vec(), b"x\ny".to_vec()];
        let text = render_touched(&names);
        let back: Vec<&[u8]> = parse_touched(&text).collect();
        assert_eq!(back, [&b"a b"[..], "é".as_bytes(), br"x\ny"]);
    }
}
