//! The keys of a host, in one folder.
//!
//! ```text
//! signing-key.pem     the key that signs (0600)
//! next-key.pem        one that is about to replace it (0600); only while a rotation is under way
//! public/<id>.pem     every public key that was ever in use here
//! rotations.jsonl     the statements that lead from one to the next, one envelope per line
//! ```

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use host::file::{FileError, append_line, read_private, write_atomic};
use jiff::Timestamp;

use crate::dsse::Envelope;
use crate::key::{KeyFault, PublicKey, SecretKey};
use crate::rotation::{self, RotationFault, TrustedKeys};

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

#[derive(Debug, Clone)]
pub struct Keyring {
    dir: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("there is no signing key ({path}); make one with: bot-bottle key create", path = path.display())]
    None { path: PathBuf },
    #[error(
        "the signing key {path} is gone; put it back, or begin with a new one: bot-bottle key create",
        path = path.display()
    )]
    Gone { path: PathBuf },
    #[error("there is a signing key already ({path}); replace it with: bot-bottle key rotate", path = path.display())]
    Exists { path: PathBuf },
    /// It cannot be read, or others can read it too.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path}: {fault}", path = path.display())]
    Key { path: PathBuf, fault: KeyFault },
    #[error("the rotation could not be signed")]
    Rotation(#[from] RotationFault),
    #[error("could not {doing} {path}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
}

impl Keyring {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn key_file(&self) -> PathBuf {
        self.dir.join("signing-key.pem")
    }

    /// Generates the first key, or a new first one after a loss.
    pub fn create(&self) -> Result<SecretKey, KeyringError> {
        if self.key_file().exists() {
            return Err(KeyringError::Exists { path: self.key_file() });
        }
        let key = SecretKey::generate().map_err(faulty(&self.key_file()))?;
        self.keep_public(&key.public())?;
        self.save(&self.key_file(), &key)?;
        Ok(key)
    }

    /// Loads the signing key. One that others can read is refused.
    pub fn load(&self) -> Result<SecretKey, KeyringError> {
        let path = self.key_file();
        match read_private(&path) {
            Ok(bytes) => {
                SecretKey::parse_pem(&String::from_utf8_lossy(&bytes)).map_err(faulty(&path))
            }
            Err(error) if error.is_not_found() && self.public_keys()?.is_empty() => {
                Err(KeyringError::None { path })
            }
            Err(error) if error.is_not_found() => Err(KeyringError::Gone { path }),
            Err(error) => Err(error.into()),
        }
    }

    /// Loads the signing key, generating it if there never was one. A missing one is not silently replaced,
    /// and a rotation in progress is finished first: the old key is no longer trusted.
    pub fn load_or_create(&self) -> Result<SecretKey, KeyringError> {
        match self.load() {
            Err(KeyringError::None { .. }) => self.create(),
            Err(error) => Err(error),
            Ok(key) => Ok(self.finish_rotation(&key)?.unwrap_or(key)),
        }
    }

    /// Replaces the key, with a statement that both keys sign. It can be run again after a kill at any
    /// moment: the statement precedes the change, and a change in progress is finished.
    pub fn rotate(&self, now: Timestamp) -> Result<SecretKey, KeyringError> {
        let old = self.load()?;
        if let Some(begun) = self.finish_rotation(&old)? {
            return Ok(begun);
        }
        let next = self.next_file();
        let new = SecretKey::generate().map_err(faulty(&next))?;
        self.save(&next, &new)?;
        self.keep_public(&new.public())?;
        let envelope = rotation::rotate(&old, &new, now)?;
        let line = serde_json::to_string(&envelope).map_err(RotationFault::Json)?;
        append_line(&self.rotations_file(), &line)?;
        self.take_next()?;
        Ok(new)
    }

    /// Moves the next key into place, if a statement of the old one has announced it.
    fn finish_rotation(&self, old: &SecretKey) -> Result<Option<SecretKey>, KeyringError> {
        let begun = match read_private(&self.next_file()) {
            Ok(bytes) => SecretKey::parse_pem(&String::from_utf8_lossy(&bytes)).ok(),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let trust = TrustedKeys::from_root(old.public(), &self.rotations()?);
        let announced = |key: &SecretKey| trust.keys().any(|known| *known == key.public());
        let new = begun.filter(announced);
        if new.is_some() {
            self.take_next()?;
        }
        Ok(new)
    }

    fn take_next(&self) -> Result<(), KeyringError> {
        fs::rename(self.next_file(), self.key_file())
            .map_err(io("put the new key in place of", &self.key_file()))
    }

    /// Loads every public key that was ever in use here, by id.
    fn public_keys(&self) -> Result<Vec<PublicKey>, KeyringError> {
        let folder = self.public_folder();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io("look into", &folder)(error)),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
            .iter()
            .filter(|path| path.extension().is_some_and(|kind| kind == "pem"))
            .map(|path| load_public(path))
            .collect()
    }

    /// Loads the statements that lead from one key to the next. A torn line, as a crash leaves it, is
    /// skipped, like every line that does not verify.
    pub fn rotations(&self) -> Result<Vec<Envelope>, KeyringError> {
        let path = self.rotations_file();
        match fs::read_to_string(&path) {
            Ok(text) => {
                Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(io("read", &path)(error)),
        }
    }

    /// Returns the trusted keys of this host: the signing one, and those that rotations lead to from it.
    pub fn trust(&self) -> Result<TrustedKeys, KeyringError> {
        Ok(TrustedKeys::from_root(self.load()?.public(), &self.rotations()?))
    }

    fn next_file(&self) -> PathBuf {
        self.dir.join("next-key.pem")
    }

    fn rotations_file(&self) -> PathBuf {
        self.dir.join("rotations.jsonl")
    }

    fn public_folder(&self) -> PathBuf {
        self.dir.join("public")
    }

    fn keep_public(&self, key: &PublicKey) -> Result<(), KeyringError> {
        let folder = self.public_folder();
        make_folder(&folder)?;
        let path = folder.join(format!("{}.pem", key.id()));
        let text = key.pem().map_err(faulty(&path))?;
        Ok(write_atomic(&path, text.as_bytes(), PUBLIC)?)
    }

    fn save(&self, path: &Path, key: &SecretKey) -> Result<(), KeyringError> {
        make_folder(&self.dir)?;
        let text = key.pem().map_err(faulty(path))?;
        Ok(write_atomic(path, text.expose().as_bytes(), PRIVATE)?)
    }
}

pub fn load_public(path: &Path) -> Result<PublicKey, KeyringError> {
    let text = fs::read_to_string(path).map_err(io("read", path))?;
    PublicKey::parse_pem(&text).map_err(faulty(path))
}

fn make_folder(path: &Path) -> Result<(), KeyringError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(io("make the folder", path))
}

fn faulty(path: &Path) -> impl FnOnce(KeyFault) -> KeyringError {
    let path = path.to_path_buf();
    move |fault| KeyringError::Key { path, fault }
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> KeyringError {
    let path = path.to_path_buf();
    move |source| KeyringError::Io { doing, path, source }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn ring() -> (tempfile::TempDir, Keyring) {
        let dir = tempfile::tempdir().unwrap();
        let ring = Keyring::new(dir.path().join("attest"));
        (dir, ring)
    }

    fn noon() -> Timestamp {
        "2025-01-15T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_first_use_makes_a_key_that_only_its_owner_can_read() {
        let (_dir, ring) = ring();
        let key = ring.load_or_create().unwrap();
        assert_eq!(fs::metadata(ring.key_file()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(ring.load_or_create().unwrap().public(), key.public());
        assert_eq!(ring.public_keys().unwrap(), [key.public()]);
        assert!(matches!(ring.create(), Err(KeyringError::Exists { .. })));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_the_remedy() {
        let (_dir, ring) = ring();
        ring.create().unwrap();
        fs::set_permissions(ring.key_file(), Permissions::from_mode(0o644)).unwrap();
        let words = ring.load_or_create().unwrap_err().to_string();
        assert!(words.contains("chmod 600"), "{words}");
    }

    #[test]
    fn a_key_that_is_gone_is_not_replaced_in_silence() {
        let (_dir, ring) = ring();
        ring.create().unwrap();
        fs::remove_file(ring.key_file()).unwrap();
        assert!(matches!(ring.load_or_create(), Err(KeyringError::Gone { .. })));
        ring.create().unwrap();
        assert_eq!(ring.public_keys().unwrap().len(), 2);
    }

    #[test]
    fn after_a_rotation_both_keys_count_and_the_old_one_is_kept() {
        let (_dir, ring) = ring();
        let old = ring.create().unwrap();
        let new = ring.rotate(noon()).unwrap();
        assert_eq!(ring.load().unwrap().public(), new.public());
        let trust = ring.trust().unwrap();
        assert!(trust.keys().any(|key| *key == old.public()));
        assert_eq!(trust.retired_at(&old.public().id()), Some(noon()));
        assert_eq!(ring.public_keys().unwrap().len(), 2);
    }

    #[test]
    fn a_rotation_that_was_killed_half_way_is_finished_and_not_begun_anew() {
        let (_dir, ring) = ring();
        let old = ring.create().unwrap();
        let new = ring.rotate(noon()).unwrap();
        // The state after a kill between the statement and the change.
        ring.save(&ring.next_file(), &new).unwrap();
        ring.save(&ring.key_file(), &old).unwrap();
        assert_eq!(ring.rotate(noon()).unwrap().public(), new.public());
        assert_eq!(ring.rotations().unwrap().len(), 1);
        // The next signing finishes the rotation too: the old key's signatures are no longer trusted.
        ring.save(&ring.next_file(), &new).unwrap();
        ring.save(&ring.key_file(), &old).unwrap();
        assert_eq!(ring.load_or_create().unwrap().public(), new.public());
        // The state after a kill before the statement: the half-made key was never in use.
        ring.save(&ring.next_file(), &SecretKey::generate().unwrap()).unwrap();
        assert_eq!(ring.load_or_create().unwrap().public(), new.public());
        ring.rotate(noon()).unwrap();
        assert_eq!(ring.rotations().unwrap().len(), 2);
        assert!(ring.trust().unwrap().keys().any(|key| *key == old.public()));
    }

    #[test]
    fn half_a_line_of_a_crash_leads_nowhere_and_spoils_nothing() {
        let (_dir, ring) = ring();
        let old = ring.create().unwrap();
        fs::write(ring.rotations_file(), "{\"payloadType\":").unwrap();
        ring.rotate(noon()).unwrap();
        assert!(ring.trust().unwrap().keys().any(|key| *key == old.public()));
    }
}
