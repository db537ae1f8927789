//! The user's own repository: read from and fetched into. Its checkout changes only where the user asks for it.

use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::id::RemoteName;

use super::call::{Git, GitOutput, argv};
use super::settings::GitSettings;
use super::user_git::{close_prompts, user_flags};
use super::{GitError, GitLog, ObjectFormat, UserEnv, check_version};
use crate::signal::Cancel;

/// A repository that belongs to the user.
#[derive(Clone, Debug)]
pub struct UserRepo {
    layout: Layout,
    toplevel: Option<PathBuf>,
    /// True if objects and settings are borrowed from a repository that cannot be written to.
    is_stand_in: bool,
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

impl Deref for UserRepo {
    type Target = Git;

    fn deref(&self) -> &Git {
        &self.git
    }
}

impl UserRepo {
    /// Finds the repository that contains `dir`, with the environment of this process.
    pub async fn discover(dir: &Path) -> Result<Self, GitError> {
        Self::discover_as(dir, UserEnv::from_env()).await
    }

    /// Finds the repository that contains `dir`, with a given environment.
    pub async fn discover_as(dir: &Path, env: UserEnv) -> Result<Self, GitError> {
        let mut git = Git::new(dir, env.into_vars(), user_flags());
        let (version, answer, toplevel, settings) = tokio::join!(
            check_version(),
            git.call(argv(LAYOUT)),
            toplevel_of(&git),
            GitSettings::observe(&git),
        );
        // An old git answers other questions wrongly, so its version is the first error.
        version?;
        // The layout comes first, so that a directory outside any repository gets exactly that error.
        let layout = read_layout(&answer?, dir)?;
        if layout.common_dir.to_str().is_none() {
            return Err(GitError::NotUtf8 { path: layout.common_dir });
        }
        let toplevel = toplevel?.filter(|_| !layout.is_bare);
        let settings = settings?;
        close_prompts(&mut git, &settings);
        git.cwd = toplevel.clone().unwrap_or_else(|| layout.common_dir.clone());
        Ok(Self { layout, toplevel, is_stand_in: false, settings, git })
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

    /// Takes the checkout of the repository that this one stands in for.
    pub(super) fn standing_in_for(self, other: &Self) -> Self {
        Self { toplevel: other.toplevel.clone(), is_stand_in: true, ..self }
    }

    /// Returns whether this is a stand-in for a repository that cannot be written to.
    pub fn is_stand_in(&self) -> bool {
        self.is_stand_in
    }

    /// Returns the root of the checkout; a bare repository has none.
    pub fn toplevel(&self) -> Option<&Path> {
        self.toplevel.as_deref()
    }

    /// Returns the repository directory, shared by all its worktrees.
    pub fn common_dir(&self) -> &Path {
        &self.layout.common_dir
    }

    pub fn objects_dir(&self) -> PathBuf {
        self.layout.common_dir.join("objects")
    }

    pub fn object_format(&self) -> ObjectFormat {
        self.layout.format
    }

    pub fn is_bare(&self) -> bool {
        self.layout.is_bare
    }

    pub fn is_shallow(&self) -> bool {
        self.layout.is_shallow
    }

    /// Names the settings by which objects were left at a remote; empty for a complete clone.
    pub fn partial_clone_settings(&self) -> Vec<String> {
        self.settings.partial_clone_marks().map(str::to_owned).collect()
    }

    /// Returns whether a remote of this name exists and has a URL.
    pub fn has_remote(&self, remote: &RemoteName) -> bool {
        self.settings.has_remote(remote)
    }
}

/// Query of the layout. The path comes last, because it alone may contain newlines.
const LAYOUT: &str = "rev-parse --path-format=absolute --is-bare-repository \
    --is-shallow-repository --show-object-format --git-common-dir";

async fn toplevel_of(git: &Git) -> Result<Option<PathBuf>, GitError> {
    let answer = git.call(argv("rev-parse --path-format=absolute --show-toplevel")).await?;
    // Inside the repository directory itself there is no checkout.
    Ok((answer.status == 0).then(|| path_in(&answer.stdout)))
}

fn read_layout(answer: &GitOutput, dir: &Path) -> Result<Layout, GitError> {
    if answer.status != 0 {
        let stderr = String::from_utf8_lossy(&answer.stderr);
        return Err(if stderr.contains("not a git repository") {
            GitError::NotARepository { dir: dir.to_path_buf() }
        } else {
            answer.failure()
        });
    }
    answer.parse(parse_layout, "it lacks an answer")
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
    std::str::from_utf8(text).ok()?.parse().ok()
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
