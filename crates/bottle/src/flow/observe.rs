//! Observes the repository that a bottle is made from: origin, its base branch, and the commits that a run is judged by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host::git::{GitError, UserEnv, UserRepo};
use host::lock::{FileLock, LockKind};
use model::exit::BottleExit;
use model::id::{BranchName, RemoteName, Sha};

use super::access::ForgeAccess;
use super::bottle::Record;
use super::home::Home;
use super::run_record::BottlePins;
use crate::exit::{Failure, OrExit, OrGeneral};

const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// A repository whose remote was fetched.
pub(crate) struct Source {
    pub(crate) repo: UserRepo,
    pub(crate) root: PathBuf,
    /// Address that its branch is pushed to.
    pub(crate) url: String,
    origin: RemoteName,
}

impl Source {
    /// Finds the repository around `dir` and brings its view of origin up to date.
    pub(crate) async fn fetch(
        home: &Home,
        dir: &Path,
        access: Option<&ForgeAccess>,
    ) -> Result<Self, Failure> {
        let source = Self::find(dir, access).await?;
        let lock = lock_fetch(home, &source.repo).await?;
        source.repo.fetch(&source.origin, FETCH_LIMIT).await.or_general()?;
        drop(lock);
        Ok(source)
    }

    pub(crate) async fn find(dir: &Path, access: Option<&ForgeAccess>) -> Result<Self, Failure> {
        if !dir.is_dir() {
            let text = format!("no git repository at {}", dir.display());
            let remedy = "run bot-bottle in a checkout, or name one with --repo";
            return Err(Failure::new(BottleExit::General, text).with_remedy(remedy));
        }
        let env = access.map_or_else(UserEnv::from_env, ForgeAccess::git_env);
        let repo = match UserRepo::discover_as(dir, env).await {
            Err(GitError::NotARepository { dir }) => {
                let dir = dir.display();
                return Err(Failure::usage(format!(
                    "{dir} is not inside a git repository; run bot-bottle in a checkout, or name one with --repo"
                )));
            }
            other => other.or_general()?,
        };
        let origin = RemoteName::parse("origin").or_exit(BottleExit::Internal)?;
        let url = repo.push_url(&origin).await.or_general()?.ok_or_else(|| {
            Failure::usage(
                "this repository has no remote 'origin'; add it with: git remote add origin <url>",
            )
        })?;
        let root = repo.toplevel().unwrap_or(repo.common_dir()).to_path_buf();
        Ok(Self { repo, root, url, origin })
    }

    pub(crate) async fn base_branch(&self) -> Result<BranchName, Failure> {
        if let Some(branch) =
            self.repo.ask_default_branch(&self.origin, FETCH_LIMIT).await.or_general()?
        {
            return Ok(branch);
        }
        Err(Failure::usage("origin does not say which branch is its default; push one first"))
    }

    /// Commit of a branch at origin.
    pub(crate) async fn tip(&self, branch: &BranchName) -> Result<Option<Sha>, Failure> {
        let name = format!("refs/remotes/{}/{branch}", self.origin);
        self.repo.resolve_commit(&name).await.or_general()
    }

    pub(crate) async fn pin(&self, record: &Record) -> Result<BottlePins, Failure> {
        let base = self.tip(&record.base_branch).await?.ok_or_else(|| {
            Failure::usage(format!("origin has no branch '{}' any more", record.base_branch))
        })?;
        let published = self.tip(&record.branch).await?;
        let branch_is_new = published.is_some() && published != record.published;
        Ok(BottlePins {
            branch: record.branch.clone(),
            base_branch: record.base_branch.clone(),
            start: published.unwrap_or_else(|| record.base.clone()),
            base_is_new: base != record.known_base,
            branch_is_new,
            base,
        })
    }

    pub(crate) fn mirror(&self, home: &Home) -> PathBuf {
        home.mirrors.join(format!("{}.git", repo_key(&self.repo)))
    }
}

/// Locks a repository for a fetch: two concurrent ones would conflict over refs.
async fn lock_fetch(home: &Home, repo: &UserRepo) -> Result<FileLock, Failure> {
    std::fs::create_dir_all(&home.mirrors).or_general()?;
    let path = home.mirrors.join(format!("{}.fetch", repo_key(repo)));
    let kind = LockKind::Exclusive { note: "fetch" };
    FileLock::acquire(&path, kind, FETCH_LIMIT * 2).await.or_general()
}

/// Short digest of the repository's path, for file names.
fn repo_key(repo: &UserRepo) -> String {
    let digest = model::digest::sha256(repo.common_dir().as_os_str().as_encoded_bytes());
    digest.chars().take(20).collect()
}
