//! Ignored files that a worktree or a box needs, such as local settings: those that `.worktreeinclude` of the user's
//! checkout or `WORKTREE_COPY` of the profile names by patterns.
//!
//! The list is read from the user's own checkout and never from a commit: an agent could name anything in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use host::git::WorktreeRepo;
use model::redact::Redactor;

use crate::disk::{DiskError, DiskResult, ProjectDirs, make_dir};
use crate::exit::{OrExit, WfExit, WfResult};
use crate::rules::conflict::contains;
use crate::rules::profile::Profile;

/// Name of the file with the patterns, in the root of the checkout.
const INCLUDE_FILE: &str = ".worktreeinclude";
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 256 << 20;

/// Ignored files of a checkout, by their paths in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IncludedFiles {
    from: PathBuf,
    pub(crate) paths: Vec<String>,
}

impl IncludedFiles {
    /// Finds the files below `from` that git ignores there and that the patterns of `repo` or the profile name.
    pub(crate) async fn observe(
        product: &WorktreeRepo,
        repo: &Path,
        from: &Path,
        profile: &Profile,
    ) -> WfResult<Self> {
        let file = Some(repo.join(INCLUDE_FILE)).filter(|file| file.is_file());
        let patterns = &profile.setup.copy;
        if file.is_none() && patterns.is_empty() {
            return Ok(Self::default());
        }
        let found = product.ignored_files(from, file.as_deref(), patterns).await;
        let found = found.or_exit(WfExit::General)?.into_iter();
        let paths = found.filter_map(|path| String::from_utf8(path).ok()).take(MAX_FILES);
        Ok(Self { from: from.to_path_buf(), paths: paths.collect() })
    }

    /// Leaves out what must not enter a box: forbidden paths, and files that hold a secret. Returns a note on each.
    pub(crate) fn without_secrets(
        mut self,
        redactor: &Redactor,
        forbidden: &[String],
    ) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let from = self.from.clone();
        self.paths.retain(|path| {
            let why = if forbidden.iter().any(|rule| contains(rule, path.as_bytes())) {
                "it is in FORBIDDEN_PATHS"
            } else if fs::read(from.join(path))
                .is_ok_and(|bytes| redactor.redact_bytes(&bytes) != bytes)
            {
                "it holds what looks like a secret"
            } else {
                return true;
            };
            notes.push(format!("{path} is not copied into the box: {why}"));
            false
        });
        (self, notes)
    }

    /// Copies the files to the same places below `to`. What is there already stays. Returns a note on each that was left out.
    pub(crate) fn copy_into(&self, to: &Path) -> Vec<String> {
        let mut left = MAX_BYTES;
        let mut notes = Vec::new();
        for path in &self.paths {
            match copy_file(&self.from, to, path, &mut left) {
                Ok(None) => {}
                Ok(Some(why)) => notes.push(format!("{path} was not copied: {why}")),
                Err(error) => notes.push(model::error_chain(&error)),
            }
        }
        notes
    }
}

fn copy_file(
    from: &Path,
    to: &Path,
    path: &str,
    left: &mut u64,
) -> DiskResult<Option<&'static str>> {
    let source = from.join(path);
    let facts = source.symlink_metadata().map_err(DiskError::io("inspect", &source))?;
    if !facts.is_file() {
        return Ok(Some("it is not a regular file"));
    }
    let Some(target) = find_beneath(to, path) else {
        return Ok(Some("its place leads out of the folder"));
    };
    if target.symlink_metadata().is_ok() {
        return Ok(None);
    }
    if facts.len() > *left {
        return Ok(Some("the files together are larger than 256 MiB"));
    }
    *left -= facts.len();
    make_dir(target.parent().unwrap_or(to))?;
    fs::copy(&source, &target).map_err(DiskError::io("copy", &source))?;
    Ok(None)
}

/// Makes the worktree of a workstream ready. A profile that cannot be read is reported by the commands that need it.
pub(crate) async fn fill(
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    worktree: &Path,
) -> Vec<String> {
    match dirs.load_profile() {
        Ok((profile, _)) => fill_worktree(product, &dirs.project.repo, worktree, &profile).await,
        Err(error) => vec![model::error_chain(&error)],
    }
}

/// Makes a new worktree ready: copies the files that it needs and links the folders. Returns warnings.
async fn fill_worktree(
    product: &WorktreeRepo,
    repo: &Path,
    worktree: &Path,
    profile: &Profile,
) -> Vec<String> {
    let mut warnings = match IncludedFiles::observe(product, repo, repo, profile).await {
        Ok(files) => files.copy_into(worktree),
        Err(failure) => vec![format!("{INCLUDE_FILE} could not be read: {failure}")],
    };
    for path in &profile.setup.link {
        if let Err(why) = link(product, repo, worktree, path).await {
            warnings.push(format!("{path} was not linked: {why}"));
        }
    }
    warnings
}

async fn link(
    product: &WorktreeRepo,
    repo: &Path,
    worktree: &Path,
    path: &str,
) -> Result<(), String> {
    let source = repo.join(path);
    if !source.exists() {
        return Err(format!("{} does not exist", source.display()));
    }
    let ignored = product.is_ignored(worktree, path).await.map_err(|error| error.to_string())?;
    if !ignored {
        return Err(
            "git does not ignore it as a file; add it to .gitignore without a slash at its end"
                .to_owned(),
        );
    }
    let Some(target) = find_beneath(worktree, path) else {
        return Err("its place leads out of the worktree".to_owned());
    };
    if target.symlink_metadata().is_ok() {
        return Ok(());
    }
    make_dir(target.parent().unwrap_or(worktree)).map_err(|error| error.to_string())?;
    symlink(&source, &target).map_err(|error| error.to_string())
}

/// Judges a linked file or folder for boxes: it must lie in the checkout and hold nothing that must not enter one. Returns a
/// note where it is too large to be searched, or the reason of the refusal.
pub(crate) fn check_linked(
    repo: &Path,
    path: &str,
    redactor: &Redactor,
    forbidden: &[String],
) -> Result<Option<String>, String> {
    let source = find_beneath(repo, path).filter(|source| !source.is_symlink());
    let source = source.ok_or("it is a link, or lies behind one, and may lead anywhere")?;
    let mut open = vec![(source, path.to_owned())];
    let (mut files, mut bytes) = (0, 0);
    while let Some((place, name)) = open.pop() {
        if forbidden.iter().any(|rule| contains(rule, name.as_bytes())) {
            return Err(format!("{name} is in FORBIDDEN_PATHS"));
        }
        let Ok(facts) = place.symlink_metadata() else { continue };
        if facts.is_dir() {
            let entries = fs::read_dir(&place).map_err(|error| format!("{name}: {error}"))?;
            for entry in entries.flatten() {
                let below = format!("{name}/{}", entry.file_name().to_string_lossy());
                open.push((entry.path(), below));
            }
            continue;
        }
        files += 1;
        bytes += facts.len();
        if files > MAX_FILES || bytes > MAX_BYTES {
            return Ok(Some(format!("{path} is in the box, too large to be searched for secrets")));
        }
        // A link inside it leads to what the box has at that place, not to the host's.
        if facts.is_file()
            && fs::read(&place).is_ok_and(|bytes| redactor.redact_bytes(&bytes) != bytes)
        {
            return Err(format!("{name} holds what looks like a secret"));
        }
    }
    Ok(None)
}

/// Joins a path to a folder, and returns nothing where a link in it would lead elsewhere.
pub(crate) fn find_beneath(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut found = folder.to_path_buf();
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        if found.symlink_metadata().is_ok_and(|facts| facts.is_symlink()) {
            return None;
        }
        found.push(name);
        if names.peek().is_none() {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_on_the_way_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        symlink("/etc", folder.path().join("away")).unwrap();
        let find = |path| find_beneath(folder.path(), path);
        assert_eq!(find("real/x"), Some(folder.path().join("real/x")));
        assert_eq!(find("new/x/y"), Some(folder.path().join("new/x/y")));
        assert_eq!(find("away/x"), None);
        assert_eq!(find("away"), Some(folder.path().join("away")));
    }

    #[test]
    fn files_are_copied_once_and_never_through_a_link() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("config")).unwrap();
        fs::create_dir_all(from.path().join("away")).unwrap();
        for path in ["config/local.toml", "away/x", "kept"] {
            fs::write(from.path().join(path), "new").unwrap();
        }
        fs::write(to.path().join("kept"), "old").unwrap();
        symlink("/tmp", to.path().join("away")).unwrap();
        symlink("kept", from.path().join("link")).unwrap();
        let paths = ["config/local.toml", "away/x", "kept", "link"].map(str::to_owned).to_vec();
        let files = IncludedFiles { from: from.path().to_path_buf(), paths };
        assert_eq!(
            files.copy_into(to.path()),
            [
                "away/x was not copied: its place leads out of the folder",
                "link was not copied: it is not a regular file"
            ]
        );
        let read = |path| fs::read_to_string(to.path().join(path)).unwrap();
        assert_eq!((read("config/local.toml"), read("kept")), ("new".to_owned(), "old".to_owned()));
    }

    #[test]
    fn a_linked_folder_with_a_secret_or_a_way_out_is_not_mounted() {
        let repo = tempfile::tempdir().unwrap();
        let token = format!("ghp_{}", "a".repeat(36));
        for (path, text) in
            [("data/a/b", "x"), ("keys/deep/k", token.as_str()), ("conf/.env", "A=1")]
        {
            fs::create_dir_all(repo.path().join(path).parent().unwrap()).unwrap();
            fs::write(repo.path().join(path), text).unwrap();
        }
        symlink("/etc", repo.path().join("away")).unwrap();
        let check = |path: &str| {
            check_linked(repo.path(), path, &Redactor::new([]), &["conf/.env".to_owned()])
        };
        assert_eq!(check("data"), Ok(None));
        assert_eq!(check("keys"), Err("keys/deep/k holds what looks like a secret".to_owned()));
        assert_eq!(check("conf"), Err("conf/.env is in FORBIDDEN_PATHS".to_owned()));
        for path in ["away", "away/ssl"] {
            assert!(check(path).unwrap_err().starts_with("it is a link"), "{path}");
        }
    }

    #[test]
    fn nothing_secret_is_taken_into_a_box() {
        let from = tempfile::tempdir().unwrap();
        let token = format!("ghp_{}", "a".repeat(36));
        for (path, text) in [(".env", "A=1"), ("local", "x"), ("token", token.as_str())] {
            fs::write(from.path().join(path), text).unwrap();
        }
        let paths = [".env", "local", "token"].map(str::to_owned).to_vec();
        let files = IncludedFiles { from: from.path().to_path_buf(), paths };
        let (files, notes) = files.without_secrets(&Redactor::new([]), &[".env".to_owned()]);
        assert_eq!(files.paths, ["local"]);
        assert_eq!(
            notes,
            [
                ".env is not copied into the box: it is in FORBIDDEN_PATHS",
                "token is not copied into the box: it holds what looks like a secret"
            ]
        );
    }
}
