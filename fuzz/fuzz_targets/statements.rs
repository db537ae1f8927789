//! Feeds arbitrary bytes to whoever verifies a run's statements: nothing may panic, and nothing that this key did not sign may
//! be believed.

#![no_main]

use std::sync::LazyLock;

use attest::bundle::Bundle;
use attest::key::SecretKey;
use attest::rotation::TrustedKeys;
use libfuzzer_sys::fuzz_target;

static KEY: LazyLock<SecretKey> = LazyLock::new(|| SecretKey::generate().expect("a key"));

fuzz_target!(|bytes: &[u8]| {
    let Ok(bundle) = serde_json::from_slice::<Bundle>(bytes) else {
        return;
    };
    let trust = TrustedKeys::from_root(KEY.public(), &bundle.rotations);
    assert_eq!(trust.keys().count(), 1);
    assert!(bundle.verify(&trust).is_err());
});
