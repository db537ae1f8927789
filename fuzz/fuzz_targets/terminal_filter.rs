//! Feeds arbitrary bytes to the terminal filter: it must not panic, must not depend on how the bytes are cut, and must not
//! let the clipboard be written.

#![no_main]

use libfuzzer_sys::fuzz_target;

// The filter is private to the engine, so its file is part of this target.
#[path = "../../crates/engine/src/terminal/filter.rs"]
mod filter;

use filter::TerminalFilter;

fuzz_target!(|bytes: &[u8]| {
    let mut filter = TerminalFilter::default();
    let whole = filter.pass(bytes);
    drop(filter.leave());
    let mut filter = TerminalFilter::default();
    let pieces: Vec<u8> = bytes.chunks(3).flat_map(|piece| filter.pass(piece)).collect();
    assert_eq!(whole, pieces);
    for forbidden in [&b"\x1b]52;"[..], b"\x1b]1337;"] {
        assert!(!whole.windows(forbidden.len()).any(|window| window == forbidden));
    }
});
