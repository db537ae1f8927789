//! Observing the fork: which repository, which remotes, and the commits that everything is judged by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::evidence::Pins;
use engine::workspace::refuse_incomplete;
use host::dirs::Dirs;
use host::git::{FetchProgress, GitError, PushUrls, RefName, UserRepo};
use host::lock::{FileLock, LockKind};
use model::exit::ForkliftExit;
use model::id::{BranchName, ProjectName, RemoteName, Sha};
use shell::Ui;
use shell::progress::while_fetching;

use super::record::{Fork, ForkRemotes};
use super::resolve_target::{ResolvedTarget, resolve_target};
use super::run::workspace_failure;
use crate::exit::{Failure, OrExit};
use crate::rules::fork_file::{FORK_FILES, ForkFile, parse_fork_file};
use crate::rules::security::fix::FixRecord;
use crate::rules::target::Target;

pub(crate) const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// Most bytes of the fork file.
const FORK_FILE_CAP: usize = 32 * 1024;

pub(crate) struct Observation {
    pub(crate) repo: UserRepo,
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
}

/// Fetches both remotes and pins their commits.
pub(crate) async fn observe(
    ui: &Ui,
    repo: UserRepo,
    options: ObserveOptions<'_>,
) -> Result<Observation, Failure> {
    let ObserveOptions { remotes, main_branch, forge, cache, .. } = options;
    let ForkRemotes { origin, upstream } = remotes;
    require_remotes(&repo, remotes)?;
    // Also a merge that needs no workspace has to be proved by the whole history.
    refuse_incomplete(&repo).map_err(workspace_failure)?;
    if repo.is_stand_in() {
        let place = repo.common_dir().display();
        ui.note(&format!("this checkout cannot be written to; fetching into {place} instead"));
    }
    ui.phase("observe", &format!("fetching {origin} and {upstream}"));
    let lock = lock_fetch(&repo, cache).await?;
    // Concurrently: each remote has refs of its own.
    let (ours, theirs) = (FetchProgress::default(), FetchProgress::default());
    let fetching = async {
        tokio::join!(
            fetch(&repo, origin, main_branch, &ours),
            fetch(&repo, upstream, main_branch, &theirs),
            url(&repo, origin),
            find_push_urls(&repo, origin),
            url(&repo, upstream),
        )
    };
    let (ours, theirs, origin_url, push_urls, upstream_url) =
        while_fetching(ui, &[(origin.as_str(), &ours), (upstream.as_str(), &theirs)], fetching)
            .await;
    let (branch, upstream_branch) = (ours?, theirs?);
    let (origin_url, push_urls, upstream_url) = (origin_url?, push_urls?, upstream_url?);
    drop(lock);
    let (base, tip) = tips(&repo, [(origin, &branch), (upstream, &upstream_branch)]).await?;
    let base = base.ok_or_else(|| no_branch(origin, &branch, "name another with --main-branch"))?;
    // Upstream's tip is nearly always the target, so it is compared while the fork file is read.
    let (fork_file, has_tip) =
        tokio::join!(read_fork_file(&repo, &base), contains(&repo, &base, tip.as_ref()));
    let fork_file = fork_file?;
    let ruled = fork_file.as_ref().and_then(|file| file.rules.target.as_ref());
    let target = options.target.or(ruled).cloned().unwrap_or_default();
    let tip_of_branch = (&upstream_branch, tip.as_ref());
    let ResolvedTarget { commit, name, branch: named } =
        resolve_target(ui, &repo, upstream, &target, tip_of_branch).await?;
    let upstream_branch = named.unwrap_or(upstream_branch);
    if branch != upstream_branch {
        ui.note(&format!("{upstream}/{upstream_branch} goes into {branch} of {origin}"));
    }
    let up_to_date = if tip.as_ref() == Some(&commit) {
        has_tip?
    } else {
        contains(&repo, &base, Some(&commit)).await?
    };
    let root = repo.toplevel().unwrap_or(repo.common_dir()).to_path_buf();
    Ok(Observation {
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
    std::fs::create_dir_all(&folder).or_machine()?;
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

/// Fetches a remote and finds its branch: the given one, else the one that its HEAD names.
async fn fetch(
    repo: &UserRepo,
    remote: &RemoteName,
    main_branch: Option<&BranchName>,
    progress: &FetchProgress,
) -> Result<BranchName, Failure> {
    let fetched = repo.fetch(remote, FETCH_LIMIT, progress);
    if let Some(branch) = main_branch {
        fetched.await.map_err(|error| cannot_fetch(remote, &error))?;
        return Ok(branch.clone());
    }
    // Concurrently: the branch that was the default when the repository was cloned may be another one by now.
    let (fetched, asked) = tokio::join!(fetched, repo.ask_default_branch(remote, FETCH_LIMIT));
    fetched.map_err(|error| cannot_fetch(remote, &error))?;
    match asked {
        Ok(Some(branch)) => Ok(branch),
        Ok(None) | Err(_) => known_default_branch(repo, remote).await,
    }
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

pub(super) fn no_branch(remote: &RemoteName, branch: &BranchName, remedy: &str) -> Failure {
    Failure::usage(format!("the remote '{remote}' has no branch '{branch}'; {remedy}"))
}
