//! Conflicts that the resolver leaves: the agent concludes the merge in a box, and the host judges what it made.
//!
//! The agent may change the files that are in conflict and no others. Its own commits are not kept: the host makes one merge
//! commit from their tree.

use std::collections::BTreeSet;

use engine::evidence::{self, Bounds as EvidenceBounds, Pins};
use engine::workspace::{AGENT_IDENTITY, MergeBegun};
use host::git::{CommitDraft, OldValue, RefName, SealedRepo, WorktreeRepo};
use merge::resolver::{Brief, ResolvedMerge};
use model::id::Sha;
use shell::Ui;

use super::product::identity;
use super::resolver::{MergeScratch, open_paths};
use super::run::{find_leak_in_change, strange};
use super::stage::{
    CollectedWork, StageContext, StageResult, StageRunError, remove_copy, run_alone,
};
use crate::disk::{ProjectDirs, Workstream, load_secrets};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::profile::Profile;
use crate::rules::prompt::{ResolveTask, render_resolve};
use crate::rules::reply::{AgentReply, parse_reply};
use crate::rules::run_id::RunTopic;
use model::redact::Redactor;

/// A merge with open conflicts: its sides, and how far the resolver went.
pub(super) struct OpenMerge<'a> {
    pub(super) head: &'a Sha,
    pub(super) base: &'a Sha,
    pub(super) scratch: &'a MergeScratch,
    pub(super) resolved: &'a ResolvedMerge,
    /// The message of the merge commit.
    pub(super) message: &'a str,
}

/// The agent that is asked, and its workstream.
pub(super) struct MergeAgent<'a> {
    pub(super) ui: &'a Ui,
    pub(super) dirs: &'a ProjectDirs,
    pub(super) product: &'a WorktreeRepo,
    pub(super) workstream: &'a Workstream,
    pub(super) profile: &'a Profile,
}

/// The reason why there is no merge: the agent's or the machine's.
pub(super) enum NoMerge {
    /// A person has to merge.
    Open(String),
    Failed(Failure),
}

impl From<Failure> for NoMerge {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Has the agent conclude the merge. Returns the merge commit, which the product's repository has then, and the agent's name.
pub(super) async fn conclude(
    agent: &MergeAgent<'_>,
    merge: &OpenMerge<'_>,
) -> Result<(Sha, &'static str), NoMerge> {
    let prepared = prepare(agent, merge).await?;
    let prompt = render_prompt(agent, merge)?;
    let begun = begin(merge, &prepared).await?;
    let stage = async |stage: StageContext<'_>| work(stage, &prompt, begun, merge.base).await;
    let MergeAgent { ui, dirs, product, workstream, profile } = agent;
    ui.phase("resolve", "the agent resolves the conflicts that are left");
    let topic = RunTopic::Update;
    let (made, run_dir) = run_alone(ui, dirs, product, workstream, profile, topic, stage).await?;
    let (repo, tip, name) = made.map_err(|error| match error {
        StageRunError::Stopped(message) | StageRunError::Machine(message) => {
            NoMerge::Failed(Failure::new(WfExit::General, message))
        }
        StageRunError::Config(message) => {
            NoMerge::Open(format!("no agent can resolve it: {message}"))
        }
        StageRunError::Failed(message) => NoMerge::Open(message),
    })?;
    repo.add_alternate(&merge.scratch.repo.path().join("objects")).or_exit(WfExit::General)?;
    if let Some(fault) = judge(agent, merge, &repo, [&prepared, &tip]).await? {
        return Err(NoMerge::Open(format!("the agent's merge was refused: {fault}")));
    }
    let commit = take(agent, merge, &repo, (&tip, name)).await?;
    // The work is in the product's repository.
    remove_copy(&run_dir).map_err(Failure::from)?;
    Ok((commit, name))
}

/// Commits the merge as far as the resolver went, in the scratch repository.
async fn prepare(agent: &MergeAgent<'_>, merge: &OpenMerge<'_>) -> WfResult<Sha> {
    let draft = CommitDraft {
        tree: &merge.resolved.tree,
        parents: &[merge.head.clone(), merge.base.clone()],
        identity: &identity(agent.product).await?,
        when: host::clock::now(),
        message: merge.message,
    };
    merge.scratch.repo.commit_tree(draft).await.or_exit(WfExit::General)
}

async fn begin(merge: &OpenMerge<'_>, prepared: &Sha) -> WfResult<MergeBegun> {
    let repo = &merge.scratch.repo;
    let mut stages = repo.merge_tree(merge.head, merge.base).await.or_exit(WfExit::General)?.stages;
    let open = paths_of(&merge.resolved.rest);
    stages.retain(|stage| open.contains(stage.path.as_slice()));
    Ok(MergeBegun {
        repo: repo.path().to_path_buf(),
        prepared: prepared.clone(),
        theirs: merge.base.clone(),
        stages,
        message: merge.message.to_owned(),
    })
}

fn paths_of(rest: &[Brief]) -> BTreeSet<&[u8]> {
    rest.iter()
        .flat_map(|brief| std::iter::once(&brief.path).chain(&brief.also))
        .map(merge::path::TreePath::as_bytes)
        .collect()
}

fn render_prompt(agent: &MergeAgent<'_>, merge: &OpenMerge<'_>) -> WfResult<String> {
    let (meta, profile) = (&agent.workstream.meta, agent.profile);
    let suites = profile.suites.iter();
    let tests: Vec<String> = suites.filter_map(|suite| suite.how.line().ok()).collect();
    Ok(render_resolve(&ResolveTask {
        title: &meta.title,
        branch: meta.branch.as_str(),
        base: meta.base_branch.as_str(),
        plan: &agent.workstream.plan_text()?.unwrap_or_default(),
        open: &open_paths(merge.resolved),
        tests: &tests,
        timeout_secs: profile.implement_timeout.as_secs(),
    }))
}

/// Runs the agent and collects its merge, its tip and its name.
async fn work(
    stage: StageContext<'_>,
    prompt: &str,
    begun: MergeBegun,
    base: &Sha,
) -> StageResult<(SealedRepo, Sha, &'static str)> {
    let failed = |message: String| Err(StageRunError::Failed(message));
    let (answer, provider) = stage.resolve(prompt, begun).await?;
    match parse_reply(&answer) {
        Some(AgentReply::Success { .. }) => {}
        Some(AgentReply::Failure { notes }) => {
            return failed(format!("the agent gave up: {notes}"));
        }
        Some(AgentReply::Clarify { question, .. }) => {
            return failed(format!("the agent asks: {question}"));
        }
        None => return failed("the agent gave no answer that could be read".to_owned()),
    }
    match stage.collect_merge(base).await? {
        CollectedWork::Commits { repo, tip, .. } => Ok((repo, tip, provider.name())),
        CollectedWork::Nothing => failed("the agent did not conclude the merge".to_owned()),
        CollectedWork::Refused(message) => failed(message),
    }
}

/// Judges the agent's merge by git. Returns the first fault.
async fn judge(
    agent: &MergeAgent<'_>,
    merge: &OpenMerge<'_>,
    repo: &SealedRepo,
    [prepared, tip]: [&Sha; 2],
) -> WfResult<Option<String>> {
    let user = identity(agent.product).await?;
    let identities = [AGENT_IDENTITY, (user.name.as_str(), user.email.as_str())];
    let pins = Pins { base: merge.head.clone(), upstream: merge.base.clone() };
    let found = evidence::gather(repo, &pins, tip, &identities, EvidenceBounds::default()).await;
    let found = found.or_exit(WfExit::General)?;
    if !found.base_reachable || !found.upstream_reachable {
        return Ok(Some("it does not contain both sides".to_owned()));
    }
    if let Some(fault) = strange(&found).into_iter().next() {
        return Ok(Some(fault));
    }
    if let Some(sensitive) = found.sensitive.first() {
        return Ok(Some(format!("{} was changed", sensitive.message())));
    }
    let open = paths_of(&merge.resolved.rest);
    let changed = repo.changed_entries(prepared, tip).await.or_exit(WfExit::General)?;
    let outside = changed.iter().find(|entry| !open.contains(entry.path.as_slice()));
    if let Some(entry) = outside {
        let path = String::from_utf8_lossy(&entry.path);
        return Ok(Some(format!("{path} was changed and is not in conflict")));
    }
    let redactor = Redactor::new(load_secrets(agent.dirs)?);
    let allowed = &agent.profile.secrets_allowed;
    find_leak_in_change(repo, [prepared, tip], &redactor, allowed).await
}

/// Makes one merge commit from the agent's tree, and brings it into the product's repository.
async fn take(
    agent: &MergeAgent<'_>,
    merge: &OpenMerge<'_>,
    repo: &SealedRepo,
    (tip, name): (&Sha, &str),
) -> WfResult<Sha> {
    let trees = repo.trees_of(std::slice::from_ref(tip)).await.or_exit(WfExit::General)?;
    let tree = trees.into_iter().next().flatten();
    let tree =
        tree.ok_or_else(|| Failure::new(WfExit::Internal, "the agent's merge has no tree"))?;
    let mut message = merge.message.to_owned();
    message.push_str(&format!("\nConflicts that an agent ({name}) resolved:\n\n"));
    for path in open_paths(merge.resolved) {
        message.push_str(&format!("- {}\n", model::inert::inert_line(&path)));
    }
    let draft = CommitDraft {
        tree: &tree,
        parents: &[merge.head.clone(), merge.base.clone()],
        identity: &identity(agent.product).await?,
        when: host::clock::now(),
        message: &message,
    };
    let commit = repo.commit_tree(draft).await.or_exit(WfExit::General)?;
    let kept = RefName::parse("refs/wf/update").or_exit(WfExit::Internal)?;
    repo.update_ref(&kept, &commit, OldValue::Missing).await.or_exit(WfExit::General)?;
    agent.product.take_objects(repo, &kept).await.or_exit(WfExit::General)?;
    Ok(commit)
}
