//! The repositories that are served: how to reach each one's forge, who may set agents to work there, and where its
//! bottles are made from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use forge::{Forge, ForgeKind, HttpPool, RetryPolicy};
use host::git::init_source;
use model::secret::Secret;
use orchestrator_db::IssueKey;

use super::settings::{ForgeSettings, Settings, read_secret, split_repo};
use crate::exit::{Failure, OrExit};
use crate::flow::access::ForgeAccess;
use crate::flow::home::Home;
use crate::flow::hooks::hook_secrets;
use crate::rules::forge_env::ForgeEnv;

/// All of them, by owner and name.
#[derive(Debug, Clone)]
pub(crate) struct Repos {
    list: BTreeMap<(String, String), Repo>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Repo {
    owner: String,
    name: String,
    kind: ForgeKind,
    web: String,
    org: String,
    triggers: Vec<String>,
    bot_login: Option<String>,
    watchdog_secs: u64,
    token: Secret,
    allow_http: bool,
    pool: HttpPool,
    /// The secrets of its webhooks (two while one is being replaced); without one no webhook is believed.
    secrets: Vec<Secret>,
    checkout: Option<PathBuf>,
}

impl Repos {
    /// Reads what the settings name: tokens and secrets are read once, at the start.
    pub(crate) fn load(settings: &Settings, home: &Home) -> Result<Self, Failure> {
        let mut list = BTreeMap::new();
        let pool = HttpPool::new(None, RetryPolicy::default().connect);
        for forge in &settings.forges {
            let token = forge.token(home)?;
            for repo in &forge.repos {
                let repo = Repo::load(forge, repo, &token, &pool, settings, home)?;
                list.insert((repo.owner.clone(), repo.name.clone()), repo);
            }
        }
        match list.is_empty() {
            true => Err(Failure::usage(
                "no repository is served; name one under [[forge]] in the configuration (see: bot-bottle config show)",
            )),
            false => Ok(Self { list }),
        }
    }

    /// The repository of this name. Forges do not regard case, so neither do we.
    pub(crate) fn find(&self, owner: &str, name: &str) -> Option<&Repo> {
        self.list.values().find(|repo| repo.is(owner, name))
    }

    /// The repository of an issue that is known here, which may have been taken out of the configuration since.
    pub(crate) fn of(&self, key: &IssueKey) -> Result<&Repo, Failure> {
        self.find(&key.owner, &key.repo).ok_or_else(|| {
            Failure::not_found(format!("{}/{} is not served any more", key.owner, key.repo))
        })
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Repo> {
        self.list.values()
    }

    /// Secrets with which a forge of this kind may have signed.
    pub(crate) fn secrets(&self, kind: ForgeKind) -> impl Iterator<Item = (&Repo, &Secret)> {
        let of_kind = move |repo: &&Repo| repo.kind == kind;
        self.list
            .values()
            .filter(of_kind)
            .flat_map(|repo| repo.secrets.iter().map(move |secret| (repo, secret)))
    }
}

impl Repo {
    fn load(
        forge: &ForgeSettings,
        full_name: &str,
        token: &Secret,
        pool: &HttpPool,
        settings: &Settings,
        home: &Home,
    ) -> Result<Self, Failure> {
        let wrong = || Failure::usage(format!("'{full_name}' is not owner/name"));
        let (owner, name) = split_repo(full_name).ok_or_else(wrong)?;
        let kind = forge.kind().map_err(Failure::usage)?;
        let secrets = match &forge.secret_file {
            Some(path) => vec![read_secret(path, "the webhooks' secret")?],
            None => hook_secrets(home, kind, full_name)?,
        };
        let repo = Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
            kind,
            web: forge.url.trim_end_matches('/').to_owned(),
            org: forge.org.clone(),
            triggers: forge.triggers.clone(),
            bot_login: forge.bot_login.clone(),
            watchdog_secs: settings.watchdog_secs,
            token: token.clone(),
            allow_http: forge.allow_http,
            pool: pool.clone(),
            secrets,
            checkout: forge.checkouts.get(full_name).cloned(),
        };
        ForgeAccess::new(repo.access(1, None).env, token.clone())?;
        Ok(repo)
    }

    /// `owner/name`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Whether its webhooks can be believed.
    pub(crate) fn has_secret(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// Whether this is the repository that is named.
    pub(crate) fn is(&self, owner: &str, name: &str) -> bool {
        self.owner.eq_ignore_ascii_case(owner) && self.name.eq_ignore_ascii_case(name)
    }

    /// One of its issues. The name is ours, whatever case an event had.
    pub(crate) fn issue(&self, number: u64) -> IssueKey {
        IssueKey { owner: self.owner.clone(), repo: self.name.clone(), issue_number: number }
    }

    /// The way to the forge for the work on an issue.
    pub(crate) fn access(&self, issue: u64, pull: Option<u64>) -> ForgeAccess {
        let env = ForgeEnv {
            kind: self.kind,
            web: self.web.clone(),
            owner: self.owner.clone(),
            repo: self.name.clone(),
            issue,
            pull,
            org: self.org.clone(),
            triggers: self.triggers.clone(),
            watchdog_secs: self.watchdog_secs,
            allow_http: self.allow_http,
        };
        let (token, bot_login) = (self.token.clone(), self.bot_login.clone());
        ForgeAccess { env, token, bot_login, pool: None }
    }

    /// Access with the connections that all observations share. For the runtime of the reconciler alone: workers have
    /// runtimes of their own.
    pub(crate) fn shared_access(&self, issue: u64, pull: Option<u64>) -> ForgeAccess {
        ForgeAccess { pool: Some(self.pool.clone()), ..self.access(issue, pull) }
    }

    /// Its forge, over shared connections.
    pub(crate) async fn open(&self) -> Result<Forge, Failure> {
        self.shared_access(1, None).open().await
    }

    /// Refuses a token that cannot work, and one whose account is not known: its own comments would wake its agents for
    /// ever.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        let account = self.open().await?.whoami().await.or_general()?;
        match account.login.or_else(|| self.bot_login.clone()) {
            Some(_) => Ok(()),
            None => Err(Failure::usage(format!(
                "the token for {} does not say whose it is; set bot_login in the configuration",
                self.full_name()
            ))),
        }
    }

    /// Where its bottles are made from: the checkout that was named, or a repository of our own, which is made here.
    pub(crate) async fn source(&self, home: &Home) -> Result<PathBuf, Failure> {
        if let Some(checkout) = &self.checkout {
            return Ok(checkout.clone());
        }
        let host: String = self
            .web
            .split("://")
            .last()
            .unwrap_or_default()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' })
            .collect();
        let path = home.sources().join(host).join(&self.owner).join(format!("{}.git", self.name));
        if !path.exists() {
            // Whole or not at all, and whoever comes second takes what the first one made.
            let chance = u64::from_le_bytes(host::random::bytes::<8>().or_general()?);
            let half = path.with_extension(format!("half-{chance:x}"));
            std::fs::create_dir_all(&half).or_general()?;
            init_source(&half, &self.access(1, None).env.remote_url()).await.or_general()?;
            if std::fs::rename(&half, &path).is_err() {
                host::file::remove_tree_safely(&half).or_general()?;
            }
        }
        Ok(path)
    }
}

/// Labels that name an agent of ours, by which a forge can be asked for issues.
pub(crate) fn agent_labels(home: &Home) -> Result<BTreeSet<String>, Failure> {
    let names = home.names(crate::flow::home::Shelf::Agents)?;
    Ok(names.into_iter().map(|name| crate::rules::target::agent_label(&name)).collect())
}
