//! The served repositories: how to reach each one's forge, who may give agents work there, and the checkout that its
//! bottles are made from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use forge::{ForgeKind, HttpPool, RetryPolicy};
use host::git::init_source;
use model::secret::Secret;
use orchestrator_db::IssueKey;

use super::discovery::stored_names;
use super::settings::{ForgeSettings, ServeSettings, organisation_of, read_secret, split_repo};
use crate::exit::{Failure, OrGeneral};
use crate::flow::access::ForgeAccess;
use crate::flow::home::{Home, ManifestKind};
use crate::flow::hooks::hook_secrets;
use crate::flow::issue_row::issue_key;
use crate::flow::members::MemberCache;
use crate::rules::forge_env::ForgeEnv;
use crate::rules::target::agent_label;

#[derive(Debug, Clone)]
pub(crate) struct Repos {
    list: BTreeMap<(String, String), Repo>,
}

#[derive(Debug, Clone)]
pub(crate) struct Repo {
    /// Variables of its issues; the number of the issue is put in for each.
    env: ForgeEnv,
    bot_login: Option<String>,
    token: Secret,
    pool: HttpPool,
    /// The secrets of its webhooks (two while one is being replaced); without one no webhook is believed.
    secrets: Vec<Secret>,
    checkout: Option<PathBuf>,
    /// The token's account, once the forge has named it.
    account: Arc<OnceLock<String>>,
    /// True if it was found in an organisation.
    is_found: bool,
    members: Arc<MemberCache>,
}

impl Repos {
    pub(crate) fn load(settings: &ServeSettings, home: &Home) -> Result<Self, Failure> {
        Self::load_with(settings, home, &HttpPool::new(None, RetryPolicy::default().connect))
    }

    /// Loads them again; connections, and what is known about accounts whose token is the same, stay.
    pub(crate) fn reload(
        settings: &ServeSettings,
        home: &Home,
        before: &Self,
    ) -> Result<Self, Failure> {
        let pool = before.list.values().next().map(|repo| repo.pool.clone());
        let pool = pool.unwrap_or_else(|| HttpPool::new(None, RetryPolicy::default().connect));
        let mut repos = Self::load_with(settings, home, &pool)?;
        for (key, repo) in &mut repos.list {
            let known = before.list.get(key);
            if let Some(known) = known.filter(|known| known.token.expose() == repo.token.expose()) {
                repo.account = Arc::clone(&known.account);
            }
        }
        Ok(repos)
    }

    fn load_with(settings: &ServeSettings, home: &Home, pool: &HttpPool) -> Result<Self, Failure> {
        let mut list = BTreeMap::new();
        for forge in &settings.forges {
            let token = forge.token(home)?;
            for repo in forge.repos.iter().filter(|repo| organisation_of(repo).is_none()) {
                let repo = Repo::load(forge, repo, &token, pool, settings, home)?;
                list.insert((repo.env.owner.clone(), repo.env.repo.clone()), repo);
            }
            // One account for all of them: the token is the same, and there may be hundreds.
            let account = Arc::default();
            for name in stored_names(forge, settings, home)? {
                let mut repo = Repo::load(forge, &name, &token, pool, settings, home)?;
                (repo.account, repo.is_found) = (Arc::clone(&account), true);
                let key = (repo.env.owner.clone(), repo.env.repo.clone());
                list.entry(key).or_insert(repo);
            }
        }
        let finds = settings.forges.iter().any(|forge| forge.organisations().next().is_some());
        match list.is_empty() && !finds {
            true => Err(Failure::usage(
                "no repository is served; name one under [[forge]] in the configuration (see: bot-bottle config show)",
            )),
            false => Ok(Self { list }),
        }
    }

    /// The repository of this name. Like forges, it ignores case.
    pub(crate) fn find(&self, owner: &str, name: &str) -> Option<&Repo> {
        self.list.values().find(|repo| repo.is(owner, name))
    }

    /// The repository of a stored issue, which the configuration may no longer name.
    pub(crate) fn of(&self, key: &IssueKey) -> Result<&Repo, Failure> {
        self.find(&key.owner, &key.repo).ok_or_else(|| {
            Failure::not_found(format!("{}/{} is not served any more", key.owner, key.repo))
        })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Repo> {
        self.list.values()
    }

    /// Secrets with which a forge of this kind may have signed.
    pub(crate) fn secrets(&self, kind: ForgeKind) -> impl Iterator<Item = (&Repo, &Secret)> {
        let of_kind = move |repo: &&Repo| repo.env.kind == kind;
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
        settings: &ServeSettings,
        home: &Home,
    ) -> Result<Self, Failure> {
        let wrong = || Failure::usage(format!("'{full_name}' is not owner/name"));
        let (owner, name) = split_repo(full_name).ok_or_else(wrong)?;
        let kind = forge.kind().map_err(Failure::usage)?;
        let secrets = match &forge.secret_file {
            Some(path) => vec![read_secret(path, "the webhooks' secret")?],
            None => hook_secrets(home, kind, full_name)?,
        };
        let env = ForgeEnv {
            kind,
            web: forge.url.trim_end_matches('/').to_owned(),
            owner: owner.to_owned(),
            repo: name.to_owned(),
            issue: 1,
            pull: None,
            org: forge.org.clone(),
            triggers: forge.triggers.clone(),
            watchdog_secs: settings.watchdog_secs,
            allow_http: forge.allow_http,
        };
        ForgeAccess::new(env.clone(), token.clone())?;
        Ok(Self {
            env,
            bot_login: forge.bot_login.clone(),
            token: token.clone(),
            pool: pool.clone(),
            secrets,
            checkout: forge.checkouts.get(full_name).cloned(),
            account: Arc::default(),
            is_found: false,
            members: Arc::default(),
        })
    }

    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.env.owner, self.env.repo)
    }

    /// True if it was found in an organisation, and not named in the configuration.
    pub(crate) fn is_found(&self) -> bool {
        self.is_found
    }

    pub(crate) fn has_secret(&self) -> bool {
        !self.secrets.is_empty()
    }

    pub(crate) fn is(&self, owner: &str, name: &str) -> bool {
        self.env.owner.eq_ignore_ascii_case(owner) && self.env.repo.eq_ignore_ascii_case(name)
    }

    /// One of its issues, with the configured spelling of its name.
    pub(crate) fn issue(&self, number: u64) -> IssueKey {
        IssueKey { issue_number: number, ..issue_key(&self.env) }
    }

    /// Access to the forge for the work on an issue, with connections of its own.
    pub(crate) fn access(&self, issue: u64, pull: Option<u64>) -> ForgeAccess {
        let env = ForgeEnv { issue, pull, ..self.env.clone() };
        let bot_login = self.bot_login.clone().or_else(|| self.account.get().cloned());
        let token = self.token.clone();
        let members = Arc::clone(&self.members);
        ForgeAccess { env, token, bot_login, pool: None, members }
    }

    /// Access with the connections that all observations share. For the runtime of the reconciler alone: workers have
    /// runtimes of their own.
    pub(crate) fn shared_access(&self, issue: u64, pull: Option<u64>) -> ForgeAccess {
        ForgeAccess { pool: Some(self.pool.clone()), ..self.access(issue, pull) }
    }

    /// Refuses an invalid token, and one whose account is unknown: the bot's own comments would resume its agents for
    /// ever. Remembers the account.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        if self.is_found && self.account.get().is_some() {
            return Ok(());
        }
        let account = self.access(1, None).open().await?.whoami().await.or_general()?;
        match account.login.or_else(|| self.bot_login.clone()) {
            Some(login) => {
                self.account.get_or_init(|| login);
                Ok(())
            }
            None => Err(Failure::usage(format!(
                "the token for {} does not say whose it is; set bot_login in the configuration",
                self.full_name()
            ))),
        }
    }

    /// The repository that its bottles are made from: the configured checkout, or a clone that is created here.
    pub(crate) async fn source(&self, home: &Home) -> Result<PathBuf, Failure> {
        if let Some(checkout) = &self.checkout {
            return Ok(checkout.clone());
        }
        let host: String = self
            .env
            .web
            .split("://")
            .last()
            .unwrap_or_default()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' })
            .collect();
        let folder = home.sources.join(host).join(&self.env.owner);
        let path = folder.join(format!("{}.git", self.env.repo));
        if !path.exists() {
            // Created whole under another name and moved; a second worker uses what the first one moved.
            let chance = u64::from_le_bytes(host::random::bytes::<8>().or_general()?);
            let half = path.with_extension(format!("half-{chance:x}"));
            host::file::create_dirs(&half).or_general()?;
            init_source(&half, &self.env.remote_url()).await.or_general()?;
            if std::fs::rename(&half, &path).is_err() {
                host::file::remove_tree_safely(&half).or_general()?;
            }
        }
        Ok(path)
    }
}

/// Labels that name an agent of this home.
pub(crate) fn agent_labels(home: &Home) -> Result<BTreeSet<String>, Failure> {
    let names = home.names(ManifestKind::Agents)?;
    Ok(names.iter().map(|name| agent_label(name)).collect())
}
