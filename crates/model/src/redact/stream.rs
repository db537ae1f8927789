//! Redaction of a stream that arrives in pieces.
//!
//! A piece may end in the middle of a secret, so output is held back until its line is complete, or until a secret or key
//! block of several lines is. There is a bound: of a longer line, only an end that can hold any exact secret stays back.

use super::{Hit, Redactor, replace};
use std::sync::Arc;

/// Bytes that are held back until a line ends.
const HOLD_BYTES: usize = 64 * 1024;
/// Bytes of a longer line that stay back: room for a token that has just begun.
const OVERLAP_BYTES: usize = 4 * 1024;

/// A redactor for one stream, such as the standard output of a process.
#[derive(Debug)]
pub struct RedactingStream {
    redactor: Arc<Redactor>,
    pending: Vec<u8>,
    /// Pending bytes at the last scan that released nothing; 0 after one that did.
    scanned_in_vain: usize,
}

impl RedactingStream {
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, pending: Vec::new(), scanned_in_vain: 0 }
    }

    /// Takes the next piece and returns the bytes that are ready.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        // A huge piece is taken in parts, so that no scan covers much more than the bound.
        for part in piece.chunks(HOLD_BYTES) {
            self.pending.extend_from_slice(part);
            while let Some(ready) = self.take_ready() {
                shown.extend(ready);
            }
        }
        shown
    }

    /// Returns the rest at the end of the stream.
    pub fn finish(self) -> Vec<u8> {
        self.redactor.redact_bytes(&self.pending)
    }

    fn take_ready(&mut self) -> Option<Vec<u8>> {
        let wanted = self.whole_lines();
        if !self.is_overfull() && (wanted == 0 || !self.is_worth_a_scan()) {
            return None;
        }
        let hits = self.redactor.find(&self.pending);
        let cut = match cut_before(&hits, &self.pending, wanted) {
            0 if self.is_overfull() => self.forced_cut(&hits),
            cut => cut,
        };
        if cut == 0 {
            self.scanned_in_vain = self.pending.len();
            return None;
        }
        self.scanned_in_vain = 0;
        let complete = hits.iter().take_while(|hit| hit.hidden.start < cut).count();
        let ready = replace(&self.pending[..cut], &hits[..complete]);
        self.pending.drain(..cut);
        Some(ready)
    }

    /// Length of the complete lines, less a possible start of a secret of several lines.
    fn whole_lines(&self) -> usize {
        let settled = self.pending.len().saturating_sub(self.redactor.longest_multiline);
        self.pending[..settled].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1)
    }

    /// Returns whether enough bytes came since the last scan in vain. Scanning a held block again for each of its lines
    /// would let a program waste our time.
    fn is_worth_a_scan(&self) -> bool {
        self.pending.len() > self.scanned_in_vain + self.scanned_in_vain / 8
    }

    fn overlap(&self) -> usize {
        OVERLAP_BYTES.max(self.redactor.longest)
    }

    fn is_overfull(&self) -> bool {
        self.pending.len() > HOLD_BYTES.max(2 * self.overlap())
    }

    /// Position of the cut when too much is held: behind the match, if a single one fills all of it.
    fn forced_cut(&self, hits: &[Hit]) -> usize {
        let wanted = self.pending.len() - self.overlap();
        match cut_before(hits, &self.pending, wanted) {
            0 => cut_behind(hits, wanted),
            cut => cut,
        }
    }
}

/// Last position up to `wanted` that splits no match. A match that ends with a line end right at the cut may continue in
/// the next line and counts as split.
fn cut_before(hits: &[Hit], pending: &[u8], wanted: usize) -> usize {
    let is_split = |hit: &Hit, cut: usize| {
        let may_go_on = hit.whole.end == cut && pending[..cut].ends_with(b"\n");
        hit.whole.start < cut && (cut < hit.whole.end || may_go_on)
    };
    // Moving the cut may make it split a match that was checked before.
    let pass = |cut: usize| {
        hits.iter()
            .rev()
            .fold(cut, |cut, hit| if is_split(hit, cut) { hit.whole.start } else { cut })
    };
    repeat(wanted, pass)
}

/// First position from `wanted` on that splits no match.
fn cut_behind(hits: &[Hit], wanted: usize) -> usize {
    let is_split = |hit: &Hit, cut: usize| hit.whole.start < cut && cut < hit.whole.end;
    let pass = |cut: usize| {
        hits.iter().fold(cut, |cut, hit| if is_split(hit, cut) { hit.whole.end } else { cut })
    };
    repeat(wanted, pass)
}

/// Repeats a pass until it changes nothing.
fn repeat(mut cut: usize, pass: impl Fn(usize) -> usize) -> usize {
    loop {
        match pass(cut) {
            same if same == cut => return cut,
            moved => cut = moved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use proptest::prelude::*;

    const SECRET: &str = "hunter22-hunter22";
    const MULTILINE: &str = "ab\ncd\nef\ngh";

    fn redactor() -> Arc<Redactor> {
        Arc::new(Redactor::new([SECRET, MULTILINE].map(Secret::new)))
    }

    fn stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut stream = RedactingStream::new(redactor());
        let mut shown: Vec<u8> = pieces.into_iter().flat_map(|piece| stream.push(piece)).collect();
        shown.extend(stream.finish());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn complete_lines_are_shown_at_once_and_the_rest_at_the_end() {
        let mut stream = RedactingStream::new(Arc::new(Redactor::new([Secret::new(SECRET)])));
        assert_eq!(stream.push(b"one\ntwo hunter22-"), b"one\n");
        assert_eq!(stream.push(b"hunter22\nthr"), b"two ***\n");
        assert_eq!(stream.finish(), b"thr");
    }

    #[test]
    fn a_key_block_is_held_until_it_ends() {
        let mut stream = RedactingStream::new(Arc::new(Redactor::new([])));
        assert_eq!(stream.push(b"a\n-----BEGIN PRIVATE KEY-----\n"), b"a\n");
        assert_eq!(stream.push(b"MIIE\n"), b"");
        assert_eq!(stream.push(b"-----END PRIVATE KEY-----\nb\n"), b"***\nb\n");
    }

    #[test]
    fn the_mention_of_a_key_block_holds_nothing_for_long() {
        let mut stream = RedactingStream::new(Arc::new(Redactor::new([])));
        assert_eq!(stream.push(b"-----BEGIN PRIVATE KEY-----\n"), b"");
        assert_eq!(stream.push(b"is how \"it\" starts\n"), b"***\"it\" starts\n");
    }

    #[test]
    fn a_block_that_grows_by_the_line_is_not_scanned_for_each() {
        let mut stream = RedactingStream::new(Arc::new(Redactor::new([])));
        stream.push(b"-----BEGIN PRIVATE KEY-----\n");
        let mut scans = 0;
        for _ in 0..2000 {
            let before = stream.scanned_in_vain;
            assert_eq!(stream.push(b"MIIE\n"), b"");
            scans += usize::from(stream.scanned_in_vain != before);
        }
        assert!(scans < 60, "{scans}");
        assert_eq!(stream.finish(), b"***");
    }

    #[test]
    fn an_endless_line_is_let_go_without_its_secrets() {
        for offset in [0, 1, 7, 4096] {
            let line = format!("{}{SECRET}", "x".repeat(60_000 + offset)).repeat(5);
            for piece_len in [1000, 4096, 65_536, 1_000_000] {
                let shown = stream(line.as_bytes().chunks(piece_len));
                assert_eq!(shown, line.replace(SECRET, "***"));
            }
        }
    }

    #[test]
    fn what_is_held_stays_bounded_even_when_all_of_it_is_secret() {
        let mut stream = RedactingStream::new(redactor());
        let token = format!("ghp_{}", "a".repeat(1_000_000));
        let block = format!("-----BEGIN PRIVATE KEY-----\n{}", "MIIE\n".repeat(100_000));
        for text in [token, block, SECRET.repeat(50_000)] {
            stream.push(text.as_bytes());
            assert!(stream.pending.len() <= 2 * HOLD_BYTES);
        }
    }

    /// Pieces of text that lie around secrets, and those that begin to look like one.
    fn text() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec![
            SECRET,
            MULTILINE,
            "hunter22-",
            "ab\ncd\n",
            "\n",
            "\n",
            " ",
            "x",
            "é",
            "\r\n",
            "-----BEGIN PRIVATE KEY-----",
            "MIIE",
            "-----END PRIVATE KEY-----",
            "Authorization: Bearer ",
            "abc",
            "https://u:p@h",
            "ghp_aB3dE6gH9jK2mN5pQ8sT",
            "aHVudGVyMjItaHVudGVyMjI=",
        ]);
        prop::collection::vec(words, 0..24).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn no_split_lets_a_secret_through_or_changes_the_result(
            text in text(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let shown = stream(cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]));
            prop_assert!(!shown.contains(SECRET) && !shown.contains(MULTILINE));
            prop_assert_eq!(shown, redactor().redact(&text));
        }

        #[test]
        fn any_secret_in_any_bytes_is_replaced(
            secret in "[a-zA-Z0-9]{6,20}", before in any::<Vec<u8>>(), after in any::<Vec<u8>>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let bytes = [&before[..], secret.as_bytes(), &after[..]].concat();
            let redactor = Arc::new(Redactor::new([Secret::new(secret.as_str())]));
            let mut stream = RedactingStream::new(Arc::clone(&redactor));
            let (first, second) = bytes.split_at(cut.index(bytes.len()));
            let shown = [stream.push(first), stream.push(second), stream.finish()].concat();
            prop_assert!(!shown.windows(secret.len()).any(|window| window == secret.as_bytes()));
            prop_assert_eq!(shown, redactor.redact_bytes(&bytes));
        }
    }
}
