//! Feeds arbitrary bytes to the readers of forge responses: whatever a server sends, they must not panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    forge::fuzz_api::response(body);
});
