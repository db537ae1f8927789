//! Feeds arbitrary deliveries to the webhook rules of every forge: nothing may panic, and nothing unsigned is genuine.

#![no_main]

use forge::ForgeKind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|delivery: (&str, &[u8])| {
    // The header serves as the name of the event, of the delivery and as the signature.
    let (header, body) = delivery;
    for kind in ForgeKind::all() {
        let read = kind.parse_delivery(|_| Some(header), body);
        if let Ok(read) = read {
            assert!(!read.id.is_empty());
        }
        assert!(!kind.verify_delivery(|_| Some(header), body, "a secret that no input has"));
    }
});
