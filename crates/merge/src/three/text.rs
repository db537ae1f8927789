//! Text as the merger sees it: lines that keep their ends, tokens, and both without whitespace.

/// The lines of a text, each with its end.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

/// Whether a text is one: the start of it has no NUL.
#[must_use]
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(8000)].contains(&0)
}

/// Words, line ends, stretches of blanks, and every other sign alone. Together they are the text.
#[must_use]
pub fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let kind = ByteClass::of(first);
        let len = match kind {
            ByteClass::Word | ByteClass::Blank => {
                rest.iter().take_while(|&&byte| ByteClass::of(byte) == kind).count()
            }
            ByteClass::Alone => 1,
        };
        let (token, later) = rest.split_at(len);
        found.push(token);
        rest = later;
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Word,
    Blank,
    Alone,
}

impl ByteClass {
    /// Bytes of letters beyond ASCII make words: a letter must not be cut in two.
    fn of(byte: u8) -> Self {
        match byte {
            b'_' | 0x80.. => Self::Word,
            b' ' | b'\t' => Self::Blank,
            _ if byte.is_ascii_alphanumeric() => Self::Word,
            _ => Self::Alone,
        }
    }
}

/// Tokens other than whitespace.
pub fn dark_tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    tokens(text).into_iter().filter(|token| !is_blank(token))
}

/// Whether there is nothing but whitespace.
#[must_use]
pub fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// Each line without its whitespace, empty ones left out, with a line feed behind each.
#[must_use]
pub fn bare_lines(text: &[u8]) -> Vec<u8> {
    let mut bare = Vec::with_capacity(text.len());
    for line in lines(text) {
        let before = bare.len();
        bare.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
        if bare.len() > before {
            bare.push(b'\n');
        }
    }
    bare
}

/// Without any whitespace: code that was wrapped otherwise is the same code.
#[must_use]
pub fn bare(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_together_are_the_text() {
        let text = "let größe_1 = a+b;\r\n\tx".as_bytes();
        let found = tokens(text);
        assert_eq!(found.concat(), text);
        let shown: Vec<_> = found.iter().map(|token| String::from_utf8_lossy(token)).collect();
        let expected =
            ["let", " ", "größe_1", " ", "=", " ", "a", "+", "b", ";", "\r", "\n", "\t", "x"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn bare_text_has_no_whitespace() {
        assert_eq!(bare_lines(b" a b\n\n\tc\r\n"), b"ab\nc\n");
        assert_eq!(bare(b" a b\n\n\tc\r\n"), b"abc");
        assert!(is_blank(b" \r\n") && is_blank(b"") && !is_blank(b" x"));
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(lines(b"a\n\nb"), [&b"a\n"[..], b"\n", b"b"]);
        assert!(lines(b"").is_empty());
    }
}
