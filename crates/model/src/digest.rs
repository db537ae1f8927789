//! SHA-256 in lowercase hex: the one digest of records, logs, statements and cache names.

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes`, in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&sha256_bytes(bytes))
}

pub fn sha256_bytes(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The first `count` bytes of the SHA-256 of `bytes`, in hex: a short name for something long.
pub fn short_sha256(bytes: &[u8], count: usize) -> String {
    hex(&sha256_bytes(bytes)[..count])
}

pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// SHA-256 of input that arrives in pieces.
#[derive(Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces, in hex.
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_digest_is_sha_256_in_lowercase_hex() {
        assert_eq!(sha256(b""), EMPTY);
        assert_eq!(short_sha256(b"", 3), EMPTY[..6]);
        assert_eq!(hex(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }

    #[test]
    fn pieces_have_the_digest_of_the_whole() {
        let mut hasher = Hasher::default();
        hasher.update(b"one ");
        hasher.update(b"two");
        assert_eq!(hasher.finish(), sha256(b"one two"));
    }
}
