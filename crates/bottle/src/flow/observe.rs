//! Observes the repository that a bottle is made from: origin, its base branch, and the commits that a run is judged by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::workspace::AGENT_IDENTITY;
use host::git::{FetchProgress, GitError, GitIdentity, PushUrls, UserEnv, UserRepo};
use host::lock::{FileLock, LockKind};
use model::exit::BottleExit;
use model::id::{BranchName, RemoteName, Sha};
use shell::Ui;
use shell::progress::while_fetching;

use super::access::ForgeAccess;
use super::bottle::{BaseSource, Record};
use super::home::Home;
use super::run_record::BottlePins;
use crate::exit::{Failure, OrExit, OrGeneral};

const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// A repository whose remote was fetched.
pub(crate) struct Source {
    pub(crate) repo: UserRepo,
    pub(crate) root: PathBuf,
    /// Addresses that its branch is pushed to; a bottle without a forge needs none.
    urls: Option<PushUrls>,
    origin: RemoteName,
}

/// The user's choice of what a bottle starts from.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseRequest {
    /// A branch or commit; HEAD of the checkout if there is none.
    pub(crate) base: Option<String>,
    /// Uncommitted changes come along.
    pub(crate) with_changes: bool,
}

/// Commit that a bottle starts from, and its branch.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) source: BaseSource,
    pub(crate) branch: BranchName,
    pub(crate) commit: Sha,
    /// The commit without uncommitted changes.
    pub(crate) known: Sha,
}

/// Paths that are named when they are left out.
const LEFT_OUT_SHOWN: usize = 3;

/// Name of a base without a branch.
const NO_BRANCH: &str = "head";

impl Source {
    /// Finds the repository around `dir`.
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
        let urls = repo.push_urls(&origin).await.or_general()?;
        if access.is_some() && urls.is_none() {
            return Err(no_origin());
        }
        let root = repo.toplevel().unwrap_or(repo.common_dir()).to_path_buf();
        Ok(Self { repo, root, urls, origin })
    }

    /// Addresses that its branch is pushed to.
    pub(crate) fn push_urls(&self) -> Result<&PushUrls, Failure> {
        self.urls.as_ref().ok_or_else(no_origin)
    }

    /// Brings the view of origin up to date.
    pub(crate) async fn fetch(&self, ui: &Ui, home: &Home) -> Result<(), Failure> {
        self.push_urls()?;
        ui.phase("observe", "fetching origin");
        let lock = lock_fetch(home, &self.repo).await?;
        let progress = FetchProgress::default();
        let fetching = self.repo.fetch(&self.origin, FETCH_LIMIT, &progress);
        while_fetching(ui, &[(self.origin.as_str(), &progress)], fetching).await.or_general()?;
        drop(lock);
        Ok(())
    }

    /// A branch of origin; its default branch if there is no name.
    pub(crate) async fn base_at_origin(
        &self,
        ui: &Ui,
        home: &Home,
        branch: Option<BranchName>,
    ) -> Result<Base, Failure> {
        self.fetch(ui, home).await?;
        let branch = match branch {
            Some(branch) => branch,
            None => self
                .repo
                .ask_default_branch(&self.origin, FETCH_LIMIT)
                .await
                .or_general()?
                .ok_or_else(|| {
                    let text = "origin does not say which branch is its default; push one first";
                    Failure::usage(text)
                })?,
        };
        let commit = self
            .tip(&branch)
            .await?
            .ok_or_else(|| Failure::usage(format!("origin's branch '{branch}' is not there")))?;
        Ok(Base { source: BaseSource::Origin, branch, known: commit.clone(), commit })
    }

    /// The base of a bottle without a forge: HEAD of the checkout, or what the user names. Says what is left out.
    pub(crate) async fn choose_base(
        &self,
        ui: &Ui,
        home: &Home,
        request: &BaseRequest,
    ) -> Result<Base, Failure> {
        let named = request.base.as_deref();
        if let Some(branch) = named.and_then(|base| base.strip_prefix("origin/")) {
            let branch = BranchName::parse(branch).or_exit(BottleExit::Usage)?;
            return self.base_at_origin(ui, home, Some(branch)).await;
        }
        let head = match named {
            None => self.repo.head_branch().await.or_general()?,
            Some(name) => self.local_branch(name).await?,
        };
        let rev = head.as_ref().map(BranchName::full_ref);
        let rev = rev.as_deref().or(named).unwrap_or("HEAD");
        let commit = self.repo.resolve_commit(rev).await.or_general()?.ok_or_else(|| {
            let (rev, root) = (named.unwrap_or("HEAD"), self.root.display());
            Failure::usage(format!(
                "{root} has no commit '{rev}'; commit something, or name one with --base"
            ))
        })?;
        let source = if head.is_some() { BaseSource::Branch } else { BaseSource::Commit };
        let none = BranchName::parse(NO_BRANCH).or_exit(BottleExit::Internal)?;
        let base = Base { source, branch: head.unwrap_or(none), known: commit.clone(), commit };
        match named {
            Some(_) => Ok(base),
            None => self.with_changes(ui, base, request.with_changes).await,
        }
    }

    async fn local_branch(&self, name: &str) -> Result<Option<BranchName>, Failure> {
        let Ok(branch) = BranchName::parse(name) else { return Ok(None) };
        let found = self.repo.resolve_commit(&branch.full_ref()).await.or_general()?;
        Ok(found.map(|_| branch))
    }

    /// Adds the uncommitted changes of the checkout to a base, or says that they are left out.
    async fn with_changes(&self, ui: &Ui, base: Base, wanted: bool) -> Result<Base, Failure> {
        if self.repo.is_bare() {
            return Ok(base);
        }
        let paths = self.repo.uncommitted_paths().await.or_general()?;
        match (paths.is_empty(), wanted) {
            (true, _) => Ok(base),
            (false, false) => {
                ui.warn(&format!(
                    "the bottle starts from {} without the uncommitted changes of {}; take them along with --with-changes",
                    base.known.short(),
                    name_some(&paths)
                ));
                Ok(base)
            }
            (false, true) => {
                let (name, email) = self.repo.user_identity().await.or_general()?;
                let box_identity = (AGENT_IDENTITY.0.to_owned(), AGENT_IDENTITY.1.to_owned());
                let (name, email) = name.zip(email).unwrap_or(box_identity);
                let identity = GitIdentity { name, email };
                let message = "Uncommitted changes of the checkout\n";
                let commit = self.repo.snapshot_changes(&base.known, &identity, message).await;
                Ok(Base { commit: commit.or_general()?, ..base })
            }
        }
    }

    /// Commit of a branch at origin.
    pub(crate) async fn tip(&self, branch: &BranchName) -> Result<Option<Sha>, Failure> {
        let name = format!("refs/remotes/{}/{branch}", self.origin);
        self.repo.resolve_commit(&name).await.or_general()
    }

    /// Newest commit of a bottle's base; a branch of the checkout may be gone.
    async fn base_of(&self, record: &Record) -> Result<Sha, Failure> {
        let branch = &record.base_branch;
        match record.base_source {
            BaseSource::Origin => self
                .tip(branch)
                .await?
                .ok_or_else(|| Failure::usage(format!("origin has no branch '{branch}' any more"))),
            BaseSource::Branch => {
                let found = self.repo.resolve_commit(&branch.full_ref()).await.or_general()?;
                Ok(found.unwrap_or_else(|| record.known_base.clone()))
            }
            BaseSource::Commit => Ok(record.known_base.clone()),
        }
    }

    pub(crate) async fn pin(&self, record: &Record) -> Result<BottlePins, Failure> {
        let base = self.base_of(record).await?;
        let published = match record.base_source {
            BaseSource::Origin => self.tip(&record.branch).await?,
            BaseSource::Branch | BaseSource::Commit => None,
        };
        let is_merged = record.host_merge.is_some();
        let branch_is_new = published.is_some() && (is_merged || published != record.published);
        let twin = record.workspace_twin.clone().filter(|_| published.is_some());
        Ok(BottlePins {
            twin,
            branch: record.branch.clone(),
            base_branch: record.base_branch.clone(),
            base_source: record.base_source,
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

fn no_origin() -> Failure {
    let text = "this repository has no remote 'origin'; add it with: git remote add origin <url>";
    Failure::usage(text)
}

/// Names the first paths, and counts the others.
fn name_some(paths: &[String]) -> String {
    let shown = paths.iter().take(LEFT_OUT_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(LEFT_OUT_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Locks a repository for a fetch: two concurrent ones would conflict over refs.
async fn lock_fetch(home: &Home, repo: &UserRepo) -> Result<FileLock, Failure> {
    host::file::create_dirs(&home.mirrors).or_general()?;
    let path = home.mirrors.join(format!("{}.fetch", repo_key(repo)));
    let kind = LockKind::Exclusive { note: "fetch" };
    FileLock::acquire(&path, kind, FETCH_LIMIT * 2).await.or_general()
}

/// Short digest of the repository's path, for file names.
fn repo_key(repo: &UserRepo) -> String {
    let digest = model::digest::sha256(repo.common_dir().as_os_str().as_encoded_bytes());
    digest.chars().take(20).collect()
}
