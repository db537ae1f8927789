//! A host-owned copy of a fork's history, so that workspaces can be made by copying files.
//!
//! It holds exactly what the commits pinned last time reach, packed by reachability out of the user's repository. A
//! workspace for newer commits takes the difference first and then copies the packs. When the pinned history is no
//! longer part of the wanted one (a branch was rewritten), the mirror is thrown away and packed anew: nothing
//! that the wanted commits do not reach ever gets into a workspace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::file::FileError;
use host::git::{GitError, GitLog, ObjectFormat, SealedRepo, UserRepo};
use host::lock::{FileLock, LockError, LockKind};
use model::id::Sha;

/// A mirror of more packs than this is packed anew: many small packs make git slow inside the box.
const MOST_PACKS: usize = 24;

/// Time limit for another run of the same fork to finish its copy.
const LOCK_LIMIT: Duration = Duration::from_secs(600);

#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    File(#[from] FileError),
}

/// A mirror that is up to date and locked against change.
#[derive(Debug)]
pub struct Mirror {
    path: PathBuf,
    _lock: FileLock,
}

impl Mirror {
    /// Brings the mirror at `path` up to date with `wants` and holds it so.
    pub async fn update(
        path: &Path,
        source: &UserRepo,
        wants: &[Sha],
        log: Option<GitLog>,
    ) -> Result<Self, MirrorError> {
        let parent = path.parent().unwrap_or(path);
        fs::create_dir_all(parent).map_err(FileError::io("create", parent))?;
        let lock_path = path.with_extension("lock");
        let lock =
            FileLock::acquire(&lock_path, LockKind::Exclusive { note: "mirror" }, LOCK_LIMIT)
                .await?;
        let known = match open(path, source.object_format(), log) {
            Some(repo) => usable_pins(&repo, source, path, wants).await?,
            None => None,
        };
        let pins = match known {
            Some(pins) => pins,
            None => {
                renew(path, source.object_format()).await?;
                Vec::new()
            }
        };
        let missing: Vec<Sha> = wants.iter().filter(|sha| !pins.contains(sha)).cloned().collect();
        if !missing.is_empty() {
            save_pins(path, wants)?;
            source.pack_into(&path.join("objects/pack"), &missing, &pins).await?;
        }
        Ok(Self { path: path.to_path_buf(), _lock: lock })
    }

    /// Links every pack into another repository of the host's, or copies it where the disk allows no hard links. Only the
    /// host writes to either, and packs are never changed, only replaced.
    pub async fn link_packs(&self, to: &Path) -> Result<(), MirrorError> {
        self.transfer_packs("link", to, |from, to| {
            fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
        })
        .await
    }

    /// Copies every pack, byte for byte, into another repository: no links, no alternates.
    pub async fn copy_packs(&self, to: &Path) -> Result<(), MirrorError> {
        self.transfer_packs("copy", to, |from, to| fs::copy(from, to).map(drop)).await
    }

    async fn transfer_packs(
        &self,
        action: &'static str,
        to: &Path,
        transfer: fn(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), MirrorError> {
        let (from, to) = (self.path.join("objects/pack"), to.to_path_buf());
        let transferred = tokio::task::spawn_blocking(move || {
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                // A process that was killed while it wrote a pack leaves a folder behind.
                if !entry.file_type()?.is_file() {
                    continue;
                }
                transfer(&entry.path(), &to.join(entry.file_name()))?;
            }
            Ok(())
        });
        let transferred = transferred.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        Ok(transferred.map_err(FileError::io(action, &self.path))?)
    }
}

fn open(path: &Path, format: ObjectFormat, log: Option<GitLog>) -> Option<SealedRepo> {
    let repo = path.join("HEAD").exists().then(|| SealedRepo::open(path, format))?;
    Some(match log {
        Some(log) => repo.logged(log),
        None => repo,
    })
}

/// The commits that the mirror holds, if all of them are still part of what is wanted.
async fn usable_pins(
    repo: &SealedRepo,
    source: &UserRepo,
    path: &Path,
    wants: &[Sha],
) -> Result<Option<Vec<Sha>>, MirrorError> {
    let pins = load_pins(path);
    if pins.is_empty() || count_packs(path) > MOST_PACKS {
        return Ok(None);
    }
    if !repo.has_commits(&pins).await? {
        return Ok(None);
    }
    for pin in &pins {
        if !reached(source, pin, wants).await? {
            return Ok(None);
        }
    }
    Ok(Some(pins))
}

async fn reached(source: &UserRepo, pin: &Sha, wants: &[Sha]) -> Result<bool, MirrorError> {
    if wants.contains(pin) {
        return Ok(true);
    }
    if source.resolve_commit(pin.as_str()).await?.is_none() {
        return Ok(false);
    }
    for want in wants {
        if source.is_ancestor(pin, want).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn renew(path: &Path, format: ObjectFormat) -> Result<(), MirrorError> {
    if path.exists() {
        host::file::remove_tree_safely(path)?;
    }
    SealedRepo::init_bare(path, format).await?;
    Ok(())
}

const PINS_FILE: &str = "pins";

fn load_pins(path: &Path) -> Vec<Sha> {
    let text = fs::read_to_string(path.join(PINS_FILE)).unwrap_or_default();
    text.lines().filter_map(|line| Sha::parse(line).ok()).collect()
}

/// Written before the pack: after a crash in between, the pins name commits that are not there, and the next run makes
/// the mirror anew. Written after it, they would not tell of a pack that is there, and what only that pack holds would
/// get into a workspace that never wanted it.
fn save_pins(path: &Path, wants: &[Sha]) -> Result<(), MirrorError> {
    let text: String = wants.iter().map(|sha| format!("{sha}\n")).collect();
    Ok(host::file::write_atomic(&path.join(PINS_FILE), text.as_bytes(), 0o600)?)
}

fn count_packs(path: &Path) -> usize {
    fs::read_dir(path.join("objects/pack")).map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.path().extension() == Some("pack".as_ref())).count()
    })
}
