//! Resolves a target of upstream to a commit. Tags are listed and fetched without a local ref, so a tag of the fork with the
//! same name does not matter and stays.

use host::git::{FetchProgress, RemoteRef, UserRepo};
use model::id::{BranchName, RemoteName, Sha};
use shell::Ui;
use shell::progress::while_fetching;

use super::observe::{FETCH_LIMIT, FetchedBranch, no_branch};
use crate::exit::{Failure, OrExit};
use crate::rules::target::{Tag, Target, choose_latest};

pub(crate) struct ResolvedTarget {
    pub(crate) commit: Sha,
    pub(crate) name: String,
    /// The branch, if the target names one.
    pub(crate) branch: Option<BranchName>,
}

/// Resolves `target`; `fetched` is upstream with its branch, and `tip` the tip of that branch.
pub(crate) async fn resolve_target(
    ui: &Ui,
    repo: &UserRepo,
    upstream: &RemoteName,
    target: &Target,
    (fetched, tip): (&FetchedBranch, Option<&Sha>),
) -> Result<ResolvedTarget, Failure> {
    match target {
        Target::Tip => {
            let remedy = "name the branch to take with --target BRANCH";
            let commit = tip.cloned().ok_or_else(|| no_branch(upstream, fetched, remedy))?;
            Ok(ResolvedTarget { commit, name: format!("tip of {}", fetched.branch), branch: None })
        }
        Target::LatestTag => {
            let tags = tags(repo, upstream, "refs/tags/*").await?;
            let tag = choose_latest(&tags).or_usage()?;
            take_tag(ui, repo, upstream, tag).await
        }
        Target::Named(name) => named(ui, repo, (upstream, fetched), name).await,
    }
}

/// Resolves a tag, a branch, or a commit of one of upstream's branches.
async fn named(
    ui: &Ui,
    repo: &UserRepo,
    (upstream, fetched): (&RemoteName, &FetchedBranch),
    name: &str,
) -> Result<ResolvedTarget, Failure> {
    let short = |prefix: &str| name.strip_prefix(prefix).unwrap_or(name);
    let wants_branch = name.starts_with("refs/heads/");
    let wants_tag = name.starts_with("refs/tags/");
    let branch_ref = format!("refs/remotes/{upstream}/{}", short("refs/heads/"));
    let is_there = fetched.heads.branches.keys().any(|it| it.as_str() == short("refs/heads/"));
    let branch = repo.resolve_commit(&branch_ref).await.or_machine()?.filter(|_| is_there);
    let tag_ref = format!("refs/tags/{}", short("refs/tags/"));
    let tags = if wants_branch { Vec::new() } else { tags(repo, upstream, &tag_ref).await? };
    let tag = tags.first();
    match (branch.filter(|_| !wants_tag), tag) {
        (Some(branch), Some(tag)) if branch != tag.id => Err(Failure::usage(format!(
            "upstream has a branch and a tag called '{name}'; say which: --target refs/heads/{name} or refs/tags/{name}"
        ))),
        (Some(commit), _) => {
            let branch = BranchName::parse(short("refs/heads/")).ok();
            Ok(ResolvedTarget { commit, name: format!("branch {}", short("refs/heads/")), branch })
        }
        (None, Some(tag)) => take_tag(ui, repo, upstream, tag).await,
        (None, None) => commit(repo, upstream, name).await,
    }
}

async fn commit(
    repo: &UserRepo,
    upstream: &RemoteName,
    name: &str,
) -> Result<ResolvedTarget, Failure> {
    let unknown = || {
        Failure::usage(format!(
            "upstream has no tag, branch or commit '{name}'; see: git ls-remote {upstream}"
        ))
    };
    let looks_like_one = name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !looks_like_one {
        return Err(unknown());
    }
    let commit = repo.resolve_commit(name).await.or_machine()?.ok_or_else(unknown)?;
    Ok(ResolvedTarget { name: format!("commit {}", commit.short()), commit, branch: None })
}

async fn tags(repo: &UserRepo, upstream: &RemoteName, pattern: &str) -> Result<Vec<Tag>, Failure> {
    let refs = repo.remote_refs(upstream, pattern, FETCH_LIMIT).await;
    let tag = |found: RemoteRef| {
        let name = found.name.strip_prefix("refs/tags/")?.to_owned();
        Some(Tag { name, id: found.id })
    };
    Ok(refs.or_machine()?.into_iter().filter_map(tag).collect())
}

async fn take_tag(
    ui: &Ui,
    repo: &UserRepo,
    upstream: &RemoteName,
    tag: &Tag,
) -> Result<ResolvedTarget, Failure> {
    let known = repo.resolve_commit(tag.id.as_str()).await.or_machine()?;
    let commit = match known {
        Some(commit) => commit,
        None => {
            let name = format!("refs/tags/{}", tag.name);
            let progress = FetchProgress::default();
            let refs = [name.as_str()];
            let fetching = repo.fetch_nameless(upstream, &refs, FETCH_LIMIT, &progress);
            while_fetching(ui, &[(upstream.as_str(), &progress)], fetching).await.or_machine()?;
            repo.resolve_commit(tag.id.as_str()).await.or_machine()?.ok_or_else(|| {
                Failure::usage(format!("upstream's tag '{}' is not on a commit", tag.name))
            })?
        }
    };
    Ok(ResolvedTarget { commit, name: tag.name.clone(), branch: None })
}
