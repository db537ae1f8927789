//! Changing a file: one value at a time, and nothing else.

use super::EnvFile;
use super::fault::EnvFault;
use super::line::{EnvEntry, EnvLine, is_key};
use super::value::render_value;

impl EnvFile {
    /// Sets a value in its place, or adds the key at the end.
    ///
    /// An equal value stays as it was written. A value that the grammar cannot hold is refused and changes nothing.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), EnvFault> {
        if !is_key(key) {
            return Err(EnvFault::BadKey);
        }
        let written = render_value(key, value)?;
        let position = self.position(key);
        match position.map(|at| &mut self.lines[at]) {
            Some(EnvLine::Entry(entry)) if entry.value == value => {}
            Some(EnvLine::Entry(entry)) => {
                entry.written = written;
                entry.value = value.to_owned();
            }
            Some(EnvLine::Other(_)) | None => self.append(key, value, written),
        }
        Ok(())
    }

    /// Removes a key with its line and inline comment; returns whether it existed.
    pub fn remove(&mut self, key: &str) -> bool {
        let position = self.position(key);
        if let Some(at) = position {
            self.lines.remove(at);
        }
        position.is_some()
    }

    fn append(&mut self, key: &str, value: &str, written: String) {
        let line_end = self.line_end();
        match self.lines.last_mut() {
            Some(line) if !line.tail().ends_with('\n') => line.push_str(line_end),
            Some(_) | None => {}
        }
        self.lines.push(EnvLine::Entry(EnvEntry {
            before: format!("{key}="),
            key: key.to_owned(),
            written,
            value: value.to_owned(),
            after: line_end.to_owned(),
        }));
    }

    /// Line end of this file: that of the first line.
    fn line_end(&self) -> &'static str {
        let first = self.lines.first().map_or("", EnvLine::tail);
        if first.ends_with("\r\n") { "\r\n" } else { "\n" }
    }
}

impl EnvLine {
    fn push_str(&mut self, text: &str) {
        match self {
            Self::Other(raw) => raw.push_str(text),
            Self::Entry(entry) => entry.after.push_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, key: &str, value: &str, after: &str) {
        let mut file = EnvFile::parse(before).unwrap();
        file.set(key, value).unwrap();
        assert_eq!(file.to_string(), after);
        assert_eq!(EnvFile::parse(after).unwrap(), file, "the result must read back the same");
    }

    #[test]
    fn a_value_changes_in_its_place() {
        check("# x\nA=1 # one\n\nB=2\n", "A", "3", "# x\nA=3 # one\n\nB=2\n");
        check("  A = '1'\t#c\r\nB=2", "A", "x y", "  A = \"x y\"\t#c\r\nB=2");
    }

    #[test]
    fn a_value_never_runs_into_a_comment() {
        check("A= # none\n", "A", "x", "A=x # none\n");
        check("A=\n", "A", "x", "A=x\n");
        check("A = x # c\n", "A", "", "A = \"\" # c\n");
    }

    #[test]
    fn a_new_key_goes_to_the_end_with_the_line_end_of_the_file() {
        check("", "A", "1", "A=1\n");
        check("A=1\n", "B", "2", "A=1\nB=2\n");
        check("A=1", "B", "2", "A=1\nB=2\n");
        check("# c", "B", "2", "# c\nB=2\n");
        check("A=1\r\nC=3", "B", "2", "A=1\r\nC=3\r\nB=2\r\n");
    }

    #[test]
    fn a_value_that_is_already_right_keeps_its_looks() {
        check("A='x'\n", "A", "x", "A='x'\n");
        check("A=x#y\n", "A", "x#y", "A=x#y\n");
    }

    #[test]
    fn plain_words_are_bare_and_all_else_is_quoted() {
        check("", "A", "feat/a_b-1.2:x@y%+,=", "A=feat/a_b-1.2:x@y%+,=\n");
        for value in ["", "a b", "#a", "é", "it's", "a&b", "~", "a\\b"] {
            check("", "A", value, &format!("A=\"{value}\"\n"));
        }
    }

    #[test]
    fn what_the_grammar_cannot_hold_is_refused_and_changes_nothing() {
        let mut file = EnvFile::parse("A=1\n").unwrap();
        for bad in ["a\"b", "a\nb", "a\tb", "\0", "`", "$x", "a;b", "a|b", "a && b"] {
            assert!(file.set("A", bad).is_err(), "{bad:?}");
            assert!(file.set("B", bad).is_err(), "{bad:?}");
        }
        assert_eq!(file.set("a", "x"), Err(EnvFault::BadKey));
        assert_eq!(file.to_string(), "A=1\n");
    }

    #[test]
    fn a_removed_key_takes_only_its_own_line() {
        let mut file = EnvFile::parse("# x\nA=1 # one\nB=2\n").unwrap();
        assert!(file.remove("A"));
        assert!(!file.remove("A"));
        assert_eq!(file.to_string(), "# x\nB=2\n");
    }
}
