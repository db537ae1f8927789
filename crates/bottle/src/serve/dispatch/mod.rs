//! Dispatches: work without an issue, asked for by a command, a program or a schedule. The orchestrator opens the issue;
//! from there on it is work like any other.
//!
//! A dispatch is in the database before its issue is opened, and so is the intent to open it. A process that was killed in
//! between is followed by one that looks for the issue by its mark.

mod open;

use std::sync::Arc;
use std::time::Duration;

use host::signal::Cancel;
use jiff::Timestamp;
use orchestrator_db::{
    Dispatch, DispatchRequest, DispatchState, IssueKey, ScheduleMark, WorkState,
};
use tokio::sync::mpsc;

use self::open::open_issue;
use super::Service;
use super::notify::{NoticeKind, raise};
use super::schedule::{ScheduleSettings, ScheduleStep, next_step};
use super::settings::split_repo;
use crate::exit::{Failure, OrGeneral};
use crate::rules::dispatch_text::choose_title;

/// Interval of the looks at the schedules and the dispatches.
const PAUSE: Duration = Duration::from_millis(500);
/// Dispatches that one look opens.
const OPEN_MAX: usize = 16;

/// Opens the issues of dispatches and follows the schedules, until `stop`. It runs where the reconciler does: both share
/// connections. Issues are sent to `found`.
pub(super) async fn run(
    service: Arc<Service>,
    found: mpsc::UnboundedSender<IssueKey>,
    stop: Cancel,
) {
    loop {
        if service.turn.is_ours()
            && let Err(failure) = look(&service, &found).await
        {
            tracing::error!(%failure, "could not look at the dispatches; trying again");
        }
        tokio::select! {
            _ = stop.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn look(
    service: &Arc<Service>,
    found: &mpsc::UnboundedSender<IssueKey>,
) -> Result<(), Failure> {
    let now = host::clock::now();
    follow_schedules(service, now)?;
    let store = &service.store;
    let open = store.open_dispatches(usize::MAX >> 1).or_general()?.into_iter();
    for dispatch in open.filter(|it| it.not_before.is_none_or(|at| at <= now)).take(OPEN_MAX) {
        let dispatch = open_issue(service, dispatch).await?;
        match (dispatch.state, dispatch.issue()) {
            // The receiver is gone when the process ends; the next one finds the issue by a sweep.
            (DispatchState::Opened, Some(key)) => drop(found.send(key)),
            (DispatchState::Failed, _) => raise(service, &notice_of(&dispatch))?,
            _ => {}
        }
    }
    Ok(())
}

fn notice_of(dispatch: &Dispatch) -> NoticeKind {
    let DispatchRequest { owner, repo, origin, .. } = &dispatch.request;
    NoticeKind::DispatchFailed {
        id: dispatch.id.clone(),
        repo: format!("{owner}/{repo}"),
        origin: origin.clone(),
        problem: dispatch.problem.clone(),
    }
}

/// Asks for the work of every schedule that is due. Mark and dispatch are one commit.
fn follow_schedules(service: &Service, now: Timestamp) -> Result<(), Failure> {
    let settings = service.settings();
    if settings.schedules.is_empty() {
        return Ok(());
    }
    let store = &service.store;
    let marks = store.schedule_marks().or_general()?;
    for schedule in &settings.schedules {
        let Ok(recurrence) = schedule.recurrence() else { continue };
        let definition = schedule.definition();
        let mark = marks.iter().find(|mark| mark.name == schedule.name);
        let is_busy = !schedule.overlap && is_busy(service, &schedule.name)?;
        let moved = |last_due| ScheduleMark {
            name: schedule.name.clone(),
            definition: definition.clone(),
            last_due,
        };
        match next_step(&recurrence, &definition, mark, is_busy, now) {
            ScheduleStep::Wait => {}
            ScheduleStep::Begin => store.mark_schedule(&moved(now), None).or_general()?,
            ScheduleStep::Skip { due } => {
                let why = "its last run is not over";
                tracing::info!(schedule = schedule.name, %due, why, "left out");
                store.mark_schedule(&moved(due), None).or_general()?;
            }
            ScheduleStep::Run { due } => {
                tracing::info!(schedule = schedule.name, %due, "due");
                let dispatch = dispatch_of(schedule, due, now);
                store.mark_schedule(&moved(due), Some(&dispatch)).or_general()?;
                host::failpoint::hit("scheduled");
            }
        }
    }
    Ok(())
}

/// Returns whether the last work of a schedule has not come to its end.
fn is_busy(service: &Service, schedule: &str) -> Result<bool, Failure> {
    let Some(last) = service.store.last_dispatch_of(schedule).or_general()? else {
        return Ok(false);
    };
    match (last.state, last.issue()) {
        (DispatchState::Pending | DispatchState::Opening, _) => Ok(true),
        (DispatchState::Opened, Some(key)) => {
            let work = service.store.work(&key).or_general()?;
            Ok(work.is_some_and(|work| match work.state {
                WorkState::Queued
                | WorkState::Claimed
                | WorkState::Running
                | WorkState::Waiting => true,
                WorkState::Frozen | WorkState::NeedsAttention | WorkState::Destroyed => false,
            }))
        }
        (DispatchState::Opened | DispatchState::Failed, _) => Ok(false),
    }
}

fn dispatch_of(schedule: &ScheduleSettings, due: Timestamp, now: Timestamp) -> Dispatch {
    let (owner, repo) = split_repo(&schedule.repo).unwrap_or_default();
    let request = DispatchRequest {
        origin: format!("the schedule '{}'", schedule.name),
        schedule: Some(schedule.name.clone()),
        owner: owner.to_owned(),
        repo: repo.to_owned(),
        agent: schedule.agent.clone(),
        bottles: schedule.bottles.clone(),
        assignee: schedule.assignee.clone(),
        title: choose_title(schedule.title.as_deref(), &schedule.prompt),
        prompt: schedule.prompt.clone(),
    };
    // The same for the same time: a clock that is put back asks for nothing twice.
    let digest = model::digest::sha256(format!("{} {due}", schedule.name).as_bytes());
    let id: String = digest.chars().take(32).collect();
    Dispatch::new(id, request, now)
}
