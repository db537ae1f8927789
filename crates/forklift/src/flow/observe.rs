//! Observing the fork: which repository, which remotes, and the commits that everything is judged by.

use std::path::Path;
use std::time::Duration;

use engine::evidence::Pins;
use host::git::{GitError, UserRepo};
use host::lock::{FileLock, LockKind};
use model::id::{BranchName, ProjectName, RemoteName};
use model::verdict::ForkliftStatus;
use sha2::{Digest, Sha256};

use super::metadata::Fork;
use crate::exit::{Failure, OrExit};
use crate::ui::Ui;

/// How long one remote may take to answer.
const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// What was found.
pub(crate) struct Observation {
    pub(crate) repo: UserRepo,
    pub(crate) project: ProjectName,
    pub(crate) fork: Fork,
    pub(crate) pins: Pins,
    /// Upstream's commit is contained in the fork already.
    pub(crate) up_to_date: bool,
}

/// Finds the fork around `dir`, fetches both remotes and pins their commits.
pub(crate) async fn observe(
    ui: &Ui,
    dir: &Path,
    branch: &BranchName,
    forge: Option<&str>,
    cache: &Path,
) -> Result<Observation, Failure> {
    let repo = find_repo(dir).await?;
    let (origin, origin_url) = remote(&repo, "origin", "your fork").await?;
    let (upstream, upstream_url) =
        remote(&repo, "upstream", "the project it was forked from").await?;
    ui.phase("observe", "fetching origin and upstream");
    let lock = lock_fork(&repo, cache).await?;
    for remote in [&origin, &upstream] {
        repo.fetch(remote, FETCH_LIMIT).await.or_exit(ForkliftStatus::Machine)?;
    }
    drop(lock);
    let base = pin(&repo, &origin, branch).await?;
    let tip = pin(&repo, &upstream, branch).await?;
    let up_to_date = repo.is_ancestor(&tip, &base).await.or_exit(ForkliftStatus::Machine)?;
    let root = repo.toplevel().unwrap_or(repo.common_dir()).to_path_buf();
    let folder = root.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Observation {
        project: ProjectName::from_folder(&folder.unwrap_or_default()),
        fork: Fork {
            path: root,
            forge: forge.map_or_else(|| origin_url.clone(), str::to_owned),
            origin: origin_url,
            upstream: upstream_url,
            branch: branch.clone(),
        },
        pins: Pins { base, upstream: tip },
        repo,
        up_to_date,
    })
}

/// Finds the repository around `dir`.
pub(crate) async fn find_repo(dir: &Path) -> Result<UserRepo, Failure> {
    match UserRepo::discover(dir).await {
        Err(GitError::NotARepository { dir }) => Err(Failure::usage(format!(
            "{} is not inside a git repository; run forklift in a checkout of your fork",
            dir.display()
        ))),
        other => other.or_exit(ForkliftStatus::Machine),
    }
}

/// Two forklifts that fetch into one repository at once would trip over each other's refs.
async fn lock_fork(repo: &UserRepo, cache: &Path) -> Result<FileLock, Failure> {
    let folder = cache.join("forks");
    std::fs::create_dir_all(&folder).or_exit(ForkliftStatus::Machine)?;
    let path = folder.join(format!("{}.lock", fork_key(repo)));
    let lock = FileLock::acquire(&path, LockKind::Exclusive { note: "fetch" }, FETCH_LIMIT * 2);
    lock.await.or_exit(ForkliftStatus::Machine)
}

/// A name for a repository that fits into a file name, whatever its path is.
pub(crate) fn fork_key(repo: &UserRepo) -> String {
    let digest = Sha256::digest(repo.common_dir().as_os_str().as_encoded_bytes());
    digest.iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

async fn remote(repo: &UserRepo, name: &str, what: &str) -> Result<(RemoteName, String), Failure> {
    let remote = RemoteName::parse(name).or_exit(ForkliftStatus::Internal)?;
    match repo.remote_url(&remote).await.or_exit(ForkliftStatus::Machine)? {
        Some(url) => Ok((remote, url)),
        None => Err(Failure::usage(format!(
            "this repository has no remote '{name}' ({what}); add it with: git remote add {name} <url>"
        ))),
    }
}

async fn pin(
    repo: &UserRepo,
    remote: &RemoteName,
    branch: &BranchName,
) -> Result<model::id::Sha, Failure> {
    let name = format!("refs/remotes/{remote}/{branch}");
    repo.resolve_commit(&name).await.or_exit(ForkliftStatus::Machine)?.ok_or_else(|| {
        Failure::usage(format!(
            "the remote '{remote}' has no branch '{branch}'; name another with --main-branch"
        ))
    })
}
