//! What happened, in order: the steps of the work on an issue, and the marks that its runs left.

use jiff::Timestamp;
use orchestrator_db::WorkEvent;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::rules::standing::Standing;
use crate::flow::run_record::{BottleRunRecord, SidecarEnd};

/// One thing that happened.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Moment {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Timestamp,
    /// What, in a word or two.
    pub(crate) what: String,
    /// What else is worth knowing.
    pub(crate) more: String,
    /// Where the work came to stand by it, if it did.
    pub(crate) standing: Option<Standing>,
}

/// The steps of the work on an issue.
pub(crate) fn of_events(events: &[WorkEvent]) -> Vec<Moment> {
    let moment = |event: &WorkEvent| Moment {
        at: event.at,
        what: event.state.name().to_owned(),
        more: event.reason.clone(),
        standing: Some(Standing::of_work(event.state)),
    };
    events.iter().map(moment).collect()
}

/// The marks of a run.
pub(crate) fn of_run(meta: &BottleRunRecord) -> Vec<Moment> {
    let mut list = Vec::new();
    let mut add = |at: Timestamp, what: &str, more: String| {
        list.push(Moment { at, what: what.to_owned(), more, standing: None });
    };
    let words = match &meta.parent {
        Some(parent) => format!("goes on from {parent}"),
        None => format!("from {}", meta.pins.start.short()),
    };
    add(meta.started_at, "run began", words);
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
        let words = meta.verdict.as_ref().map(crate::rules::judge::Verdict::words);
        add(at, "run closed", words.unwrap_or_default());
    }
    in_order(list)
}

/// By time; what happened at the same time stays as it was told.
pub(crate) fn in_order(mut list: Vec<Moment>) -> Vec<Moment> {
    list.sort_by_key(|moment| moment.at);
    list
}
