//! The user's own repository: read from and fetched into, never checked out, committed to or cleaned.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::id::{BranchName, RemoteName, Sha};

use super::call::{Git, GitCall, GitOutput, args, program};
use super::settings::GitSettings;
use super::user_git::{close_prompts, user_flags};
use super::{Capped, GitError, GitLog, ObjectFormat, RefName, RemoteRef, UserEnv};
use crate::signal::Cancel;

/// A repository that belongs to the user.
#[derive(Clone, Debug)]
pub struct UserRepo {
    layout: Layout,
    toplevel: Option<PathBuf>,
    settings: GitSettings,
    pub(super) git: Git,
}

/// Paths and properties that git reports.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    is_bare: bool,
    is_shallow: bool,
    format: ObjectFormat,
    common_dir: PathBuf,
}

impl UserRepo {
    /// Finds the repository that contains `dir`, with the environment of this process.
    pub async fn discover(dir: &Path) -> Result<Self, GitError> {
        Self::discover_as(dir, UserEnv::from_env()).await
    }

    /// Finds the repository that contains `dir`, with a given environment.
    pub async fn discover_as(dir: &Path, env: UserEnv) -> Result<Self, GitError> {
        let mut git = Git {
            program: program(),
            cwd: dir.to_path_buf(),
            env: env.into_vars(),
            flags: user_flags(),
            log: None,
            cancel: Cancel::new(),
        };
        let (answer, toplevel, settings) = tokio::join!(
            git.ask(GitCall::new(argv_layout())),
            toplevel_of(&git),
            GitSettings::observe(&git),
        );
        // The layout comes first, so that a directory outside any repository gets exactly that error.
        let layout = read_layout(&answer?, dir)?;
        let toplevel = toplevel?.filter(|_| !layout.is_bare);
        let settings = settings?;
        close_prompts(&mut git, &settings);
        git.cwd = toplevel.clone().unwrap_or_else(|| layout.common_dir.clone());
        Ok(Self { layout, toplevel, settings, git })
    }

    /// Reports every later command to `log`.
    #[must_use]
    pub fn logged(mut self, log: GitLog) -> Self {
        self.git.log = Some(log);
        self
    }

    /// Stops the running command on cancellation.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.git.cancel = cancel;
        self
    }

    /// Returns the root of the checkout; a bare repository has none.
    #[must_use]
    pub fn toplevel(&self) -> Option<&Path> {
        self.toplevel.as_deref()
    }

    /// Returns the repository directory, shared by all its worktrees.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.layout.common_dir
    }

    /// Returns the directory of its objects.
    #[must_use]
    pub fn objects_dir(&self) -> PathBuf {
        self.layout.common_dir.join("objects")
    }

    /// Returns the object format.
    #[must_use]
    pub fn object_format(&self) -> ObjectFormat {
        self.layout.format
    }

    /// Returns whether the repository has no checkout.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.layout.is_bare
    }

    /// Returns whether the history is shallow.
    #[must_use]
    pub fn is_shallow(&self) -> bool {
        self.layout.is_shallow
    }

    /// Returns whether some objects were left at a remote.
    #[must_use]
    pub fn is_partial_clone(&self) -> bool {
        self.settings.is_partial_clone()
    }

    /// Returns whether a remote of this name exists and has a URL.
    #[must_use]
    pub fn has_remote(&self, remote: &RemoteName) -> bool {
        self.settings.has_remote(remote)
    }

    /// Returns the URL of a remote after the user's rewriting rules; `None` if the remote does not exist.
    pub async fn remote_url(&self, remote: &RemoteName) -> Result<Option<String>, GitError> {
        self.git.remote_url(remote).await
    }

    /// Updates the branches of a remote under `refs/remotes`, and nothing else.
    pub async fn fetch(&self, remote: &RemoteName, timeout: Duration) -> Result<(), GitError> {
        self.git.fetch(remote, timeout).await
    }

    /// Fetches single refs of a remote without creating a local ref.
    pub async fn fetch_nameless(
        &self,
        remote: &RemoteName,
        names: &[&str],
        timeout: Duration,
    ) -> Result<(), GitError> {
        self.git.fetch_nameless(remote, names, timeout).await
    }

    /// Lists the refs of a remote whose names match a pattern such as `refs/tags/*`.
    pub async fn remote_refs(
        &self,
        remote: &RemoteName,
        pattern: &str,
        timeout: Duration,
    ) -> Result<Vec<RemoteRef>, GitError> {
        self.git.remote_refs(remote, pattern, timeout).await
    }

    /// Returns the default branch of a remote as recorded at clone time, if it was.
    pub async fn default_branch(
        &self,
        remote: &RemoteName,
    ) -> Result<Option<BranchName>, GitError> {
        self.git.default_branch(remote).await
    }

    /// Queries the remote for its current default branch.
    pub async fn ask_default_branch(
        &self,
        remote: &RemoteName,
        timeout: Duration,
    ) -> Result<Option<BranchName>, GitError> {
        self.git.ask_default_branch(remote, timeout).await
    }

    /// Resolves a revision to a commit, if it names one.
    pub async fn resolve_commit(&self, rev: &str) -> Result<Option<Sha>, GitError> {
        self.git.resolve_commit(rev).await
    }

    /// Resolves refs to commits, in the order given; `None` for a ref that is missing or not a commit.
    pub async fn resolve_refs(&self, names: &[RefName]) -> Result<Vec<Option<Sha>>, GitError> {
        self.git.resolve_all(names).await
    }

    /// Returns whether `older` is `newer` or one of its ancestors.
    pub async fn is_ancestor(&self, older: &Sha, newer: &Sha) -> Result<bool, GitError> {
        self.git.is_ancestor(older, newer).await
    }

    /// Reads the first `cap` bytes of a regular file in a commit, if it exists.
    pub async fn read_blob(
        &self,
        commit: &Sha,
        path: &str,
        cap: usize,
    ) -> Result<Option<Capped>, GitError> {
        self.git.read_blob(commit, path, cap).await
    }

    /// Reads the first `cap` bytes of the first of several paths that is a regular file in a commit, with its
    /// path.
    pub async fn read_first_blob<'a>(
        &self,
        commit: &Sha,
        paths: &[&'a str],
        cap: usize,
    ) -> Result<Option<(&'a str, Capped)>, GitError> {
        self.git.read_first_blob(commit, paths, cap).await
    }

    /// Returns the value of a setting, if it is set.
    pub async fn config_get(&self, key: &str) -> Result<Option<String>, GitError> {
        self.git.config_get(key).await
    }
}

/// Builds the arguments. The path comes last, because it alone may contain newlines.
fn argv_layout() -> Vec<OsString> {
    let mut argv = args(["rev-parse", "--path-format=absolute", "--is-bare-repository"]);
    argv.extend(args(["--is-shallow-repository", "--show-object-format", "--git-common-dir"]));
    argv
}

async fn toplevel_of(git: &Git) -> Result<Option<PathBuf>, GitError> {
    let argv = args(["rev-parse", "--path-format=absolute", "--show-toplevel"]);
    let answer = git.ask(GitCall::new(argv)).await?;
    // Inside the repository directory itself there is no checkout.
    if answer.status != 0 {
        return Ok(None);
    }
    Ok(Some(path_in(&answer.stdout)))
}

fn read_layout(answer: &GitOutput, dir: &Path) -> Result<Layout, GitError> {
    if answer.status != 0 {
        let said = String::from_utf8_lossy(&answer.stderr);
        return Err(if said.contains("not a git repository") {
            GitError::NotARepository { dir: dir.to_path_buf() }
        } else {
            answer.failure()
        });
    }
    parse_layout(&answer.stdout).ok_or_else(|| answer.unreadable("it lacks an answer"))
}

fn parse_layout(bytes: &[u8]) -> Option<Layout> {
    let mut lines = bytes.splitn(4, |&byte| byte == b'\n');
    let mut next = || lines.next();
    let (is_bare, is_shallow) = (parse_bool(next()?)?, parse_bool(next()?)?);
    let format = ObjectFormat::parse(std::str::from_utf8(next()?).ok()?)?;
    let common_dir = path_in(next()?);
    common_dir.is_absolute().then_some(Layout { is_bare, is_shallow, format, common_dir })
}

fn parse_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

fn path_in(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes.strip_suffix(b"\n").unwrap_or(bytes)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_read_with_an_odd_path() {
        let layout = parse_layout(b"false\ntrue\nsha1\n/a\nb/.git\n").unwrap();
        assert_eq!(layout.common_dir, Path::new("/a\nb/.git"));
        assert_eq!((layout.is_bare, layout.is_shallow), (false, true));
    }

    #[test]
    fn half_a_layout_is_none() {
        for text in ["", "true\nfalse\nsha1\n", "true\nfalse\nsha9\n/x\n", "yes\nno\nsha1\n/x\n"] {
            assert_eq!(parse_layout(text.as_bytes()), None, "{text:?}");
        }
    }
}
