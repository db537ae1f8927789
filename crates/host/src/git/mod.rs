//! Git: the only place where it is started.
//!
//! Two kinds of repository, told apart by type because they need opposite care. [`SealedRepo`] is a
//! bare repository of ours that takes in what an agent made: no configuration, hook, filter, helper or
//! network of anybody's takes part. [`UserRepo`] is a person's own checkout: their configuration and
//! credentials serve, but it is only read from and fetched into. [`WorktreeRepo`] is such a checkout whose
//! owner asked for worktrees and branches to be made, moved and removed.
//!
//! Each question has a function that builds the arguments and one that reads the answer; both are
//! tested without git.

mod ancestry;
mod blob;
mod bundle;
mod call;
mod diff;
mod entry;
mod forecast;
mod history;
mod lineage;
mod merge;
mod pack;
mod patch;
mod push;
mod refname;
mod remote;
mod replay;
mod scratch;
mod seal;
mod sealed;
mod settings;
mod tree;
mod user;
mod user_git;
mod version;
mod workspace;
mod worktree_repo;

use std::path::PathBuf;
use std::sync::Arc;

use model::command::{CommandExit, CommandRecord};
use thiserror::Error;

use crate::file::FileError;
use crate::process::ProcessError;
use crate::signal::CancelReason;

pub use blob::{Blob, Capped};
pub use diff::{ChangedEntry, EntryStatus};
pub use entry::TreeEntry;
pub use forecast::{DatedCommit, FileNumbers, Rename};
pub use history::{CommitFacts, GitIdentity};
pub use lineage::PastMerge;
pub use merge::{CommitDraft, ConflictStage, MergeNote, MergedTree};
pub use patch::{CommitPatch, CommitPaths};
pub use push::{PushOutcome, push_problem};
pub use refname::RefName;
pub use remote::RemoteRef;
pub use replay::CommitParts;
pub use scratch::{check_out_fork, init_source};
pub use seal::ObjectFormat;
pub use sealed::{OldValue, SealedRepo};
pub use tree::{NewEntry, TreeEdit};
pub use user::UserRepo;
pub use user_git::UserEnv;
pub use version::{GitVersion, MINIMUM, check_version, version};
pub use workspace::WorkspaceRepo;
pub use worktree_repo::{DirtyPath, RemoteBranch, WorktreeEntry, WorktreeRepo};

/// Gets the record of every git command of a handle.
pub type GitLog = Arc<dyn Fn(CommandRecord) + Send + Sync>;

/// What could not be done with git.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GitError {
    /// Git did not start, or we lost it while it ran.
    #[error("could not run git {args}")]
    Start {
        /// What was asked, for people.
        args: String,
        /// Why.
        source: ProcessError,
    },
    /// Git says no.
    #[error("git {args} failed ({status}): {stderr}", status = shown_exit(*status))]
    Failed {
        /// What was asked, for people.
        args: String,
        /// How it ended.
        status: CommandExit,
        /// The end of what it said.
        stderr: String,
    },
    /// Git took too long and was ended.
    #[error("git {args} did not end within {limit_secs} s and was ended")]
    TimedOut {
        /// What was asked, for people.
        args: String,
        /// The time it had.
        limit_secs: u64,
    },
    /// We were told to stop while git ran.
    #[error("git {args} was stopped: {reason}")]
    Cancelled {
        /// What was asked, for people.
        args: String,
        /// By whom or why.
        reason: CancelReason,
    },
    /// Git's answer is not what such an answer looks like.
    #[error("could not understand the answer to git {args}: {problem}")]
    Parse {
        /// What was asked, for people.
        args: String,
        /// What is wrong with the answer.
        problem: String,
    },
    /// The answer is larger than anything we are willing to hold.
    #[error("the answer to git {args} is larger than {limit} bytes")]
    TooMuch {
        /// What was asked, for people.
        args: String,
        /// The most that would have been held.
        limit: usize,
    },
    /// A file that should be a bundle is none, or is one we do not take.
    #[error("could not read the bundle {path}", path = path.display())]
    Bundle {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory belongs to no repository.
    #[error("{dir} is not in a git repository", dir = dir.display())]
    NotARepository {
        /// Where we looked.
        dir: PathBuf,
    },
    /// The git of this machine lacks what we rely on.
    #[error("git {found} is too old: {needed} or newer is needed")]
    TooOld {
        /// What is installed.
        found: GitVersion,
        /// What is needed.
        needed: GitVersion,
    },
    /// A file of a sealed repository could not be written.
    #[error("could not prepare the repository {path}", path = path.display())]
    Prepare {
        /// The repository.
        path: PathBuf,
        /// Why.
        source: FileError,
    },
}

fn shown_exit(exit: CommandExit) -> String {
    match exit {
        CommandExit::Exited(code) => format!("status {code}"),
        CommandExit::Signalled(signal) => format!("signal {signal}"),
        CommandExit::TimedOut => "out of time".to_owned(),
        CommandExit::NotStarted => "not started".to_owned(),
    }
}
