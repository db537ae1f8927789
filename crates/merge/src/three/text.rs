//! Lines and tokens of a text, with and without whitespace, and unified diffs.

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};

/// The lines of a text, each with its end.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

/// Returns whether the content is text: no NUL in its first 8,000 bytes.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(8000)].contains(&0)
}

/// Splits a text into words, line ends, runs of blanks and single other characters. Joined they are the text.
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
    /// Bytes beyond ASCII belong to words, so that no letter is cut in two.
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

/// Returns whether there is nothing but whitespace.
pub fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// Lines without whitespace, each with a line feed; empty ones are left out.
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

/// Text without whitespace, to compare code that is only wrapped differently.
pub fn bare(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// A line without the sign that makes it a comment; `None` if it is no comment.
pub fn uncommented(line: &[u8]) -> Option<&[u8]> {
    const SIGNS: [&[u8]; 10] =
        [b"//", b"#", b"--", b"/*", b"<!--", b";", b"%", b"*", b"'", b"REM "];
    const ENDS: [&[u8]; 2] = [b"*/", b"-->"];
    let line = line.trim_ascii();
    let rest = SIGNS.iter().find_map(|sign| line.strip_prefix(*sign))?;
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    let rest = ENDS.iter().find_map(|end| rest.strip_suffix(*end)).unwrap_or(rest);
    Some(rest.trim_ascii())
}

/// A line without blanks and without a comment at its end, to find code that was only indented or annotated otherwise. A
/// line that is a comment stays as it is.
pub fn code_of_line(line: &[u8]) -> Vec<u8> {
    let is_blank = |at: usize| line.get(at).is_none_or(u8::is_ascii_whitespace);
    let starts = (1..line.len()).filter(|&at| {
        let rest = &line[at..];
        let sign = if rest.starts_with(b"//") { 2 } else { usize::from(rest.starts_with(b"#")) };
        sign > 0 && is_blank(at - 1) && is_blank(at + sign)
    });
    // Within quotes it is a part of a text.
    let is_outside = |at: &usize| {
        let before = &line[..*at];
        let is_closed = |quote: u8| before.iter().filter(|&&byte| byte == quote).count() % 2 == 0;
        [b'"', b'\'', b'`'].into_iter().all(is_closed)
    };
    let code = starts.into_iter().find(is_outside).map_or(line, |at| &line[..at]);
    bare(if code.trim_ascii().is_empty() { line } else { code })
}

/// Unified diff of two texts under these names; empty if they are the same.
pub fn unified_diff([old, new]: [&str; 2], before: &str, after: &str) -> String {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    if diff.count_additions() + diff.count_removals() == 0 {
        return String::new();
    }
    let printer = BasicLineDiffPrinter(&input.interner);
    let hunks = diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input);
    format!("--- {old}\n+++ {new}\n{hunks}")
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
    fn a_unified_diff_names_both_texts_and_shows_what_differs() {
        let diff = unified_diff(["plan.md", "draft.md"], "a\nb\nc\n", "a\nB\nc\nd");
        insta::assert_snapshot!(diff, @r"
        --- plan.md
        +++ draft.md
        @@ -1,3 +1,4 @@
         a
        -b
        +B
         c
        +d
        ");
        assert_eq!(unified_diff(["a", "b"], "same\n", "same\n"), "");
    }

    #[test]
    fn a_comment_at_the_end_of_a_line_and_blanks_are_no_code() {
        let code = |line: &str| String::from_utf8(code_of_line(line.as_bytes())).unwrap();
        assert_eq!(code("  run(a, b); // why"), "run(a,b);");
        assert_eq!(code("\trun(a,b);"), "run(a,b);");
        assert_eq!(code("x = 1  # noqa"), "x=1");
        assert_eq!(code("  // run(a, b);"), "//run(a,b);");
        assert_eq!(code("say(\"see // there\");"), "say(\"see//there\");");
        assert_eq!(code("get(\"https://x.org\");"), "get(\"https://x.org\");");
        assert_eq!(code("color: #fff;"), "color:#fff;");
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(lines(b"a\n\nb"), [&b"a\n"[..], b"\n", b"b"]);
        assert!(lines(b"").is_empty());
    }
}
