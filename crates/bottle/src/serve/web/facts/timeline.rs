//! Timelines: the steps of a work item, and the milestones of a run.

use jiff::Timestamp;
use orchestrator_db::WorkEvent;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::rules::case_status::CaseStatus;
use crate::flow::run_record::{BottleRunRecord, SidecarEnd};

/// One event of a timeline.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Moment {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Timestamp,
    /// The event, in a few words.
    pub(crate) what: String,
    /// Details.
    pub(crate) more: String,
    /// The status after it, if it changed.
    pub(crate) status: Option<CaseStatus>,
}

pub(crate) fn of_events(events: &[WorkEvent]) -> Vec<Moment> {
    let moment = |event: &WorkEvent| Moment {
        at: event.at,
        what: event.state.name().to_owned(),
        more: event.reason.clone(),
        status: Some(CaseStatus::of_work(event.state)),
    };
    events.iter().map(moment).collect()
}

pub(crate) fn of_run(meta: &BottleRunRecord) -> Vec<Moment> {
    let mut list = Vec::new();
    let mut add = |at: Timestamp, what: &str, more: String| {
        list.push(Moment { at, what: what.to_owned(), more, status: None });
    };
    let origin = match &meta.parent {
        Some(parent) => format!("resumes {parent}"),
        None => format!("from {}", meta.pins.start.short()),
    };
    add(meta.started_at, "run started", origin);
    if let Some(record) = &meta.agent_box {
        add(record.started_at, "box started", meta.backend_reason.clone());
        let how = match record.fell_silent {
            true => format!("{}, after a long silence", record.ended.class()),
            false => record.ended.class().to_owned(),
        };
        add(record.finished_at, "box ended", how);
    }
    if let Some(done) = &meta.done {
        add(done.at, "agent said done", format!("{}: {}", done.status.name(), done.summary));
    }
    if let Some(SidecarEnd::Died { seen_at }) = meta.sidecar {
        add(seen_at, "sidecar died", "from then on the agent had no forge".to_owned());
    }
    if let Some(at) = meta.finished_at {
        let verdict = meta.verdict.as_ref().map(crate::rules::judge::Verdict::words);
        add(at, "run closed", verdict.unwrap_or_default());
    }
    // A stable sort keeps the order of simultaneous events.
    list.sort_by_key(|moment| moment.at);
    list
}
