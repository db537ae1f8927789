//! `wf serve`: the board in the browser, for the person at this machine. It shows what `wf watch` shows, and its buttons are
//! the commands of the same name.

mod action;
mod facts;
mod live;
mod login;
mod page;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Json};
use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use web_base::asset;
use web_base::auth::{Auth, AuthOptions, CookieName, Principal};
use web_base::header::add_security_headers;
use web_base::session::fresh_id;

use super::App;
use crate::disk::{ProjectDirs, make_dir};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use facts::{BoardFacts, WorkstreamFacts};

/// Show the board in the browser
///
/// The page is served to this machine alone. Log in with the token that the command names; the page needs no script.
#[derive(Debug, Args)]
pub(crate) struct BoardServeArgs {
    /// The address, which must be of this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8474")]
    listen: SocketAddr,
}

const COOKIE: CookieName = CookieName { http: "wf", https: "__Host-wf" };
/// Largest body of a request.
const BODY_MAX_BYTES: usize = 256 * 1024;
const STREAMS_MAX: usize = 32;

/// The board's server.
struct BoardServer {
    app: App,
    dirs: ProjectDirs,
    auth: Auth,
    token_file: PathBuf,
    streams: Arc<Semaphore>,
    /// Buttons that succeeded and whose notice no page has shown, with their workstreams.
    notices: Mutex<BTreeSet<(String, String)>>,
}

impl BoardServer {
    /// Keeps the notice of a button that succeeded for the next page of its workstream.
    fn keep_notice(&self, id: &str, button: &str) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.insert((id.to_owned(), button.to_owned()));
    }

    /// Takes a notice. The address of a page alone is no evidence that anything was done.
    fn take_notice(&self, id: &str, button: &str) -> bool {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.remove(&(id.to_owned(), button.to_owned()))
    }
}

type BoardState = Arc<BoardServer>;

/// Serves until a signal comes.
pub(crate) async fn cmd_serve(app: &App, args: &BoardServeArgs) -> Outcome {
    if !args.listen.ip().is_loopback() {
        let message = format!(
            "{} can be reached from other machines, and the board is for this one",
            args.listen
        );
        let remedy =
            "use 127.0.0.1, and reach it from elsewhere with: ssh -L 8474:127.0.0.1:8474 HOST";
        return Err(Failure::usage(message).with_remedy(remedy));
    }
    let dirs = app.dirs()?;
    let token_file = ensure_token(&dirs)?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        let message = format!("{} cannot be listened on: {error}", args.listen);
        Failure::new(WfExit::General, message)
            .with_remedy("choose another port: wf serve --listen 127.0.0.1:0")
    })?;
    let address = listener.local_addr().or_exit(WfExit::General)?;
    let stop = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    app.ui.line(&format!("The board of {} is at http://{address}/", dirs.project.name));
    app.ui.line(&format!("  Token: in {}", token_file.display()));
    app.ui.document(&json!({"url": format!("http://{address}/"), "token_file": token_file}));
    app.ui.status("Stop it with ctrl-c");
    web_base::listen::serve(listener, router(app, dirs, token_file), stop).await;
    Ok(WfExit::Success)
}

/// Makes the token of the project's board, once.
fn ensure_token(dirs: &ProjectDirs) -> WfResult<PathBuf> {
    make_dir(&dirs.state_dir())?;
    let path = dirs.state_dir().join(format!("{}.board-token", dirs.project.name));
    if !path.exists() {
        let token = fresh_id().or_exit(WfExit::General)?;
        host::file::write_atomic(&path, format!("{token}\n").as_bytes(), 0o600)
            .or_exit(WfExit::General)?;
    }
    Ok(path)
}

fn router(app: &App, dirs: ProjectDirs, token_file: PathBuf) -> Router {
    let state_file =
        |name: &str| dirs.state_dir().join(format!("{}.board-{name}", dirs.project.name));
    let auth = Auth::open(AuthOptions {
        token_file: Some(token_file.clone()),
        user_header: None,
        public_url: None,
        cookie_name: COOKIE,
        key_file: &state_file("key"),
        sessions_file: &state_file("sessions.json"),
    });
    let streams = Arc::new(Semaphore::new(STREAMS_MAX));
    let (app, notices) = (app.silent(), Mutex::default());
    let board = Arc::new(BoardServer { app, dirs, auth, token_file, streams, notices });
    let inside = Router::new()
        .route("/", get(show_board))
        .route("/workstreams/{id}", get(show_workstream))
        .route("/workstreams/{id}/{action}", post(action::press))
        .route("/live", get(live::follow))
        .route("/logout", post(login::log_out))
        .route("/api/board", get(api_board))
        .route("/api/workstreams/{id}", get(api_workstream))
        .fallback(not_found)
        .layer(from_fn_with_state(Arc::clone(&board), require_principal));
    let outside = Router::new()
        .route("/login", get(login::show).post(login::log_in))
        .route("/style.css", get(asset::style))
        .route("/live.js", get(asset::script))
        .route("/icon.svg", get(asset::icon));
    inside
        .merge(outside)
        .layer(from_fn_with_state(Arc::clone(&board), check_host))
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .layer(from_fn(add_security_headers))
        .with_state(board)
}

/// Error of a request: a page for people, JSON for programs.
#[derive(Debug)]
struct PageError {
    status: StatusCode,
    message: String,
    remedy: Option<String>,
}

impl PageError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), remedy: None }
    }
}

impl From<Failure> for PageError {
    fn from(failure: Failure) -> Self {
        let status = match failure.status {
            WfExit::Config => StatusCode::BAD_REQUEST,
            WfExit::Blocked | WfExit::Lock => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let remedy = failure.remedy().map(str::to_owned);
        Self { status, message: shell::Ui::redacted(&failure.to_string()), remedy }
    }
}

/// Runs a query of the disk on a thread where it may block.
async fn query<T: Send + 'static>(
    board: &BoardState,
    read: impl FnOnce(&BoardServer) -> WfResult<T> + Send + 'static,
) -> Result<T, PageError> {
    let board = Arc::clone(board);
    match tokio::task::spawn_blocking(move || read(&board)).await {
        Ok(answer) => answer.map_err(PageError::from),
        Err(error) => Err(PageError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

fn answer(board: &BoardState, path: &str, error: &PageError) -> Response {
    if path.starts_with("/api/") {
        let body = json!({"error": error.message, "remedy": error.remedy});
        return (error.status, Json(body)).into_response();
    }
    page::problem(board, error)
}

async fn require_principal(
    State(board): State<BoardState>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(principal) = board.auth.authenticate(request.headers()) {
        request.extensions_mut().insert(principal);
        return next.run(request).await;
    }
    let path = request.uri().path();
    if request.method() == Method::GET && !path.starts_with("/api/") && path != "/live" {
        return Redirect::to(&format!("/login?next={}", login::safe_next(path))).into_response();
    }
    let message = "log in first, or send the token: Authorization: Bearer <token>";
    answer(&board, path, &PageError::new(StatusCode::UNAUTHORIZED, message))
}

async fn check_host(State(board): State<BoardState>, request: Request, next: Next) -> Response {
    if board.auth.is_for_us(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    let message = "unknown host name; open the board by its address";
    let error = PageError::new(StatusCode::MISDIRECTED_REQUEST, message);
    answer(&board, request.uri().path(), &error)
}

async fn not_found(State(board): State<BoardState>, request: Request) -> Response {
    let error = PageError::new(StatusCode::NOT_FOUND, "there is nothing at this address");
    answer(&board, request.uri().path(), &error)
}

async fn show_board(
    State(board): State<BoardState>,
    Extension(principal): Extension<Principal>,
) -> Response {
    match query(&board, |board| BoardFacts::observe(&board.dirs)).await {
        Ok(facts) => page::board(&board, &principal, &facts),
        Err(error) => page::problem(&board, &error),
    }
}

async fn show_workstream(
    State(board): State<BoardState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let requested = request.uri().query().and_then(|query| query.strip_prefix("requested="));
    let requested = requested.filter(|name| board.take_notice(&id, name)).map(str::to_owned);
    match query(&board, move |board| WorkstreamFacts::observe(&board.dirs, &id)).await {
        Ok(facts) => page::workstream(&board, &principal, &facts, requested.as_deref()),
        Err(error) => page::problem(&board, &error),
    }
}

async fn api_board(State(board): State<BoardState>) -> Response {
    match query(&board, |board| BoardFacts::observe(&board.dirs)).await {
        Ok(facts) => Json(facts).into_response(),
        Err(error) => answer(&board, "/api/", &error),
    }
}

async fn api_workstream(State(board): State<BoardState>, Path(id): Path<String>) -> Response {
    match query(&board, move |board| WorkstreamFacts::observe(&board.dirs, &id)).await {
        Ok(facts) => Json(facts).into_response(),
        Err(error) => answer(&board, "/api/", &error),
    }
}
