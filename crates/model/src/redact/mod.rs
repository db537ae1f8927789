//! The redactor of every byte that goes to a log, a record, a terminal or a forge.
//!
//! It replaces the exact secrets of this run (plain, in base64, in hex, percent-encoded, inside JSON) and the shapes of
//! well-known tokens with `***`. All matches are gathered before any is replaced, so that no secret hides behind another
//! that overlaps it.

mod form;
mod mask;
mod shape;
mod stream;

pub use mask::{MaskingStream, SecretMask};
pub use stream::RedactingStream;

use crate::secret::{MASK, Secret};
use aho_corasick::AhoCorasick;
use std::borrow::Cow;
use std::ops::Range;

/// Replaces secrets in text and bytes.
pub struct Redactor {
    exact: AhoCorasick,
    longest: usize,
    /// The longest exact secret that runs over several lines; 0 if there is none.
    longest_multiline: usize,
}

struct Hit {
    /// The whole match, with the context that identifies it.
    whole: Range<usize>,
    /// The part to be replaced.
    hidden: Range<usize>,
}

impl Redactor {
    /// A redactor for these secrets and all known token shapes. Secrets of less than six characters are ignored: hiding
    /// every `1` would make logs unreadable and hide nothing.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let forms = form::all_forms(secrets);
        let longest =
            |of: &mut dyn Iterator<Item = &String>| of.map(String::len).max().unwrap_or(0);
        Self {
            longest: longest(&mut forms.iter()),
            longest_multiline: longest(&mut forms.iter().filter(|form| form.contains('\n'))),
            exact: AhoCorasick::new(&forms)
                .expect("secrets are far smaller than an automaton may be"),
        }
    }

    /// Replaces all secrets in a text.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let hits = self.find(text.as_bytes());
        if hits.is_empty() {
            return Cow::Borrowed(text);
        }
        let shown = replace(text.as_bytes(), &hits);
        Cow::Owned(String::from_utf8_lossy(&shown).into_owned())
    }

    /// Replaces all secrets in bytes, which need not be UTF-8.
    pub fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        replace(bytes, &self.find(bytes))
    }

    /// Finds all secrets, in the order of their hidden parts; they may overlap.
    fn find(&self, bytes: &[u8]) -> Vec<Hit> {
        let mut hits = shape::find(bytes);
        hits.extend(
            self.exact
                .find_overlapping_iter(bytes)
                .map(|found| Hit { whole: found.range(), hidden: found.range() }),
        );
        hits.sort_by_key(|hit| hit.hidden.start);
        hits
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// Puts one mask in the place of each run of overlapping hits.
fn replace(bytes: &[u8], hits: &[Hit]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for Hit { hidden, .. } in hits {
        if hidden.start >= done {
            shown.extend_from_slice(&bytes[done..hidden.start]);
            shown.extend_from_slice(MASK.as_bytes());
        }
        done = done.max(hidden.end);
    }
    shown.extend_from_slice(&bytes[done..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::new(secrets.iter().copied().map(Secret::new))
    }

    #[track_caller]
    fn check(secrets: &[&str], text: &str, expected: &str) {
        let redactor = redactor(secrets);
        assert_eq!(redactor.redact(text), expected);
        assert_eq!(redactor.redact_bytes(text.as_bytes()), expected.as_bytes());
    }

    #[test]
    fn exact_secrets_are_replaced_wherever_they_stand() {
        check(&["hunter22"], "hunter22 xhunter22y hunter22", "*** x***y ***");
        check(&["hunter22"], "hunter22hunter22", "******");
        check(&["pässwörd"], "é pässwörd é", "é *** é");
    }

    #[test]
    fn text_without_secrets_is_not_copied() {
        assert!(matches!(redactor(&["hunter22"]).redact("nothing here"), Cow::Borrowed(_)));
        assert!(matches!(Redactor::new([]).redact(""), Cow::Borrowed(_)));
    }

    #[test]
    fn short_secrets_are_left_alone() {
        check(&["", "12345"], "12345", "12345");
        check(&["äöüßé€"], "äöüßé€", "***");
    }

    #[test]
    fn overlapping_secrets_leave_nothing_over() {
        check(&["abcdef", "abcdefghi"], "abcdefghi abcdefg", "*** ***g");
        check(&["abcdef", "defghi"], "abcdefghi", "***");
    }

    #[test]
    fn base64_of_a_secret_is_replaced_wherever_it_was_encoded() {
        check(&["hunter22!"], "aHVudGVyMjIh", "***");
        check(&["hunter2"], "aHVudGVyMg== aHVudGVyMg", "*** ***");
        // "x:hunter22!" and "xy:hunter22!": the characters at the seams belong to both sides.
        check(&["hunter22!"], "eDpodW50ZXIyMiE=", "eDp***E=");
        check(&["hunter22!"], "eHk6aHVudGVyMjIh", "eHk6***");
        check(&["~~~???~~~"], "fn5-Pz8_fn5- fn5+Pz8/fn5+", "*** ***");
    }

    #[test]
    fn encoded_forms_of_a_secret_are_replaced() {
        check(&["p@ss/w:rd"], "p%40ss%2Fw%3Ard p%40ss%2fw%3ard", "*** ***");
        check(&["say \"hi\"\\"], r#"{"k":"say \"hi\"\\"}"#, r#"{"k":"***"}"#);
    }

    #[test]
    fn hex_of_a_secret_is_replaced() {
        check(&["hunter2J"], "68756e746572324a 68756E746572324A", "*** ***");
    }

    #[test]
    fn a_secret_that_was_stored_with_its_quotes_is_known_without_them() {
        check(&["\"hunter22\""], "hunter22 'hunter22'", "*** '***'");
    }

    #[test]
    fn a_secret_of_several_lines_is_replaced_whole_and_by_line() {
        check(&["first line\nab\nlast line"], "first line\nab\nlast line", "***");
        check(
            &["first line\nab\nlast line"],
            "> first line\n> ab\n> last line",
            "> ***\n> ab\n> ***",
        );
    }

    #[test]
    fn bytes_need_not_be_utf8() {
        assert_eq!(
            redactor(&["hunter22"]).redact_bytes(b"\xff\xfehunter22\xff"),
            b"\xff\xfe***\xff"
        );
    }

    #[test]
    fn a_redactor_does_not_show_what_it_knows() {
        assert_eq!(format!("{:?}", redactor(&["hunter22"])), "Redactor { .. }");
    }
}
