//! Feeds arbitrary output and reports to the readers that count tests: whatever a check prints, they must not panic.

#![no_main]

use engine::test_count::{parse_junit, parse_test_output};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    parse_junit(bytes);
    parse_test_output(&String::from_utf8_lossy(bytes));
});
