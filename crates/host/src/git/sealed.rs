//! A bare repository of this program that imports an agent's commits and in which they are judged.

use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use model::id::Sha;

use super::call::{Git, argv_with};
use super::merge::LastMerge;
use super::parse::quoted;
use super::seal::{ObjectFormat, believe_commit_graph, init_env, sealed_env, sealed_flags};
use super::{GitError, GitLog, RefName};
use crate::file;
use crate::signal::Cancel;

/// A bare repository that only this program writes to.
#[derive(Clone, Debug)]
pub struct SealedRepo {
    path: PathBuf,
    format: ObjectFormat,
    pub(super) git: Git,
    /// The last merge that was made in memory: several judges ask for the same one.
    pub(super) last_merge: Arc<Mutex<Option<LastMerge>>>,
}

/// Expected value of a ref before it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldValue<'a> {
    Missing,
    At(&'a Sha),
}

impl Deref for SealedRepo {
    type Target = Git;

    fn deref(&self) -> &Git {
        &self.git
    }
}

impl SealedRepo {
    /// Creates a repository in a directory that must not exist yet.
    pub async fn init_bare(path: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        file::create_dir_exclusive(path)
            .map_err(|source| GitError::Prepare { path: path.to_path_buf(), source })?;
        let git = Git::new(Path::new("/"), init_env(), sealed_flags(None));
        git.run(argv_init(path, format)).await?;
        Ok(Self::open(path, format))
    }

    /// Opens a repository made by [`init_bare`](Self::init_bare).
    pub fn open(path: &Path, format: ObjectFormat) -> Self {
        // In `/` git cannot discover another repository by accident.
        let git = Git::new(Path::new("/"), sealed_env(format), sealed_flags(Some(path)));
        Self { path: path.to_path_buf(), format, git, last_merge: Arc::default() }
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

    /// Trusts the commit graph beside the objects, for a repository whose graph only this program can have
    /// written. Ancestry queries become many times faster.
    #[must_use]
    pub fn believing_commit_graph(mut self) -> Self {
        believe_commit_graph(&mut self.git.flags);
        self
    }

    /// Writes new objects to `objects`, and reads from there and from `alternates` as well.
    #[must_use]
    pub fn writing_to(mut self, objects: &OsStr, alternates: &OsStr) -> Self {
        // The trees of merges are where objects were written before.
        self.last_merge = Arc::default();
        self.git.set_env("GIT_OBJECT_DIRECTORY", objects);
        self.git.set_env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates);
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn object_format(&self) -> ObjectFormat {
        self.format
    }

    /// Adds the objects of another repository, which must stay where it is. Its refs and settings have no
    /// effect here.
    pub fn add_alternate(&self, objects_dir: &Path) -> Result<(), GitError> {
        let list = self.path.join("objects/info/alternates");
        let failed = |source| GitError::Prepare { path: self.path.clone(), source };
        let mut lines = match std::fs::read(&list) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(file::FileError::io("read", &list)(error))),
        };
        lines.extend(alternate_line(objects_dir));
        file::write_atomic(&list, &lines, 0o600).map_err(failed)
    }

    /// Points a ref at a commit, if its current value is the expected one.
    pub async fn update_ref(
        &self,
        name: &RefName,
        new: &Sha,
        old: OldValue<'_>,
    ) -> Result<(), GitError> {
        self.git.run(argv_update_ref(name, new, old, self.format)).await
    }
}

/// Builds the arguments. Without a template there are no hooks, not even sample ones.
fn argv_init(path: &Path, format: ObjectFormat) -> Vec<OsString> {
    let format = format!("--object-format={}", format.as_str());
    let values = [OsStr::new(&format), "--end-of-options".as_ref(), path.as_os_str()];
    argv_with("init --quiet --bare --template= --initial-branch=main", values)
}

pub(super) fn argv_update_ref(
    name: &RefName,
    new: &Sha,
    old: OldValue<'_>,
    format: ObjectFormat,
) -> Vec<OsString> {
    let old = match old {
        OldValue::Missing => format.zero(),
        OldValue::At(sha) => sha.as_str().to_owned(),
    };
    argv_with("update-ref --no-deref", [name.as_str(), new.as_str(), &old])
}

/// Quotes a path. One that begins with a quote or contains a newline must be quoted, and a quoted one may
/// hold anything, so all are.
fn alternate_line(objects_dir: &Path) -> Vec<u8> {
    let mut line = quoted(objects_dir.as_os_str().as_bytes());
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(argv: &[OsString]) -> String {
        argv.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn a_repository_is_made_bare_and_without_a_template() {
        let argv = argv_init(Path::new("/r/host.git"), ObjectFormat::Sha256);
        insta::assert_snapshot!(shown(&argv), @"init --quiet --bare --template= --initial-branch=main --object-format=sha256 --end-of-options /r/host.git");
    }

    #[test]
    fn a_ref_changes_only_from_what_it_was() {
        let (name, sha) =
            (RefName::parse("refs/heads/x").unwrap(), Sha::parse(&"a".repeat(40)).unwrap());
        let argv = argv_update_ref(&name, &sha, OldValue::Missing, ObjectFormat::Sha1);
        insta::assert_snapshot!(shown(&argv), @"update-ref --no-deref refs/heads/x aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0000000000000000000000000000000000000000");
    }

    #[test]
    fn an_alternate_may_have_any_name() {
        let line = |text: &str| String::from_utf8(alternate_line(Path::new(text))).unwrap();
        assert_eq!(line("/a b/c"), "\"/a b/c\"\n");
        assert_eq!(line("/q\"\\\n"), "\"/q\\\"\\\\\\012\"\n");
        assert_eq!(line("/ü"), "\"/\\303\\274\"\n");
    }
}
