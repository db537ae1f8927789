//! Masking of secrets in bytes that must keep their length: bodies whose length was announced, files of other programs.
//!
//! A mask finds a secret in more spellings than the redactor, since each character may be written in its own way, and
//! nothing else: text that only looks like a token is the model's or the agent's own and stays. Of a stream, only an end
//! that may be the start of a secret is held back.

use std::ops::Range;
use std::sync::Arc;

use super::form;
use crate::secret::Secret;

const MASK_BYTE: u8 = b'*';

/// A value of this length is a secret whatever it is made of. A shorter one without a digit is a word, such as the
/// placeholder that a local server takes for a key, and to mask it would garble ordinary text.
const SURE_LEN: usize = 12;
const MIN_LEN: usize = 8;

/// Finds secrets in every spelling and overwrites them.
pub struct SecretMask {
    patterns: Vec<Pattern>,
    /// For each byte, the patterns that can begin with it.
    by_start: Vec<Vec<usize>>,
    starts: StartPairs,
}

/// The pairs of bytes with which a pattern can begin, one bit for each pair. Most bytes of a text begin none of them.
struct StartPairs(Vec<u64>);

/// One letter after another, each in any of its spellings, the longest first.
struct Pattern(Vec<Letter>);

struct Letter {
    spellings: Vec<Vec<u8>>,
    case: Case,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Exact,
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// All of it, with this length.
    Whole(usize),
    /// The bytes end in the middle of it.
    Start,
    Not,
}

impl SecretMask {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let values = secrets.into_iter().map(Secret::expose).filter(|value| is_distinctive(value));
        let patterns: Vec<Pattern> = values.flat_map(patterns_of).collect();
        let mut by_start = vec![Vec::new(); 256];
        let mut starts = StartPairs::new();
        for (number, pattern) in patterns.iter().enumerate() {
            pattern.start_pairs().into_iter().for_each(|pair| starts.insert(pair));
            for start in pattern.starts() {
                let numbers: &mut Vec<usize> = &mut by_start[usize::from(start)];
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            }
        }
        Self { patterns, by_start, starts }
    }

    /// True if there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns where the secrets are in a whole text.
    pub fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let (mut hits, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            match self.longest_at(&bytes[at..]) {
                (Some(len), _) => {
                    hits.push(at..at + len);
                    at += len;
                }
                (None, _) => at += 1,
            }
        }
        hits
    }

    /// Overwrites the secrets in a whole text and returns whether there were any.
    pub fn mask(&self, bytes: &mut [u8]) -> bool {
        let hits = self.find(bytes);
        hits.iter().for_each(|hit| bytes[hit.clone()].fill(MASK_BYTE));
        !hits.is_empty()
    }

    /// Overwrites the secrets and returns where a possible start of another begins, and whether there were any.
    pub fn mask_start(&self, bytes: &mut [u8]) -> (usize, bool) {
        let (mut at, mut is_changed) = (0, false);
        while at < bytes.len() {
            match self.longest_at(&bytes[at..]) {
                // A longer spelling may still come.
                (_, true) => break,
                (Some(len), false) => {
                    bytes[at..at + len].fill(MASK_BYTE);
                    (at, is_changed) = (at + len, true);
                }
                (None, false) => at += 1,
            }
        }
        (at, is_changed)
    }

    /// The longest secret at the beginning, and whether more bytes could make one.
    fn longest_at(&self, bytes: &[u8]) -> (Option<usize>, bool) {
        let (mut longest, mut may_go_on) = (None, false);
        let first = match bytes {
            [] => return (None, false),
            [first, second, ..] if !self.starts.has(*first, *second) => return (None, false),
            [first, ..] => first,
        };
        for number in &self.by_start[usize::from(*first)] {
            match self.patterns[*number].find(bytes) {
                Found::Whole(len) => longest = longest.max(Some(len)),
                Found::Start => may_go_on = true,
                Found::Not => {}
            }
        }
        (longest, may_go_on)
    }
}

impl StartPairs {
    fn new() -> Self {
        Self(vec![0; (1 << 16) / 64])
    }

    fn place(first: u8, second: u8) -> (usize, u64) {
        let pair = usize::from(first) << 8 | usize::from(second);
        (pair / 64, 1 << (pair % 64))
    }

    fn insert(&mut self, (first, second): (u8, u8)) {
        for first in both_cases(first) {
            for second in both_cases(second) {
                let (word, bit) = Self::place(first, second);
                self.0[word] |= bit;
            }
        }
    }

    fn has(&self, first: u8, second: u8) -> bool {
        let (word, bit) = Self::place(first, second);
        self.0[word] & bit != 0
    }
}

impl Default for SecretMask {
    fn default() -> Self {
        Self::new([])
    }
}

impl std::fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretMask").finish_non_exhaustive()
    }
}

/// Masks one stream that arrives in pieces.
#[derive(Debug)]
pub struct MaskingStream {
    mask: Arc<SecretMask>,
    held: Vec<u8>,
}

impl MaskingStream {
    pub fn new(mask: Arc<SecretMask>) -> Self {
        Self { mask, held: Vec::new() }
    }

    /// Takes the next piece and returns the bytes that are ready; `None` if that is exactly the piece.
    pub fn push(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.held);
        let is_alone = bytes.is_empty();
        bytes.extend_from_slice(piece);
        let (ready, is_changed) = self.mask.mask_start(&mut bytes);
        self.held = bytes.split_off(ready);
        let is_same = is_alone && !is_changed && self.held.is_empty();
        (!is_same).then_some(bytes)
    }

    pub fn held_len(&self) -> usize {
        self.held.len()
    }

    /// Returns the rest at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        self.mask.mask(&mut rest);
        rest
    }
}

fn is_distinctive(value: &str) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() >= if has_digit { MIN_LEN } else { SURE_LEN }
}

fn patterns_of(value: &str) -> Vec<Pattern> {
    let hex = form::hex_encode(value, b"0123456789abcdef");
    let mut patterns = vec![
        Pattern::literal(value, Case::Exact),
        Pattern(value.bytes().map(Letter::of).collect()),
        Pattern::literal(&hex, Case::Any),
    ];
    let encoded = form::base64_forms(value);
    patterns.extend(encoded.iter().map(|form| Pattern::literal(form, Case::Exact)));
    patterns
}

fn both_cases(byte: u8) -> [u8; 2] {
    [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]
}

impl Pattern {
    fn literal(text: &str, case: Case) -> Self {
        let letter = |byte| Letter { spellings: vec![vec![byte]], case };
        Self(text.bytes().map(letter).collect())
    }

    fn spellings(&self, letter: usize) -> &[Vec<u8>] {
        self.0.get(letter).map_or(&[][..], |letter| &letter.spellings)
    }

    fn starts(&self) -> Vec<u8> {
        let firsts = self.spellings(0).iter().filter_map(|text| text.first());
        let mut starts: Vec<u8> = firsts.copied().flat_map(both_cases).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    fn start_pairs(&self) -> Vec<(u8, u8)> {
        let mut pairs = Vec::new();
        for spelling in self.spellings(0) {
            match spelling[..] {
                [first, second, ..] => pairs.push((first, second)),
                [first] => {
                    let seconds = self.spellings(1).iter().filter_map(|text| text.first());
                    pairs.extend(seconds.map(|second| (first, *second)));
                }
                [] => {}
            }
        }
        pairs
    }

    fn find(&self, bytes: &[u8]) -> Found {
        let mut at = 0;
        for letter in &self.0 {
            match letter.find(&bytes[at..]) {
                Found::Whole(len) => at += len,
                other => return other,
            }
        }
        Found::Whole(at)
    }
}

impl Letter {
    /// A character as it is, percent-encoded, as an escape of JSON, C or HTML, and encoded twice.
    fn of(byte: u8) -> Self {
        let mut spellings = vec![
            format!("%25{byte:02x}"),
            format!("\\\\u00{byte:02x}"),
            format!("\\u00{byte:02x}"),
            format!("\\\\x{byte:02x}"),
            format!("\\x{byte:02x}"),
            format!("&#x{byte:02x};"),
            format!("&#{byte};"),
            format!("%{byte:02x}"),
        ];
        if b"\"\\/".contains(&byte) {
            let escaped = char::from(byte);
            spellings.extend([format!("\\\\\\{escaped}"), format!("\\\\{escaped}")]);
            spellings.push(format!("\\{escaped}"));
        }
        let mut spellings: Vec<Vec<u8>> = spellings.into_iter().map(String::into_bytes).collect();
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.push(vec![byte]);
        Self { spellings, case: Case::Exact }
    }

    fn find(&self, bytes: &[u8]) -> Found {
        let mut found = Found::Not;
        for spelling in &self.spellings {
            let len = spelling.len().min(bytes.len());
            // The digits of an escape may be in either case; a letter itself may not.
            let is_same = match self.case {
                Case::Exact if spelling.len() == 1 => bytes[..len] == spelling[..len],
                Case::Exact | Case::Any => bytes[..len].eq_ignore_ascii_case(&spelling[..len]),
            };
            if is_same && len == spelling.len() {
                return if found == Found::Start { found } else { Found::Whole(len) };
            }
            if is_same {
                found = Found::Start;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-a1/b2+C3\"d";

    fn mask() -> Arc<SecretMask> {
        Arc::new(SecretMask::new([&Secret::new(KEY)]))
    }

    fn masked(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        mask().mask(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    fn streamed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut stream = MaskingStream::new(mask());
        let mut shown = Vec::new();
        for piece in pieces {
            shown.extend(stream.push(piece).unwrap_or_else(|| piece.to_vec()));
        }
        shown.extend(stream.finish());
        shown
    }

    /// The key in many spellings.
    fn spellings() -> Vec<String> {
        let each = |spell: &dyn Fn(u8) -> String| KEY.bytes().map(spell).collect::<String>();
        vec![
            KEY.to_owned(),
            KEY.replace('"', "\\\""),
            KEY.replace('"', "\\\\\\\"").replace('/', "\\\\/"),
            KEY.replace('/', "\\/").replace('"', "\\u0022"),
            KEY.replace('/', "%2F").replace('+', "%2b").replace('"', "%22"),
            each(&|byte| format!("%{byte:02X}")),
            each(&|byte| format!("%25{byte:02x}")),
            each(&|byte| format!("\\u{byte:04X}")),
            each(&|byte| format!("\\x{byte:02x}")),
            each(&|byte| format!("&#{byte};")),
            each(&|byte| format!("{byte:02x}")),
            each(&|byte| format!("{byte:02X}")),
        ]
    }

    #[test]
    fn every_spelling_is_overwritten_and_nothing_moves() {
        for spelling in spellings() {
            let text = format!("before {spelling} after");
            let expected = format!("before {} after", "*".repeat(spelling.len()));
            assert_eq!(masked(&text), expected, "{spelling}");
        }
    }

    #[test]
    fn base64_is_overwritten_at_any_alignment() {
        let encoded = [
            ("c2stYTEvYjIrQzMiZA==", ""),
            ("QmVhcmVyIHNrLWExL2IyK0MzImQ=", "Bearer "),
            ("eDpzay1hMS9iMitDMyJkLHk=", "x:"),
        ];
        for (text, before) in encoded {
            let shown = masked(text);
            assert_eq!(shown.len(), text.len());
            let stars = shown.bytes().filter(|byte| *byte == b'*').count();
            assert!(stars >= KEY.len(), "{before}{KEY}: {shown}");
        }
    }

    #[test]
    fn other_text_stays_even_if_it_looks_like_a_token() {
        for text in ["sk-a1/b2+C3", "ghp_aB3dE6gH9jK2mN5pQ8sT", "SK-A1/B2+C3\"D", "\\u0073k-a", ""]
        {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn a_word_is_not_taken_for_a_secret() {
        for word in ["ollama", "lm-studio", "placeholder", "", "a1b2c3d"] {
            assert!(SecretMask::new([&Secret::new(word)]).is_empty(), "{word}");
        }
        for secret in ["a1b2c3d4", "sk-the-real-one"] {
            assert!(!SecretMask::new([&Secret::new(secret)]).is_empty(), "{secret}");
        }
    }

    #[test]
    fn a_piece_without_a_start_of_a_secret_passes_at_once() {
        let mut stream = MaskingStream::new(mask());
        assert_eq!(stream.push(b"data: {}\n\n"), None);
        assert_eq!(stream.push(b"data: sk-").unwrap(), b"data: ");
        assert_eq!(stream.held_len(), 3);
        assert_eq!(stream.push(b"other\n\n").unwrap(), b"sk-other\n\n");
        assert_eq!(stream.push(b"\n\n"), None);
    }

    #[test]
    fn a_key_split_in_two_at_any_place_is_overwritten() {
        for spelling in spellings() {
            let text = format!("a{spelling}b");
            let expected = format!("a{}b", "*".repeat(spelling.len()));
            for at in 0..=text.len() {
                let (one, two) = text.as_bytes().split_at(at);
                assert_eq!(streamed([one, two]), expected.as_bytes(), "{spelling} at {at}");
            }
            assert_eq!(streamed(text.as_bytes().chunks(1)), expected.as_bytes(), "{spelling}");
        }
    }

    #[test]
    fn a_mask_does_not_show_what_it_knows() {
        assert_eq!(format!("{:?}", mask()), "SecretMask { .. }");
    }

    proptest! {
        #[test]
        fn a_stream_shows_the_same_whatever_its_pieces(
            parts in prop::collection::vec(
                prop::sample::select([spellings(), vec!["s".into(), "\\".into(), "%7".into(), " ".into()]].concat()),
                0..12,
            ),
            size in 1_usize..40,
        ) {
            let text = parts.concat();
            let mut whole = text.as_bytes().to_vec();
            mask().mask(&mut whole);
            prop_assert_eq!(streamed(text.as_bytes().chunks(size)), whole);
        }
    }
}
