//! Digests of files, which may be larger than memory. Digests of bytes are in `model::digest`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use model::digest::Hasher;

const PIECE: usize = 64 << 10;

/// Computes the SHA-256 of a file in hex, and the length of the file.
pub fn sha256_file(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::default();
    let mut piece = vec![0; PIECE];
    let mut length = 0;
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok((hasher.finish(), length));
        }
        hasher.update(&piece[..count]);
        length += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_digest_of_its_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = vec![7; 3 * PIECE + 1];
        std::fs::write(file.path(), &bytes).unwrap();
        let length = bytes.len() as u64;
        assert_eq!(sha256_file(file.path()).unwrap(), (model::digest::sha256(&bytes), length));
    }
}
