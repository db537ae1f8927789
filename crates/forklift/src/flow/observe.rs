//! Observing the fork: which repository, which remotes, and the commits that everything is judged by.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::evidence::Pins;
use engine::workspace::refuse_incomplete;
use host::dirs::Dirs;
use host::git::{FetchProgress, GitError, PushUrls, RefName, RemoteHeads, UserRepo};
use host::lock::{FileLock, LockKind};
use model::exit::ForkliftExit;
use model::id::{BranchName, ProjectName, RemoteName, Sha};
use shell::Ui;
use shell::progress::while_fetching;

use super::fetched::{FetchedRefs, ForkHeads};
use super::record::{Fork, ForkRemotes};
use super::resolve_target::{ResolvedTarget, resolve_target};
use super::run::workspace_failure;
use crate::exit::{Failure, OrExit};
use crate::rules::branch_pair::BranchPair;
use crate::rules::fork_file::{FORK_FILES, ForkFile, parse_fork_file};
use crate::rules::security::fix::FixRecord;
use crate::rules::target::Target;

pub(crate) const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// Limit of a question to a remote that a person waits for.
const LOOK_LIMIT: Duration = Duration::from_secs(30);

/// Branches of a remote that a message names.
const SHOWN_BRANCHES: usize = 5;

/// Most bytes of the fork file.
const FORK_FILE_CAP: usize = 32 * 1024;

pub(crate) struct Observation {
    pub(crate) repo: UserRepo,
    /// Branches that the remotes have. Refs of a repository may be of branches that are gone.
    pub(crate) heads: ForkHeads,
    pub(crate) project: ProjectName,
    pub(crate) fork: Fork,
    pub(crate) pins: Pins,
    pub(crate) target: Target,
    /// Display name of upstream's commit.
    pub(crate) target_name: String,
    pub(crate) fork_file: Option<ForkFile>,
    /// Upstream's commit is contained in the fork already.
    pub(crate) up_to_date: bool,
    /// The fix that the run lands; its pins are made for it.
    pub(crate) fix: Option<FixRecord>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ObserveOptions<'a> {
    pub(crate) remotes: &'a ForkRemotes,
    /// The branch of both, instead of each remote's own.
    pub(crate) main_branch: Option<&'a BranchName>,
    pub(crate) target: Option<&'a Target>,
    /// The user's address of the repository on its forge.
    pub(crate) forge: Option<&'a str>,
    pub(crate) cache: &'a Path,
    /// The user's checkout, where another repository is fetched into.
    pub(crate) checkout: Option<&'a UserRepo>,
}

impl Observation {
    /// Branches that upstream has, newest first.
    pub(crate) async fn upstream_branches(&self) -> Result<Vec<(BranchName, Sha)>, Failure> {
        self.branches(&self.fork.remotes.upstream, &self.heads.upstream).await
    }

    /// Branches that origin has, newest first.
    pub(crate) async fn origin_branches(&self) -> Result<Vec<(BranchName, Sha)>, Failure> {
        self.branches(&self.fork.remotes.origin, &self.heads.origin).await
    }

    async fn branches(
        &self,
        remote: &RemoteName,
        heads: &RemoteHeads,
    ) -> Result<Vec<(BranchName, Sha)>, Failure> {
        let mut found = self.repo.remote_branches(remote).await.or_machine()?;
        found.retain(|(branch, _)| heads.branches.contains_key(branch));
        Ok(found)
    }
}

/// A remote as a fetch found it.
pub(super) struct FetchedBranch {
    /// The branch that was asked for, or the default one; the remote may not have it.
    pub(super) branch: BranchName,
    pub(super) heads: Arc<RemoteHeads>,
}

impl FetchedBranch {
    fn has_branch(&self) -> bool {
        self.heads.branches.contains_key(&self.branch)
    }
}

/// Both remotes as a fetch found them, with their addresses.
struct Fetched {
    origin: FetchedBranch,
    upstream: FetchedBranch,
    origin_url: String,
    push_urls: PushUrls,
    upstream_url: String,
}

/// Fetches both remotes, and records which branches they have.
async fn fetch_both(
    ui: &Ui,
    repo: &UserRepo,
    options: ObserveOptions<'_>,
) -> Result<Fetched, Failure> {
    let ObserveOptions { remotes, main_branch, cache, checkout, .. } = options;
    let ForkRemotes { origin, upstream } = remotes;
    // Concurrently: each remote has refs of its own.
    let (ours, theirs) = (FetchProgress::default(), FetchProgress::default());
    let fetching = async {
        tokio::join!(
            fetch(repo, origin, main_branch, &ours),
            fetch(repo, upstream, main_branch, &theirs),
            url(repo, origin),
            find_push_urls(repo, origin),
            url(repo, upstream),
        )
    };
    let progress = [(origin.as_str(), &ours), (upstream.as_str(), &theirs)];
    let (ours, theirs, origin_url, push_urls, upstream_url) =
        while_fetching(ui, &progress, fetching).await;
    let (ours, theirs) = (ours?, theirs?);
    let heads = [(origin, &*ours.heads), (upstream, &*theirs.heads)];
    FetchedRefs::save(checkout.unwrap_or(repo), cache, &heads).await?;
    Ok(Fetched {
        origin: ours,
        upstream: theirs,
        origin_url: origin_url?,
        push_urls: push_urls?,
        upstream_url: upstream_url?,
    })
}

/// Fetches both remotes and pins their commits.
pub(crate) async fn observe(
    ui: &Ui,
    repo: UserRepo,
    options: ObserveOptions<'_>,
) -> Result<Observation, Failure> {
    let ObserveOptions { remotes, forge, cache, .. } = options;
    let ForkRemotes { origin, upstream } = remotes;
    require_remotes(&repo, remotes)?;
    require_history(&repo)?;
    if repo.is_stand_in() {
        let place = repo.common_dir().display();
        ui.note(&format!("this checkout cannot be written to; fetching into {place} instead"));
    }
    ui.phase("observe", &format!("fetching {origin} and {upstream}"));
    let lock = lock_fetch(&repo, cache).await?;
    let fetched = fetch_both(ui, &repo, options).await?;
    drop(lock);
    let Fetched { origin: ours, upstream: theirs, .. } = &fetched;
    let branch = ours.branch.clone();
    let tips = tips(&repo, [(origin, &ours.branch), (upstream, &theirs.branch)]).await?;
    let base = tips.0.filter(|_| ours.has_branch());
    let tip = tips.1.filter(|_| theirs.has_branch());
    let base = base.ok_or_else(|| no_branch(origin, ours, "name another with --main-branch"))?;
    // Upstream's tip is nearly always the target, so it is compared while the fork file is read.
    let (fork_file, has_tip) =
        tokio::join!(read_fork_file(&repo, &base), contains(&repo, &base, tip.as_ref()));
    let fork_file = fork_file?;
    let ruled = fork_file.as_ref().and_then(|file| file.rules.target.as_ref());
    let target = options.target.or(ruled).cloned().unwrap_or_default();
    let ResolvedTarget { commit, name, branch: named } =
        resolve_target(ui, &repo, upstream, &target, (theirs, tip.as_ref())).await?;
    let upstream_branch = named.unwrap_or_else(|| theirs.branch.clone());
    if branch != upstream_branch {
        ui.note(&format!("{upstream}/{upstream_branch} goes into {branch} of {origin}"));
    }
    let up_to_date = if tip.as_ref() == Some(&commit) {
        has_tip?
    } else {
        contains(&repo, &base, Some(&commit)).await?
    };
    let root = repo.toplevel().unwrap_or(repo.common_dir()).to_path_buf();
    let Fetched { origin: ours, upstream: theirs, origin_url, push_urls, upstream_url } = fetched;
    Ok(Observation {
        heads: ForkHeads { origin: ours.heads, upstream: theirs.heads },
        project: project_of(&root),
        fork: Fork {
            path: root,
            forge: forge.map_or_else(|| push_urls.first.clone(), str::to_owned),
            origin: origin_url,
            push_url: Some(push_urls.first),
            more_push_urls: push_urls.more,
            upstream: upstream_url,
            branch,
            upstream_branch: Some(upstream_branch),
            remotes: ForkRemotes { origin: origin.clone(), upstream: upstream.clone() },
        },
        pins: Pins { base, upstream: commit },
        repo,
        target,
        target_name: name,
        fork_file,
        up_to_date,
        fix: None,
    })
}

/// The pairs of branches that FORK.md lists on the default branch of origin, which is fetched.
pub(crate) async fn observe_pairs(
    ui: &Ui,
    dir: &Path,
    remotes: &ForkRemotes,
    cache: &Path,
) -> Result<Vec<BranchPair>, Failure> {
    let repo = find_repo(dir).await?;
    require_remotes(&repo, remotes)?;
    let origin = &remotes.origin;
    ui.phase("observe", &format!("fetching {origin} for the branches of FORK.md"));
    let lock = lock_fetch(&repo, cache).await?;
    let progress = FetchProgress::default();
    let fetching = fetch(&repo, origin, None, &progress);
    let fetched = while_fetching(ui, &[(origin.as_str(), &progress)], fetching).await?;
    FetchedRefs::save(&repo, cache, &[(origin, &fetched.heads)]).await?;
    drop(lock);
    let branch = &fetched.branch;
    let name = RefName::parse(&format!("refs/remotes/{origin}/{branch}"));
    let tip = repo.resolve_refs(&[name.or_exit(ForkliftExit::Internal)?]).await.or_machine()?;
    let tip = tip.into_iter().next().flatten().filter(|_| fetched.has_branch());
    let tip = tip.ok_or_else(|| no_branch(origin, &fetched, "push it, or fetch it"))?;
    let pairs = read_fork_file(&repo, &tip).await?.map(|file| file.rules.branches);
    pairs.filter(|pairs| !pairs.is_empty()).ok_or_else(|| {
        let text = format!("FORK.md on {branch} of {origin} lists no branches");
        Failure::usage(text).with_remedy(
            "list them between lines of --- at its top: branches: [{upstream: v1, ours: v1}]",
        )
    })
}

/// A remote as it was asked, without a fetch.
pub(crate) struct RemoteLook {
    branch: BranchName,
    pub(crate) tip: Sha,
}

impl RemoteLook {
    pub(crate) fn words(&self) -> String {
        format!("answers; {} is at {}", self.branch, self.tip.short())
    }
}

/// Asks a remote for the branch that a run would take; `flag` names another one.
pub(crate) async fn look_at_remote(
    repo: &UserRepo,
    remote: &RemoteName,
    flag: &str,
) -> Result<RemoteLook, Failure> {
    url(repo, remote).await?;
    let heads = repo.remote_heads(remote, LOOK_LIMIT).await;
    let heads = heads.map_err(|error| cannot_fetch(remote, &error))?;
    let branch = match &heads.default {
        Some(branch) => branch.clone(),
        None => known_default_branch(repo, remote).await?,
    };
    match heads.branches.get(&branch) {
        Some(tip) => Ok(RemoteLook { tip: tip.clone(), branch }),
        None => {
            let looked = FetchedBranch { branch, heads: Arc::new(heads) };
            Err(no_branch(remote, &looked, &format!("name one with {flag}")))
        }
    }
}

/// Reads the rules of the fork at a commit: whether there is a fork file, or `None` for a commit that is not here yet.
pub(crate) async fn read_rules(repo: &UserRepo, tip: &Sha) -> Result<Option<bool>, Failure> {
    if repo.resolve_commit(tip.as_str()).await.or_machine()?.is_none() {
        return Ok(None);
    }
    Ok(Some(read_fork_file(repo, tip).await?.is_some()))
}

/// The fork file on the fork's main branch; the checkout does not count.
async fn read_fork_file(repo: &UserRepo, base: &Sha) -> Result<Option<ForkFile>, Failure> {
    let read = repo.read_first_blob(base, &FORK_FILES, FORK_FILE_CAP).await;
    let Some((name, blob)) = read.or_machine()? else { return Ok(None) };
    let text = String::from_utf8_lossy(&blob.bytes);
    let file = parse_fork_file(&text)
        .map_err(|fault| Failure::usage(format!("{name} on the fork's main branch: {fault}")))?;
    Ok(Some(file))
}

/// The given folder, else the current one.
pub(crate) fn fork_directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    match given {
        Some(directory) => Ok(directory.to_path_buf()),
        None => host::env::current_dir().or_usage(),
    }
}

pub(crate) async fn find_repo(dir: &Path) -> Result<UserRepo, Failure> {
    if !dir.is_dir() {
        return Err(Failure::usage(format!(
            "there is no folder {}; name a checkout of your fork with -C DIR",
            dir.display()
        )));
    }
    match UserRepo::discover(dir).await {
        Err(GitError::NotARepository { dir }) => Err(Failure::usage(format!(
            "{} is not inside a git repository; run forklift in a checkout of your fork",
            dir.display()
        ))),
        other => writable(other.or_machine()?).await,
    }
}

/// The repository to fetch into: the user's own, or a stand-in for one that cannot be written to.
async fn writable(repo: UserRepo) -> Result<UserRepo, Failure> {
    // A shallow clone is refused with the command that completes it; a stand-in would hide that it is one.
    if repo.is_writable() || repo.is_shallow() {
        return Ok(repo);
    }
    let cache = Dirs::from_env().or_usage()?.cache_home().join("bottleworks/stand-ins");
    let name = project_of(repo.toplevel().unwrap_or(repo.common_dir()));
    let path = cache.join(fork_key(&repo)).join(name.as_str());
    repo.stand_in(&path).await.or_machine()
}

/// Two forklifts that fetch into one repository at once would trip over each other's refs.
async fn lock_fetch(repo: &UserRepo, cache: &Path) -> Result<FileLock, Failure> {
    let folder = cache.join("forks");
    host::file::create_dirs(&folder).or_machine()?;
    let path = folder.join(format!("{}.lock", fork_key(repo)));
    let lock = FileLock::acquire(&path, LockKind::Exclusive { note: "fetch" }, FETCH_LIMIT * 2);
    lock.await.or_machine()
}

/// The project's name, from the folder of the fork.
pub(crate) fn project_of(fork: &Path) -> ProjectName {
    ProjectName::from_folder(&fork.file_name().unwrap_or_default().to_string_lossy())
}

/// A file name for a repository, whatever its path is.
pub(crate) fn fork_key(repo: &UserRepo) -> String {
    model::digest::short_sha256(repo.common_dir().as_os_str().as_encoded_bytes(), 10)
}

/// Refuses a repository without the two remotes of a fork.
pub(crate) fn require_remotes(repo: &UserRepo, remotes: &ForkRemotes) -> Result<(), Failure> {
    let ForkRemotes { origin, upstream } = remotes;
    require_remote(repo, origin, "your fork", "--remote-origin")?;
    require_remote(repo, upstream, "the project it was forked from", "--remote-upstream")
}

/// Refuses a shallow or partial clone: also a merge that needs no workspace has to be proved by the whole history.
pub(crate) fn require_history(repo: &UserRepo) -> Result<(), Failure> {
    refuse_incomplete(repo).map_err(workspace_failure)
}

fn require_remote(
    repo: &UserRepo,
    name: &RemoteName,
    what: &str,
    flag: &str,
) -> Result<(), Failure> {
    if repo.has_remote(name) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "this repository has no remote '{name}' ({what}); add it with: git remote add {name} <url>, or name another with {flag}"
    )))
}

/// Fetches a remote and finds its branch: the given one, else the one that its HEAD names. A server that does not tell is
/// believed to have the branch of clone time.
async fn fetch(
    repo: &UserRepo,
    remote: &RemoteName,
    main_branch: Option<&BranchName>,
    progress: &FetchProgress,
) -> Result<FetchedBranch, Failure> {
    // Concurrently: what a fetch brings does not say which branches are gone.
    let (fetched, heads) = tokio::join!(
        repo.fetch(remote, FETCH_LIMIT, progress),
        repo.remote_heads(remote, FETCH_LIMIT)
    );
    fetched.map_err(|error| cannot_fetch(remote, &error))?;
    let heads = heads.map_err(|error| cannot_fetch(remote, &error))?;
    let branch = match main_branch.or(heads.default.as_ref()) {
        Some(branch) => branch.clone(),
        None => known_default_branch(repo, remote).await?,
    };
    Ok(FetchedBranch { branch, heads: Arc::new(heads) })
}

/// The default branch of a remote by what was fetched: as recorded at clone time, else `main` or `master`.
pub(crate) async fn known_default_branch(
    repo: &UserRepo,
    remote: &RemoteName,
) -> Result<BranchName, Failure> {
    if let Some(branch) = repo.default_branch(remote).await.or_machine()? {
        return Ok(branch);
    }
    let branch = |name| BranchName::parse(name).or_exit(ForkliftExit::Internal);
    let (main, master) = (branch("main")?, branch("master")?);
    match tips(repo, [(remote, &main), (remote, &master)]).await? {
        (None, Some(_)) => Ok(master),
        (Some(_), _) | (None, None) => Ok(main),
    }
}

/// A remote that could not be fetched, in the words of git or of the server.
fn cannot_fetch(remote: &RemoteName, error: &GitError) -> Failure {
    let text = format!("cannot fetch {remote}: {}; try: git fetch {remote}", error.reason());
    Failure::new(ForkliftExit::Machine, text)
}

/// The URL of a remote, after the user's `insteadOf` rules.
async fn url(repo: &UserRepo, remote: &RemoteName) -> Result<String, Failure> {
    let url = repo.remote_url(remote).await.or_machine()?;
    url.ok_or_else(|| no_url(remote))
}

/// The URLs that git pushes to for the fork.
pub(crate) async fn find_push_urls(
    repo: &UserRepo,
    origin: &RemoteName,
) -> Result<PushUrls, Failure> {
    let urls = repo.push_urls(origin).await.or_machine()?;
    urls.ok_or_else(|| no_url(origin))
}

fn no_url(remote: &RemoteName) -> Failure {
    Failure::usage(format!(
        "the remote '{remote}' leads nowhere; say where with: git remote set-url {remote} <url>"
    ))
}

/// The tips of two branches of remotes.
async fn tips(
    repo: &UserRepo,
    branches: [(&RemoteName, &BranchName); 2],
) -> Result<(Option<Sha>, Option<Sha>), Failure> {
    let name = |(remote, branch)| RefName::parse(&format!("refs/remotes/{remote}/{branch}"));
    let names: Result<Vec<_>, _> = branches.into_iter().map(name).collect();
    let found = repo.resolve_refs(&names.or_exit(ForkliftExit::Internal)?).await;
    let mut found = found.or_machine()?.into_iter();
    Ok((found.next().flatten(), found.next().flatten()))
}

/// Returns whether the fork contains a commit of upstream.
async fn contains(repo: &UserRepo, base: &Sha, theirs: Option<&Sha>) -> Result<bool, Failure> {
    match theirs {
        Some(theirs) => repo.is_ancestor(theirs, base).await.or_machine(),
        None => Ok(false),
    }
}

/// A branch that a remote does not have, with those that it has.
pub(super) fn no_branch(remote: &RemoteName, fetched: &FetchedBranch, remedy: &str) -> Failure {
    let FetchedBranch { branch, heads } = fetched;
    let names = heads.branches.keys().take(SHOWN_BRANCHES).map(BranchName::as_str);
    let names = names.collect::<Vec<_>>().join(", ");
    let more = heads.branches.len().saturating_sub(SHOWN_BRANCHES);
    if names.is_empty() {
        return Failure::usage(format!(
            "the remote '{remote}' has no branch '{branch}', and no other; is its address right? see: git remote get-url {remote}"
        ));
    }
    let has = match more {
        0 => format!("it has {names}"),
        more => format!("it has {names} and {more} more"),
    };
    Failure::usage(format!("the remote '{remote}' has no branch '{branch}' ({has}); {remedy}"))
}
