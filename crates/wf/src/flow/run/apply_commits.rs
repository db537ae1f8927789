//! Applies an agent's commits to the workstream's branch: judges them with git, then fast-forwards the worktree or leaves
//! it as it is.

use engine::evidence::{self, Bounds as EvidenceBounds, Evidence, EvidenceFault, Pins};
use engine::workspace::AGENT_IDENTITY;
use host::git::{GitIdentity, OldValue, RefName, SealedRepo};
use model::id::Sha;
use shell::config::Config;
use shell::identity::find_attribution;

use super::RunContext;
use super::leak::search_leaks;
use crate::disk::{Implemented, PendingForward, StateFile};
use crate::exit::{OrExit, WfExit, WfResult};
use crate::flow::forward::fast_forward;
use crate::flow::product::identity;
use crate::rules::constraint::{ObservedChange, judge_change};
use crate::rules::pipeline::{RunStage, StageOutcome};

/// Judges the commits, and fast-forwards the branch if they are within the limits.
pub(super) async fn apply_commits(
    context: &mut RunContext,
    repo: &SealedRepo,
    name: &RefName,
    tip: &Sha,
) -> WfResult<StageOutcome> {
    let agent = context.profile()?.implement.provider.clone();
    let (tip, warnings, _) = match judge_commits(context, repo, (name, tip), &agent).await? {
        Ok(judged) => judged,
        Err(message) => return Ok(StageOutcome::failed(RunStage::Implement, message)),
    };
    context.notes.extend(warnings);
    let run = context.run.name().to_owned();
    land(context, repo, name, &tip, run).await
}

/// Judges commits of an agent without moving anything. Returns their tip under the user's name, warnings, and the number of changed
/// lines; or the reason of a refusal.
pub(super) async fn judge_commits(
    context: &RunContext,
    repo: &SealedRepo,
    (name, tip): (&RefName, &Sha),
    agent: &str,
) -> WfResult<Result<(Sha, Vec<String>, u64), String>> {
    let head = context.head_before()?.clone();
    let tip = attribute(context, repo, (name, tip), agent).await?;
    let user = identity(context.product()?).await?;
    let after = observe(repo, &head, &tip, &user).await?;
    let warnings = match judge_change(&after, &context.limits()?) {
        Ok(warnings) => warnings,
        Err(message) => return Ok(Err(message)),
    };
    let allowed = &context.profile()?.secrets_allowed;
    if let Some(message) = search_leaks(repo, [&head, &tip], &context.redactor, allowed).await? {
        return Ok(Err(message));
    }
    Ok(Ok((tip, warnings, after.lines_changed)))
}

/// Records commits that were judged and fast-forwards the branch. `run` is the folder of their repository below that of all
/// runs.
pub(super) async fn land(
    context: &mut RunContext,
    repo: &SealedRepo,
    name: &RefName,
    tip: &Sha,
    run: String,
) -> WfResult<StageOutcome> {
    let implemented = Implemented {
        micro_commit: context.selected()?.id.clone(),
        before: context.head_before()?.clone(),
        tip: tip.clone(),
        run,
        name: name.as_str().to_owned(),
    };
    implemented.save(&context.dirs, &context.id)?;
    host::failpoint::hit("wf-judged");
    move_branch(context, repo, name, &implemented).await
}

/// Writes the agent's own commits again under the user's name, with the agent as co-author. Where no name is known they keep
/// the box's own identity.
async fn attribute(
    context: &RunContext,
    repo: &SealedRepo,
    (name, tip): (&RefName, &Sha),
    agent: &str,
) -> WfResult<Sha> {
    let shared = Config::load().or_exit(WfExit::Config)?;
    let user = find_attribution(context.product()?.user(), &shared, false).await;
    let Some(user) = user.or_exit(WfExit::General)? else { return Ok(tip.clone()) };
    let head = context.head_before()?.clone();
    let pins = Pins { base: head.clone(), upstream: head };
    let new = user.rewrite(repo, &pins, tip, agent).await.or_exit(WfExit::General)?;
    if new != *tip {
        repo.update_ref(name, &new, OldValue::At(tip)).await.or_exit(WfExit::General)?;
    }
    Ok(new)
}

/// Observes the change. The agent commits as itself, and what it leaves is committed as the user.
async fn observe(
    repo: &SealedRepo,
    head: &Sha,
    tip: &Sha,
    user: &GitIdentity,
) -> WfResult<ObservedChange> {
    let pins = Pins { base: head.clone(), upstream: head.clone() };
    let identities = [AGENT_IDENTITY, (user.name.as_str(), user.email.as_str())];
    let found = evidence::gather(repo, &pins, tip, &identities, EvidenceBounds::default()).await;
    let found = found.or_exit(WfExit::General)?;
    let mut change = ObservedChange {
        head_before: head.clone(),
        head_after: tip.clone(),
        descends: found.base_reachable,
        subjects: found.new_commits.iter().map(|commit| commit.subject.clone()).collect(),
        changed: Vec::new(),
        lines_changed: 0,
        strange: strange(&found),
        sensitive: found.sensitive,
    };
    // Git would take as long over such a change as the agent wants, and it is refused anyway.
    if !found.too_large {
        let entries = repo.changed_entries(head, tip).await.or_exit(WfExit::General)?;
        let numbers = repo.diff_numbers(head, tip).await.or_exit(WfExit::General)?;
        change.changed = entries.into_iter().map(|entry| entry.path).collect();
        change.lines_changed = numbers.iter().map(|file| file.insertions + file.deletions).sum();
    }
    Ok(change)
}

/// Content that is refused, a sentence for each.
pub(crate) fn strange(found: &Evidence) -> Vec<String> {
    let sentences = |(fault, items): (EvidenceFault, &[String])| {
        let what = match fault {
            EvidenceFault::LinkLeaving => "is a link out of the repository",
            EvidenceFault::LinkBroken => "is a link that cannot be followed",
            EvidenceFault::GitlinkMade => "is a link to another repository",
            EvidenceFault::SubmoduleChanged => "is a submodule with an address of the agent's",
            EvidenceFault::MarkersLeft => "has conflict markers",
            EvidenceFault::OddMode => "has a mode that is not one of git's",
            EvidenceFault::Oversize => "is too large",
            EvidenceFault::ForeignIdentity => "is neither the agent nor you",
        };
        items.iter().map(|item| format!("{item} {what}")).collect::<Vec<_>>()
    };
    found.faults().into_iter().flat_map(sentences).collect()
}

/// Fetches the objects and fast-forwards the worktree. Uncommitted files of the user stay as they are; if one of them is
/// changed by the commit, nothing moves and the commit waits for the next run.
async fn move_branch(
    context: &mut RunContext,
    repo: &SealedRepo,
    name: &RefName,
    implemented: &Implemented,
) -> WfResult<StageOutcome> {
    let failed = |message| Ok(StageOutcome::failed(RunStage::Implement, message));
    let Implemented { before, tip, .. } = implemented;
    let (product, meta) = (context.product()?, &context.loaded()?.meta);
    product.take_objects(repo, name).await.or_exit(WfExit::General)?;
    let branch = product.current_branch(&meta.worktree).await.or_exit(WfExit::General)?;
    let head = product.head(&meta.worktree).await.or_exit(WfExit::General)?;
    if branch.as_ref() != Some(&meta.branch) || head.as_ref() != Some(before) {
        return failed(format!(
            "the worktree {} was moved while the agent worked; its commit {tip} is kept in the repository",
            meta.worktree.display()
        ));
    }
    let changed = product.changed_paths(before, tip).await.or_exit(WfExit::General)?;
    let dirty = product.dirty_paths(&meta.worktree).await.or_exit(WfExit::General)?;
    if let Some(in_the_way) = dirty.iter().find(|dirty| changed.contains(&dirty.path)) {
        return failed(format!(
            "{} has uncommitted changes in the worktree and is changed by this micro-commit; put yours aside (git stash) and run wf again",
            String::from_utf8_lossy(&in_the_way.path)
        ));
    }
    let (checkout, from, to) = (meta.worktree.clone(), before.clone(), tip.clone());
    let pending = PendingForward { checkout, from, to };
    let lock = context.dirs.lock_global_with_git("apply commits").await?;
    let forwarded = fast_forward(&context.dirs, product, &context.id, &pending).await?;
    drop(lock);
    forwarded.or_exit(WfExit::Implement)?;
    host::failpoint::hit("wf-landed");
    context.head = Some(tip.clone());
    Ok(StageOutcome::Passed)
}

/// Resumes an implementation whose run ended before a verdict; `None` if there is none for this micro-commit.
pub(super) async fn resume_implemented(context: &mut RunContext) -> WfResult<Option<StageOutcome>> {
    let Some(implemented) = Implemented::load(&context.dirs, &context.id)? else {
        return Ok(None);
    };
    let head = context.head_before()?.clone();
    let note = format!(
        "resumed {} from the run {}, which ended without a verdict",
        implemented.tip, implemented.run
    );
    if implemented.micro_commit != context.selected()?.id {
        clear_implemented(context)?;
        return Ok(None);
    }
    if head == implemented.tip {
        context.notes.push(note);
        context.head = Some(head);
        return Ok(Some(StageOutcome::Passed));
    }
    let path = context.dirs.runs_dir().join(&implemented.run).join("repo.git");
    if head != implemented.before || !path.is_dir() {
        // The branch moved since, so the agent implements the micro-commit again.
        clear_implemented(context)?;
        return Ok(None);
    }
    let repo = SealedRepo::open(&path, context.product()?.user().object_format());
    let name = RefName::parse(&implemented.name).or_exit(WfExit::Internal)?;
    context.notes.push(note);
    move_branch(context, &repo, &name, &implemented).await.map(Some)
}

/// Removes the waiting implementation after a verdict, so that the next attempt starts with the agent.
pub(super) fn clear_implemented(context: &RunContext) -> WfResult<()> {
    Ok(Implemented::remove(&context.dirs, &context.id)?)
}
