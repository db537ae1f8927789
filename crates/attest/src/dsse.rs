//! DSSE envelopes: bytes, their type, and signatures over both. The type is inside what is signed, so bytes of one type
//! never pass for bytes of another.

use base64ct::{Base64, Encoding};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::key::{KeyId, PublicKey, SecretKey};

/// The type of every payload here.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";

/// Bytes with signatures; an envelope without any is not signed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// The payload in Base64.
    pub payload: String,
    pub signatures: Vec<SignatureLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureLine {
    pub keyid: KeyId,
    /// The signature in Base64.
    pub sig: String,
}

/// An envelope that does not verify.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeFault {
    #[error("its payload is '{found}', not '{IN_TOTO}'")]
    Type { found: String },
    #[error("its {what} is not Base64: {why}")]
    Base64 { what: &'static str, why: base64ct::Error },
    #[error("it is not signed")]
    Unsigned,
    #[error("it is signed by {keyids}, which is no key that counts here")]
    UnknownKey { keyids: String },
    /// It names a trusted key that did not sign these bytes.
    #[error("the signature of key {keyid} does not fit: the payload or its type was changed")]
    Broken { keyid: KeyId },
    /// The verified bytes are not a statement of the expected kind.
    #[error("its payload cannot be read: {0}")]
    Payload(String),
}

/// Bytes whose signature was checked. Only these are parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    bytes: Vec<u8>,
    keyid: KeyId,
}

impl Envelope {
    pub fn unsigned(bytes: &[u8]) -> Self {
        Self {
            payload_type: IN_TOTO.to_owned(),
            payload: Base64::encode_string(bytes),
            signatures: Vec::new(),
        }
    }

    pub fn sign(&mut self, key: &SecretKey) -> Result<(), EnvelopeFault> {
        let bytes = self.claimed_bytes()?;
        let sig = Base64::encode_string(&key.sign(&pae(&self.payload_type, &bytes)));
        self.signatures.push(SignatureLine { keyid: key.public().id(), sig });
        Ok(())
    }

    /// Returns the unverified payload: to be compared or signed, not to be parsed for its meaning.
    pub fn claimed_bytes(&self) -> Result<Vec<u8>, EnvelopeFault> {
        decode("payload", &self.payload)
    }

    /// Checks the type and a signature by one of `keys`, and returns exactly the signed bytes. A named key
    /// whose signature does not fit is a fault even where another one fits.
    pub fn verify<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a PublicKey>,
    ) -> Result<Verified, EnvelopeFault> {
        if self.payload_type != IN_TOTO {
            return Err(EnvelopeFault::Type {
                found: self.payload_type.escape_debug().to_string(),
            });
        }
        let bytes = self.claimed_bytes()?;
        let message = pae(&self.payload_type, &bytes);
        let keys: Vec<(KeyId, &PublicKey)> = keys.into_iter().map(|key| (key.id(), key)).collect();
        let mut signer = None;
        for line in &self.signatures {
            let Some((id, key)) = keys.iter().find(|(id, _)| *id == line.keyid) else { continue };
            let sig = decode("signature", &line.sig)?;
            if !key.has_signed(&message, &sig) {
                return Err(EnvelopeFault::Broken { keyid: id.clone() });
            }
            signer.get_or_insert_with(|| id.clone());
        }
        match signer {
            Some(keyid) => Ok(Verified { bytes, keyid }),
            None if self.signatures.is_empty() => Err(EnvelopeFault::Unsigned),
            None => Err(EnvelopeFault::UnknownKey { keyids: self.signer_names() }),
        }
    }

    /// Returns the keys that the envelope names, which are unverified.
    pub fn signer_names(&self) -> String {
        let names: Vec<&str> = self.signatures.iter().map(|line| line.keyid.as_str()).collect();
        names.join(", ").escape_debug().to_string()
    }
}

impl Verified {
    pub fn keyid(&self) -> &KeyId {
        &self.keyid
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, EnvelopeFault> {
        serde_json::from_slice(&self.bytes)
            .map_err(|error| EnvelopeFault::Payload(error.to_string()))
    }
}

fn decode(what: &'static str, text: &str) -> Result<Vec<u8>, EnvelopeFault> {
    Base64::decode_vec(text).map_err(|why| EnvelopeFault::Base64 { what, why })
}

/// Encodes the signed message: the type and the bytes, each with its length, so that neither runs into the other.
pub fn pae(payload_type: &str, bytes: &[u8]) -> Vec<u8> {
    let mut message =
        format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), bytes.len()).into_bytes();
    message.extend_from_slice(bytes);
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn signed(bytes: &[u8]) -> (Envelope, SecretKey) {
        let key = SecretKey::generate().unwrap();
        let mut envelope = Envelope::unsigned(bytes);
        envelope.sign(&key).unwrap();
        (envelope, key)
    }

    #[test]
    fn the_encoding_is_the_one_of_the_specification() {
        let example = pae("http://example.com/HelloWorld", b"hello world");
        assert_eq!(example, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn what_was_signed_is_what_comes_out() {
        let (envelope, key) = signed(br#"{"a":1}"#);
        let verified = envelope.verify([&key.public()]).unwrap();
        assert_eq!(verified.bytes(), br#"{"a":1}"#);
        assert_eq!(verified.keyid(), &key.public().id());
    }

    #[test]
    fn another_type_with_the_same_bytes_is_refused() {
        let (mut envelope, key) = signed(b"{}");
        envelope.payload_type = "text/plain".to_owned();
        let fault = envelope.verify([&key.public()]).unwrap_err();
        assert!(matches!(fault, EnvelopeFault::Type { .. }), "{fault}");
        // An envelope signed as another type does not become ours by renaming its type.
        let mut other =
            Envelope { payload_type: "text/plain".to_owned(), ..Envelope::unsigned(b"{}") };
        other.sign(&key).unwrap();
        other.payload_type = IN_TOTO.to_owned();
        let fault = other.verify([&key.public()]).unwrap_err();
        assert_eq!(fault, EnvelopeFault::Broken { keyid: key.public().id() });
    }

    #[test]
    fn another_key_does_not_count_and_cannot_borrow_a_name() {
        let (mut envelope, key) = signed(b"{}");
        let other = SecretKey::generate().unwrap();
        let fault = envelope.verify([&other.public()]).unwrap_err();
        assert!(fault.to_string().contains(key.public().id().as_str()), "{fault}");
        envelope.signatures[0].keyid = other.public().id();
        let fault = envelope.verify([&other.public()]).unwrap_err();
        assert_eq!(fault, EnvelopeFault::Broken { keyid: other.public().id() });
    }

    #[test]
    fn no_signature_is_told_from_a_wrong_one() {
        let key = SecretKey::generate().unwrap().public();
        assert_eq!(Envelope::unsigned(b"{}").verify([&key]), Err(EnvelopeFault::Unsigned));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_changed_byte_passes(bytes in proptest::collection::vec(any::<u8>(), 1..200), at in any::<prop::sample::Index>(), flip in 1_u8..) {
            let (mut envelope, key) = signed(&bytes);
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= flip;
            envelope.payload = Base64::encode_string(&changed);
            prop_assert_eq!(envelope.verify([&key.public()]), Err(EnvelopeFault::Broken { keyid: key.public().id() }));
        }
    }
}
