//! Options of `forklift` itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Command, FromArgMatches, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use merge::pattern::{PatternError, check_pattern};
use merge::resolver::decide::{TrustError, TrustThreshold};
use model::id::{BranchName, RemoteName};
use serde::{Deserialize, Deserializer, Serialize};
use shell::agent_choice::complete_agents;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::config::Config;

use crate::flow::record::{ForkRemotes, Settings};
use crate::rules::publish_mode::PublishMode;
use crate::rules::security::fix::FixRequest;
use crate::rules::strategy::Strategy;
use crate::rules::target::Target;

/// Options of a run. They are kept with it, so that a later run can repeat it.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunArgs {
    /// The folder of `-C`, which every command has.
    #[arg(skip)]
    pub(crate) directory: Option<PathBuf>,
    /// The fix to land instead of bringing the fork up to date; `forklift security land` sets it.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<FixRequest>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) publishing: ModeArgs,
    /// The agent: opencode, codex, claude, pi, scripted, or a name of the configuration [default: the configured one, else the
    /// only one that is installed and has a key; looked for only when an agent is needed]
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete_agents))]
    pub(crate) provider: Option<String>,
    /// What the scripted agent plays (see `forklift script`)
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Where the box comes from: docker or bwrap [default: docker if an engine answers and holds the image, else bwrap]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The image for docker
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub(crate) image: String,
    /// Time limit of the agent in seconds of wall clock [default: the configured one, else 480]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    /// When an agent is started: only when git cannot merge by itself or the check fails on its merge, or always
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = AgentWhen::Conflict)]
    pub(crate) agent_when: AgentWhen,
    /// Publish although work of the fork or tests of either side were lost
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Publish although changes of upstream were dropped
    #[arg(long)]
    pub(crate) accept_dropped: bool,
    /// Run although an earlier run with the same commits is published, not finished or waits for you
    #[arg(long)]
    #[serde(skip)]
    pub(crate) again: bool,
    /// Publish changes of the agent to CI definitions, git hooks and files that agents or editors obey, at paths that match
    /// this pattern, and judge with its version where such a file defines the check (repeatable) [default: what FORK.md
    /// says, else none]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow_path: Vec<String>,
    /// Merge an upstream that has no history in common with the fork
    #[arg(long)]
    pub(crate) allow_unrelated: bool,
    /// The repository's address on its forge, if origin's address does not say it
    #[arg(long, value_name = "URL")]
    pub(crate) forge_url: Option<String>,
    /// What to take from upstream: tip, latest-tag, or the name of a tag, branch or commit [default: what FORK.md says,
    /// else tip]
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    pub(crate) target: Option<Target>,
    /// How: a merge commit, or the fork's commits rebased on top of upstream's [default: what FORK.md says, else merge]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) strategy: Option<Strategy>,
    /// How sure an answer to a conflict must be for it to be resolved without an agent, from 0 to 1; 1 is never [default: what
    /// FORK.md says, else 0.9]
    #[arg(long, value_name = "SHARE", value_parser = parse_trust)]
    pub(crate) trust: Option<f64>,
    /// Additional instruction for the agent, for this run alone (repeatable)
    #[arg(long, value_name = "TEXT")]
    #[serde(deserialize_with = "one_or_many")]
    pub(crate) instruction: Vec<String>,
    /// Add Signed-off-by to the published commits
    #[arg(long)]
    pub(crate) sign_off: bool,
    /// Run this command line on every verdict, with the verdict as JSON on its standard input
    #[arg(long, value_name = "COMMAND")]
    pub(crate) notify_cmd: Option<String>,
    /// Seconds to wait for another forklift on the same fork
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_WAIT_SECS)]
    pub(crate) wait: u64,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) names: NameArgs,
    /// The model, instead of the configured one
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The model's variant, instead of the configured one
    #[arg(long, value_name = "VARIANT")]
    pub(crate) variant: Option<String>,
    /// The agent's profile, instead of the configured one
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The address of the model server, instead of the one that the model's name implies
    #[arg(long, value_name = "URL", help_heading = "Model and network")]
    pub(crate) model_url: Option<String>,
    /// A file (mode 0600) with the model's key, instead of the variable that is usual for the server
    #[arg(long, value_name = "FILE", help_heading = "Model and network")]
    pub(crate) key_file: Option<PathBuf>,
    /// A command line that prints the model's key; run outside the box, and again after a 401
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with = "key_file",
        help_heading = "Model and network"
    )]
    pub(crate) key_command: Option<String>,
    /// Stop using the model after so many dollars, counted with --price
    #[arg(long, value_name = "USD", requires = "price", help_heading = "Model and network")]
    pub(crate) max_usd: Option<f64>,
    /// Stop using the model after so many tokens
    #[arg(long, value_name = "N", help_heading = "Model and network")]
    pub(crate) max_tokens: Option<u64>,
    /// What a million tokens cost in dollars: IN,OUT
    #[arg(long, value_name = "IN,OUT", help_heading = "Model and network")]
    pub(crate) price: Option<String>,
    /// What the agent may reach: none, model-only, packages or open (all public addresses) [default: packages; none for
    /// the scripted agent]
    #[arg(long, value_name = "PROFILE", help_heading = "Model and network")]
    pub(crate) egress: Option<String>,
    /// Allow one more host, or *.suffix (repeatable)
    #[arg(long, value_name = "HOST", help_heading = "Model and network")]
    pub(crate) allow: Vec<String>,
    /// Let this exact address count as public: a model server or mirror of your own (repeatable)
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Model and network")]
    pub(crate) permit_private: Vec<SocketAddr>,
    /// Seconds without output or traffic after which the agent is ended [default: the configured ones, else 180]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) silence: Option<u64>,
}

impl RunArgs {
    /// Fills what the user did not type from the configuration.
    pub(crate) fn with_config(&self, config: &Config) -> Self {
        let (mut args, limits) = (self.clone(), &config.limits);
        args.timeout = args.timeout.or(limits.timeout_secs);
        args.silence = args.silence.or(limits.silence_secs);
        args.max_tokens = args.max_tokens.or(limits.max_tokens);
        args.max_usd = args.max_usd.or(limits.max_usd);
        args.notify_cmd = args.notify_cmd.or_else(|| config.notify.command.clone());
        args
    }

    /// Returns whether another request would give the same agent the same task and accept the same, wherever the result goes.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        let task = |args: &Self| Self {
            directory: None,
            publishing: ModeArgs::default(),
            again: false,
            forge_url: None,
            sign_off: false,
            notify_cmd: None,
            wait: 0,
            ..args.clone()
        };
        task(self) == task(other)
    }

    pub(crate) fn timeout_secs(&self) -> u64 {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT_SECS)
    }

    pub(crate) fn silence_secs(&self) -> u64 {
        self.silence.unwrap_or(DEFAULT_SILENCE_SECS)
    }
}

/// Findings that do not keep a result from being published.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AcceptArgs {
    /// Publish although work of the fork was lost
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Publish although changes of upstream were dropped
    #[arg(long)]
    pub(crate) accept_dropped: bool,
    /// Publish changes of the agent to files that act by themselves at these paths too, and judge with its version where
    /// such a file defines the check (repeatable)
    #[arg(long, value_name = "PATTERN", value_parser = parse_pattern)]
    pub(crate) allow_path: Vec<String>,
}

impl AcceptArgs {
    pub(crate) fn of(args: &RunArgs) -> Self {
        Self {
            accept_loss: args.accept_loss,
            accept_dropped: args.accept_dropped,
            allow_path: args.allow_path.clone(),
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.accept_loss || self.accept_dropped || !self.allow_path.is_empty()
    }

    /// Accepts this alone. Returns whether more was accepted before.
    pub(crate) fn replace(&self, settings: &mut Settings) -> bool {
        let is_less = settings.accept_loss && !self.accept_loss
            || settings.accept_dropped && !self.accept_dropped
            || settings.allow_paths.iter().any(|pattern| !self.allow_path.contains(pattern));
        settings.accept_loss = self.accept_loss;
        settings.accept_dropped = self.accept_dropped;
        settings.allow_paths.clone_from(&self.allow_path);
        is_less
    }

    /// Adds what is accepted now to what was accepted before.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.accept_loss |= self.accept_loss;
        settings.accept_dropped |= self.accept_dropped;
        for pattern in &self.allow_path {
            if !settings.allow_paths.contains(pattern) {
                settings.allow_paths.push(pattern.clone());
            }
        }
    }
}

/// The fork to look at, and what would be taken from upstream.
#[derive(Debug, Args)]
pub(crate) struct LookArgs {
    /// What would be taken from upstream, as for a run [default: what FORK.md says, else tip]
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    pub(crate) target: Option<Target>,
    #[command(flatten)]
    pub(crate) names: NameArgs,
}

/// Names of the fork's branch and remotes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NameArgs {
    /// The branch of the fork, and of upstream unless --target says otherwise [default: the default branch of each remote]
    #[arg(long, value_name = "BRANCH", value_parser = BranchName::parse)]
    pub(crate) main_branch: Option<BranchName>,
    /// The remote of your fork [default: the configured one, else origin]
    #[arg(long, value_name = "REMOTE", value_parser = RemoteName::parse)]
    pub(crate) remote_origin: Option<RemoteName>,
    /// The remote of the project that it was forked from [default: the configured one, else upstream]
    #[arg(long, value_name = "REMOTE", value_parser = RemoteName::parse)]
    pub(crate) remote_upstream: Option<RemoteName>,
}

impl NameArgs {
    /// The remotes: as typed, else as configured.
    pub(crate) fn remotes(&self, config: &Config) -> ForkRemotes {
        let (usual, set) = (ForkRemotes::default(), config.remotes.clone());
        ForkRemotes {
            origin: self.remote_origin.clone().or(set.origin).unwrap_or(usual.origin),
            upstream: self.remote_upstream.clone().or(set.upstream).unwrap_or(usual.upstream),
        }
    }
}

/// Limits of publishing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ModeArgs {
    /// Do everything but publish: fetch, merge, verify, and tell what would be pushed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Keep the verified commit on this machine; `forklift publish` pushes it later
    #[arg(long)]
    pub(crate) no_push: bool,
    /// Push the branch and open no pull request
    #[arg(long)]
    pub(crate) no_pull_request: bool,
}

impl ModeArgs {
    pub(crate) fn mode(self) -> PublishMode {
        match self {
            Self { dry_run: true, .. } => PublishMode::DryRun,
            Self { no_push: true, .. } => PublishMode::Keep,
            Self { no_pull_request: true, .. } => PublishMode::BranchOnly,
            Self { dry_run: false, no_push: false, no_pull_request: false } => PublishMode::Full,
        }
    }

    /// Adds the limits of this time to those of before.
    pub(crate) fn add(&mut self, more: Self) {
        self.dry_run |= more.dry_run;
        self.no_push |= more.no_push;
        self.no_pull_request |= more.no_pull_request;
    }
}

impl Default for RunArgs {
    /// Options of a bare `forklift`.
    fn default() -> Self {
        let bare = Self::augment_args(Command::new("forklift")).try_get_matches_from(["forklift"]);
        bare.and_then(|bare| Self::from_arg_matches(&bare)).expect("no option is required")
    }
}

fn parse_pattern(text: &str) -> Result<String, PatternError> {
    check_pattern(text).map(|()| text.to_owned())
}

/// A run of an earlier version has one instruction or none.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Instructions {
        Many(Vec<String>),
        One(Option<String>),
    }
    Ok(match Instructions::deserialize(deserializer)? {
        Instructions::Many(list) => list,
        Instructions::One(one) => one.into_iter().collect(),
    })
}

fn parse_trust(text: &str) -> Result<f64, TrustError> {
    TrustThreshold::parse(text).map(TrustThreshold::share)
}

/// Ten minutes: as long as a run usually takes.
pub(crate) const DEFAULT_WAIT_SECS: u64 = 600;

/// Three minutes.
const DEFAULT_SILENCE_SECS: u64 = 180;

/// When an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AgentWhen {
    /// When git cannot merge by itself, or the check fails on its merge
    Conflict,
    /// For every merge
    Always,
}

/// Eight minutes.
const DEFAULT_TIMEOUT_SECS: u64 = 480;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_remote_outranks_the_configured_one() {
        let name = |text: &str| RemoteName::parse(text).expect("legal");
        let mut config = Config::default();
        let bare = NameArgs::default();
        assert_eq!(bare.remotes(&config), ForkRemotes::default());
        config.remotes.upstream = Some(name("project"));
        assert_eq!(bare.remotes(&config).upstream, name("project"));
        let typed = NameArgs { remote_upstream: Some(name("other")), ..NameArgs::default() };
        let remotes = typed.remotes(&config);
        assert_eq!((remotes.origin, remotes.upstream), (name("origin"), name("other")));
    }

    #[test]
    fn the_instructions_of_runs_of_earlier_versions_are_read() {
        let read = |text: &str| {
            let args: RunArgs = serde_json::from_str(text).expect("good");
            args.instruction
        };
        assert_eq!(read("{\"instruction\": \"a\"}"), ["a"]);
        assert_eq!(read("{\"instruction\": null}"), [""; 0]);
        assert_eq!(read("{\"instruction\": [\"a\", \"b\"]}"), ["a", "b"]);
        assert_eq!(read("{}"), [""; 0]);
    }
}
