//! A bare repository of this program that imports an agent's commits and in which they are judged.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::id::{BranchName, Sha};

use super::call::{Git, GitCall, args, program};
use super::push::{PushRequest, push};
use super::seal::{ObjectFormat, believe_commit_graph, init_env, sealed_env, sealed_flags};
use super::{
    Blob, Capped, ChangedEntry, CommitFacts, GitError, GitLog, PushOutcome, RefName, UserEnv,
};
use crate::file;
use crate::signal::Cancel;

/// A bare repository that only this program writes to.
#[derive(Clone, Debug)]
pub struct SealedRepo {
    path: PathBuf,
    format: ObjectFormat,
    pub(super) git: Git,
}

/// Expected value of a ref before it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldValue<'a> {
    /// It must not exist.
    Missing,
    /// It must be at this commit.
    At(&'a Sha),
}

impl SealedRepo {
    /// Creates a repository in a directory that must not exist yet.
    pub async fn init_bare(path: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        file::create_dir_exclusive(path)
            .map_err(|source| GitError::Prepare { path: path.to_path_buf(), source })?;
        let git = Git { env: init_env(), flags: sealed_flags(None), ..sealed_git(path, format) };
        git.ask(GitCall::new(argv_init(path, format))).await?.success()?;
        Ok(Self::open(path, format))
    }

    /// Opens a repository made by [`init_bare`](Self::init_bare).
    #[must_use]
    pub fn open(path: &Path, format: ObjectFormat) -> Self {
        Self { path: path.to_path_buf(), format, git: sealed_git(path, format) }
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
        self.git.set_env("GIT_OBJECT_DIRECTORY", objects);
        self.git.set_env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates);
        self
    }

    /// Returns the path of the repository.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the object format.
    #[must_use]
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
        lines.extend_from_slice(&alternate_line(objects_dir));
        file::write_atomic(&list, &lines, 0o600).map_err(failed)
    }

    /// Imports `src_ref` from a bundle as `dst_ref`, checking every object. The bundle's prerequisites must
    /// be reachable from a ref here, so pin them with [`update_ref`](Self::update_ref) first.
    pub async fn fetch_bundle(
        &self,
        bundle: &Path,
        src_ref: &RefName,
        dst_ref: &RefName,
    ) -> Result<(), GitError> {
        self.git.fetch_bundle(bundle, src_ref, dst_ref).await
    }

    /// Resolves a revision to a commit, if it names one.
    pub async fn resolve_commit(&self, rev: &str) -> Result<Option<Sha>, GitError> {
        self.git.resolve_commit(rev).await
    }

    /// Returns whether all of these commits are here.
    pub async fn has_commits(&self, commits: &[Sha]) -> Result<bool, GitError> {
        Ok(self.git.resolve_all(commits).await?.iter().all(Option::is_some))
    }

    /// Returns the trees of these commits, in the order given; `None` for a missing commit.
    pub async fn trees_of(&self, commits: &[Sha]) -> Result<Vec<Option<Sha>>, GitError> {
        self.git.trees_of(commits).await
    }

    /// Returns whether `older` is `newer` or one of its ancestors, by the commits alone: replacement refs,
    /// grafts and commit-graph files have no effect.
    pub async fn is_ancestor(&self, older: &Sha, newer: &Sha) -> Result<bool, GitError> {
        self.git.is_ancestor(older, newer).await
    }

    /// Returns a best common ancestor, if there is one.
    pub async fn merge_base(&self, one: &Sha, other: &Sha) -> Result<Option<Sha>, GitError> {
        self.git.merge_base(one, other).await
    }

    /// Lists commits reachable from `tip` and from none of `exclude`, newest first, at most `limit`.
    pub async fn new_commits(
        &self,
        tip: &Sha,
        exclude: &[Sha],
        limit: usize,
    ) -> Result<Vec<CommitFacts>, GitError> {
        self.git.new_commits(tip, exclude, limit).await
    }

    /// Lists every path that differs between two commits, sorted by its bytes.
    pub async fn changed_entries(
        &self,
        from: &Sha,
        to: &Sha,
    ) -> Result<Vec<ChangedEntry>, GitError> {
        self.git.changed_entries(from, to).await
    }

    /// Returns the first `cap` bytes of the patch from one commit to another. Submodules are not in it;
    /// [`changed_entries`](Self::changed_entries) has them.
    pub async fn diff(&self, from: &Sha, to: &Sha, cap: usize) -> Result<Capped, GitError> {
        self.git.diff(from, to, cap).await
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

    /// Returns the sizes of blobs in the order given; `None` for an object that is missing or not a blob.
    pub async fn blob_sizes(&self, ids: &[Sha]) -> Result<Vec<Option<u64>>, GitError> {
        self.git.blob_sizes(ids).await
    }

    /// Reads the first `cap` bytes of each blob in the order given; `None` for an object that is missing or
    /// not a blob.
    pub async fn read_blobs(&self, ids: &[Sha], cap: usize) -> Result<Vec<Option<Blob>>, GitError> {
        self.git.read_blobs(ids, cap).await
    }

    /// Points a ref at a commit, if its current value is the expected one.
    pub async fn update_ref(
        &self,
        name: &RefName,
        new: &Sha,
        old: OldValue<'_>,
    ) -> Result<(), GitError> {
        let call = GitCall::new(argv_update_ref(name, new, old, self.format));
        self.git.ask(call).await?.success().map(|_| ())
    }

    /// Pushes `commit` as `branch` to `url`, with the user's configuration and credentials, and never by
    /// force.
    pub async fn push(
        &self,
        url: &str,
        commit: &Sha,
        branch: &BranchName,
        env: UserEnv,
        timeout: Duration,
    ) -> Result<PushOutcome, GitError> {
        let request = PushRequest { url, commit, branch, timeout };
        push(&self.git, &self.path, self.format, &request, env).await
    }
}

/// Builds the handle. It runs in `/`, where git cannot discover another repository by accident.
fn sealed_git(path: &Path, format: ObjectFormat) -> Git {
    Git {
        program: program(),
        cwd: PathBuf::from("/"),
        env: sealed_env(format),
        flags: sealed_flags(Some(path)),
        log: None,
        cancel: Cancel::new(),
    }
}

/// Builds the arguments. Without a template there are no hooks, not even sample ones.
fn argv_init(path: &Path, format: ObjectFormat) -> Vec<OsString> {
    let format = format!("--object-format={}", format.as_str());
    let mut argv = args(["init", "--quiet", "--bare", "--template=", "--initial-branch=main"]);
    argv.extend(args([&format, "--end-of-options"]));
    argv.push(path.into());
    argv
}

fn argv_update_ref(
    name: &RefName,
    new: &Sha,
    old: OldValue<'_>,
    format: ObjectFormat,
) -> Vec<OsString> {
    let old = match old {
        OldValue::Missing => format.zero(),
        OldValue::At(sha) => sha.as_str().to_owned(),
    };
    args(["update-ref", "--no-deref", name.as_str(), new.as_str(), &old])
}

/// Quotes a path. One that begins with a quote or contains a newline must be quoted, and a quoted one may
/// hold anything, so all are.
fn alternate_line(objects_dir: &Path) -> Vec<u8> {
    let mut line = vec![b'"'];
    for &byte in objects_dir.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', byte]),
            b' '..=b'~' => line.push(byte),
            _ => line.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    line.extend(b"\"\n");
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
