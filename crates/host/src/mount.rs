//! Private bind mounts. Root passes folders to a process that runs as another user without making their
//! parents accessible: the folders are bound into a mount namespace that only this thread and its children
//! see.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Mount point of the folders. It has content only inside the private namespace.
const STAGE: &str = "/run/bottleworks";

#[derive(Debug, thiserror::Error)]
#[error("could not {doing} {path}", path = path.display())]
pub struct MountError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Moves the calling thread into a mount namespace of its own and binds each source below the mount point, in
/// order. Returns the new paths. Needs root; meant for a process that does nothing else.
pub fn stage(sources: &[&Path]) -> Result<Vec<PathBuf>, MountError> {
    let stage = Path::new(STAGE);
    fs::create_dir_all(stage).map_err(failed("create", stage))?;
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|errno| refused("leave the mount namespace at", stage, errno))?;
    let nothing: Option<&str> = None;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
        .map_err(|errno| refused("make private", Path::new("/"), errno))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("stage"), stage, Some("tmpfs"), flags, Some("mode=755,size=1m"))
        .map_err(|errno| refused("mount a stage on", stage, errno))?;
    let mut staged = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        let place = stage.join(index.to_string());
        fs::create_dir(&place).map_err(failed("create", &place))?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755))
            .map_err(failed("open", &place))?;
        mount(Some(*source), &place, nothing, MsFlags::MS_BIND | MsFlags::MS_REC, nothing)
            .map_err(|errno| refused("bind", source, errno))?;
        staged.push(place);
    }
    Ok(staged)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MountError {
    let path = path.to_path_buf();
    move |source| MountError { doing, path, source }
}

fn refused(doing: &'static str, path: &Path, errno: nix::errno::Errno) -> MountError {
    MountError { doing, path: path.to_path_buf(), source: errno.into() }
}
