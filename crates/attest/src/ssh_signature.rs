//! Signatures as ssh-keygen makes and verifies them (SSHSIG, version 1), by the same ed25519 key: git reads them in commits,
//! and forges show them as verified where the key is registered for signing.

use base64ct::{Base64, Encoding};
use model::digest::sha256_bytes;

use crate::key::{PublicKey, SecretKey};

/// The namespace of signatures in git.
pub const GIT_NAMESPACE: &str = "git";

const MAGIC: &[u8] = b"SSHSIG";
const KEY_TYPE: &[u8] = b"ssh-ed25519";
const HASH: &[u8] = b"sha256";
/// Characters of a line in the armour.
const LINE: usize = 70;

impl PublicKey {
    /// The key as one line of OpenSSH, without a comment.
    pub fn ssh_line(&self) -> String {
        format!("ssh-ed25519 {}", Base64::encode_string(&self.ssh_blob()))
    }

    fn ssh_blob(&self) -> Vec<u8> {
        [string(KEY_TYPE), string(&self.to_bytes())].concat()
    }
}

impl SecretKey {
    /// Signs bytes for a namespace. The same bytes always get the same signature.
    pub fn sign_ssh(&self, namespace: &str, bytes: &[u8]) -> String {
        let space = string(namespace.as_bytes());
        let reserved = string(b"");
        let (hash, digest) = (string(HASH), string(&sha256_bytes(bytes)));
        let message = [MAGIC, &space, &reserved, &hash, &digest].concat();
        let signature = [string(KEY_TYPE), string(&self.sign(&message))].concat();
        let (version, key) = (1_u32.to_be_bytes(), string(&self.public().ssh_blob()));
        let blob = [MAGIC, &version, &key, &space, &reserved, &hash, &string(&signature)].concat();
        armour(&blob)
    }
}

/// Bytes with their length before them, as SSH writes them. None here is longer than a few hundred.
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), bytes].concat()
}

fn armour(blob: &[u8]) -> String {
    let text = Base64::encode_string(blob);
    let lines: Vec<&str> =
        text.as_bytes().chunks(LINE).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}
