//! Workspace in: a copy of chosen commits of a repository that holds nothing else.
//!
//! No remotes, no links to the user's files, no reflogs, no address of this host. The user's checkout is not
//! touched and does not matter: it may be on another branch, detached or dirty.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::file::FileError;
use host::git::{
    ConflictStage, GitError, GitLog, RefName, SealedRepo, UserRepo, WorkspaceRepo, render_git,
};
use host::process::{ProcessError, RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::id::{BranchName, IdError, Sha};
use sandbox::spec::BoxUser;

use crate::mirror::{Mirror, MirrorError};

/// Default author of the agent's commits: name and email.
pub const AGENT_IDENTITY: (&str, &str) = ("Bottleworks agent", "agent@bottle.invalid");

/// Time limit for gigabytes on a slow disk.
const COPY_LIMIT: Duration = Duration::from_secs(1800);

/// Bytes of a path that the kernel accepts, with some room for the names of temporary files.
const PATH_BYTES: usize = 4000;

/// Characters of a deep folder's path, and of a copy's complaint, that are shown.
const DEEP_SHOWN: usize = 60;
const REASON_CHARS: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceOptions {
    pub branch: BranchName,
    pub base: Sha,
    /// Other commits under the names by which the agent finds them, as in `upstream/main`.
    pub others: Vec<(String, Sha)>,
    pub owner: BoxUser,
    pub merge: Option<MergeBegun>,
}

/// A merge that was begun in the host's own repository: files are resolved as far as possible, the rest are conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeBegun {
    /// The host's repository, with the objects that neither side has.
    pub repo: PathBuf,
    /// Commit of the files to check out; no ref of the workspace names it.
    pub prepared: Sha,
    pub theirs: Sha,
    pub stages: Vec<ConflictStage>,
    pub message: String,
}

/// Parts of the repository that are not in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WorkspaceNotes {
    /// Submodules stay empty folders.
    pub submodules: Vec<String>,
    /// True if the workspace has only pointers to large files.
    pub lfs_pointers: bool,
}

impl WorkspaceNotes {
    pub fn messages(&self) -> Vec<String> {
        let empty = |name| format!("submodule {name} stays empty in the workspace");
        let lfs = "large files (LFS) are in the workspace as pointers".to_owned();
        self.submodules.iter().map(empty).chain(self.lfs_pointers.then_some(lfs)).collect()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Nothing can be proved about missing history.
    #[error("{path} is a shallow clone; run 'git fetch --unshallow' in it first", path = path.display())]
    Shallow { path: PathBuf },
    /// Missing objects would have to be fetched one by one.
    #[error("{path} is a partial clone; run in it first: {advice}", path = path.display())]
    Partial { path: PathBuf, advice: String },
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("could not copy {from}: {reason}", from = from.display())]
    Copy { from: PathBuf, reason: String },
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Name(#[from] IdError),
    #[error("the copy of {commit} in {path} is not complete", path = path.display())]
    Incomplete { commit: Sha, path: PathBuf },
}

/// Makes the workspace at `path`, by way of the mirror at `mirror`.
pub async fn make_workspace(
    source: &UserRepo,
    options: &WorkspaceOptions,
    path: &Path,
    mirror: &Path,
    log: Option<GitLog>,
) -> Result<WorkspaceNotes, WorkspaceError> {
    refuse_incomplete(source)?;
    let mut wants = vec![options.base.clone()];
    wants.extend(
        options.others.iter().map(|(_, sha)| sha.clone()).filter(|sha| *sha != options.base),
    );
    let format = source.object_format();
    let repo = WorkspaceRepo::init(path, &options.branch, format, AGENT_IDENTITY, log.clone())?;
    let packs = repo.pack_dir();
    let history =
        async { Mirror::update(mirror, source, &wants, log).await?.copy_packs(&packs).await };
    // The files are written from the user's own objects while the history is copied: together they take as long as the
    // slower one.
    let (shown, lent) = match &options.merge {
        Some(merge) => (&merge.prepared, merge.repo.join("objects")),
        None => (&options.base, source.objects_dir()),
    };
    let (copied, written) = tokio::join!(history, repo.checkout(shown, &lent));
    copied?;
    written?;
    let refs = refs(options)?;
    let (named, lacking) = tokio::join!(repo.set_refs(&refs), repo.lacks(&wants));
    if let Some(commit) = lacking?.into_iter().next() {
        return Err(WorkspaceError::Incomplete { commit, path: path.into() });
    }
    named?;
    if let Some(merge) = &options.merge {
        let host = SealedRepo::open(&merge.repo, format);
        host.pack_into(&packs, std::slice::from_ref(&merge.prepared), &wants).await?;
        repo.leave_conflicts(&merge.stages).await?;
        repo.begin_merge(&merge.theirs, &merge.message)?;
    }
    let notes = observe_notes(path);
    give(path, options.owner)?;
    Ok(notes)
}

/// Makes a workspace of a commit in the host's own repository, with its whole history, to test a result in a folder where
/// no agent has been.
pub async fn make_checkout(
    repo: &SealedRepo,
    branch: &BranchName,
    commit: &Sha,
    path: &Path,
    owner: BoxUser,
) -> Result<(), WorkspaceError> {
    let format = repo.object_format();
    let made = WorkspaceRepo::init(path, branch, format, AGENT_IDENTITY, None)?;
    repo.pack_into(&made.pack_dir(), std::slice::from_ref(commit), &[]).await?;
    made.checkout(commit, &repo.path().join("objects")).await?;
    made.set_refs(&[(RefName::of_branch(branch), commit.clone())]).await?;
    Ok(give(path, owner)?)
}

/// Copies a folder of an earlier run, in which no box works. Links are copied as links.
pub async fn copy_folder(from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    copy_with(&["--archive"], from, to).await
}

/// Copies a repository of the host. Its files are replaced and never written to, so both copies share them.
pub async fn link_folder(from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    copy_with(&["--archive", "--link"], from, to).await
}

async fn copy_with(flags: &[&str], from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    let spec = CommandSpec::new("/bin/cp").args(flags.iter().copied());
    let spec = spec.args(["--no-target-directory", "--"]);
    let spec = spec.arg(from).arg(to).env("LC_ALL", "C");
    let limits = RunLimits { timeout: Some(COPY_LIMIT), ..RunLimits::default() };
    let output = run(&spec, &limits, &Cancel::new()).await?;
    if output.exit == CommandExit::Exited(0) {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    // A file name can be as long as the agent wants.
    let line = stderr.lines().next().unwrap_or("no reason given");
    let line: String = line.chars().take(REASON_CHARS).collect();
    let reason = model::escape::escape_line(&line).into_owned();
    Err(WorkspaceError::Copy { from: from.into(), reason })
}

/// Finds a folder below `from` whose copy below `to` no path could name. A folder that cannot be read is left to the copy.
pub fn find_deep_folder(from: &Path, to: &Path) -> Option<String> {
    let longest = from.as_os_str().len().max(to.as_os_str().len());
    let limit = PATH_BYTES.saturating_sub(longest);
    let found = host::file::find_long_path(from, limit).ok().flatten()?;
    let start: String = found.to_string_lossy().chars().take(DEEP_SHOWN).collect();
    Some(format!("{}…", model::escape::escape_line(&start)))
}

/// Makes the user of the box the owner of a folder. Only root has to: any other caller is that user.
pub fn give(path: &Path, owner: BoxUser) -> Result<(), FileError> {
    if host::env::is_root() { host::file::lchown_tree(path, owner.uid, owner.gid) } else { Ok(()) }
}

/// Refuses a repository that lacks history or objects.
pub fn refuse_incomplete(source: &UserRepo) -> Result<(), WorkspaceError> {
    let path = || source.common_dir().to_path_buf();
    if source.is_shallow() {
        return Err(WorkspaceError::Shallow { path: path() });
    }
    let marks = source.partial_clone_settings();
    if !marks.is_empty() {
        return Err(WorkspaceError::Partial { path: path(), advice: complete_advice(&marks) });
    }
    Ok(())
}

/// The commands that complete a partial clone. Git keeps the marks when it has fetched everything, so they are unset.
fn complete_advice(marks: &[String]) -> String {
    let remote =
        marks.iter().find_map(|mark| mark.strip_prefix("remote.")?.strip_suffix(".promisor"));
    let fetch = ["fetch", "--refetch", "--no-filter"].into_iter().chain(remote);
    let unset = marks.iter().map(|mark| render_git(["config", "--unset-all", mark]));
    std::iter::once(render_git(fetch)).chain(unset).collect::<Vec<_>>().join(" && ")
}

fn refs(options: &WorkspaceOptions) -> Result<Vec<(RefName, Sha)>, IdError> {
    let mut refs = vec![(RefName::of_branch(&options.branch), options.base.clone())];
    for (name, sha) in &options.others {
        refs.push((RefName::parse(&format!("refs/remotes/{name}"))?, sha.clone()));
    }
    Ok(refs)
}

/// Reads the two files that refer to content elsewhere. No agent has run yet.
fn observe_notes(path: &Path) -> WorkspaceNotes {
    let modules = read_small(path, ".gitmodules");
    let attributes = read_small(path, ".gitattributes");
    WorkspaceNotes {
        submodules: parse_submodules(&modules),
        lfs_pointers: attributes.lines().any(|line| line.contains("filter=lfs")),
    }
}

fn read_small(path: &Path, name: &str) -> String {
    match host::safe_read::read_beneath(path, name, 1 << 20) {
        Ok(Some(file)) => String::from_utf8_lossy(&file.bytes).into_owned(),
        Ok(None) | Err(_) => String::new(),
    }
}

fn parse_submodules(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("path"))
        .filter_map(|rest| rest.trim_start().strip_prefix('='))
        .map(|value| value.trim().to_owned())
        .collect()
}

/// Makes the folder of the agent's own files, with a home.
pub fn make_harness_state(path: &Path, owner: BoxUser) -> Result<(), FileError> {
    for folder in [path.to_path_buf(), path.join("home"), path.join("logs"), path.join("run")] {
        fs::create_dir_all(&folder).map_err(FileError::io("create", &folder))?;
    }
    give(path, owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_are_named_by_their_paths() {
        let text = "[submodule \"a\"]\n\tpath = vendor/a b\n\turl = https://x\n[submodule \"c\"]\n\tpath=c\n";
        assert_eq!(parse_submodules(text), ["vendor/a b", "c"]);
    }
}
