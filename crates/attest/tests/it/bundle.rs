//! What a bundle is believed for, and every way of not being believed.

use attest::bundle::{Bundle, BundleFault};
use attest::dsse::{Envelope, EnvelopeFault};
use attest::key::SecretKey;
use attest::rotation::{TrustedKeys, rotate};
use attest::statement::Statement;

use crate::sample::{bottle_run, pending, provenance};

struct Signed {
    bundle: Bundle,
    key: SecretKey,
}

fn signed() -> Signed {
    let key = SecretKey::generate().expect("a key");
    let mut bundle = pending();
    bundle.sign(&key, Vec::new()).expect("signed");
    Signed { bundle, key }
}

impl Signed {
    fn fault(&self) -> BundleFault {
        self.bundle.verify(&TrustedKeys::from_root(self.key.public(), &[])).expect_err("refused")
    }

    /// Puts another payload in, signed by the same key.
    fn replace(&mut self, index: usize, bytes: &[u8]) {
        let mut envelope = Envelope::unsigned(bytes);
        envelope.sign(&self.key).expect("signed");
        self.bundle.envelopes[index] = envelope;
    }
}

#[test]
fn a_signed_bundle_says_what_was_put_into_it() {
    let signed = signed();
    let trust = TrustedKeys::from_root(signed.key.public(), &[]);
    let verified = signed.bundle.verify(&trust).expect("it verifies");
    assert_eq!(verified.run, bottle_run());
    assert_eq!(verified.provenance, provenance());
    assert_eq!(verified.payloads, signed.bundle.payload_digests().expect("digests"));
    let text = serde_json::to_string(&signed.bundle).expect("JSON");
    assert_eq!(serde_json::from_str::<Bundle>(&text).expect("JSON"), signed.bundle);
}

#[test]
fn a_bundle_that_nobody_signed_yet_is_told_from_a_broken_one() {
    let key = SecretKey::generate().expect("a key").public();
    let fault = pending().verify(&TrustedKeys::from_root(key, &[])).expect_err("refused");
    assert_eq!(fault, BundleFault::Pending { reason: "the key is away".to_owned() });
}

#[test]
fn a_bundle_of_another_version_is_not_guessed_at() {
    let mut signed = signed();
    signed.bundle.version = 2;
    assert_eq!(signed.fault(), BundleFault::Version { found: 2 });
}

#[test]
fn a_bundle_with_one_signature_of_two_is_broken() {
    let mut signed = signed();
    signed.bundle.envelopes[1].signatures.clear();
    let expected = BundleFault::Envelope { which: "bottle-run", fault: EnvelopeFault::Unsigned };
    assert_eq!(signed.fault(), expected);
}

#[test]
fn statements_that_changed_places_are_refused_by_their_types() {
    let mut signed = signed();
    signed.bundle.envelopes.swap(0, 1);
    let words = signed.fault().to_string();
    assert!(words.contains("slsa.dev") && words.contains("bottle-run/v1"), "{words}");
}

#[test]
fn two_true_statements_of_different_runs_make_no_bundle() {
    let mut signed = signed();
    let mut other = bottle_run();
    other.predicate.run = "other_20250115_120000".to_owned();
    signed.replace(1, &other.to_bytes().expect("JSON"));
    assert_eq!(signed.fault(), BundleFault::Apart { what: "run" });
    let mut other = bottle_run();
    other.subject[0].digest.insert("gitCommit".to_owned(), "cd".repeat(20));
    signed.replace(1, &other.to_bytes().expect("JSON"));
    assert_eq!(signed.fault(), BundleFault::Apart { what: "subject" });
}

#[test]
fn a_rotation_is_no_statement_about_a_run() {
    let mut signed = signed();
    let next = SecretKey::generate().expect("a key");
    let now = "2025-01-15T12:00:00Z".parse().expect("a time");
    signed.bundle.envelopes[1] = rotate(&signed.key, &next, now).expect("a rotation");
    let words = signed.fault().to_string();
    assert!(words.contains("key-rotation/v1"), "{words}");
}

#[test]
fn a_field_that_nobody_knows_is_not_passed_over() {
    let mut signed = signed();
    let mut document: serde_json::Value =
        serde_json::from_slice(&bottle_run().to_bytes().expect("JSON")).expect("JSON");
    document["predicate"]["extra"] = true.into();
    signed.replace(1, document.to_string().as_bytes());
    assert!(signed.fault().to_string().contains("extra"), "{}", signed.fault());
}

#[test]
fn whoever_pinned_the_first_key_gets_to_the_one_that_signed() {
    let (first, second) =
        (SecretKey::generate().expect("a key"), SecretKey::generate().expect("a key"));
    let handed = rotate(&first, &second, "2025-01-15T11:00:00Z".parse().expect("a time"))
        .expect("a rotation");
    let mut bundle = pending();
    bundle.sign(&second, vec![handed]).expect("signed");
    let trust = TrustedKeys::from_root(first.public(), &bundle.rotations);
    assert_eq!(bundle.verify(&trust).expect("it verifies").keyid, second.public().id());
    // The old key signs nothing that happened after it was replaced.
    let rotations = bundle.rotations.clone();
    bundle.sign(&first, rotations).expect("signed");
    let fault = bundle.verify(&trust).expect_err("refused");
    assert!(matches!(fault, BundleFault::Retired { .. }), "{fault}");
}

#[test]
fn the_statements_name_their_types() {
    let text = String::from_utf8(Statement::to_bytes(&bottle_run()).expect("JSON")).expect("UTF-8");
    assert!(text.starts_with(r#"{"_type":"https://in-toto.io/Statement/v1""#), "{text}");
    assert!(text.contains(r#""predicateType":"https://bottleworks.dev/bottle-run/v1""#), "{text}");
}
