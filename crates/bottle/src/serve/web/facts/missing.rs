//! A bottle without a record on this disk: what the database knows about what became of it.

use orchestrator_db::{BottleState, ForgeState, IssueKey, WorkEvent};

use super::super::Web;
use super::super::problem::Problem;
use super::case::{IssueSummary, summarize_issue};
use crate::flow::bottle_place::place_of_issue;
use crate::rules::bottle_place::{BottlePlace, explain_absence};

/// A bottle that the database knows.
pub(crate) struct MissingBottle {
    /// Its end, in words for people.
    pub(crate) fate: String,
    pub(crate) issue: IssueSummary,
    /// The bottle that works on its issue now, if that is another one.
    pub(crate) successor: Option<String>,
    /// Events of its issue, oldest first.
    pub(crate) events: Vec<WorkEvent>,
}

/// Finds out what became of a bottle; `None` if the database does not know its name.
pub(crate) fn find_missing(web: &Web, slug: &str) -> Result<Option<MissingBottle>, Problem> {
    let service = &web.service;
    let store = &service.store;
    let states = store.forge_states()?;
    let works = store.works()?;
    let state = states.iter().find(|state| state.slug == slug);
    let work = works.iter().find(|work| work.slug.as_deref() == Some(slug));
    let Some(key) = state.map(|state| &state.key).or(work.map(|work| &work.key)) else {
        return Ok(None);
    };
    let of_issue = works.iter().find(|work| work.key == *key);
    let title = of_issue.map_or("", |work| work.title.as_str());
    let successor = of_issue.and_then(|work| work.slug.clone()).filter(|other| other != slug);
    let events = store.work_events(key)?;
    let fate = match state {
        Some(state) => fate_of(web, state, &events)?,
        None => format!("the bottle '{slug}' was not made yet, or its record is lost"),
    };
    let issue = summarize_issue(web, key, title);
    Ok(Some(MissingBottle { fate, issue, successor, events }))
}

fn fate_of(web: &Web, state: &ForgeState, events: &[WorkEvent]) -> Result<String, Problem> {
    let ForgeState { key, slug, .. } = state;
    if state.status == BottleState::Destroyed {
        let why = events.last().map(|event| event.reason.as_str()).unwrap_or_default();
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        return Ok(format!(
            "the bottle '{slug}' was destroyed{why}; the records of its runs are not on this host any more"
        ));
    }
    Ok(absence_of(web, key)?.unwrap_or_else(|| format!("the bottle '{slug}' is being made")))
}

/// Why the bottle of an issue is not here; `None` if it is, or is being made.
fn absence_of(web: &Web, key: &IssueKey) -> Result<Option<String>, Problem> {
    let service = &web.service;
    let place = place_of_issue(&service.home, &service.host, &*service.store, key)?;
    Ok(place.and_then(|(slug, place)| match place {
        BottlePlace::Stored => Some(format!(
            "the bottle '{slug}' is in the store of bottles; the host that goes on with it fetches it"
        )),
        other => explain_absence(&other, &slug),
    }))
}
