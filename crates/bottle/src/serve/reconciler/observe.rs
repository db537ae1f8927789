//! Observation of one issue: the facts of the forge, the database and the bottle, gathered once and handed on.

use std::collections::BTreeSet;

use forge::{CheckState, Forge, ForgeError, Issue, PullRequest, Thread, ThreadState};
use jiff::SignedDuration;
use model::escape::escape_line;
use model::id::Sha;
use orchestrator_db::{
    BottleState, ForgeState, IssueKey, IssueText, WakeCause, WorkHold, WorkItem, WorkRequest,
    WorkState,
};

use super::order::{TurnSeen, observe_turn};
use super::queue::ObservedPart;
use super::status::render_work;
use crate::exit::{Failure, OrGeneral};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::{Bottle, PlanStage, Record};
use crate::flow::bottle_place::{place_of_issue, place_of_row};
use crate::flow::bottle_summary::{BottleSummary, load_summary};
use crate::flow::thread::{
    Assignment, AssignmentHistory, delivered_texts, given_by_outsider, members_of, read_assignment,
    read_conversation, thumbs_of_members,
};
use crate::flow::travel;
use crate::rules::bottle_place::{BottlePlace, explain_absence};
use crate::rules::command::{CommandFacts, CommentCommand, MemberCommand};
use crate::rules::decide::{IssueState, PullState, WakeFacts, WorkFacts};
use crate::rules::status_text::STATUS_MARK;
use crate::rules::target::{Labels, parse_labels};
use crate::serve::{COMMENT_SOURCE, Service};

pub(super) struct IssueObservation {
    pub(super) state: IssueState,
    /// Text of the issue; empty if the issue is gone.
    pub(super) text: IssueText,
    pub(super) work: Option<WorkItem>,
    pub(super) bottle: Option<(Bottle, Record)>,
    /// Commands of members that change something.
    pub(super) commands: Vec<CommentCommand>,
    /// Marks of everything that was said; `None` if it was not read.
    pub(super) seen: Option<BTreeSet<String>>,
    pub(super) checks: ChecksSeen,
    pub(super) labels: Vec<String>,
    /// Its turn, if it is for an agent and has no bottle.
    pub(super) turn: Option<TurnSeen>,
    /// True if its bottle is on another host, or cannot be found: without the bottle it is not known what is new.
    pub(super) is_away: bool,
}

/// Checks of a pull request, as far as one observation saw them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ChecksSeen {
    /// They do not matter now.
    #[default]
    NotRead,
    /// They matter, and this observation did not read them.
    Due { head: String },
    /// All have passed.
    Green { head: String },
    /// Some are at work or fail, or there are none yet.
    Open,
}

/// Age from which a forge's word about a conflict counts again although the host found none.
const CLEAN_MERGE_AGE: SignedDuration = SignedDuration::from_mins(10);

/// Observes an issue. One that was deleted, moved or is a pull request counts as closed and unlabelled.
pub(super) async fn observe_issue(
    service: &Service,
    key: &IssueKey,
    look: ObservedPart,
) -> Result<IssueObservation, Failure> {
    let repos = service.repos();
    let repo = repos.of(key)?;
    let work = service.store.work(key).or_general()?;
    if let Some(away) = observe_away(service, work.as_ref())? {
        return Ok(away);
    }
    let bottle = match &work {
        Some(work) => find_bottle(service, work)?,
        None => None,
    };
    let summary = match (&bottle, &work) {
        (None, Some(work)) => find_summary(service, work)?,
        _ => None,
    };
    let record = match (&bottle, &summary) {
        (Some((_, record)), _) => Some(record),
        (None, summary) => summary.as_ref().map(|summary| &summary.record),
    };
    let access = repo.shared_access(key.issue_number, record.and_then(|record| record.pull));
    let facts = work.as_ref().map(|work| WorkFacts {
        state: work.state,
        has_bottle: work.slug.is_some(),
        retires: work.destroy_at.is_some(),
    });
    let delivered = match record {
        Some(_) => delivered_texts(&*service.store, key)?,
        None => Vec::new(),
    };
    let observed = match (record, &work, look) {
        (Some(record), Some(_), ObservedPart::Checks) if record.pull.is_some() => {
            observe_checks(service, &access, record).await
        }
        (Some(record), Some(work), _) => {
            // What a request that came to nothing had taken into account asks for no further one.
            let seen = record.seen_comments.union(&work.request.seen()).cloned().collect();
            let history = AssignmentHistory::with_seen(record, &seen, delivered);
            observe_bottle(service, &access, work, record, history).await
        }
        _ => observe_waiting(service, &access, work.as_ref()).await,
    };
    let Observed { mut state, text, commands, seen, mut checks, labels, turn } =
        found(observed)?.unwrap_or_default();
    state.work = facts;
    if work.as_ref().is_none_or(|work| work.state != WorkState::Frozen) {
        checks = ChecksSeen::NotRead;
    }
    let is_away = false;
    Ok(IssueObservation {
        state,
        text,
        work,
        bottle,
        commands,
        seen,
        checks,
        labels,
        turn,
        is_away,
    })
}

/// The observation of an issue whose bottle is away; `None` if it is here or known by its row, or there is none.
fn observe_away(
    service: &Service,
    work: Option<&WorkItem>,
) -> Result<Option<IssueObservation>, Failure> {
    let Some(work) = work.filter(|work| work.state != WorkState::Destroyed) else {
        return Ok(None);
    };
    let Service { home, host, store, .. } = service;
    let place = place_of_issue(home, host, &**store, &work.key)?;
    let Some((slug, place)) = place else { return Ok(None) };
    let is_elsewhere = matches!(place, BottlePlace::Elsewhere { .. });
    // While it is being made, what people say can be read without it, and a stop reaches its holder.
    if is_elsewhere && (work.state.is_held() || find_summary(service, work)?.is_some()) {
        return Ok(None);
    }
    let Some(reason) = explain_absence(&place, &slug) else { return Ok(None) };
    tracing::info!(issue = %work.key, reason, "not observed");
    Ok(Some(IssueObservation {
        state: IssueState { is_open: true, ..IssueState::default() },
        text: IssueText::default(),
        work: Some(work.clone()),
        bottle: None,
        commands: Vec::new(),
        seen: None,
        checks: ChecksSeen::NotRead,
        labels: Vec::new(),
        turn: None,
        is_away: true,
    }))
}

/// Part of an observation that comes from the forge.
#[derive(Default)]
struct Observed {
    state: IssueState,
    text: IssueText,
    commands: Vec<CommentCommand>,
    seen: Option<BTreeSet<String>>,
    checks: ChecksSeen,
    labels: Vec<String>,
    turn: Option<TurnSeen>,
}

/// Observes the checks of a bottle's pull request, and whether the issue is still for an agent.
async fn observe_checks(
    service: &Service,
    access: &ForgeAccess,
    record: &Record,
) -> Result<Observed, Failure> {
    let forge = access.open().await?;
    let issue = forge.read_issue(access.env.issue).await.or_general()?;
    let labels = parse_labels(&issue.labels);
    let number = record.pull.unwrap_or_default();
    let pull = forge.read_pr(number).await.or_general()?;
    let mut wake = wake_facts(service, record, &pull);
    let mut checks = ChecksSeen::NotRead;
    if !wake.head.is_empty() {
        let reports = forge.read_checks(&pull).await.or_general()?;
        let failed = reports.iter().filter(|report| report.is_failed());
        wake.failed_checks = failed.map(|report| escape_line(&report.name).into_owned()).collect();
        let is_green =
            !reports.is_empty() && reports.iter().all(|report| report.state == CheckState::Passed);
        checks = match is_green {
            true => ChecksSeen::Green { head: wake.head.clone() },
            false => ChecksSeen::Open,
        };
    }
    let state = IssueState {
        has_member: assigned_to_member(access, &forge, &issue, &labels).await?,
        is_open: issue.state == ThreadState::Open,
        agents: labels.agents,
        bottles: labels.bottles,
        pull: Some(pull_state(&pull)),
        new_comments: 0,
        work: None,
        wake,
    };
    let text = IssueText { title: issue.title, body: issue.body };
    Ok(Observed { state, text, checks, labels: issue.labels, ..Observed::default() })
}

fn pull_state(pull: &PullRequest) -> PullState {
    PullState { number: pull.number, is_open: pull.is_open(), is_merged: pull.merged }
}

/// Facts for waking a bottle, without its checks. A commit that others pushed is for people to look at.
fn wake_facts(service: &Service, record: &Record, pull: &PullRequest) -> WakeFacts {
    let settings = service.settings();
    let published = record.published.as_ref().map(Sha::as_str);
    let is_own = pull.is_open() && published == Some(pull.head_sha.as_str());
    let head = if is_own { pull.head_sha.clone() } else { String::new() };
    let is_clean = record.merges_cleanly.as_ref().is_some_and(|(clean, at)| {
        *clean == head && host::clock::now().duration_since(*at) < CLEAN_MERGE_AGE
    });
    let of_pull = || record.wakeups.iter().filter(|wakeup| wakeup.pull == Some(pull.number));
    let woken = of_pull().filter(|it| !it.alone && it.cause != WakeCause::Behind).count();
    WakeFacts {
        tried: of_pull().filter(|it| it.head == head).map(|it| it.cause).collect(),
        head,
        failed_checks: Vec::new(),
        has_conflicts: pull.has_conflicts == Some(true) && !is_clean,
        is_behind: pull.is_behind && !is_clean,
        used: u32::try_from(woken).unwrap_or(u32::MAX),
        limit: settings.max_wakeups,
        updates: settings.update_branches,
    }
}

/// Observes an issue that has a bottle: its conversation and its pull request. Commands that only need an answer get it.
async fn observe_bottle(
    service: &Service,
    access: &ForgeAccess,
    work: &WorkItem,
    record: &Record,
    history: AssignmentHistory<'_>,
) -> Result<Observed, Failure> {
    let begun = host::clock::monotonic();
    let mut read = read_assignment(access, history.clone()).await?;
    let forge = access.open().await?;
    // A member may have been removed since the answer that is remembered.
    let (members, org) = (&access.members, &access.env.org);
    if members.has_lost_any(&forge, org, &read.acting_authors(), begun).await? {
        read = read_assignment(access, history).await?;
    }
    let mut commands =
        sort_commands(service, access, &forge, work, is_proposed(record), &read).await?;
    let mut approvals = 0;
    if let (Some(PlanStage::Proposed { comment }), false) = (&record.plan, work.state.is_held()) {
        approvals = read.approvals.len();
        commands.extend(read.approvals.iter().cloned());
        commands.extend(thumbs_of_members(access, *comment).await?);
    }
    let labels = parse_labels(&read.issue.labels);
    let pull = read.pull_request.as_ref();
    let wake = pull.map(|pull| wake_facts(service, record, pull)).unwrap_or_default();
    let checks = match wake.head.is_empty() || wake.limit == 0 {
        true => ChecksSeen::NotRead,
        false => ChecksSeen::Due { head: wake.head.clone() },
    };
    let state = IssueState {
        has_member: assigned_to_member(access, &forge, &read.issue, &labels).await?,
        is_open: read.issue.state == ThreadState::Open,
        agents: labels.agents,
        bottles: labels.bottles,
        pull: pull.map(pull_state),
        // An approval is not a correction of the plan.
        new_comments: read.new_comments().saturating_sub(approvals),
        work: None,
        wake,
    };
    let (labels, seen) = (read.issue.labels, Some(read.seen_comments));
    Ok(Observed { state, text: read.text, commands, seen, checks, labels, turn: None })
}

/// True if the bottle's plan waits for an approval.
fn is_proposed(record: &Record) -> bool {
    matches!(record.plan, Some(PlanStage::Proposed { .. }))
}

/// Answers the commands that need an answer, and returns those that change something.
async fn sort_commands(
    service: &Service,
    access: &ForgeAccess,
    forge: &Forge,
    work: &WorkItem,
    awaits_approval: bool,
    read: &Assignment,
) -> Result<Vec<CommentCommand>, Failure> {
    let mut commands = Vec::new();
    // Two servers that look at once would both answer.
    if !service.turn.is_ours() {
        return Ok(commands);
    }
    for command in &read.commands {
        answer_command(service, access, forge, work, awaits_approval, read, command).await?;
        let is_void = command.command == MemberCommand::Approve && !awaits_approval;
        if command.command.event().is_some() && !is_void {
            commands.push(command.clone());
        }
    }
    Ok(commands)
}

/// Answers a command, once: the mark of an answer that is there already is found. An issue has one observation at a time.
async fn answer_command(
    service: &Service,
    access: &ForgeAccess,
    forge: &Forge,
    work: &WorkItem,
    awaits_approval: bool,
    read: &Assignment,
    command: &CommentCommand,
) -> Result<(), Failure> {
    let mark = command.answer_mark();
    if read.own_texts.iter().any(|text| text.starts_with(&mark)) {
        return Ok(());
    }
    let status = render_work(service, work, access)?;
    let stored = command.delivery_id(&work.key);
    let facts = CommandFacts {
        state: work.state,
        has_bottle: find_bottle(service, work)?.is_some() || find_summary(service, work)?.is_some(),
        awaits_approval,
        is_stored: service.store.has_delivery(COMMENT_SOURCE, &stored).or_general()?,
        status: status.strip_prefix(STATUS_MARK).unwrap_or(&status),
    };
    if let Some(text) = command.answer(facts) {
        tracing::info!(issue = %work.key, by = command.author, "answering a command");
        forge.post_comment(Thread::Issue(work.key.issue_number), &text).await.or_general()?;
    }
    Ok(())
}

/// Observes an issue without a bottle. A new one must have been given to its agent by a member; of one with work, its
/// commands are carried out, and comments resume what failed.
async fn observe_waiting(
    service: &Service,
    access: &ForgeAccess,
    work: Option<&WorkItem>,
) -> Result<Observed, Failure> {
    let begun = host::clock::monotonic();
    let forge = access.open().await?;
    let issue = forge.read_issue(access.env.issue).await.or_general()?;
    let labels = parse_labels(&issue.labels);
    let is_open = issue.state == ThreadState::Open;
    let mut has_member = assigned_to_member(access, &forge, &issue, &labels).await?;
    if work.is_none() && has_member && is_open {
        has_member = is_given_by_member(access, &forge, &issue, &labels, begun).await?;
    }
    let waits = work.is_none_or(|work| !work.state.is_held() && work.slug.is_none());
    let is_wanted = is_open && has_member && !labels.agents.is_empty();
    let turn = match is_wanted && waits && !work.is_some_and(skips_order) {
        true => Some(observe_turn(service, access, &forge, &issue, work).await?),
        false => None,
    };
    let state = IssueState {
        is_open,
        agents: labels.agents,
        bottles: labels.bottles,
        has_member,
        ..IssueState::default()
    };
    let text = IssueText { title: issue.title.clone(), body: issue.body.clone() };
    let labels = issue.labels.clone();
    let observed = Observed { state, text, labels, turn, ..Observed::default() };
    if !is_wanted || work.is_some_and(|work| work.state == WorkState::Destroyed) {
        return Ok(observed);
    }
    observe_words(service, access, issue, work, observed).await
}

/// Reads what people wrote on an issue without a bottle: a command is answered or carried out, and a comment counts if the
/// last request did not take it into account.
async fn observe_words(
    service: &Service,
    access: &ForgeAccess,
    issue: Issue,
    work: Option<&WorkItem>,
    observed: Observed,
) -> Result<Observed, Failure> {
    let begun = host::clock::monotonic();
    let forge = access.open().await?;
    let (seen, text) = match work.map(|work| &work.request) {
        Some(WorkRequest::Start { seen, text, .. }) => (seen.clone(), text.clone()),
        // Its bottle is gone: what came to nothing is not repeated without a further word.
        Some(request @ (WorkRequest::Resume { .. } | WorkRequest::Wake { .. })) => {
            (request.seen(), None)
        }
        None => Default::default(),
    };
    let delivered = match work {
        Some(work) => delivered_texts(&*service.store, &work.key)?,
        None => Vec::new(),
    };
    let history =
        AssignmentHistory { pull: None, seen: Some(&seen), text: text.as_ref(), delivered };
    let mut read = read_conversation(access, &forge, issue.clone(), None, history.clone()).await?;
    let Some(work) = work else {
        return Ok(Observed { seen: Some(read.seen_comments), ..observed });
    };
    let (members, org) = (&access.members, &access.env.org);
    if members.has_lost_any(&forge, org, &read.acting_authors(), begun).await? {
        read = read_conversation(access, &forge, issue, None, history).await?;
    }
    let commands = sort_commands(service, access, &forge, work, false, &read).await?;
    // An edit of the text of an issue that waits for others changes its turn, and does not end it.
    let is_ordered = work.waits_for == Some(WorkHold::Issues);
    let mut state = observed.state;
    state.new_comments = match is_ordered {
        true => read.thread.iter().skip(1).filter(|message| message.is_new).count(),
        false => read.new_comments(),
    };
    if work.state == WorkState::NeedsAttention {
        // It starts again with the labels that it has now.
        let is_retry = |it: &&CommentCommand| {
            matches!(it.command, MemberCommand::Retry | MemberCommand::Resume { .. })
        };
        state.new_comments += commands.iter().filter(is_retry).count();
    }
    Ok(Observed { state, commands, seen: Some(read.seen_comments), ..observed })
}

/// True if a member wants the work although the issues that it comes after are open.
fn skips_order(work: &WorkItem) -> bool {
    matches!(work.request, WorkRequest::Start { skips_order: true, .. })
}

/// Returns whether a member gave a new issue to its agent. A member may have been removed since the answer that is
/// remembered.
async fn is_given_by_member(
    access: &ForgeAccess,
    forge: &Forge,
    issue: &Issue,
    labels: &Labels,
    begun: std::time::Instant,
) -> Result<bool, Failure> {
    let (members, org) = (&access.members, &access.env.org);
    let assignees: Vec<&str> = issue.assignees.iter().map(String::as_str).collect();
    members.has_lost_any(forge, org, &assignees, begun).await?;
    if !assigned_to_member(access, forge, issue, labels).await? {
        return Ok(false);
    }
    let Some(actor) = given_by_outsider(access, forge, issue).await? else { return Ok(true) };
    let why = "not started: labelled and assigned by an account that is not a member";
    tracing::warn!(issue = issue.number, actor, org, why);
    Ok(false)
}

/// Returns whether an issue for an agent is assigned to a member; without a label for an agent it does not matter.
async fn assigned_to_member(
    access: &ForgeAccess,
    forge: &Forge,
    issue: &Issue,
    labels: &Labels,
) -> Result<bool, Failure> {
    match labels.agents.is_empty() {
        true => Ok(false),
        false => Ok(!members_of(access, forge, &issue.assignees).await?.is_empty()),
    }
}

/// Turns "not found" into `None`.
fn found<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Err(failure) if matches!(failure.forge(), Some(ForgeError::NotFound { .. })) => Ok(None),
        other => other.map(Some),
    }
}

/// The bottle of a work item on this host, if its record can be read. A claimed item does not have the bottle's name yet; then
/// the forge state has it. A folder of the same name that an earlier bottle left here is not the one on another host.
pub(super) fn find_bottle(
    service: &Service,
    work: &WorkItem,
) -> Result<Option<(Bottle, Record)>, Failure> {
    let is_alive = |row: &ForgeState| row.status != BottleState::Destroyed;
    let row = service.store.forge_state(&work.key).or_general()?.filter(is_alive);
    if let Some(row) = row.as_ref().filter(|row| row.saved.is_some())
        && place_of_row(&service.home, &service.host, row)? == BottlePlace::Stored
    {
        // What is known of it is in the store, and what may be on this disk is older.
        let record = travel::stored_record(&service.home, row)?;
        return Ok(record.map(|record| (Bottle::of_stored(&service.home, &record), record)));
    }
    let is_here = |row: &ForgeState| row.host.as_ref().is_none_or(|it| *it == service.host);
    let slug = match row {
        Some(row) if !is_here(&row) => None,
        row => work.slug.clone().or(row.map(|it| it.slug)),
    };
    Ok(slug.and_then(|slug| Bottle::open(&service.home, &slug).ok()))
}

/// The summary that another host has stored of the bottle of a work item.
pub(super) fn find_summary(
    service: &Service,
    work: &WorkItem,
) -> Result<Option<BottleSummary>, Failure> {
    let known = service.store.forge_state(&work.key).or_general()?;
    let is_elsewhere = known.is_some_and(|known| {
        let host = known.host.as_ref();
        known.status != BottleState::Destroyed && host.is_some_and(|it| *it != service.host)
    });
    match is_elsewhere {
        true => load_summary(&*service.store, &work.key),
        false => Ok(None),
    }
}
