//! Private bind mounts. Root passes folders and files to a process that runs as another user without making their
//! parents accessible: they are bound into a mount namespace that only this thread and its children
//! see.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::file::FileError;

/// Mount point of the sources. It has content only inside the private namespace.
const STAGE: &str = "/run/bottleworks";

/// Moves the calling thread into a mount namespace of its own and binds each source below the mount point, in
/// order. Returns the new paths. Needs root; meant for a process that does nothing else.
pub fn stage(sources: &[&Path]) -> Result<Vec<PathBuf>, FileError> {
    let stage = Path::new(STAGE);
    fs::create_dir_all(stage).map_err(FileError::io("create", stage))?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(refused("leave the mount namespace at", stage))?;
    let nothing: Option<&str> = None;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
        .map_err(refused("make private", Path::new("/")))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("stage"), stage, Some("tmpfs"), flags, Some("mode=755,size=1m"))
        .map_err(refused("mount a stage on", stage))?;
    let mut staged = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        let place = stage.join(index.to_string());
        make_mount_point(source, &place)?;
        mount(Some(*source), &place, nothing, MsFlags::MS_BIND | MsFlags::MS_REC, nothing)
            .map_err(refused("bind", source))?;
        staged.push(place);
    }
    Ok(staged)
}

/// Makes what the source is, since a file can only be bound over a file.
fn make_mount_point(source: &Path, place: &Path) -> Result<(), FileError> {
    let is_folder = fs::metadata(source).map_err(FileError::io("look at", source))?.is_dir();
    match is_folder {
        true => fs::create_dir(place),
        false => fs::File::create_new(place).map(drop),
    }
    .map_err(FileError::io("create", place))?;
    fs::set_permissions(place, fs::Permissions::from_mode(0o755))
        .map_err(FileError::io("open", place))
}

fn refused<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(Errno) -> FileError + 'a {
    move |errno| FileError::io(action, path)(errno.into())
}
