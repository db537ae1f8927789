//! Cuts arbitrary texts into hunks and puts them together again: nothing may panic or get lost.

#![no_main]

use libfuzzer_sys::fuzz_target;
use merge::resolver::hunk::{cut, hunks, join};
use merge::resolver::human::human_answers;

fuzz_target!(|texts: (&[u8], &[u8], &[u8])| {
    let (base, ours, theirs) = texts;
    assert_eq!(join(&cut(base, ours, base), []), ours);
    let pieces = cut(base, ours, theirs);
    let answers = human_answers(&pieces, theirs);
    assert_eq!(answers.len(), hunks(&pieces).count());
});
