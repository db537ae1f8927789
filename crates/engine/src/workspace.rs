//! Workspace in: a copy of chosen commits of a repository that holds nothing else.
//!
//! No remotes, no links to the user's files, no reflogs, no address of this host. The user's checkout is not
//! touched and does not matter: it may be on another branch, detached or dirty.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::file::FileError;
use host::git::{ConflictStage, GitError, GitLog, RefName, SealedRepo, UserRepo, WorkspaceRepo};
use host::process::{ProcessError, RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::id::{BranchName, IdError, Sha};
use sandbox::spec::BoxUser;

use crate::mirror::{Mirror, MirrorError};

/// Who the agent's commits are by, unless it says otherwise.
pub const AGENT_IDENTITY: (&str, &str) = ("Bottleworks agent", "agent@bottle.invalid");

/// Gigabytes on a slow disk.
const COPY_LIMIT: Duration = Duration::from_secs(1800);

/// What the workspace shall hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceOptions {
    /// The branch that is checked out.
    pub branch: BranchName,
    pub base: Sha,
    /// Other commits under the names by which the agent finds them, as in `upstream/main`.
    pub others: Vec<(String, Sha)>,
    /// Who owns the files afterwards.
    pub owner: BoxUser,
    pub merge: Option<MergeBegun>,
}

/// A merge that has been begun in the host's own repository: the files are as far as they could be settled, and the rest
/// is left as conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeBegun {
    /// The host's repository, which holds what neither side has.
    pub repo: PathBuf,
    /// A commit of the files as they shall be found; nothing in the workspace names it.
    pub prepared: Sha,
    pub theirs: Sha,
    /// The versions of what is left.
    pub stages: Vec<ConflictStage>,
    /// The message of the merge commit.
    pub message: String,
}

/// What was noticed on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WorkspaceNotes {
    /// Submodules that stay empty folders: their repositories are not this one.
    pub submodules: Vec<String>,
    /// Whether large files are kept elsewhere, so that the workspace has their pointers only.
    pub lfs_pointers: bool,
}

impl WorkspaceNotes {
    /// The notes, for people.
    pub fn messages(&self) -> Vec<String> {
        let submodules = self.submodules.iter();
        let mut messages: Vec<String> = submodules
            .map(|submodule| format!("submodule {submodule} stays empty in the workspace"))
            .collect();
        if self.lfs_pointers {
            messages.push("large files (LFS) are in the workspace as pointers".to_owned());
        }
        messages
    }
}

/// The workspace could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// History is missing, so nothing can be proved about it.
    #[error("{path} is a shallow clone; run 'git fetch --unshallow' in it first", path = path.display())]
    Shallow { path: PathBuf },
    /// Objects are missing and would have to be fetched one by one.
    #[error("{path} is a partial clone; run 'git fetch --refetch --no-filter' in it first", path = path.display())]
    Partial { path: PathBuf },
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
    wish: &WorkspaceOptions,
    path: &Path,
    mirror: &Path,
    log: Option<GitLog>,
) -> Result<WorkspaceNotes, WorkspaceError> {
    refuse_incomplete(source)?;
    let mut wants = vec![wish.base.clone()];
    wants.extend(wish.others.iter().map(|(_, sha)| sha.clone()).filter(|sha| *sha != wish.base));
    let format = source.object_format();
    let repo = WorkspaceRepo::init(path, &wish.branch, format, AGENT_IDENTITY, log.clone())?;
    let packs = repo.pack_dir();
    let history =
        async { Mirror::update(mirror, source, &wants, log).await?.copy_packs(&packs).await };
    // The files are written from the user's own objects while the history is still on its way: together they take as
    // long as the slower one.
    let (shown, lent) = match &wish.merge {
        Some(merge) => (&merge.prepared, merge.repo.join("objects")),
        None => (&wish.base, source.objects_dir()),
    };
    let (copied, written) = tokio::join!(history, repo.checkout(shown, &lent));
    copied?;
    written?;
    let refs = refs(wish)?;
    let (named, lacking) = tokio::join!(repo.set_refs(&refs), repo.lacks(&wants));
    if let Some(commit) = lacking?.into_iter().next() {
        return Err(WorkspaceError::Incomplete { commit, path: path.into() });
    }
    named?;
    if let Some(merge) = &wish.merge {
        let host = SealedRepo::open(&merge.repo, format);
        host.pack_into(&packs, std::slice::from_ref(&merge.prepared), &wants).await?;
        repo.leave_conflicts(&merge.stages).await?;
        repo.begin_merge(&merge.theirs, &merge.message)?;
    }
    let notes = observe_notes(path);
    give(path, wish.owner)?;
    Ok(notes)
}

/// Makes a workspace of a commit in the host's own repository, with its whole history: a result to be tried, in a folder
/// where no agent has been.
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

/// Makes a workspace and a harness state of those of an earlier run, file by file: the earlier run stays as it is. Nobody
/// is at work in either; links are copied as links and lead nowhere until a box resolves them.
pub async fn copy_folder(from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    let spec = CommandSpec::new("/bin/cp").args(["--archive", "--no-target-directory", "--"]);
    let spec = spec.arg(from).arg(to).env("LC_ALL", "C");
    let limits = RunLimits { timeout: Some(COPY_LIMIT), ..RunLimits::default() };
    let output = run(&spec, &limits, &Cancel::new()).await?;
    if output.exit == CommandExit::Exited(0) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = model::escape::escape_line(said.lines().next().unwrap_or("no reason given"));
    Err(WorkspaceError::Copy { from: from.into(), reason: reason.into_owned() })
}

/// Gives a folder to the user behind the box. Only root has to: everybody else is that user.
pub fn give(path: &Path, owner: BoxUser) -> Result<(), FileError> {
    if host::env::is_root() { host::file::lchown_tree(path, owner.uid, owner.gid) } else { Ok(()) }
}

/// Refuses a repository that has not all of its history and objects.
pub fn refuse_incomplete(source: &UserRepo) -> Result<(), WorkspaceError> {
    let path = || source.common_dir().to_path_buf();
    if source.is_shallow() {
        return Err(WorkspaceError::Shallow { path: path() });
    }
    if source.is_partial_clone() {
        return Err(WorkspaceError::Partial { path: path() });
    }
    Ok(())
}

fn refs(wish: &WorkspaceOptions) -> Result<Vec<(RefName, Sha)>, IdError> {
    let mut refs = vec![(RefName::of_branch(&wish.branch), wish.base.clone())];
    for (name, sha) in &wish.others {
        refs.push((RefName::parse(&format!("refs/remotes/{name}"))?, sha.clone()));
    }
    Ok(refs)
}

/// Reads the two files by which a tree tells of things that live elsewhere. They are still ours: no agent has run.
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

/// Makes the folder that the agent keeps its own files in, with a home.
pub fn make_harness_state(path: &Path, owner: BoxUser) -> Result<(), FileError> {
    let io = |action, path: &Path| {
        let path = path.to_path_buf();
        move |source| FileError::Io { action, path, source }
    };
    for folder in [path.to_path_buf(), path.join("home"), path.join("logs"), path.join("run")] {
        fs::create_dir_all(&folder).map_err(io("create", &folder))?;
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
