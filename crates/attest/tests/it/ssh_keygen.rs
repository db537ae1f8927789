//! ssh-keygen knows nothing of us: what it verifies, git and forges can.

use std::process::Stdio;

use attest::key::SecretKey;
use attest::ssh_signature::GIT_NAMESPACE;
use testkit::Hermetic;
use testkit::part::{Part, require};

#[test]
fn ssh_keygen_verifies_our_signature_and_refuses_other_bytes_and_namespaces() {
    let Some(program) = require(Part::SshKeygen) else { return };
    let hermetic = Hermetic::new();
    let key = SecretKey::generate().expect("a key");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(hermetic.root().join(name), bytes).expect("written");
    };
    write("signers", format!("host {}\n", key.public().ssh_line()).as_bytes());
    write("signature", key.sign_ssh(GIT_NAMESPACE, b"tree and words\n").as_bytes());
    write("good", b"tree and words\n");
    write("bad", b"tree and other words\n");
    let verify = |message: &str, namespace: &str| {
        let input = std::fs::File::open(hermetic.root().join(message)).expect("a file");
        let mut command = hermetic.command(&program);
        command.current_dir(hermetic.root()).args(["-Y", "verify", "-f", "signers", "-I", "host"]);
        command.args(["-n", namespace, "-s", "signature"]).stdin(Stdio::from(input));
        hermetic.run(&mut command)
    };
    let good = verify("good", "git");
    assert_eq!(good.status, Some(0), "{}", good.snapshot());
    assert_ne!(verify("bad", "git").status, Some(0));
    assert_ne!(verify("good", "file").status, Some(0));
    let again = key.sign_ssh(GIT_NAMESPACE, b"tree and words\n");
    assert_eq!(again, std::fs::read_to_string(hermetic.root().join("signature")).expect("read"));
}
