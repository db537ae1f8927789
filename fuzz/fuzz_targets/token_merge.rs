//! Merges the tokens of arbitrary hunks: it must not panic, must not depend on which side is which, and must not invent
//! a byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use merge::resolver::hunk::Hunk;
use merge::resolver::analysis::analyze_hunk;

fuzz_target!(|texts: (&[u8], &[u8], &[u8])| {
    let [base, ours, theirs] = [texts.0, texts.1, texts.2].map(<[u8]>::to_vec);
    let hunk = Hunk { base, ours, theirs };
    let mirrored =
        Hunk { base: hunk.base.clone(), ours: hunk.theirs.clone(), theirs: hunk.ours.clone() };
    let analysis = analyze_hunk(&hunk);
    assert_eq!(analysis.apart, analyze_hunk(&mirrored).apart);
    for text in [&analysis.apart, &analysis.touching, &analysis.spaces].into_iter().flatten() {
        let known = |byte: &u8| [&hunk.base, &hunk.ours, &hunk.theirs].iter().any(|side| side.contains(byte));
        assert!(text.iter().all(known));
    }
});
