//! Likeness of a change to another version of the same file: how many of its new lines are there, and how many of the lines
//! that it takes away.
//!
//! Lines are compared without their blanks, and by number: a line that the file has twice is taken away only when both are
//! gone. Lines that say next to nothing, such as a closing brace, do not count.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;

/// Letters and digits below which a line says nothing.
const TELLING_CHARS: usize = 3;

/// Lines of a change, and how many of them another version has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Likeness {
    /// Lines that the change adds.
    pub added: usize,
    /// Those of them that the other version has.
    pub added_found: usize,
    /// Lines that the change removes.
    pub removed: usize,
    /// Those of them that the other version still has.
    pub removed_found: usize,
}

impl AddAssign for Likeness {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.added_found += other.added_found;
        self.removed += other.removed;
        self.removed_found += other.removed_found;
    }
}

impl Likeness {
    /// Compares the change from `before` to `after` with `other`, by the lines that tell something.
    pub fn measure(before: &[u8], after: &[u8], other: &[u8]) -> Self {
        Self::measure_by(before, after, other, TELLING_CHARS)
    }

    /// Compares them by all lines that are not blank.
    pub(crate) fn measure_all(before: &[u8], after: &[u8], other: &[u8]) -> Self {
        Self::measure_by(before, after, other, 0)
    }

    fn measure_by(before: &[u8], after: &[u8], other: &[u8], least: usize) -> Self {
        let [before, after, other] = [before, after, other].map(|text| count(text, least));
        let mut found = Self::default();
        for (line, times) in &after {
            let known = before.get(line).copied().unwrap_or(0);
            let new = times.saturating_sub(known);
            let there = other.get(line).copied().unwrap_or(0).saturating_sub(known);
            found.added += new;
            found.added_found += there.min(new);
        }
        for (line, times) in &before {
            let kept = after.get(line).copied().unwrap_or(0);
            let gone = times.saturating_sub(kept);
            let there = other.get(line).copied().unwrap_or(0).saturating_sub(kept);
            found.removed += gone;
            found.removed_found += there.min(gone);
        }
        found
    }

    /// Share of the new lines that are there; `None` if there are none.
    pub fn added_share(self) -> Option<f64> {
        share(self.added_found, self.added)
    }

    /// Share of the removed lines that are still there; `None` if there are none.
    pub fn removed_share(self) -> Option<f64> {
        share(self.removed_found, self.removed)
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of lines are small")]
fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The lines of a text that have that many letters and digits, without blanks, with how often each is there.
fn count(text: &[u8], least: usize) -> BTreeMap<Vec<u8>, usize> {
    let mut lines = BTreeMap::new();
    for line in text.split(|&byte| byte == b'\n') {
        let line: Vec<u8> =
            line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let telling = line.iter().filter(|byte| byte.is_ascii_alphanumeric() || **byte >= 0x80);
        if !line.is_empty() && telling.count() >= least {
            *lines.entry(line).or_default() += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "int f(char *p) {\n  strcpy(buf, p);\n  return 0;\n}\n";
    const AFTER: &str = "int f(char *p) {\n  if (strlen(p) > 9)\n    return -1;\n  strncpy(buf, p, 9);\n  return 0;\n}\n";

    #[track_caller]
    fn check(other: &str, expected: (usize, usize, usize, usize)) {
        let found = Likeness::measure(BEFORE.as_bytes(), AFTER.as_bytes(), other.as_bytes());
        let Likeness { added, added_found, removed, removed_found } = found;
        assert_eq!((added_found, added, removed_found, removed), expected, "{other}");
    }

    #[test]
    fn a_version_before_the_change_has_the_old_lines_and_none_of_the_new() {
        check(BEFORE, (0, 3, 1, 1));
        check(&BEFORE.replace("  ", "\t"), (0, 3, 1, 1));
    }

    #[test]
    fn a_version_with_the_change_has_the_new_lines_wherever_they_stand() {
        check(AFTER, (3, 3, 0, 1));
        check(&format!("#include <x>\n{}", AFTER.replace("    ", "")), (3, 3, 0, 1));
    }

    #[test]
    fn a_version_with_half_of_it_is_told_from_both() {
        check("int f(char *p) {\n  strncpy(buf, p, 9);\n  return 0;\n}\n", (1, 3, 0, 1));
        check("", (0, 3, 0, 1));
    }

    #[test]
    fn short_lines_count_where_all_do() {
        let (after, other) = (b"ports:\n22\n80\n\n}\n", b"ports:\n99\n");
        let all = Likeness::measure_all(b"", after, other);
        assert_eq!((all.added_found, all.added), (1, 4));
        assert_eq!(Likeness::measure(b"", after, other).added, 1);
    }

    #[test]
    fn a_line_that_was_there_before_is_no_sign_of_the_change() {
        let (before, after) = (b"free(a);\n".as_slice(), b"free(a);\nfree(a);\n".as_slice());
        assert_eq!(Likeness::measure(before, after, before).added_share(), Some(0.0));
        assert_eq!(Likeness::measure(before, after, after).added_share(), Some(1.0));
        assert_eq!(Likeness::measure(b"}\n", b"}\n}\n", b"").added_share(), None);
    }
}
