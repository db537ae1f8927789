//! Configuration file of `bot-bottle serve`: strict TOML; `bot-bottle config show` prints every key with its explanation.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use forge::ForgeKind;
use model::secret::Secret;
use serde::Deserialize;

use super::notify::NotifySettings;
use super::schedule::ScheduleSettings;
use crate::exit::Failure;
use crate::flow::home::Home;
use crate::rules::agent_manifest::{ManifestFault, parse_toml};
use crate::rules::budget::BudgetSettings;
use crate::rules::forge_env::{DEFAULT_ORG, is_name, parse_web};

/// Largest priority of a label, in steps of a day: four weeks.
const PRIORITY_MAX: u64 = 28;

/// The default file: all keys with their explanations.
pub(crate) const EXPLAINED: &str = include_str!("settings.toml");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServeSettings {
    pub(crate) listen: SocketAddr,
    pub(crate) public_url: Option<String>,
    /// Where a worker shows its metrics.
    pub(crate) worker_listen: Option<SocketAddr>,
    pub(crate) max_bottles: usize,
    pub(crate) backend: Option<String>,
    pub(crate) sweep_secs: u64,
    pub(crate) retention_days: u32,
    pub(crate) delivery_days: u32,
    pub(crate) drain_secs: u64,
    pub(crate) lease_secs: u64,
    pub(crate) watchdog_secs: u64,
    pub(crate) body_max_bytes: usize,
    pub(crate) status_comment: bool,
    pub(crate) max_wakeups: u32,
    pub(crate) update_branches: bool,
    pub(crate) discovery_secs: u64,
    pub(crate) max_found: usize,
    pub(crate) admin_token_file: Option<PathBuf>,
    pub(crate) user_header: Option<String>,
    pub(crate) log: LogFormat,
    pub(crate) otlp_url: Option<String>,
    /// Days by which an issue with the label counts as waiting longer.
    pub(crate) priorities: BTreeMap<String, i64>,
    pub(crate) budget: BudgetSettings,
    #[serde(rename = "forge")]
    pub(crate) forges: Vec<ForgeSettings>,
    #[serde(rename = "schedule")]
    pub(crate) schedules: Vec<ScheduleSettings>,
    pub(crate) notify: NotifySettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// A forge, and its served repositories.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgeSettings {
    pub(crate) kind: String,
    pub(crate) url: String,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) secret_file: Option<PathBuf>,
    #[serde(default = "default_org")]
    pub(crate) org: String,
    #[serde(default)]
    pub(crate) triggers: Vec<String>,
    pub(crate) bot_login: Option<String>,
    #[serde(default)]
    pub(crate) allow_http: bool,
    pub(crate) repos: Vec<String>,
    /// Repositories that are not served although they are found in an organisation.
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    /// Checkouts to use in place of bot-bottle's own clones.
    #[serde(default)]
    pub(crate) checkouts: BTreeMap<String, PathBuf>,
}

fn default_org() -> String {
    DEFAULT_ORG.to_owned()
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8473)),
            public_url: None,
            worker_listen: None,
            max_bottles: 4,
            backend: None,
            sweep_secs: 300,
            retention_days: 7,
            delivery_days: 30,
            drain_secs: 60,
            lease_secs: 60,
            watchdog_secs: 1800,
            body_max_bytes: 2 * 1024 * 1024,
            status_comment: true,
            max_wakeups: 3,
            update_branches: false,
            discovery_secs: 600,
            max_found: 200,
            admin_token_file: None,
            user_header: None,
            log: LogFormat::Text,
            otlp_url: None,
            priorities: [("priority:high".to_owned(), 1), ("priority:low".to_owned(), -1)].into(),
            budget: BudgetSettings::default(),
            forges: Vec::new(),
            schedules: Vec::new(),
            notify: NotifySettings::default(),
        }
    }
}

impl ServeSettings {
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!(
                "could not read {}: {error}; begin one with: bot-bottle config show > {}",
                path.display(),
                path.display()
            ))
        })?;
        Self::parse(&text).map_err(|fault| Failure::usage(format!("{}: {fault}", path.display())))
    }

    /// Full names of the served repositories.
    pub(crate) fn repos(&self) -> Vec<&str> {
        self.forges.iter().flat_map(|forge| &forge.repos).map(String::as_str).collect()
    }

    /// Keys whose new value a running server cannot take up.
    pub(crate) fn fixed_differences(&self, new: &Self) -> Vec<&'static str> {
        [
            ("listen", self.listen != new.listen),
            ("public_url", self.public_url != new.public_url),
            ("worker_listen", self.worker_listen != new.worker_listen),
            ("admin_token_file", self.admin_token_file != new.admin_token_file),
            ("user_header", self.user_header != new.user_header),
            ("log", self.log != new.log),
            ("otlp_url", self.otlp_url != new.otlp_url),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }

    /// Parses a text and checks what types cannot express.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let settings: Self = parse_toml(text).map_err(|fault| match fault {
            // The text of the line names the key.
            ManifestFault::Malformed { line, what } => {
                let source = text.lines().nth(line - 1).unwrap_or_default().trim();
                format!("line {line}: {source}: {what}")
            }
            other => other.to_string(),
        })?;
        for (name, value) in [
            ("max_bottles", settings.max_bottles as u64),
            ("sweep_secs", settings.sweep_secs),
            ("discovery_secs", settings.discovery_secs),
            ("max_found", settings.max_found as u64),
            ("lease_secs", settings.lease_secs),
            ("watchdog_secs", settings.watchdog_secs),
            ("body_max_bytes", settings.body_max_bytes as u64),
        ] {
            if value == 0 {
                return Err(format!("{name} cannot be 0"));
            }
        }
        if let Some(address) = settings.worker_listen.filter(|it| !it.ip().is_loopback()) {
            return Err(format!(
                "worker_listen cannot be {address}: a worker asks nobody for a login, so give an address of this machine alone"
            ));
        }
        if settings.otlp_url.is_some() && !cfg!(feature = "otlp") {
            return Err(
                "otlp_url needs a bot-bottle that was built with --features otlp".to_owned()
            );
        }
        if let Some((label, _)) =
            settings.priorities.iter().find(|(_, steps)| steps.unsigned_abs() > PRIORITY_MAX)
        {
            return Err(format!("priorities: '{label}' is more than {PRIORITY_MAX} steps"));
        }
        let mut known = Vec::new();
        for forge in &settings.forges {
            forge.kind()?;
            forge.web()?;
            for repo in &forge.repos {
                let named = split_repo(repo).map(drop).or(organisation_of(repo).map(drop));
                named.ok_or_else(|| format!("'{repo}' is not owner/name, or owner/*"))?;
                if known.contains(&repo) {
                    return Err(format!("'{repo}' is named twice"));
                }
                known.push(repo);
            }
        }
        settings.check_schedules()?;
        settings.notify.check()?;
        settings.budget.check(&settings.repos())?;
        Ok(settings)
    }

    fn check_schedules(&self) -> Result<(), String> {
        let mut known = BTreeSet::new();
        for schedule in &self.schedules {
            schedule.check()?;
            if !known.insert(&schedule.name) {
                return Err(format!("two schedules are named '{}'", schedule.name));
            }
        }
        Ok(())
    }
}

impl ForgeSettings {
    /// Kind of the forge. Forgejo counts as Gitea.
    pub(crate) fn kind(&self) -> Result<ForgeKind, String> {
        ForgeKind::parse(&self.kind)
            .ok_or_else(|| format!("kind cannot be '{}': use {}", self.kind, ForgeKind::words()))
    }

    /// The organisations whose repositories are found, without those that are named.
    pub(crate) fn organisations(&self) -> impl Iterator<Item = &str> {
        self.repos.iter().filter_map(|repo| organisation_of(repo))
    }

    /// Returns whether a repository of an organisation is left out: `*` stands for any part of a name.
    pub(crate) fn is_excluded(&self, full_name: &str) -> bool {
        self.exclude.iter().any(|pattern| matches(pattern, full_name))
    }

    pub(crate) fn web(&self) -> Result<String, String> {
        let wrong = || {
            let rule = "give http(s)://host[:port][/path], or file:///path for a folder";
            format!("url cannot be '{}': {rule}", self.url)
        };
        parse_web(self.kind()?, &self.url).ok_or_else(wrong)
    }

    /// Its token: from its own file, or from the home's token file.
    pub(crate) fn token(&self, home: &Home) -> Result<Secret, Failure> {
        if !self.kind().map_err(Failure::usage)?.needs_token() {
            return Ok(Secret::new(""));
        }
        let path = self.token_file.clone().unwrap_or_else(|| home.token_file.clone());
        read_secret(&path, "the forge's token")
    }
}

/// Reads a secret from a file that only its owner can read.
pub(crate) fn read_secret(path: &Path, what: &str) -> Result<Secret, Failure> {
    let bytes = host::file::read_private(path)
        .map_err(|error| Failure::usage(format!("{what}: {}", model::error_chain(&error))))?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    match text.is_empty() {
        true => Err(Failure::usage(format!("{what}: {} is empty", path.display()))),
        false => Ok(Secret::new(text)),
    }
}

/// `owner/name`. The owner of a GitLab project may be groups within groups.
pub(crate) fn split_repo(text: &str) -> Option<(&str, &str)> {
    let (owner, name) = text.rsplit_once('/')?;
    (owner.split('/').all(is_name) && is_name(name)).then_some((owner, name))
}

/// The organisation of `owner/*`.
pub(crate) fn organisation_of(text: &str) -> Option<&str> {
    let owner = text.strip_suffix("/*")?;
    owner.split('/').all(is_name).then_some(owner)
}

/// Matches without case, as forges compare names.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_is_shown_says_what_holds_without_it() {
        let shown = ServeSettings::parse(EXPLAINED).expect("it reads");
        assert_eq!(format!("{shown:?}"), format!("{:?}", ServeSettings::default()));
    }

    /// Keys that are commented out count too: they are explained.
    #[test]
    fn every_key_is_explained() {
        let text: String = EXPLAINED
            .lines()
            .filter(|line| cfg!(feature = "otlp") || !line.starts_with("#: otlp_url"))
            .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
            .collect();
        let all = ServeSettings::parse(&text).expect("the examples read too");
        assert!(all.admin_token_file.is_some() && all.user_header.is_some());
        assert!(all.backend.is_some() && all.public_url.is_some());
        assert!(all.worker_listen.is_some());
        let forge = all.forges.first().expect("a forge");
        assert!(forge.token_file.is_some() && forge.secret_file.is_some());
        assert!(forge.bot_login.is_some() && !forge.triggers.is_empty());
        assert!(!forge.checkouts.is_empty());
        let budget = &all.budget;
        for table in [budget.run, budget.issue, budget.repository, budget.organisation, budget.host]
        {
            assert!(table.tokens.is_some() && table.usd.is_some());
        }
        assert!(!budget.repositories.is_empty() && !budget.organisations.is_empty());
    }

    #[test]
    fn what_is_left_out_of_an_organisation_is_named_with_stars() {
        for (pattern, name, fits) in [
            ("acme/old", "acme/old", true),
            ("acme/old", "acme/older", false),
            ("Acme/Old", "acme/old", true),
            ("acme/test-*", "acme/test-1", true),
            ("acme/*-archive", "acme/x-archive", true),
            ("acme/*-archive", "acme/archive", false),
            ("acme/a*b*c", "acme/a1b2c", true),
            ("acme/a*b*c", "acme/a1c2b", false),
            ("*", "acme/any", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
        assert_eq!(organisation_of("acme/*"), Some("acme"));
        assert_eq!(organisation_of("acme/sub/*"), Some("acme/sub"));
        assert_eq!(organisation_of("*/*"), None);
        assert_eq!(organisation_of("acme/w*"), None);
    }

    #[track_caller]
    fn refuse(text: &str, words: &str) {
        let error = ServeSettings::parse(text).expect_err("it is refused");
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        refuse("max_bottels = 3", "max_bottels");
        refuse("max_bottles = 0", "max_bottles cannot be 0");
        if !cfg!(feature = "otlp") {
            refuse("otlp_url = \"http://127.0.0.1:4318\"", "--features otlp");
        }
        refuse("listen = \"here\"", "listen");
        refuse("worker_listen = \"0.0.0.0:8474\"", "an address of this machine alone");
        refuse("priorities = { urgent = 99 }", "'urgent' is more than 28 steps");
        refuse("[budget]\nhots = { tokens = 1 }", "hots");
        refuse("[budget]\nhost = { tokens = 1 }", "budget.host.tokens needs budget.run.tokens");
        let forge = |kind: &str, url: &str, repos: &str| {
            format!("[[forge]]\nkind = \"{kind}\"\nurl = \"{url}\"\nrepos = [{repos}]\n")
        };
        refuse(&forge("gitee", "https://h", ""), "kind cannot be 'gitee'");
        refuse(&forge("gitea", "ftp://h", ""), "url cannot be 'ftp://h'");
        refuse(&forge("gitea", "https://h", "\"widget\""), "'widget' is not owner/name");
        refuse(&forge("gitea", "https://h", "\"a/b\", \"a/b\""), "'a/b' is named twice");
        refuse(&forge("gitea", "https://h", "\"../b\""), "'../b' is not owner/name");
    }
}
