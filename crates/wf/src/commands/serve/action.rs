//! Buttons of the page. Each is a command, called with the words of the form.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use web_base::auth::Principal;

use super::{BoardServer, BoardState, PageError, page};
use crate::cli;
use crate::exit::{Failure, WfExit, WfResult};
use crate::rules::board_action::{BoardButton, parse_button};

/// Fields of every form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BoardForm {
    pub(super) token: String,
    /// The question or acceptance test.
    #[serde(default)]
    pub(super) subject: String,
    #[serde(default)]
    pub(super) text: String,
}

pub(super) async fn press(
    State(board): State<BoardState>,
    Extension(principal): Extension<Principal>,
    Path((id, word)): Path<(String, String)>,
    headers: HeaderMap,
    form: Result<Form<BoardForm>, FormRejection>,
) -> Response {
    let pressed = async {
        let form = read_form(&board, &principal, &headers, form)?;
        let button = parse_button(&word);
        let button = button
            .ok_or_else(|| PageError::new(StatusCode::NOT_FOUND, "there is no such button"))?;
        let argv = button.argv(&id, &form.subject, &form.text);
        let argv = argv.map_err(|message| PageError::new(StatusCode::BAD_REQUEST, message))?;
        run(&board, argv).await?;
        Ok(button)
    };
    match pressed.await {
        Ok(button) => {
            let BoardButton { name, .. } = button;
            board.keep_notice(&id, name);
            Redirect::to(&format!("/workstreams/{id}?requested={name}")).into_response()
        }
        Err(error) => page::problem(&board, &error),
    }
}

/// Accepts a form if it comes from this server's page and its token is the principal's.
pub(super) fn read_form(
    board: &BoardServer,
    principal: &Principal,
    headers: &HeaderMap,
    form: Result<Form<BoardForm>, FormRejection>,
) -> Result<BoardForm, PageError> {
    let Form(form) = form.map_err(|error| PageError::new(error.status(), error.body_text()))?;
    if !board.auth.is_from_us(headers) || !board.auth.knows_form(principal, &form.token) {
        let message = "this form is not from your own page; reload the page and try again";
        return Err(PageError::new(StatusCode::FORBIDDEN, message));
    }
    Ok(form)
}

/// Runs a command on a thread of its own, where it may wait.
async fn run(board: &BoardState, argv: Vec<String>) -> Result<(), PageError> {
    let board = Arc::clone(board);
    let ran = tokio::task::spawn_blocking(move || run_command(&board, &argv)).await;
    match ran {
        Ok(outcome) => outcome.map_err(PageError::from),
        Err(error) => Err(PageError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

fn run_command(board: &BoardServer, argv: &[String]) -> WfResult<()> {
    let command = cli::parse_words(argv).map_err(Failure::usage)?;
    let (app, kept) = board.app.keeping(argv);
    let exit = shell::runtime::block_on(cli::execute(&app, command))?;
    if exit == WfExit::Success {
        return Ok(());
    }
    let messages = kept.take().messages.join("; ");
    Err(Failure::new(exit, format!("{}: {messages}", exit.meaning())))
}
