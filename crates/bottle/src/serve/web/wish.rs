//! The buttons: what a person wishes is kept where webhooks are kept, and the keeper acts on it. So nothing is lost when
//! this process ends in between.

use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use orchestrator_db::{About, NewDelivery};
use serde::Deserialize;

use super::door::Visitor;
use super::facts::case::{Case, load_bottle};
use super::problem::Problem;
use super::rules::wish::Wish;
use super::session::fresh_id;
use super::{Shared, ask, page};
use crate::serve::PAGE_SOURCE;
use crate::serve::inbox::NotKept;

/// What a form of the page sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WishForm {
    token: String,
    #[serde(default)]
    prompt: String,
}

/// A button was pressed.
pub(crate) async fn press(
    State(web): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path((slug, word)): Path<(String, String)>,
    headers: HeaderMap,
    form: Result<Form<WishForm>, FormRejection>,
) -> Response {
    let pressed = async {
        let form = read_form(&web, &visitor, &headers, form)?;
        let wish = match word.as_str() {
            "freeze" => Wish::Freeze,
            "resume" => Wish::Resume { prompt: form.prompt },
            "destroy" => Wish::Destroy,
            _ => return Err(Problem::missing("a bottle can be frozen, resumed or destroyed")),
        };
        keep(&web, &slug, wish.clone(), &visitor).await?;
        Ok(wish)
    };
    match pressed.await {
        // The name was checked on the way, so it can stand in an address.
        Ok(wish) => {
            Redirect::to(&format!("/bottles/{slug}?asked={}", wish.event())).into_response()
        }
        Err(problem) => page::problem(&web, &problem),
    }
}

/// A form counts if its visitor may send forms, it is from our page, and it carries their own token.
pub(crate) fn read_form(
    web: &Shared,
    visitor: &Visitor,
    headers: &HeaderMap,
    form: Result<Form<WishForm>, FormRejection>,
) -> Result<WishForm, Problem> {
    if *visitor == Visitor::Reader {
        return Err(Problem::new(StatusCode::FORBIDDEN, READ_ONLY));
    }
    let Form(form) = form.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    if !web.door.is_from_us(headers) || !web.door.knows_form(visitor, &form.token) {
        let words = "this form is not from your own page; go back, load it again and try once more";
        return Err(Problem::new(StatusCode::FORBIDDEN, words));
    }
    Ok(form)
}

/// Why nothing can be done here.
pub(crate) const READ_ONLY: &str = "this page is for reading; set admin_token_file or user_header in the configuration of bot-bottle serve";

/// Keeps a wish for a bottle, and returns its name once it is on disk.
pub(crate) async fn keep(
    web: &Shared,
    slug: &str,
    wish: Wish,
    visitor: &Visitor,
) -> Result<String, Problem> {
    let name = slug.to_owned();
    let case = ask(web, move |web| load_bottle(web, &name).map(|(case, ..)| case)).await?;
    let conflict = |words: String| Problem::new(StatusCode::CONFLICT, words);
    let Case { orchestrated: true, issue: Some(issue), .. } = &case else {
        let verb = wish.event();
        let words = format!("this bottle was started by hand; use: bot-bottle {verb} {slug}");
        return Err(conflict(words));
    };
    wish.check(case.standing).map_err(|refusal| conflict(refusal.to_string()))?;
    let id = fresh_id().map_err(|error| Problem::failed(&error))?;
    let event = wish.event();
    let delivery = NewDelivery {
        source: PAGE_SOURCE.to_owned(),
        id: id.clone(),
        event: event.to_owned(),
        owner: issue.owner.clone(),
        repo: issue.repo.clone(),
        about: About::Issue(issue.number),
        body: match wish {
            Wish::Resume { prompt } => prompt.into_bytes(),
            Wish::Freeze | Wish::Destroy => Vec::new(),
        },
    };
    web.service.inbox.keep(delivery).await.map_err(|error| match error {
        NotKept::Busy => Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        NotKept::Store(_) => Problem::failed(&error),
    })?;
    tracing::info!(wish = event, slug, by = who(visitor), "a person wishes");
    Ok(id)
}

fn who(visitor: &Visitor) -> &str {
    match visitor {
        Visitor::Reader => "nobody",
        Visitor::Session { .. } => "the admin",
        Visitor::User { name } => name,
        Visitor::Bearer => "a program with the admin token",
    }
}
