//! Signature over a commit, and the words with which `gpg` says that it made one.

const BEGIN: &str = "-----BEGIN PGP SIGNATURE-----\n";
const END: &str = "-----END PGP SIGNATURE-----";
/// Line of the status: kind D (detached), algorithms, class, time, fingerprint.
const CREATED: &str = "[GNUPG:] SIG_CREATED D ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitSignature {
    pub(crate) armored: String,
    /// Id of the key that signed: of the host's key, or the fingerprint of GnuPG's.
    pub(crate) key: String,
}

/// Reads the output of `gpg` and its status. One without the other is no signature: the status is what cannot be mistaken
/// for a warning.
pub(crate) fn read_signature(output: &[u8], status: &str) -> Option<CommitSignature> {
    let armored = std::str::from_utf8(output).ok()?.trim_end();
    if !(armored.starts_with(BEGIN) && armored.ends_with(END) && armored.is_ascii()) {
        return None;
    }
    // The status may follow other words on their line.
    let (_, rest) = status.split_once(CREATED)?;
    let key = rest.lines().next()?.split(' ').nth(4)?;
    let is_fingerprint = key.len() >= 40 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_fingerprint.then(|| CommitSignature { armored: armored.to_owned(), key: key.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str =
        "-----BEGIN PGP SIGNATURE-----\n\niIYE\n=vI4/\n-----END PGP SIGNATURE-----\n";
    const KEY: &str = "9AD47D70181E2DE88BE5E78E11DD5EDB361BB895";

    fn status(words: &str) -> String {
        format!("{words}[GNUPG:] SIG_CREATED D 22 8 00 1795125899 {KEY}\n")
    }

    #[test]
    fn a_signature_has_the_fingerprint_of_its_key() {
        let found = read_signature(SIGNATURE.as_bytes(), &status("[GNUPG:] BEGIN_SIGNING H8\n"));
        assert_eq!(found.expect("a signature").key, KEY);
    }

    #[test]
    fn output_without_the_status_is_no_signature() {
        assert_eq!(read_signature(SIGNATURE.as_bytes(), "[GNUPG:] BEGIN_SIGNING H8\n"), None);
        assert_eq!(read_signature(b"", &status("")), None);
        assert_eq!(read_signature(b"-----BEGIN PGP SIGNATURE-----\n\niIYE", &status("")), None);
        let short = "[GNUPG:] SIG_CREATED D 22 8 00 1795125899 9AD4\n";
        assert_eq!(read_signature(SIGNATURE.as_bytes(), short), None);
    }
}
