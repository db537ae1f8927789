//! One ed25519 key: as PEM that openssl reads (PKCS#8 and SPKI), and named by its digest.

use std::fmt;

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes,
};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use host::random::RandomError;
use model::secret::Secret;
use serde::{Deserialize, Serialize};

use model::digest::{hex, sha256};

/// The id of a key: SHA-256 of the public key as SPKI in DER, in hex. `openssl pkey -pubin -outform DER |
/// sha256sum` prints the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    #[error("it is not an ed25519 {what} in PEM: {why}")]
    Malformed { what: &'static str, why: String },
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// The signing half. Only [`SecretKey::pem`] exposes it.
pub struct SecretKey(SigningKey);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public().id())
    }
}

impl SecretKey {
    pub fn generate() -> Result<Self, KeyFault> {
        Ok(Self(SigningKey::from_bytes(&host::random::bytes()?)))
    }

    pub fn parse_pem(text: &str) -> Result<Self, KeyFault> {
        SigningKey::from_pkcs8_pem(text.trim()).map(Self).map_err(malformed("private key"))
    }

    /// Renders PKCS#8 in PEM. The first version of that format, without the public half: openssl reads no other.
    pub fn pem(&self) -> Result<Secret, KeyFault> {
        let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let text = bytes.to_pkcs8_pem(LineEnding::LF).map_err(malformed("private key"))?;
        Ok(Secret::new(text.as_str()))
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }
}

/// The verifying half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn parse_pem(text: &str) -> Result<Self, KeyFault> {
        VerifyingKey::from_public_key_pem(text.trim()).map(Self).map_err(malformed("public key"))
    }

    pub fn pem(&self) -> Result<String, KeyFault> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(malformed("public key"))
    }

    pub fn id(&self) -> KeyId {
        match self.0.to_public_key_der() {
            Ok(der) => KeyId(sha256(der.as_bytes())),
            // Forty-four bytes always have a DER form; if that ever fails, the raw key serves as the id.
            Err(_) => KeyId(hex(self.0.as_bytes())),
        }
    }

    pub(crate) fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Returns whether this key signed these bytes. Strict: non-canonical keys and signatures are rejected.
    pub fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(bytes, &signature).is_ok())
    }
}

fn malformed<E: fmt::Display>(what: &'static str) -> impl FnOnce(E) -> KeyFault {
    move |error| KeyFault::Malformed { what, why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_pem_and_signs_the_same() {
        let key = SecretKey::generate().unwrap();
        let again = SecretKey::parse_pem(key.pem().unwrap().expose()).unwrap();
        assert_eq!(key.sign(b"words"), again.sign(b"words"));
        let public = PublicKey::parse_pem(&key.public().pem().unwrap()).unwrap();
        assert_eq!(public.id(), key.public().id());
        assert!(public.has_signed(b"words", &key.sign(b"words")));
        assert!(!public.has_signed(b"other", &key.sign(b"words")));
        assert!(!public.has_signed(b"words", b"short"));
    }

    #[test]
    fn a_secret_key_shows_only_its_name() {
        let key = SecretKey::generate().unwrap();
        let shown = format!("{key:?}");
        assert_eq!(shown, format!("SecretKey({})", key.public().id()));
    }

    #[test]
    fn what_is_no_key_is_told_as_such() {
        let fault = PublicKey::parse_pem("hello").unwrap_err().to_string();
        assert!(fault.contains("it is not an ed25519 public key in PEM"), "{fault}");
        let public = SecretKey::generate().unwrap().public().pem().unwrap();
        assert!(SecretKey::parse_pem(&public).is_err());
    }
}
