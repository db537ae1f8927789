//! Names and seals under the fleet's key.
//!
//! A name is a keyed hash, so that it tells nothing about the content. Each object has a key of its own, derived from its name,
//! and a nonce derived from what is sealed: the same content gives the same object, and no key and nonce meet two contents.

use model::secret::Secret;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::error::BottleStoreError;

/// Version of the form in which an object is sealed.
const FORM: u8 = 1;

/// The key that the hosts of a fleet share.
#[derive(Clone)]
pub struct FleetKey {
    names: [u8; 32],
    contents: [u8; 32],
    nonces: [u8; 32],
}

impl std::fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetKey(***)")
    }
}

impl FleetKey {
    /// Reads a key: 64 hexadecimal digits.
    pub fn parse(secret: &Secret) -> Result<Self, BottleStoreError> {
        let text = secret.expose().trim().as_bytes();
        let mut key = [0; 32];
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        if text.len() != 64 {
            return Err(BottleStoreError::Key);
        }
        for (byte, pair) in key.iter_mut().zip(text.chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(BottleStoreError::Key);
            };
            *byte = high << 4 | low;
        }
        Ok(Self {
            names: blake3::derive_key("bottleworks 2026-11 bottle store names", &key),
            contents: blake3::derive_key("bottleworks 2026-11 bottle store contents", &key),
            nonces: blake3::derive_key("bottleworks 2026-11 bottle store nonces", &key),
        })
    }

    /// Name of a content.
    pub(crate) fn name(&self, content: &[u8]) -> String {
        blake3::keyed_hash(&self.names, content).to_hex().to_string()
    }

    /// Seals what is stored under a name.
    pub(crate) fn seal(&self, name: &str, content: &[u8]) -> Vec<u8> {
        let hash = blake3::keyed_hash(&self.nonces, content);
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&hash.as_bytes()[..NONCE_LEN]);
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + content.len() + 16);
        sealed.push(FORM);
        sealed.extend_from_slice(&nonce);
        let mut body = content.to_vec();
        let tag = self.key_of(name).and_then(|key| {
            key.seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                aad(name),
                &mut body,
            )
        });
        sealed.extend_from_slice(&body);
        // It fails for contents of 256 GiB, and a seal without its tag opens nowhere.
        sealed.extend_from_slice(tag.as_ref().map(AsRef::as_ref).unwrap_or_default());
        sealed
    }

    /// Opens what was stored under a name; `None` if it is not that, whole and unchanged.
    pub(crate) fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (form, rest) = sealed.split_first()?;
        let (nonce, body) = rest.split_at_checked(NONCE_LEN)?;
        if *form != FORM {
            return None;
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut body = body.to_vec();
        let key = self.key_of(name).ok()?;
        let length = key.open_in_place(nonce, aad(name), &mut body).ok()?.len();
        body.truncate(length);
        Some(body)
    }

    fn key_of(&self, name: &str) -> Result<LessSafeKey, ring::error::Unspecified> {
        let key = blake3::keyed_hash(&self.contents, name.as_bytes());
        UnboundKey::new(&CHACHA20_POLY1305, key.as_bytes()).map(LessSafeKey::new)
    }
}

/// The name is sealed too: an object cannot stand for another one.
fn aad(name: &str) -> Aad<&[u8]> {
    Aad::from(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digit: &str) -> FleetKey {
        FleetKey::parse(&Secret::new(digit.repeat(64))).expect("a key")
    }

    #[test]
    fn a_seal_opens_under_its_own_name_and_key_alone() {
        let sealed = key("a").seal("chunks/x", b"content");
        assert_eq!(key("a").open("chunks/x", &sealed).as_deref(), Some(b"content".as_slice()));
        assert_eq!(key("a").open("chunks/y", &sealed), None);
        assert_eq!(key("b").open("chunks/x", &sealed), None);
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(key("a").open("chunks/x", &damaged), None, "{at}");
            assert_eq!(key("a").open("chunks/x", &sealed[..at]), None, "{at}");
        }
    }

    #[test]
    fn the_same_content_gives_the_same_object_and_other_content_another_nonce() {
        let one = key("a");
        assert_eq!(one.seal("n", b"same"), one.seal("n", b"same"));
        assert_ne!(one.seal("n", b"same")[..13], one.seal("n", b"other")[..13]);
        assert_ne!(one.name(b"same"), key("b").name(b"same"));
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits() {
        for wrong in ["", "abc", &"g".repeat(64), &"a".repeat(63), &"a".repeat(65), &"é".repeat(32)]
        {
            FleetKey::parse(&Secret::new(wrong)).expect_err(wrong);
        }
        FleetKey::parse(&Secret::new(format!("{}\n", "Aa".repeat(32)))).expect("a key");
    }
}
