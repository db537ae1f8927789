//! Events of work items and deliveries, in order, for clients that poll.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use orchestrator_db::{About, Delivery, WorkEvent};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::problem::{Problem, Refusals};
use super::super::rules::case_status::CaseStatus;
use super::super::{WebState, query};
use super::query::{SinceParams, StrictQuery};

/// A page of events, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    events: Vec<EventSummary>,
    /// The `after` of the next page.
    next: u64,
}

/// A step of a work item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventSummary {
    seq: u64,
    owner: String,
    repo: String,
    issue: u64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The case's status after it.
    status: CaseStatus,
    /// The work item's state after it.
    state: &'static str,
    reason: String,
}

/// A page of deliveries, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    deliveries: Vec<DeliverySummary>,
    /// The `after` of the next page.
    next: u64,
}

/// A webhook or a user action, without its body.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliverySummary {
    seq: u64,
    /// The kind of forge, or `page`.
    source: String,
    id: String,
    event: String,
    owner: String,
    repo: String,
    /// The issue that it names.
    issue: Option<u64>,
    /// The pull request that it names.
    pull: Option<u64>,
    #[schema(value_type = String, format = DateTime)]
    received_at: Timestamp,
    /// When it was handled.
    #[schema(value_type = Option<String>, format = DateTime)]
    handled_at: Option<Timestamp>,
}

/// List the steps of all work items
#[utoipa::path(get, path = "/events", tag = "events", params(SinceParams),
    responses((status = 200, description = "Some of it", body = EventList), Refusals))]
pub(crate) async fn events(
    State(web): State<WebState>,
    StrictQuery(since): StrictQuery<SinceParams>,
) -> Result<Json<EventList>, Problem> {
    let (after, limit) = since.bounds()?;
    let events = query(&web, move |web| Ok(web.service.store.events_since(after, limit)?)).await?;
    let next = events.last().map_or(after, |event| event.seq);
    Ok(Json(EventList { events: events.into_iter().map(event_facts).collect(), next }))
}

fn event_facts(event: WorkEvent) -> EventSummary {
    EventSummary {
        seq: event.seq,
        owner: event.key.owner,
        repo: event.key.repo,
        issue: event.key.issue_number,
        at: event.at,
        status: CaseStatus::of_work(event.state),
        state: event.state.name(),
        reason: event.reason,
    }
}

/// List webhooks and user actions
#[utoipa::path(get, path = "/deliveries", tag = "events", params(SinceParams),
    responses((status = 200, description = "Some of them", body = DeliveryList), Refusals))]
pub(crate) async fn deliveries(
    State(web): State<WebState>,
    StrictQuery(since): StrictQuery<SinceParams>,
) -> Result<Json<DeliveryList>, Problem> {
    let (after, limit) = since.bounds()?;
    let list =
        query(&web, move |web| Ok(web.service.store.deliveries_since(after, limit)?)).await?;
    let next = list.last().map_or(after, |delivery| delivery.seq);
    Ok(Json(DeliveryList { deliveries: list.into_iter().map(delivery_facts).collect(), next }))
}

fn delivery_facts(delivery: Delivery) -> DeliverySummary {
    let (issue, pull) = match delivery.about {
        About::Issue(number) => (Some(number), None),
        About::Pull(number) => (None, Some(number)),
    };
    DeliverySummary {
        seq: delivery.seq,
        source: delivery.source,
        id: delivery.id,
        event: delivery.event,
        owner: delivery.owner,
        repo: delivery.repo,
        issue,
        pull,
        received_at: delivery.received_at,
        handled_at: delivery.handled_at,
    }
}
