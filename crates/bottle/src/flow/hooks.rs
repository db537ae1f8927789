//! The webhooks that this home installed, as files with their secrets: `hooks/<host>/<owner>/<repo>.json`, mode 0600.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forge::{
    Forge, ForgeAddress, ForgeKind, ForgeOptions, NewWebhook, PlainHttp, Remote, WebBase, Webhook,
};
use host::lock::{FileLock, LockKind};
use model::digest::hex;
use model::exit::BottleExit;
use model::secret::Secret;

use super::access::need_token;
use super::home::Home;
use crate::exit::{Failure, OrExit, OrGeneral, if_found};
use crate::rules::hook::{HookFile, HookPlace, parse_repository, receiver_of};

const PRIVATE: u32 = 0o600;
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// A repository on a forge, for managing its webhooks.
pub(crate) struct HookSite {
    pub(crate) forge: Forge,
    pub(crate) place: HookPlace,
}

impl HookSite {
    /// Opens the repository that a user names, with the token of forge runs.
    pub(crate) async fn open(home: &Home, repo: &str) -> Result<Self, Failure> {
        let api = host::env::var("FORGE_GITEA_API").filter(|api| !api.trim().is_empty());
        let choice = parse_repository(repo, api.as_deref()).map_err(Failure::usage)?;
        let remote = &choice.remote;
        let Some(Remote::Hosted(address)) = ForgeAddress::parse_remote(remote) else {
            return Err(Failure::usage(format!("{remote} names no repository on a server")));
        };
        let web = choice.forge.as_ref().and_then(|(_, web)| WebBase::parse(web));
        let options = ForgeOptions {
            kind: choice.forge.as_ref().map(|(kind, _)| *kind),
            web: web.clone(),
            plain_http: PlainHttp::from_env(),
            ..ForgeOptions::default()
        };
        let parsed = Remote::Hosted(address.clone());
        let token = need_token(home, Some(&address.host))?;
        let forge = Forge::open(&parsed, &token, &options).await.or_general()?;
        let kind = forge.kind();
        let host = match address.port {
            Some(port) => format!("{}:{port}", address.host),
            None => address.host.clone(),
        };
        let repo = kind.repository_path(&address, web.as_ref());
        Ok(Self { forge, place: HookPlace { kind, host, repo } })
    }

    /// Creates the webhook with a new secret, or replaces it. The secret is saved before the forge has it,
    /// and the old one is deleted afterwards.
    pub(crate) async fn install(&self, home: &Home, url: &str) -> Result<Webhook, Failure> {
        let url = receiver_of(url, self.place.kind).map_err(Failure::usage)?;
        let path = self.file(home)?;
        let lock = lock(home).await?;
        let before = load(&path)?;
        let secret = hex(&host::random::bytes::<32>().or_general()?);
        let file = HookFile::begin(&self.place, &url, &secret, before.as_ref());
        save(&path, &file)?;
        let hook = NewWebhook { url: url.clone(), secret: Secret::new(secret) };
        let made = self.forge.set_webhook(&hook).await.or_general()?;
        if let Some(before) = before.filter(|before| before.url != url) {
            self.forge.remove_webhooks(&before.url).await.or_general()?;
        }
        save(&path, &file.confirmed(host::clock::now()))?;
        drop(lock);
        Ok(made)
    }

    /// Removes the webhook from the forge, then its secret. Returns the number of webhooks that the forge removed.
    pub(crate) async fn remove(&self, home: &Home) -> Result<usize, Failure> {
        let path = self.file(home)?;
        let lock = lock(home).await?;
        let file = load(&path)?.ok_or_else(|| {
            Failure::not_found(format!(
                "no webhook was installed for {} from here; see: bot-bottle hook list",
                self.place.repo
            ))
        })?;
        let removed = self.forge.remove_webhooks(&file.url).await.or_general()?;
        std::fs::remove_file(&path).or_general()?;
        drop(lock);
        Ok(removed)
    }

    fn file(&self, home: &Home) -> Result<PathBuf, Failure> {
        let odd = || Failure::usage(format!("'{}' cannot be the name of a file", self.place.repo));
        Ok(home.hooks.join(self.place.file().ok_or_else(odd)?))
    }
}

/// All webhooks of this home. An unreadable file is an error: a receiver without the secret would refuse true deliveries.
pub(crate) fn installed_hooks(home: &Home) -> Result<Vec<HookFile>, Failure> {
    let mut hooks = Vec::new();
    for path in hook_files(home)? {
        hooks.extend(load(&path)?);
    }
    hooks.sort_by(|one, two| (&one.host, &one.repo).cmp(&(&two.host, &two.repo)));
    Ok(hooks)
}

/// The files of all webhooks of this home.
pub(crate) fn hook_files(home: &Home) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![home.hooks.clone()];
    while let Some(folder) = folders.pop() {
        let entries = if_found(std::fs::read_dir(&folder))?;
        for path in entries.into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "json") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

pub(crate) fn all_secrets(home: &Home) -> impl Iterator<Item = Secret> {
    let hooks = installed_hooks(home).into_iter().flatten();
    hooks.flat_map(|hook| hook.secrets).map(Secret::new)
}

/// The secrets for one repository of one kind of forge, newest first.
pub(crate) fn hook_secrets(
    home: &Home,
    kind: ForgeKind,
    repo: &str,
) -> Result<Vec<Secret>, Failure> {
    let mut hooks = installed_hooks(home)?;
    hooks.retain(|hook| hook.kind == kind && hook.repo.eq_ignore_ascii_case(repo));
    Ok(hooks.into_iter().flat_map(|hook| hook.secrets).map(Secret::new).collect())
}

async fn lock(home: &Home) -> Result<FileLock, Failure> {
    make_folder(&home.hooks)?;
    let kind = LockKind::Exclusive { note: "bot-bottle hook" };
    FileLock::acquire(&home.hooks.join("lock"), kind, LOCK_WAIT).await.or_general()
}

fn load(path: &Path) -> Result<Option<HookFile>, Failure> {
    let bytes = match host::file::read_private(path) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error).or_exit(BottleExit::Usage),
    };
    let odd = |error| Failure::usage(format!("{} is no webhook's file: {error}", path.display()));
    serde_json::from_slice(&bytes).map(Some).map_err(odd)
}

fn save(path: &Path, file: &HookFile) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let bytes = serde_json::to_vec_pretty(file).or_exit(BottleExit::Internal)?;
    host::file::write_atomic(path, &bytes, PRIVATE).or_general()
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).or_general()
}
