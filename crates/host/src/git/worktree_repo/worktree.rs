//! Worktrees: listing, adding, removing, and their uncommitted changes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::id::{BranchName, Sha};

use super::WorktreeRepo;
use crate::file::{FileError, remove_tree_safely};
use crate::git::GitError;
use crate::git::call::{GitCall, argv, argv_with};
use crate::git::parse::{filled_fields, parse_id, some_object};

/// Time limit of a large checkout.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(600);

/// Time without a change after which a lock has no owner.
const ABANDONED_AFTER: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeEntry {
    /// Path of its folder, which may have been deleted.
    pub path: PathBuf,
    /// Commit that is checked out; a repository without commits has none.
    pub head: Option<Sha>,
    /// Branch that is checked out; `None` when HEAD is detached.
    pub branch: Option<BranchName>,
}

/// A path in a worktree that differs from what is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirtyPath {
    /// The two letters of `git status --porcelain`.
    pub code: String,
    pub path: Vec<u8>,
}

impl WorktreeRepo {
    /// Lists all worktrees, the main one first.
    pub async fn worktrees(&self) -> Result<Vec<WorktreeEntry>, GitError> {
        let answer = self.git().query(argv("worktree list --porcelain -z")).await?;
        answer.parse(parse_worktrees, "it is not a list of worktrees")
    }

    /// Reads git's own records of the linked worktrees: the branch of each, or its commit where HEAD is detached. `git
    /// worktree list` resolves every HEAD in turn, which takes seconds and gigabytes with ten thousand of them. None where
    /// the records do not say, as with refs in tables.
    pub fn read_worktrees(&self) -> Option<Vec<WorktreeEntry>> {
        let records = self.user().common_dir().join("worktrees");
        let entries = match std::fs::read_dir(&records) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(Vec::new()),
            Err(_) => return None,
        };
        let mut found = Vec::new();
        for record in entries {
            let record = record.ok()?.path();
            let (Ok(gitdir), Ok(head)) =
                (std::fs::read(record.join("gitdir")), std::fs::read(record.join("HEAD")))
            else {
                // A git that was killed while it added a worktree leaves such a record.
                continue;
            };
            found.extend(parse_record(&record, &gitdir, &head)?);
        }
        Some(found)
    }

    /// Creates a branch at `base` and checks it out in a new folder. It tracks no remote branch.
    pub async fn add_worktree(
        &self,
        path: &Path,
        branch: &BranchName,
        base: &Sha,
    ) -> Result<(), GitError> {
        self.git().run(GitCall::new(argv_add(path, branch, base)).within(CHECKOUT_LIMIT)).await
    }

    /// Checks out an existing branch in a new folder.
    pub async fn reopen_worktree(&self, path: &Path, branch: &BranchName) -> Result<(), GitError> {
        let values = [OsStr::new("--"), path.as_os_str(), branch.as_str().as_ref()];
        let call = GitCall::new(argv_with("worktree add --quiet", values));
        self.git().run(call.within(CHECKOUT_LIMIT)).await
    }

    /// Removes a worktree in whatever state a killed git left it: the folder, and git's own record of it. The caller
    /// knows that the folder is nothing else.
    pub async fn erase_worktree(&self, path: &Path) -> Result<(), GitError> {
        match self.discard_worktree(path).await {
            Err(GitError::Failed { .. }) => {}
            done => return done,
        }
        let records = records_of(&self.user().common_dir().join("worktrees"), path);
        for path in std::iter::once(path.to_path_buf()).chain(records) {
            remove_tree_safely(&path).map_err(|source| GitError::Prepare { path, source })?;
        }
        Ok(())
    }

    /// Removes the lock that a git that was killed while it changed a branch has left. The caller knows that no other
    /// git works on this branch.
    pub fn clear_branch_lock(&self, branch: &BranchName) -> Result<(), GitError> {
        let path = self.user().common_dir().join(format!("{}.lock", branch.full_ref()));
        remove_lock(&path)
    }

    /// Removes the lock of all packed refs that a killed git has left, and the new list that it was writing. A git of the
    /// user may be at it too, so they are removed only if neither changes for longer than a living one takes between two
    /// writes.
    pub async fn clear_packed_refs_lock(&self) -> Result<(), GitError> {
        // The list first: whoever has the lock finds it gone.
        let paths =
            ["packed-refs.new", "packed-refs.lock"].map(|it| self.user().common_dir().join(it));
        let look = || {
            paths.each_ref().map(|path| {
                path.metadata().map(|it| (it.ino(), it.len(), it.mtime(), it.mtime_nsec())).ok()
            })
        };
        let mut seen = look();
        while seen.iter().any(Option::is_some) {
            tokio::time::sleep(ABANDONED_AFTER).await;
            let now = look();
            if now == seen {
                return paths.iter().try_for_each(|path| remove_lock(path));
            }
            seen = now;
        }
        Ok(())
    }

    /// Lists the locks that git holds in a worktree, or that a killed git has left there.
    pub async fn worktree_locks(&self, worktree: &Path) -> Result<Vec<PathBuf>, GitError> {
        let names = ["index.lock", "HEAD.lock", "ORIG_HEAD.lock"];
        let words: Vec<&str> = names.iter().flat_map(|name| ["--git-path", name]).collect();
        let answer = self.git_at(worktree).query(argv_with("rev-parse", words)).await?;
        let paths = answer.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let paths = paths.map(|path| worktree.join(OsStr::from_bytes(path)));
        Ok(paths.filter(|path| path.exists()).collect())
    }

    /// Removes the locks that a git that was killed while it changed a worktree has left. The caller knows that no
    /// other git works there.
    pub async fn clear_worktree_locks(&self, worktree: &Path) -> Result<(), GitError> {
        for path in self.worktree_locks(worktree).await? {
            remove_lock(&path)?;
        }
        match self.current_branch(worktree).await? {
            Some(branch) => self.clear_branch_lock(&branch),
            None => Ok(()),
        }
    }

    /// Puts files of a worktree back to what its commit has; a path that the commit lacks is removed.
    pub async fn restore_paths(&self, worktree: &Path, paths: &[&[u8]]) -> Result<(), GitError> {
        let input: Vec<u8> = paths.iter().flat_map(|path| [path, &b"\0"[..]].concat()).collect();
        let words = "--literal-pathspecs restore --source=HEAD --staged --worktree --quiet \
            --pathspec-from-file=- --pathspec-file-nul";
        let call = GitCall::new(argv(words)).reading(&input).within(CHECKOUT_LIMIT);
        self.git_at(worktree).run(call).await
    }

    /// Removes a worktree together with its uncommitted changes.
    async fn discard_worktree(&self, path: &Path) -> Result<(), GitError> {
        // The second `--force` also removes a locked worktree.
        let argv = argv_with("worktree remove --force --force --", [path]);
        self.git().run(GitCall::new(argv).within(CHECKOUT_LIMIT)).await
    }

    /// Lists the paths of a worktree that differ from its commit, untracked files included.
    pub async fn dirty_paths(&self, worktree: &Path) -> Result<Vec<DirtyPath>, GitError> {
        let argv = argv("status --porcelain=v1 -z --no-renames --untracked-files=all");
        let call = GitCall::new(argv).within(CHECKOUT_LIMIT);
        self.git_at(worktree).query(call).await?.parse(parse_status, "it is not a status")
    }

    /// Returns the branch that is checked out in a worktree; `None` when HEAD is detached.
    pub async fn current_branch(&self, worktree: &Path) -> Result<Option<BranchName>, GitError> {
        let answer = self.git_at(worktree).call(argv("symbolic-ref --quiet HEAD")).await?;
        Ok(answer.found()?.and_then(|answer| parse_branch(answer.stdout.trim_ascii_end())))
    }

    /// Returns the commit that is checked out in a worktree.
    pub async fn head(&self, worktree: &Path) -> Result<Option<Sha>, GitError> {
        self.git_at(worktree).resolve_commit("HEAD").await
    }

    /// Fast-forwards the branch that is checked out in `worktree` to `commit`, files included, or fails.
    pub async fn fast_forward(&self, worktree: &Path, commit: &Sha) -> Result<(), GitError> {
        // The user may have set merges to stash or to require signatures; this one only moves a branch.
        let words = "merge --ff-only --quiet --no-edit --no-autostash --no-verify-signatures";
        let call = GitCall::new(argv_with(words, [commit.as_str()])).within(CHECKOUT_LIMIT);
        self.git_at(worktree).run(call).await
    }
}

fn remove_lock(path: &Path) -> Result<(), GitError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(GitError::Prepare {
            path: path.to_path_buf(),
            source: FileError::io("remove", path)(error),
        }),
        _ => Ok(()),
    }
}

/// Finds git's records of a worktree: those that name its folder, and those of its name that name no folder, which a
/// git that was killed while it added or removed the worktree leaves.
fn records_of(records: &Path, worktree: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(records) else { return Vec::new() };
    let name = worktree.file_name().unwrap_or_default().as_bytes();
    // Git writes real paths. The folder itself is gone by now.
    let above = worktree.parent().and_then(|above| above.canonicalize().ok());
    let worktree =
        above.map_or_else(|| worktree.into(), |above| above.join(OsStr::from_bytes(name)));
    let is_ours = |record: &PathBuf| match std::fs::read(record.join("gitdir")) {
        Ok(text) => {
            let folder = Path::new(OsStr::from_bytes(text.trim_ascii_end())).parent();
            folder.is_some_and(|folder| folder == worktree)
        }
        Err(_) => {
            let found = record.file_name().unwrap_or_default().as_bytes();
            let rest = found.strip_prefix(name);
            rest.is_some_and(|rest| rest.iter().all(u8::is_ascii_digit))
        }
    };
    entries.flatten().map(|entry| entry.path()).filter(is_ours).collect()
}

/// Parses the two files of a worktree's record: the path of its `.git` file, which may be relative to the record, and HEAD.
/// Returns nothing where HEAD is kept elsewhere.
fn parse_record(record: &Path, gitdir: &[u8], head: &[u8]) -> Option<Option<WorktreeEntry>> {
    let gitdir = record.join(OsStr::from_bytes(gitdir.trim_ascii_end()));
    let Some(path) = gitdir.parent() else { return Some(None) };
    let head = head.trim_ascii_end();
    if head == b"ref: refs/heads/.invalid" {
        return None;
    }
    let branch = head.strip_prefix(b"ref: ").and_then(parse_branch);
    let sha = parse_id(head).and_then(some_object);
    Some(Some(WorktreeEntry { path: path.to_path_buf(), head: sha, branch }))
}

fn argv_add(path: &Path, branch: &BranchName, base: &Sha) -> Vec<OsString> {
    let values =
        [branch.as_str().as_ref(), OsStr::new("--"), path.as_os_str(), base.as_str().as_ref()];
    argv_with("worktree add --quiet --no-track -b", values)
}

/// Parses attributes, each ended by NUL; an empty one ends the worktree.
fn parse_worktrees(bytes: &[u8]) -> Option<Vec<WorktreeEntry>> {
    let mut found: Vec<WorktreeEntry> = Vec::new();
    for field in filled_fields(bytes) {
        if let Some(path) = field.strip_prefix(b"worktree ") {
            let path = PathBuf::from(OsStr::from_bytes(path));
            found.push(WorktreeEntry { path, head: None, branch: None });
        } else if let Some(sha) = field.strip_prefix(b"HEAD ") {
            found.last_mut()?.head = some_object(parse_id(sha)?);
        } else if let Some(name) = field.strip_prefix(b"branch ") {
            found.last_mut()?.branch = parse_branch(name);
        }
    }
    Some(found)
}

fn parse_branch(name: &[u8]) -> Option<BranchName> {
    let name = std::str::from_utf8(name).ok()?.strip_prefix("refs/heads/")?;
    BranchName::parse(name).ok()
}

/// Parses entries of two letters, a blank and the path, each ended by NUL.
fn parse_status(bytes: &[u8]) -> Option<Vec<DirtyPath>> {
    let entry = |field: &[u8]| {
        let code = std::str::from_utf8(field.get(..2)?).ok()?.to_owned();
        let path = field.get(3..).filter(|path| !path.is_empty())?.to_vec();
        Some(DirtyPath { code, path })
    };
    filled_fields(bytes).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn no_path_and_no_branch_is_taken_for_an_option() {
        let branch = BranchName::parse("feat/tf").unwrap();
        let argv = argv_add(Path::new("-x"), &branch, &Sha::parse(A).unwrap());
        insta::assert_snapshot!(argv.join(" ".as_ref()).into_string().unwrap(), @"worktree add --quiet --no-track -b feat/tf -- -x aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    }

    #[test]
    fn records_of_worktrees_are_read_without_git() {
        let read = |gitdir: &str, head: &str| {
            parse_record(Path::new("/r/worktrees/x"), gitdir.as_bytes(), head.as_bytes())
        };
        let found = read("/ops/tf/.git\n", "ref: refs/heads/feat/tf\n").unwrap().unwrap();
        assert_eq!(found.path, Path::new("/ops/tf"));
        assert_eq!((found.branch.unwrap().as_str(), found.head), ("feat/tf", None));
        let found = read("/ops/tf/.git\n", &format!("{A}\n")).unwrap().unwrap();
        assert_eq!((found.branch, found.head.unwrap().as_str()), (None, A));
        let found = read("../../../ops/tf/.git", "ref: refs/heads/x").unwrap().unwrap();
        assert_eq!(found.path, Path::new("/r/worktrees/x/../../../ops/tf"));
        assert_eq!(read("/ops/tf/.git\n", "ref: refs/heads/.invalid\n"), None);
    }

    #[test]
    fn worktrees_are_read_with_odd_paths_and_detached_heads() {
        let text = format!(
            "worktree /a\nb\0HEAD {A}\0branch refs/heads/feat/x\0\0worktree /c\0HEAD {A}\0detached\0\0worktree /d\0bare\0\0"
        );
        let found = parse_worktrees(text.as_bytes()).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].path, Path::new("/a\nb"));
        assert_eq!(found[0].branch.as_ref().unwrap().as_str(), "feat/x");
        assert_eq!((found[1].branch.as_ref(), found[1].head.is_some()), (None, true));
        assert_eq!(found[2].head, None);
        assert_eq!(parse_worktrees(b"HEAD x\0"), None);
    }

    #[test]
    fn a_status_keeps_the_bytes_of_its_paths() {
        let found = parse_status(b" M a b\0?? \xff\n\0").unwrap();
        assert_eq!((found[0].code.as_str(), found[0].path.as_slice()), (" M", &b"a b"[..]));
        assert_eq!(found[1].path, b"\xff\n");
        assert_eq!(parse_status(b"").unwrap(), []);
        assert_eq!(parse_status(b"M\0"), None);
    }
}
