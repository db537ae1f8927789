//! Artifacts of a test suite: copies the files that this run wrote, redacted and without following links.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use host::safe_read::read_beneath;
use model::redact::Redactor;

use crate::disk::{DiskError, DiskResult, make_dir, names_in};

const MAX_FILES: usize = 500;
const FILE_CAP: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct ArtifactCopy<'a> {
    /// The folder in which the suite ran. Its content is untrusted.
    pub(super) workspace: &'a Path,
    pub(super) from: &'a str,
    pub(super) to: &'a Path,
    /// Start of the suite by the file system's clock; an older file is not evidence.
    pub(super) started: Option<SystemTime>,
    pub(super) same_tick: SameTick,
    pub(super) redactor: &'a Redactor,
}

/// Treatment of files whose time equals the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SameTick {
    /// A fast suite on the host may write within the first tick.
    Copy,
    /// The checkout of a box may end within the tick in which its suite starts; the box itself starts later.
    Skip,
}

impl ArtifactCopy<'_> {
    pub(super) fn run(&self) -> DiskResult<()> {
        if !is_plain_folder(self.workspace, self.from) {
            return Ok(());
        }
        let mut folders = vec![(self.from.to_owned(), self.to.to_path_buf())];
        let mut count = 0;
        while let Some((folder, target)) = folders.pop() {
            for name in names_in(&self.workspace.join(&folder))? {
                let relative = format!("{folder}/{name}");
                let path = self.workspace.join(&relative);
                let facts = path.symlink_metadata().map_err(DiskError::io("inspect", &path))?;
                if facts.is_dir() {
                    folders.push((relative, target.join(&name)));
                } else if facts.is_file() && self.is_fresh(&facts) && count < MAX_FILES {
                    self.copy_file(&relative, &target.join(&name))?;
                    count += 1;
                }
            }
        }
        Ok(())
    }

    fn is_fresh(&self, facts: &fs::Metadata) -> bool {
        let times = facts.modified().ok().zip(self.started);
        times.is_none_or(|(written, started)| match self.same_tick {
            SameTick::Copy => written >= started,
            SameTick::Skip => written > started,
        })
    }

    /// Copies one file. A file that is too long or cannot be read is not evidence.
    fn copy_file(&self, from: &str, to: &Path) -> DiskResult<()> {
        let Ok(Some(file)) = read_beneath(self.workspace, from, FILE_CAP) else { return Ok(()) };
        if file.truncated {
            return Ok(());
        }
        make_dir(to.parent().unwrap_or(to))?;
        fs::write(to, self.redactor.redact_bytes(&file.bytes)).map_err(DiskError::io("write", to))
    }
}

fn is_plain_folder(workspace: &Path, relative: &str) -> bool {
    let mut path = PathBuf::from(workspace);
    relative.split('/').all(|part| {
        path.push(part);
        path.symlink_metadata().is_ok_and(|facts| facts.is_dir())
    })
}

pub(super) fn append_log(path: &Path, bytes: &[u8]) -> DiskResult<()> {
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(DiskError::io("write", path))
}

/// The current time by the file system's clock, because file times are compared with it.
pub(super) fn fs_now(dir: &Path) -> Option<SystemTime> {
    let probe = dir.join(".started");
    fs::write(&probe, b"").ok()?;
    let now = probe.metadata().ok()?.modified().ok();
    fs::remove_file(&probe).ok();
    now
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use model::secret::Secret;
    use tempfile::TempDir;

    use super::*;

    fn copied(start: impl Fn(SystemTime) -> SystemTime, same_tick: SameTick) -> Vec<String> {
        let folder = TempDir::new().unwrap();
        let (workspace, to) = (folder.path().join("ws"), folder.path().join("kept"));
        fs::create_dir_all(workspace.join("results/deep")).unwrap();
        fs::write(workspace.join("results/a"), "key hunter2-secret").unwrap();
        fs::write(workspace.join("results/deep/b"), "b").unwrap();
        symlink("/etc/passwd", workspace.join("results/link")).unwrap();
        symlink("/etc", workspace.join("results/folder")).unwrap();
        let written = fs::metadata(workspace.join("results/a")).unwrap().modified().unwrap();
        let redactor = Redactor::new(vec![Secret::new("hunter2-secret".to_owned())]);
        let copy = ArtifactCopy {
            workspace: &workspace,
            from: "results",
            to: &to,
            started: Some(start(written)),
            same_tick,
            redactor: &redactor,
        };
        copy.run().unwrap();
        let mut names = Vec::new();
        for name in ["a", "deep/b", "link", "folder/passwd"] {
            names.extend(
                fs::read_to_string(to.join(name)).ok().map(|text| format!("{name}: {text}")),
            );
        }
        names
    }

    #[test]
    fn fresh_files_are_copied_redacted_and_links_are_not() {
        let before = |written: SystemTime| written - Duration::from_secs(1);
        assert_eq!(copied(before, SameTick::Skip), ["a: key ***", "deep/b: b"]);
    }

    #[test]
    fn older_files_are_not_evidence() {
        let after = |written: SystemTime| written + Duration::from_secs(1);
        assert!(copied(after, SameTick::Copy).is_empty());
    }

    #[test]
    fn the_tick_of_the_start_counts_on_the_host_only() {
        let same = |written: SystemTime| written;
        assert!(!copied(same, SameTick::Copy).is_empty());
        assert!(!copied(same, SameTick::Skip).contains(&"a: key ***".to_owned()));
    }
}
