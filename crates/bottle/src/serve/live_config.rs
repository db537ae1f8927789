//! The configuration of a running server. Settings, tokens and webhook secrets are read again when one of their files
//! changes, and on SIGHUP; what cannot be read leaves everything as it is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use host::signal::{Cancel, HangUps};

use super::repos::Repos;
use super::settings::ServeSettings;
use super::{Service, discovery, web};
use crate::exit::Failure;
use crate::flow::home::Home;
use crate::flow::hooks::hook_files;

/// Interval between two looks at the files.
const PAUSE: Duration = Duration::from_secs(2);

/// Interval in which somebody who waits for a change looks.
const CHANGE_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct LiveConfig {
    /// The configuration file; `None` where there is nothing to read again.
    file: Option<PathBuf>,
    state: RwLock<LoadedConfig>,
    /// Reloads under way.
    reloads: AtomicUsize,
}

#[derive(Debug, Clone)]
struct LoadedConfig {
    settings: Arc<ServeSettings>,
    repos: Arc<Repos>,
    files: Vec<FileState>,
}

/// A file by which a change is noticed: time, length and inode, or nothing without a file.
type FileState = (PathBuf, Option<(SystemTime, u64, u64)>);

impl LiveConfig {
    pub(crate) fn new(
        file: Option<PathBuf>,
        settings: ServeSettings,
        repos: Repos,
        home: &Home,
    ) -> Self {
        let files = observe_files(file.as_deref(), &settings, home);
        let (settings, repos) = (Arc::new(settings), Arc::new(repos));
        Self {
            file,
            state: RwLock::new(LoadedConfig { settings, repos, files }),
            reloads: AtomicUsize::new(0),
        }
    }

    pub(crate) fn settings(&self) -> Arc<ServeSettings> {
        Arc::clone(&self.loaded().settings)
    }

    pub(crate) fn repos(&self) -> Arc<Repos> {
        Arc::clone(&self.loaded().repos)
    }

    fn loaded(&self) -> LoadedConfig {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a change of the files is taken up, at most for `limit`; false if there is none.
    pub(crate) async fn wait_for_change(&self, home: &Home, limit: Duration) -> bool {
        let is_behind = || self.reloads.load(Ordering::Acquire) > 0 || self.has_changed(home);
        if !is_behind() {
            return false;
        }
        let end = host::clock::monotonic() + limit;
        while is_behind() && host::clock::monotonic() < end {
            tokio::time::sleep(CHANGE_PAUSE).await;
        }
        true
    }

    fn has_changed(&self, home: &Home) -> bool {
        let loaded = self.loaded();
        loaded.files != observe_files(self.file.as_deref(), &loaded.settings, home)
    }

    /// Reads everything again. The files are remembered first, so that a wrong one is reported once.
    pub(super) async fn reload(&self, home: &Home) -> Result<(), Failure> {
        self.reloads.fetch_add(1, Ordering::AcqRel);
        let read = self.read_again(home).await;
        self.reloads.fetch_sub(1, Ordering::AcqRel);
        read
    }

    async fn read_again(&self, home: &Home) -> Result<(), Failure> {
        let before = self.loaded();
        let files = observe_files(self.file.as_deref(), &before.settings, home);
        self.state.write().unwrap_or_else(PoisonError::into_inner).files = files;
        let settings = match &self.file {
            Some(file) => ServeSettings::load(file)?,
            None => ServeSettings::clone(&before.settings),
        };
        web::check(&settings)?;
        discovery::refresh_new(&settings, home).await?;
        let repos = Repos::reload(&settings, home, &before.repos)?;
        for repo in repos.all() {
            match repo.check().await {
                Err(failure) if !failure.is_transient() => return Err(failure),
                _ => {}
            }
        }
        for key in before.settings.fixed_differences(&settings) {
            tracing::warn!(key, "this setting is taken up at the next start");
        }
        let files = observe_files(self.file.as_deref(), &settings, home);
        let (settings, repos) = (Arc::new(settings), Arc::new(repos));
        let loaded = LoadedConfig { settings, repos, files };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }
}

/// Reads the configuration again whenever it changes, until `stop`. Without `hang_ups` that signal ends the server.
pub(super) async fn keep_current(
    service: Arc<Service>,
    mut hang_ups: Option<HangUps>,
    stop: Cancel,
) {
    loop {
        let asked = async {
            match &mut hang_ups {
                Some(hang_ups) => hang_ups.next().await,
                None => std::future::pending().await,
            }
        };
        let was_asked = tokio::select! {
            _ = stop.cancelled() => return,
            () = asked => true,
            () = tokio::time::sleep(PAUSE) => false,
        };
        if !was_asked && !service.config.has_changed(&service.home) {
            continue;
        }
        match service.config.reload(&service.home).await {
            Ok(()) => {
                tracing::info!("the configuration was read again");
                // Issues of a repository that is new, or whose token was refused, are looked for now.
                service.reloaded.notify_one();
            }
            Err(failure) => {
                tracing::error!(%failure, "the configuration cannot be read; the old one stays");
            }
        }
    }
}

fn observe_files(file: Option<&Path>, settings: &ServeSettings, home: &Home) -> Vec<FileState> {
    let forges = settings.forges.iter();
    let mut paths: Vec<PathBuf> = file.map(Path::to_path_buf).into_iter().collect();
    paths.extend(forges.flat_map(|forge| {
        let token = forge.token_file.clone().unwrap_or_else(|| home.token_file.clone());
        [Some(token), forge.secret_file.clone()].into_iter().flatten()
    }));
    paths.extend(hook_files(home).unwrap_or_default());
    paths.sort();
    paths.dedup();
    let state = |path: PathBuf| {
        let found = std::fs::metadata(&path).ok();
        let found = found.and_then(|it| Some((it.modified().ok()?, it.len(), it.ino())));
        (path, found)
    };
    paths.into_iter().map(state).collect()
}
