//! What happened and what came in, in order, for whoever keeps up with it.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use orchestrator_db::{About, Delivery, WorkEvent};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::problem::{Problem, Refusals};
use super::super::rules::standing::Standing;
use super::super::{Shared, ask};
use super::query::{Asked, Since};

/// Some of what happened, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    events: Vec<EventFacts>,
    /// Give it as `after` to get what comes next.
    next: u64,
}

/// Something that happened to the work on an issue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventFacts {
    seq: u64,
    owner: String,
    repo: String,
    issue: u64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Where the work came to stand.
    standing: Standing,
    /// The orchestrator's own word for that.
    state: &'static str,
    reason: String,
}

/// Some of what came in, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    deliveries: Vec<DeliveryFacts>,
    /// Give it as `after` to get what comes next.
    next: u64,
}

/// A webhook, or a person's wish. Its bytes are not shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryFacts {
    seq: u64,
    /// The kind of forge, or `page`.
    source: String,
    id: String,
    event: String,
    owner: String,
    repo: String,
    /// The issue that it says to look at.
    issue: Option<u64>,
    /// The pull request that it says to look at.
    pull: Option<u64>,
    #[schema(value_type = String, format = DateTime)]
    received_at: Timestamp,
    /// When it was acted on.
    #[schema(value_type = Option<String>, format = DateTime)]
    handled_at: Option<Timestamp>,
}

/// List what happened to any work
#[utoipa::path(get, path = "/events", tag = "events", params(Since),
    responses((status = 200, description = "Some of it", body = EventList), Refusals))]
pub(crate) async fn events(
    State(web): State<Shared>,
    Asked(since): Asked<Since>,
) -> Result<Json<EventList>, Problem> {
    let (after, limit) = since.bounds()?;
    let events = ask(&web, move |web| Ok(web.service.store.events_since(after, limit)?)).await?;
    let next = events.last().map_or(after, |event| event.seq);
    Ok(Json(EventList { events: events.into_iter().map(event_facts).collect(), next }))
}

fn event_facts(event: WorkEvent) -> EventFacts {
    EventFacts {
        seq: event.seq,
        owner: event.key.owner,
        repo: event.key.repo,
        issue: event.key.issue_number,
        at: event.at,
        standing: Standing::of_work(event.state),
        state: event.state.name(),
        reason: event.reason,
    }
}

/// List webhooks and wishes that came in
#[utoipa::path(get, path = "/deliveries", tag = "events", params(Since),
    responses((status = 200, description = "Some of them", body = DeliveryList), Refusals))]
pub(crate) async fn deliveries(
    State(web): State<Shared>,
    Asked(since): Asked<Since>,
) -> Result<Json<DeliveryList>, Problem> {
    let (after, limit) = since.bounds()?;
    let list = ask(&web, move |web| Ok(web.service.store.deliveries_since(after, limit)?)).await?;
    let next = list.last().map_or(after, |delivery| delivery.seq);
    Ok(Json(DeliveryList { deliveries: list.into_iter().map(delivery_facts).collect(), next }))
}

fn delivery_facts(delivery: Delivery) -> DeliveryFacts {
    let (issue, pull) = match delivery.about {
        About::Issue(number) => (Some(number), None),
        About::Pull(number) => (None, Some(number)),
    };
    DeliveryFacts {
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
