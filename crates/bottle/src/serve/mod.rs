//! `bot-bottle serve`: from webhook to pull request. Webhooks are stored before they are acknowledged; the reconciler
//! observes the issues that they name, decides, and runs bottles; the page and the API show all of it.

mod discovery;
mod dispatch;
mod host_report;
pub(crate) mod inbox;
pub(crate) mod live_config;
pub(crate) mod log;
mod notify;
#[cfg(feature = "otlp")]
mod otlp;
mod reconciler;
pub(crate) mod repos;
pub(crate) mod schedule;
pub(crate) mod settings;
mod turn;
pub(crate) mod vitals;
pub(crate) mod web;
mod webhook;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use host::lock::{FileLock, LockError, LockKind};
use host::signal::{Cancel, CancelReason, HangUps, cancel_on_signals, cancel_on_stop_signals};
use model::exit::BottleExit;
use orchestrator_db::Store;
use shell::Ui;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use self::inbox::Inbox;
use self::live_config::{LiveConfig, keep_current};
use self::reconciler::Reconciler;
use self::repos::Repos;
use self::settings::ServeSettings;
use self::turn::ServeTurn;
use self::vitals::Vitals;
use crate::commands::block_on;
use crate::exit::{Failure, OrGeneral};
use crate::flow::fleet::{host_name, open_store, runs_bottles};
use crate::flow::home::Home;

/// Source of deliveries that users cause on the page or by the API.
pub(crate) const PAGE_SOURCE: &str = "page";
/// Source of deliveries that are commands of members in comments.
pub(crate) const COMMENT_SOURCE: &str = "comment";

pub(crate) struct Service {
    pub(crate) home: Home,
    pub(crate) config: LiveConfig,
    pub(crate) store: Arc<dyn Store>,
    /// The host whose bottles are in this home.
    pub(crate) host: String,
    pub(crate) inbox: Inbox,
    /// Notified after a new delivery was stored.
    pub(crate) arrived: Arc<Notify>,
    /// Notified after the configuration was read again.
    pub(crate) reloaded: Notify,
    pub(crate) vitals: Vitals,
    /// Its turn to reconcile, among the servers on one database.
    pub(crate) turn: ServeTurn,
    pub(crate) duties: Duties,
}

/// Part of the work that a process does for the database that it shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duties {
    /// It takes webhooks, shows the page, and looks at issues when it has the turn.
    pub(crate) looks: bool,
    /// It runs bottles.
    pub(crate) runs: bool,
}

impl Duties {
    /// Those of the only process of a database.
    pub(crate) const ALL: Self = Self { looks: true, runs: true };
    const WORKER: Self = Self { looks: false, runs: true };

    /// The command that has these duties.
    pub(crate) fn name(self) -> &'static str {
        if self.looks { "serve" } else { "worker" }
    }
}

impl Service {
    pub(crate) fn settings(&self) -> Arc<ServeSettings> {
        self.config.settings()
    }

    pub(crate) fn repos(&self) -> Arc<Repos> {
        self.config.repos()
    }
}

pub(crate) async fn run(
    ui: &Ui,
    home: Home,
    config: &Path,
    settings: ServeSettings,
) -> Result<(), Failure> {
    web::check(&settings)?;
    let lock = lock_home(&home)?;
    for failure in discovery::refresh(&settings, &home).await? {
        ui.note(&format!("{failure}; the repositories that were found before stay"));
    }
    let repos = Repos::load(&settings, &home)?;
    let store = open_store(&home)?;
    let listener = listen(settings.listen).await?;
    let address = listener.local_addr().or_general()?;
    check_repos(ui, &repos, &settings, Duties::ALL).await?;
    let duties = Duties { looks: true, runs: runs_bottles(&home)? };
    let service = open_service(home, config, settings, (repos, store), duties)?;
    let (stop, hang_ups) = signals()?;
    tokio::spawn(keep_current(Arc::clone(&service), hang_ups, stop.clone()));
    tokio::spawn(discovery::keep_current(Arc::clone(&service), stop.clone()));
    ui.note(&format!("listening on http://{address}"));
    ui.event("listening", &serde_json::json!({ "address": address }));
    let serving = tokio::spawn(web_base::listen::serve(listener, router(&service), stop.clone()));
    let reconciled = reconcile(service, &stop).await;
    drop(serving.await);
    drop(lock);
    reconciled
}

/// Runs bottles for a shared database, and nothing else.
pub(crate) async fn run_worker(
    ui: &Ui,
    home: Home,
    config: &Path,
    settings: ServeSettings,
) -> Result<(), Failure> {
    let lock = lock_home(&home)?;
    let repos = Repos::load(&settings, &home)?;
    let store = open_store(&home)?;
    let listener = match settings.worker_listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    check_repos(ui, &repos, &settings, Duties::WORKER).await?;
    let slots = settings.max_bottles;
    let service = open_service(home, config, settings, (repos, store), Duties::WORKER)?;
    let (stop, hang_ups) = signals()?;
    tokio::spawn(keep_current(Arc::clone(&service), hang_ups, stop.clone()));
    let address = listener.as_ref().map(TcpListener::local_addr).transpose().or_general()?;
    let host = &service.host;
    ui.note(&format!("working as host {host}, {slots} bottles at most"));
    if let Some(address) = address {
        ui.note(&format!("metrics on http://{address}/metrics"));
    }
    let facts = serde_json::json!({ "host": host, "slots": slots, "address": address });
    ui.event("working", &facts);
    let router = web::worker_router(Arc::clone(&service));
    let serving = listener
        .map(|listener| tokio::spawn(web_base::listen::serve(listener, router, stop.clone())));
    let reconciled = reconcile(service, &stop).await;
    if let Some(serving) = serving {
        drop(serving.await);
    }
    drop(lock);
    reconciled
}

fn open_service(
    home: Home,
    config: &Path,
    settings: ServeSettings,
    (repos, store): (Repos, Arc<dyn Store>),
    duties: Duties,
) -> Result<Arc<Service>, Failure> {
    let arrived = Arc::new(Notify::new());
    let inbox = Inbox::open(open_store(&home)?, Arc::clone(&arrived));
    let news = Arc::clone(&arrived);
    store.listen(Box::new(move || news.notify_one()));
    let config = LiveConfig::new(Some(config.to_path_buf()), settings, repos, &home);
    let (reloaded, vitals) = (Notify::new(), Vitals::default());
    let host = host_name(&home)?;
    let turn = ServeTurn::default();
    Ok(Arc::new(Service {
        home,
        config,
        store,
        host,
        inbox,
        arrived,
        reloaded,
        vitals,
        turn,
        duties,
    }))
}

/// A terminal that is closed ends the process; without a terminal the signal is the service manager's.
fn signals() -> Result<(Cancel, Option<HangUps>), Failure> {
    Ok(match host::terminal::is_present() {
        true => (cancel_on_signals().or_general()?, None),
        false => (cancel_on_stop_signals().or_general()?, Some(HangUps::listen().or_general()?)),
    })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Failure::usage(format!("could not listen on {address}: {error}")))
}

/// Reconciles on a thread and a runtime of its own: its database calls must not delay a webhook's response.
async fn reconcile(service: Arc<Service>, stop: &Cancel) -> Result<(), Failure> {
    let reconciler = Reconciler::new(service)?;
    let stopped = stop.clone();
    let reconciling = tokio::task::spawn_blocking(move || block_on(reconciler.run(stopped)));
    let reconciled = reconciling.await.unwrap_or_else(|panic| {
        Err(Failure::new(BottleExit::Internal, format!("the reconciler panicked: {panic}")))
    });
    stop.cancel(CancelReason::Asked("the reconciler has ended".into()));
    reconciled
}

/// Checks the token of every repository. A forge that is down does not prevent the start.
async fn check_repos(
    ui: &Ui,
    repos: &Repos,
    settings: &ServeSettings,
    duties: Duties,
) -> Result<(), Failure> {
    for repo in repos.all() {
        match repo.check().await {
            Err(failure) if !failure.is_transient() => return Err(failure),
            Err(failure) => ui.note(&format!("{}: {failure}; continuing", repo.full_name())),
            Ok(()) if duties.looks && !repo.has_secret() => ui.note(&format!(
                "{} has no webhook secret: its issues are found by a sweep every {} s; see: bot-bottle hook install",
                repo.full_name(),
                settings.sweep_secs
            )),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn router(service: &Arc<Service>) -> axum::Router {
    webhook::router(Arc::clone(service)).merge(web::router(Arc::clone(service)))
}

/// Locks the home: two servers would both take over the other one's claims.
fn lock_home(home: &Home) -> Result<FileLock, Failure> {
    let path = &home.serve_lock;
    if let Some(folder) = path.parent() {
        host::file::create_dirs(folder).or_general()?;
    }
    let taken = FileLock::try_acquire(path, LockKind::Exclusive { note: "bot-bottle serve" });
    taken.map_err(|error| match error {
        LockError::Held { holder, .. } => {
            let who = holder.map_or_else(String::new, |it| format!(" (process {})", it.pid));
            Failure::not_found(format!("another bot-bottle serves this home{who}"))
        }
        other => Failure::new(BottleExit::General, model::error_chain(&other)),
    })
}
