//! Actions of users. An action is stored in the inbox like a webhook, and the reconciler acts on it, so a crash in
//! between loses nothing.

use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use orchestrator_db::{About, Delivery, IssueKey, UserActionRecord};
use serde::Deserialize;
use web_base::session::fresh_id;

use super::auth::Principal;
use super::facts::case::{Case, load_bottle_case};
use super::problem::Problem;
use super::rules::action::UserAction;
use super::{WebState, page, query};
use crate::serve::PAGE_SOURCE;
use crate::serve::inbox::InboxError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionForm {
    token: String,
    #[serde(default)]
    prompt: String,
}

/// Handles a button of the page.
pub(crate) async fn press(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    Path((slug, word)): Path<(String, String)>,
    headers: HeaderMap,
    form: Result<Form<ActionForm>, FormRejection>,
) -> Response {
    let pressed = async {
        let form = read_form(&web, &principal, &headers, form)?;
        let action = parse_action(&word)?;
        submit(&web, &slug, action, form.prompt, &principal).await?;
        Ok(action)
    };
    match pressed.await {
        // Loading the bottle has checked the name, so it is safe in an address.
        Ok(action) => {
            Redirect::to(&format!("/bottles/{slug}?requested={}", action.name())).into_response()
        }
        Err(problem) => page::problem(&web, &problem),
    }
}

/// Accepts a form if the principal may send forms, it comes from this server's page, and its token is the principal's.
pub(crate) fn read_form(
    web: &WebState,
    principal: &Principal,
    headers: &HeaderMap,
    form: Result<Form<ActionForm>, FormRejection>,
) -> Result<ActionForm, Problem> {
    if *principal == Principal::Reader {
        return Err(Problem::new(StatusCode::FORBIDDEN, READ_ONLY));
    }
    let Form(form) = form.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    if !web.auth.is_from_us(headers) || !web.auth.knows_form(principal, &form.token) {
        let detail = "this form is not from your own page; reload the page and try again";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(form)
}

pub(crate) fn parse_action(word: &str) -> Result<UserAction, Problem> {
    let none = || Problem::missing("a bottle can be frozen, resumed or destroyed");
    UserAction::parse(word).ok_or_else(none)
}

/// Refusal of every action on an open page.
pub(crate) const READ_ONLY: &str = "this page is read-only; set admin_token_file or user_header in the configuration of bot-bottle serve";

/// Checks an action, stores it, and returns its delivery id once it is on disk.
pub(crate) async fn submit(
    web: &WebState,
    slug: &str,
    action: UserAction,
    prompt: String,
    principal: &Principal,
) -> Result<String, Problem> {
    let name = slug.to_owned();
    let case = query(web, move |web| load_bottle_case(web, &name)).await?;
    let conflict = |detail: String| Problem::new(StatusCode::CONFLICT, detail);
    let event = action.name();
    let Case { orchestrated: true, issue: Some(issue), .. } = &case else {
        return Err(conflict(format!(
            "this bottle was started by hand; use: bot-bottle {event} {slug}"
        )));
    };
    action.check(case.status, &prompt).map_err(|refusal| conflict(refusal.to_string()))?;
    let id = fresh_id().map_err(|error| Problem::failed(&error))?;
    let record = UserActionRecord {
        id: id.clone(),
        actor: name_of(principal).to_owned(),
        action: event.to_owned(),
        key: IssueKey {
            owner: issue.owner.clone(),
            repo: issue.repo.clone(),
            issue_number: issue.number,
        },
        at: host::clock::now(),
    };
    query(web, move |web| Ok(web.service.store.record_action(&record)?)).await?;
    let delivery = Delivery {
        seq: 0,
        source: PAGE_SOURCE.to_owned(),
        id: id.clone(),
        event: event.to_owned(),
        owner: issue.owner.clone(),
        repo: issue.repo.clone(),
        about: About::Issue(issue.number),
        body: match action {
            UserAction::Resume => prompt.into_bytes(),
            UserAction::Freeze | UserAction::Destroy => Vec::new(),
        },
        received_at: host::clock::now(),
        handled_at: None,
    };
    web.service.inbox.store(delivery).await.map_err(|error| match error {
        InboxError::Full => Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        InboxError::Database(_) => Problem::failed(&error),
    })?;
    tracing::info!(action = event, slug, by = name_of(principal), "user action");
    Ok(id)
}

pub(super) fn name_of(principal: &Principal) -> &str {
    match principal {
        Principal::Reader => "a reader",
        Principal::Session { .. } => "the admin",
        Principal::User { name } => name,
        Principal::Bearer => "a program with the admin token",
    }
}
