//! Git: the only module that starts it.
//!
//! There are two kinds of repository, distinguished by type because they need opposite care. [`SealedRepo`]
//! is a bare repository of this program that imports an agent's commits: it uses no configuration, hook,
//! filter, helper or network. [`UserRepo`] is the user's own checkout: it uses the user's configuration and
//! credentials, but it is only read from and fetched into. [`WorktreeRepo`] is such a checkout in which
//! worktrees and branches are created, moved and removed at the user's command. Each of them dereferences to
//! [`Git`], which has the queries that all repositories answer.
//!
//! Arguments that need care, and all parsers, are functions that are tested without git.

mod ancestry;
mod blob;
mod bundle;
mod call;
mod checkout;
mod diff;
mod entry;
mod fence;
mod forecast;
mod grep;
mod history;
mod lineage;
mod main_line;
mod merge;
mod merge_many;
mod pack;
mod parse;
mod patch;
mod progress;
mod push;
mod raw_tree;
mod reason;
mod refname;
mod remote;
mod replay;
mod rewrite;
mod scratch;
mod seal;
mod sealed;
mod search;
mod settings;
mod stand_in;
mod tree;
mod user;
mod user_git;
mod version;
mod walk;
mod workspace;
mod worktree_repo;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use model::command::{CommandExit, CommandRecord, CommandSpec, render_command};
use thiserror::Error;

use crate::file::FileError;
use crate::lock::LockError;
use crate::process::ProcessError;
use crate::signal::CancelReason;

pub use blob::{Blob, Capped};
pub use call::Git;
pub use diff::{ChangedEntry, EntryStatus};
pub use entry::TreeEntry;
pub use fence::{FenceValue, PushFence, RaisedFence};
pub use forecast::{DatedCommit, FileNumbers, Rename};
pub use history::{CommitFacts, CommitLine, FoundMessages, GitIdentity};
pub use lineage::{LineageRange, PastMerge};
pub use main_line::LinePath;
pub use merge::{CommitDraft, ConflictStage, MergeNote, MergedTree};
pub use patch::{CommitPatch, CommitPaths};
pub use progress::{FetchCount, FetchProgress};
pub use push::{BranchUpdate, DeleteOutcome, PushOutcome, PushSpec, push_problem};
pub use raw_tree::RawTreeEntry;
pub use refname::RefName;
pub use remote::{PushUrls, RemoteHeads, RemoteRef};
pub use replay::CommitParts;
pub use rewrite::CommitChange;
pub use scratch::{check_out, check_out_fork, init_source};
pub use seal::ObjectFormat;
pub use sealed::{OldValue, SealedRepo};
pub use search::{FoundMessage, TagMessage};
pub use tree::{NewEntry, TreeEdit};
pub use user::UserRepo;
pub use user_git::UserEnv;
pub use version::{GitVersion, MINIMUM, check_version, version};
pub use walk::{CombinedEntry, ComparedCommit, HistoryCommit};
pub use workspace::WorkspaceRepo;
pub use worktree_repo::{DirtyPath, RemoteBranch, WorktreeEntry, WorktreeRepo};

/// Receives the record of every git command of a handle.
pub type GitLog = Arc<dyn Fn(CommandRecord) + Send + Sync>;

/// A git operation that failed. `args` are the arguments of the command, for display.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GitError {
    /// Git did not start, or contact with it was lost while it ran.
    #[error("could not run git {args}")]
    Start { args: String, source: ProcessError },
    #[error("git {args} failed ({status}): {stderr}", status = shown_exit(*status))]
    Failed { args: String, status: CommandExit, stderr: String },
    #[error("git {args} did not end within {limit_secs} s and was ended")]
    TimedOut { args: String, limit_secs: u64 },
    #[error("git {args} was stopped: {reason}")]
    Cancelled { args: String, reason: CancelReason },
    #[error("could not understand the answer to git {args}: {problem}")]
    Parse { args: String, problem: String },
    #[error("the answer to git {args} is larger than {limit} bytes")]
    TooMuch { args: String, limit: usize },
    /// A file is not a bundle, or not one that is accepted.
    #[error("could not read the bundle {path}", path = path.display())]
    Bundle { path: PathBuf, source: std::io::Error },
    #[error("{dir} is not in a git repository", dir = dir.display())]
    NotARepository { dir: PathBuf },
    #[error("git {found} is too old: {needed} or newer is needed")]
    TooOld { found: GitVersion, needed: GitVersion },
    #[error("git was not found on PATH; install it (Debian: apt-get install git)")]
    Missing,
    #[error(
        "the path {path} is not UTF-8, which records and messages need; move the repository to a folder whose path is",
        path = path.display()
    )]
    NotUtf8 { path: PathBuf },
    #[error(
        "{path} cannot be written to, and new commits are fetched into it; make it writable for this user, or clone it to a folder of your own",
        path = path.display()
    )]
    ReadOnlyObjects { path: PathBuf, source: Box<Self> },
    /// A file of a sealed repository could not be written.
    #[error("could not prepare the repository {path}", path = path.display())]
    Prepare { path: PathBuf, source: FileError },
    #[error("could not wait for the end of an earlier push")]
    EarlierPush(#[from] LockError),
}

/// Renders a git command for people to type, quoted where a shell needs it. Nothing is started.
pub fn render_git(args: impl IntoIterator<Item = impl Into<OsString>>) -> String {
    render_command(&CommandSpec::new("git").args(args))
}

fn shown_exit(exit: CommandExit) -> String {
    match exit {
        CommandExit::Exited(code) => format!("status {code}"),
        CommandExit::Signalled(signal) => format!("signal {signal}"),
        CommandExit::TimedOut => "out of time".to_owned(),
        CommandExit::NotStarted => "not started".to_owned(),
    }
}
