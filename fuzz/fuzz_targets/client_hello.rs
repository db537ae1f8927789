//! Feeds arbitrary bytes to the reader of TLS greetings: it must not panic, and must not change its mind as bytes arrive.

#![no_main]

use libfuzzer_sys::fuzz_target;

// The reader is private to the proxy, so its file is part of this target.
#[path = "../../crates/egress/src/proxy/hello.rs"]
#[expect(dead_code, reason = "the proxy uses the rest")]
mod hello;
mod policy {
    pub(crate) use egress::policy::{DenyReason, HostName};
}

use hello::{Hello, parse_hello};

fuzz_target!(|bytes: &[u8]| {
    let whole = parse_hello(bytes);
    let Hello::Greets(_) = &whole else { return };
    for cut in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
        let part = parse_hello(&bytes[..cut]);
        assert!(part == Hello::Incomplete || part == whole, "{part:?} after {cut} bytes");
    }
});
