//! Env files: the grammar for all configuration that is `KEY=value` by line.
//!
//! Nothing is executed or expanded. A line is blank, a comment, or one assignment; a value is bare or in quotes, has no
//! escapes, and may not hold anything that a shell acts on, so that the file does no harm in a careless script. A blank
//! followed by `#` starts a comment.
//!
//! Comments, order, unknown keys and line ends survive a change to a value.

mod edit;
mod fault;
mod line;
#[cfg(test)]
mod property_tests;
mod value;

pub use fault::{EnvFault, EnvFileError, MissingKeys};
pub(crate) use line::is_key;

use line::{EnvEntry, EnvLine, parse_line};
use std::fmt;

/// A parsed env file with its original text. Values may be secrets, so `Debug` shows only the keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    lines: Vec<EnvLine>,
}

impl EnvFile {
    /// Reads a file. Lines end with LF or CRLF, and the last one may lack it.
    pub fn parse(text: &str) -> Result<Self, EnvFileError> {
        refuse_byte_order_mark(text)?;
        let mut file = Self::default();
        for (index, raw) in text.split_inclusive('\n').enumerate() {
            let at = |reason| EnvFileError { line: index + 1, reason };
            let line = parse_line(raw).map_err(at)?;
            if let EnvLine::Entry(entry) = &line
                && let Some(first) = file.position(&entry.key)
            {
                let key = entry.key.clone();
                return Err(at(EnvFault::Duplicate { key, first_line: first + 1 }));
            }
            file.lines.push(line);
        }
        Ok(file)
    }

    /// Reads a file that must be UTF-8.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, EnvFileError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
                Err(EnvFileError { line, reason: EnvFault::NotUtf8 })
            }
        }
    }

    /// Returns the value of a key; it may be empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(k, value)| (k == key).then_some(value))
    }

    /// Keys and values, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries().map(|entry| (entry.key.as_str(), entry.value.as_str()))
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|entry| entry.key.as_str())
    }

    /// Checks that all these keys have a value; the error names all that have none.
    pub fn require(&self, keys: &[&str]) -> Result<(), MissingKeys> {
        let is_missing = |key: &&str| self.get(key).is_none_or(str::is_empty);
        let missing: Vec<String> =
            keys.iter().copied().filter(is_missing).map(str::to_owned).collect();
        if missing.is_empty() { Ok(()) } else { Err(MissingKeys { keys: missing }) }
    }

    /// Lists keys of the file that are not among the known ones, for a warning.
    pub fn unknown(&self, known: &[&str]) -> Vec<&str> {
        self.keys().filter(|key| !known.contains(key)).collect()
    }

    fn entries(&self) -> impl Iterator<Item = &EnvEntry> {
        self.lines.iter().filter_map(EnvLine::entry)
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.lines.iter().position(|line| line.entry().is_some_and(|entry| entry.key == key))
    }
}

/// Refuses the mark that some editors write before the first line, where it would become part of a key.
pub(crate) fn refuse_byte_order_mark(text: &str) -> Result<(), EnvFileError> {
    if text.starts_with('\u{feff}') {
        return Err(EnvFileError { line: 1, reason: EnvFault::ByteOrderMark });
    }
    Ok(())
}

impl fmt::Display for EnvFile {
    /// Writes the file, byte for byte as it was read except for changed values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| line.fmt(f))
    }
}

impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvFile")
            .field("keys", &self.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &[(&str, &str)]) {
        let file = EnvFile::parse(text).unwrap();
        assert_eq!(file.iter().collect::<Vec<_>>(), expected);
        assert_eq!(file.to_string(), text);
    }

    #[track_caller]
    fn refuses(text: &str, message: &str) {
        assert_eq!(EnvFile::parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn a_value_is_bare_or_in_quotes() {
        reads("A=b\nC=\"d e\"\nF='g \"h\"'\n", &[("A", "b"), ("C", "d e"), ("F", "g \"h\"")]);
    }

    #[test]
    fn comments_and_blank_lines_are_skipped() {
        reads("\n  \t\n# A=b; $(x)\n  # indented\nA=b\n", &[("A", "b")]);
    }

    #[test]
    fn a_blank_before_a_number_sign_starts_a_comment() {
        reads("A=b   # words, $(x) and \"quotes\n", &[("A", "b")]);
        reads("A=\"b c\"\t# words\n", &[("A", "b c")]);
        reads("A=b#c\nB=#d\n", &[("A", "b#c"), ("B", "#d")]);
        reads("A=\"b # c\"\n", &[("A", "b # c")]);
        reads("A= # nothing\n", &[("A", "")]);
    }

    #[test]
    fn an_empty_value_is_a_value() {
        reads("A=\nB=\"\"\nC=''\nD=   \n", &[("A", ""), ("B", ""), ("C", ""), ("D", "")]);
    }

    #[test]
    fn blanks_crlf_and_a_missing_last_newline_are_tolerated() {
        reads("  A =\tb\r\n# c\r\nD=\"e\" \r\nF=g", &[("A", "b"), ("D", "e"), ("F", "g")]);
    }

    #[test]
    fn only_a_line_feed_ends_a_line() {
        reads("A=\"b\u{2028}C=d\"\n", &[("A", "b\u{2028}C=d")]);
        refuses("A=b\u{85}C=d\n", "line 1: the value of A has a control character; remove it");
        refuses("A=b\x0cC=d\n", "line 1: the value of A has a control character; remove it");
        refuses("A=b\rC=d\n", "line 1: the value of A has a control character; remove it");
    }

    #[test]
    fn a_line_must_be_an_assignment_to_a_key_in_capitals() {
        let key_rule = "the key must be capital letters, digits and _, starting with a letter";
        refuses(
            "A=b\nhello\n",
            "line 2: expected KEY=value; if this is a comment, start it with #",
        );
        for bad in ["a=b", "1A=b", "_A=b", "A-B=c", "export A=b", "=b", "Ä=b", "A B=c"] {
            refuses(bad, &format!("line 1: {key_rule}"));
        }
    }

    #[test]
    fn a_bare_value_has_no_blanks_quotes_or_ampersands() {
        refuses("A=a b\n", "line 1: the value of A has a blank; put the value in double quotes");
        refuses(
            "A=a\u{a0}b\n",
            "line 1: the value of A has a blank; put the value in double quotes",
        );
        refuses(
            "A=it's\n",
            "line 1: the value of A has a quote inside; put the whole value in quotes",
        );
        refuses(
            "A=a\"b\"\n",
            "line 1: the value of A has a quote inside; put the whole value in quotes",
        );
        refuses(
            "A=a&b\n",
            "line 1: the value of A has a single '&'; put the value in double quotes",
        );
        reads("A=\"a&b\"\n", &[("A", "a&b")]);
    }

    #[test]
    fn quotes_must_be_closed_and_end_the_value() {
        refuses("A=\"abc\n", "line 1: the value of A lacks its closing \"");
        refuses("A='abc\"\n", "line 1: the value of A lacks its closing '");
        refuses("A=\"\n", "line 1: the value of A lacks its closing \"");
        for text in ["A=\"a\" b\"", "A=\"a\"b", "A=\"a\"#b", "A='a' 'b'"] {
            refuses(
                text,
                "line 1: the value of A goes on after its closing quote; remove what follows",
            );
        }
    }

    #[test]
    fn what_a_shell_would_act_on_is_refused_in_every_value() {
        for bad in ["`", "$", ";", "|", "&&"] {
            let shown =
                format!("line 1: the value of A has '{bad}', which is not allowed; remove it");
            refuses(&format!("A=a{bad}b"), &shown);
            refuses(&format!("A=\"a {bad} b\""), &shown);
            refuses(&format!("A='a {bad} b'"), &shown);
        }
        refuses("A=\"a\tb\"", "line 1: the value of A has a control character; remove it");
        refuses("A=\"a\0b\"", "line 1: the value of A has a control character; remove it");
    }

    #[test]
    fn a_key_is_set_once() {
        refuses("A=1\n\nB=2\nA=3\n", "line 4: A was already set on line 1; keep one of the two");
    }

    #[test]
    fn a_file_is_utf8_without_a_mark() {
        refuses(
            "\u{feff}A=b\n",
            "line 1: the file starts with a byte order mark; save it without one",
        );
        let error = EnvFile::parse_bytes(b"A=b\nC=\xff\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: the line is not UTF-8; save the file as UTF-8");
        assert!(EnvFile::parse_bytes("A=é\n".as_bytes()).is_ok());
    }

    #[test]
    fn errors_and_debug_output_never_show_a_value() {
        for text in
            ["KEY=hunter2 x", "KEY=\"hunter2", "hunter2==", "KEY=hunter2;", "KEY=a\nKEY=hunter2"]
        {
            let error = EnvFile::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
        let file = EnvFile::parse("KEY=hunter2 # hunter2\n").unwrap();
        assert_eq!(format!("{file:?}"), "EnvFile { keys: [\"KEY\"], .. }");
    }

    #[test]
    fn all_missing_and_empty_keys_are_named_at_once() {
        let file = EnvFile::parse("A=1\nB=\n").unwrap();
        assert_eq!(file.require(&["A"]), Ok(()));
        let missing = file.require(&["C", "A", "B"]).unwrap_err();
        assert_eq!(missing.to_string(), "missing or empty: C, B");
    }

    #[test]
    fn unknown_keys_are_listed_in_file_order() {
        let file = EnvFile::parse("Z=1\nA=2\nB=3\n").unwrap();
        assert_eq!(file.unknown(&["A"]), ["Z", "B"]);
        assert_eq!(file.get("Z"), Some("1"));
        assert_eq!(file.get("Y"), None);
    }
}
