//! A conflict and its resolution as a diff3-like text. Pure.

use super::Parts;

/// Lines of each version of a conflict that are shown.
const LINES_SHOWN: usize = 30;

/// Bytes of all conflicts of a file that are shown.
const BYTES_SHOWN: usize = 4096;

pub(super) fn render_conflict(text: &mut String, parts: &Parts<'_, '_>) {
    if text.len() > BYTES_SHOWN {
        return;
    }
    let versions = [
        ("<<<<<<< fork", parts.fork),
        ("||||||| merge base", parts.base),
        ("======= upstream", parts.upstream),
        (">>>>>>> result", parts.result),
    ];
    for (title, lines) in versions {
        text.push_str(title);
        text.push('\n');
        for line in lines.iter().take(LINES_SHOWN) {
            let line: String = String::from_utf8_lossy(line).chars().take(300).collect();
            text.push_str(&line);
            text.push('\n');
        }
        let more = lines.len().saturating_sub(LINES_SHOWN);
        if more > 0 {
            text.push_str(&format!("… {more} more lines\n"));
        }
    }
    text.push('\n');
}
