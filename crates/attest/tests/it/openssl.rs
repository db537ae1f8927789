//! openssl knows nothing of us: what it verifies, anybody can.

use std::path::Path;

use attest::dsse::{Envelope, IN_TOTO, pae};
use attest::key::SecretKey;
use base64ct::{Base64, Encoding};
use testkit::Hermetic;
use testkit::part::{Part, require};

fn openssl(hermetic: &Hermetic, program: &Path, args: &[&str]) -> testkit::Output {
    let mut command = hermetic.command(program);
    hermetic.run(command.current_dir(hermetic.root()).args(args))
}

#[test]
fn openssl_verifies_our_signature_and_refuses_a_changed_payload() {
    let Some(program) = require(Part::Openssl) else { return };
    let hermetic = Hermetic::new();
    let key = SecretKey::generate().expect("a key");
    let mut envelope = Envelope::unsigned(br#"{"hello":"world"}"#);
    envelope.sign(&key).expect("signed");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(hermetic.root().join(name), bytes).expect("written");
    };
    write("key.pem", key.public().pem().expect("PEM").as_bytes());
    write("sig", &Base64::decode_vec(&envelope.signatures[0].sig).expect("Base64"));
    write("good", &pae(IN_TOTO, br#"{"hello":"world"}"#));
    write("bad", &pae(IN_TOTO, br#"{"hello":"World"}"#));
    let verify = |message: &str| {
        let args = [
            "pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", message,
            "-sigfile", "sig",
        ];
        openssl(&hermetic, &program, &args)
    };
    let good = verify("good");
    assert_eq!(good.status, Some(0), "{}", good.snapshot());
    assert!(good.stdout.contains("Verified Successfully"), "{}", good.stdout);
    assert_ne!(verify("bad").status, Some(0));
}

#[test]
fn openssl_reads_our_private_key_and_the_keys_name_is_the_digest_of_its_der() {
    let Some(program) = require(Part::Openssl) else { return };
    let hermetic = Hermetic::new();
    let key = SecretKey::generate().expect("a key");
    let path = hermetic.root().join("private.pem");
    std::fs::write(&path, key.pem().expect("PEM").expose()).expect("written");
    let shown = openssl(&hermetic, &program, &["pkey", "-in", "private.pem", "-pubout"]);
    assert_eq!(shown.stdout, key.public().pem().expect("PEM"));
    let args = ["pkey", "-in", "private.pem", "-pubout", "-outform", "DER", "-out", "public.der"];
    assert_eq!(openssl(&hermetic, &program, &args).status, Some(0));
    let der = std::fs::read(hermetic.root().join("public.der")).expect("read");
    assert_eq!(model::digest::sha256(&der), key.public().id().as_str());
}
