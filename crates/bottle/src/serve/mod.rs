//! `bot-bottle serve`: from webhook to pull request. Webhooks are stored before they are acknowledged; the reconciler
//! observes the issues that they name, decides, and runs bottles; the page and the API show all of it.

mod discovery;
mod dispatch;
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

use std::path::Path;
use std::sync::Arc;

use host::lock::{FileLock, LockError, LockKind};
use host::signal::{CancelReason, HangUps, cancel_on_signals, cancel_on_stop_signals};
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
use crate::flow::fleet::{host_name, open_store};
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
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        Failure::usage(format!("could not listen on {}: {error}", settings.listen))
    })?;
    let address = listener.local_addr().or_general()?;
    check_repos(ui, &repos, &settings).await?;
    let arrived = Arc::new(Notify::new());
    let inbox = Inbox::open(open_store(&home)?, Arc::clone(&arrived));
    let news = Arc::clone(&arrived);
    store.listen(Box::new(move || news.notify_one()));
    let config = LiveConfig::new(Some(config.to_path_buf()), settings, repos, &home);
    let (reloaded, vitals) = (Notify::new(), Vitals::default());
    let host = host_name(&home)?;
    let turn = ServeTurn::default();
    let service =
        Arc::new(Service { home, config, store, host, inbox, arrived, reloaded, vitals, turn });
    // A terminal that is closed ends the server; without a terminal the signal is the service manager's.
    let (stop, hang_ups) = match host::terminal::is_present() {
        true => (cancel_on_signals().or_general()?, None),
        false => (cancel_on_stop_signals().or_general()?, Some(HangUps::listen().or_general()?)),
    };
    let current = keep_current(Arc::clone(&service), hang_ups, stop.clone());
    tokio::spawn(current);
    tokio::spawn(discovery::keep_current(Arc::clone(&service), stop.clone()));
    ui.note(&format!("listening on http://{address}"));
    ui.event("listening", &serde_json::json!({ "address": address }));
    let serving = tokio::spawn(web_base::listen::serve(listener, router(&service), stop.clone()));
    let reconciler = Reconciler::new(service)?;
    let stopped = stop.clone();
    // A thread and a runtime of its own: its database calls must not delay a webhook's response.
    let reconciling = tokio::task::spawn_blocking(move || block_on(reconciler.run(stopped)));
    let reconciled = reconciling.await.unwrap_or_else(|panic| {
        Err(Failure::new(BottleExit::Internal, format!("the reconciler panicked: {panic}")))
    });
    stop.cancel(CancelReason::Asked("the reconciler has ended".into()));
    drop(serving.await);
    drop(lock);
    reconciled
}

/// Checks the token of every repository. A forge that is down does not prevent the start.
async fn check_repos(ui: &Ui, repos: &Repos, settings: &ServeSettings) -> Result<(), Failure> {
    for repo in repos.all() {
        match repo.check().await {
            Err(failure) if !failure.is_transient() => return Err(failure),
            Err(failure) => ui.note(&format!("{}: {failure}; continuing", repo.full_name())),
            Ok(()) if !repo.has_secret() => ui.note(&format!(
                "{} has no webhook secret: its issues are found by a sweep every {} s; see: bot-bottle hook install",
                repo.full_name(),
                settings.sweep_secs
            )),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Value of a header, if it is text.
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
