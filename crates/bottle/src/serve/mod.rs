//! `bot-bottle serve`: from webhook to pull request, with nobody watching. What comes in is kept before it is acknowledged;
//! the foreman looks at the issues that it names, decides, and has bottles run; the page shows all of it.

mod foreman;
mod hooks;
pub(crate) mod inbox;
mod listen;
pub(crate) mod log;
mod look;
#[cfg(feature = "otlp")]
mod otlp;
pub(crate) mod repos;
pub(crate) mod settings;
pub(crate) mod web;
mod worker;

use std::sync::Arc;

use host::lock::{FileLock, LockError, LockKind};
use host::signal::cancel_on_signals;
use model::exit::BottleExit;
use orchestrator_db::SqliteForgeStateStore;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use self::foreman::Foreman;
use self::inbox::Inbox;
use self::repos::Repos;
use self::settings::Settings;
use crate::exit::{Failure, OrExit};
use crate::flow::home::Home;
use crate::ui::Ui;

/// The source of what people ask for on the page.
pub(crate) const PAGE_SOURCE: &str = "page";

/// What everybody who answers requests needs.
pub(crate) struct Service {
    pub(crate) home: Home,
    pub(crate) settings: Settings,
    pub(crate) repos: Repos,
    pub(crate) store: SqliteForgeStateStore,
    pub(crate) inbox: Inbox,
    /// Notified when something new is in the inbox.
    pub(crate) news: Arc<Notify>,
}

/// Serves until a signal says to stop.
pub(crate) async fn run(ui: &Ui, home: Home, settings: Settings) -> Result<(), Failure> {
    web::check(&settings)?;
    let lock = lock_home(&home)?;
    let repos = Repos::load(&settings, &home)?;
    let store = SqliteForgeStateStore::open(&home.database()).or_general()?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        Failure::usage(format!("could not listen on {}: {error}", settings.listen))
    })?;
    let address = listener.local_addr().or_general()?;
    for repo in repos.all() {
        match repo.check().await {
            Err(failure) if !failure.is_transient() => return Err(failure),
            Err(failure) => ui.note(&format!("{}: {failure}; going on", repo.full_name())),
            Ok(()) if !repo.has_secret() => ui.note(&format!(
                "{} has no webhook secret: its issues are found by looking every {} s; see: bot-bottle hook install",
                repo.full_name(),
                settings.sweep_secs
            )),
            Ok(()) => {}
        }
    }
    let news = Arc::new(Notify::new());
    let own = SqliteForgeStateStore::open(&home.database()).or_general()?;
    let inbox = Inbox::open(own, Arc::clone(&news));
    let service = Arc::new(Service { home, settings, repos, store, inbox, news });
    let stop = cancel_on_signals().or_general()?;
    ui.note(&format!("listening on http://{address}"));
    ui.event("listening", &serde_json::json!({ "address": address }));
    let serving = tokio::spawn(listen::serve(listener, router(&service), stop.clone()));
    let holder = format!("{}-{}", std::process::id(), host::clock::stamp_utc(host::clock::now()));
    let worked = Foreman::new(service, holder).work(stop.clone()).await;
    stop.cancel(host::signal::CancelReason::Asked("the foreman has ended".into()));
    drop(serving.await);
    drop(lock);
    worked
}

fn router(service: &Arc<Service>) -> axum::Router {
    hooks::router(Arc::clone(service)).merge(web::router(Arc::clone(service)))
}

/// Two of us in one home would both think that what the other one has is nobody's.
fn lock_home(home: &Home) -> Result<FileLock, Failure> {
    let path = home.serve_lock();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).or_general()?;
    }
    let taken = FileLock::try_acquire(&path, LockKind::Exclusive { note: "bot-bottle serve" });
    taken.map_err(|error| match error {
        LockError::Held { holder, .. } => {
            let who = holder.map_or_else(String::new, |it| format!(" (process {})", it.pid));
            Failure::not_found(format!("another bot-bottle serves this home{who}"))
        }
        other => Failure::new(BottleExit::General, model::error_chain(&other)),
    })
}
