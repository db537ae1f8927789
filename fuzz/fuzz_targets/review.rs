//! Feeds arbitrary text to the extraction of reviews: whatever an agent prints, it must not panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    wf::fuzz_api::review(text);
});
