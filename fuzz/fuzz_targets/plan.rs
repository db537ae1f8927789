//! Feeds arbitrary text to the plan parser: it must not panic, and marking a micro-commit changes one byte.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    wf::fuzz_api::plan(text);
});
