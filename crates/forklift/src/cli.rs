//! The words and flags of `forklift`. The doc comments are the help texts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;
use merge::ladder::decide::{Trust, TrustError};
use model::exit::ForkliftExit;
use serde::{Deserialize, Serialize};
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::cli::{CompletionsArgs, OutputArgs, cmd_completions, cmd_man, exit_table};

use crate::PROGRAM;
use crate::commands;
use crate::exit::Outcome;
use crate::rules::prune::parse_age;
use crate::rules::strategy::Strategy;
use crate::rules::target::Target;

/// Keep this fork up to date with its upstream
///
/// Run it anywhere inside a checkout whose remotes `origin` (your fork) and `upstream` are set. It fetches both, gives an
/// agent a sealed copy of the repository to merge in, verifies the result against the commits it pinned itself and
/// publishes a branch, or says what is needed. Your checkout is never touched.
#[derive(Debug, Parser)]
#[command(name = "forklift", version, about, after_help = exit_table::<ForkliftExit>(), args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
    /// Do it for several forks, one after the other: folders, or @FILE with one folder per line
    ///
    /// In a list file empty lines and lines that begin with # do not count, and folders are relative to the file's own. One
    /// fork that fails does not keep the others from being done. The exit status is the worst of all, in this order, worst
    /// first: 9, 2, 1, 7, 3, 6, 5, 4, 0. A signal ends the fork that is being done and begins no other.
    #[arg(long, value_name = "DIR|@FILE", num_args = 1.., conflicts_with = "directory")]
    all: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// What a run may be told.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunArgs {
    /// Work on the fork in this folder instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The agent: opencode, codex, claude, pi or scripted
    #[arg(long, value_name = "NAME", default_value = "opencode")]
    pub(crate) provider: String,
    /// What the scripted agent plays (see `forklift script`)
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Where the box comes from: docker or bwrap [default: docker if an engine answers and holds the image, else bwrap]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The image for docker
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub(crate) image: String,
    /// Seconds of wall clock that the agent has
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT_SECS, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// When an agent is started: only when git cannot merge by itself, or always
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = AgentWhen::Conflict)]
    pub(crate) agent_when: AgentWhen,
    /// Publish although work of the fork was lost
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// The repository's address on its forge, if origin's address does not say it
    #[arg(long, value_name = "URL")]
    pub(crate) forge_url: Option<String>,
    /// What to take from upstream: tip, latest-tag, or the name of a tag, branch or commit [default: what FORK.md says,
    /// else tip]
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<Target>,
    /// How: a merge commit, or the fork's commits made anew on top of upstream's [default: what FORK.md says, else merge]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) strategy: Option<Strategy>,
    /// How sure an answer to a conflict must be for it to be settled without an agent, from 0 to 1; 1 is never [default: what
    /// FORK.md says, else 0.9]
    #[arg(long, value_name = "SHARE", value_parser = parse_trust)]
    pub(crate) trust: Option<f64>,
    /// One more thing for the agent to know, for this run alone
    #[arg(long, value_name = "TEXT")]
    pub(crate) instruction: Option<String>,
    /// Run this command line on every verdict, with the verdict as JSON on its standard input
    #[arg(long, value_name = "COMMAND")]
    pub(crate) notify_cmd: Option<String>,
    /// Seconds to wait for another forklift that is at work on the same fork
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_WAIT_SECS)]
    pub(crate) wait: u64,
    /// The branch to bring up to date, here and upstream
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub(crate) main_branch: String,
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
    /// Seconds without output or traffic after which the agent is ended
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_SILENCE_SECS)]
    pub(crate) silence: u64,
}

impl Default for RunArgs {
    /// What a bare `forklift` means.
    fn default() -> Self {
        Self {
            directory: None,
            provider: "opencode".to_owned(),
            script: None,
            backend: None,
            image: DEFAULT_IMAGE.to_owned(),
            timeout: DEFAULT_TIMEOUT_SECS,
            agent_when: AgentWhen::Conflict,
            accept_loss: false,
            forge_url: None,
            target: None,
            strategy: None,
            trust: None,
            instruction: None,
            notify_cmd: None,
            wait: DEFAULT_WAIT_SECS,
            main_branch: "main".to_owned(),
            model: None,
            variant: None,
            agent: None,
            model_url: None,
            key_file: None,
            key_command: None,
            max_usd: None,
            max_tokens: None,
            price: None,
            egress: None,
            allow: Vec::new(),
            permit_private: Vec::new(),
            silence: DEFAULT_SILENCE_SECS,
        }
    }
}

fn parse_trust(text: &str) -> Result<f64, TrustError> {
    Trust::parse(text).map(Trust::share)
}

/// Ten minutes: as long as a run usually takes.
pub(crate) const DEFAULT_WAIT_SECS: u64 = 600;

/// A screen or two.
const DEFAULT_LISTED: usize = 50;

/// Three minutes.
const DEFAULT_SILENCE_SECS: u64 = 180;

/// When an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AgentWhen {
    /// When git cannot merge by itself
    Conflict,
    /// For every merge
    Always,
}

/// Eight minutes.
const DEFAULT_TIMEOUT_SECS: u64 = 480;

#[derive(Debug, Subcommand)]
enum Command {
    /// Finish a run whose forklift was killed: wait for its box, import, verify, publish
    Attach {
        /// The run's name, or the start of it
        run: String,
    },
    /// Go on from the workspace of a run that is stuck, out of time or refused
    ///
    /// A new run is made that begins with a copy of the old one's workspace, in the same conversation where the agent can
    /// resume one. The old run stays as it is.
    Resume {
        #[command(flatten)]
        resume: ResumeArgs,
        /// The answer to the agent's questions
        #[arg(long, short, value_name = "TEXT")]
        answer: Option<String>,
    },
    /// Ask once more for what an earlier run was asked, from the fork as it is now
    Retry {
        #[command(flatten)]
        resume: ResumeArgs,
    },
    /// Show what is coming from upstream: commits, numbers, and the conflicts to expect
    ///
    /// Fetches as a run does and changes nothing. No model is asked.
    Changelog {
        #[command(flatten)]
        look: LookArgs,
        /// Commits and files that are listed at most
        #[arg(long, value_name = "N", default_value_t = DEFAULT_LISTED)]
        limit: usize,
    },
    /// List the files in which the fork differs from where it parted from upstream
    ///
    /// Each with what the fork did to it and whether upstream touched it as well, which may become a conflict. What only
    /// upstream changed or deleted is not listed.
    Files {
        #[command(flatten)]
        look: LookArgs,
        /// Show each file's object id; a file that the fork deleted has none
        #[arg(long)]
        hash: bool,
    },
    /// Find the first commit of upstream's that conflicts with the fork
    ///
    /// Commits are tried along first parents, oldest first, by merging each into the fork in memory. Nothing conflicts if
    /// the target itself does not.
    First {
        #[command(flatten)]
        look: LookArgs,
    },
    /// Remove old runs
    ///
    /// A run is removed when it is both older than --older-than and not among the --keep newest runs of its fork. To go by
    /// age alone say --keep 0; to go by number alone say --older-than 0d. Never removed, whatever is said: a run that is not
    /// finished, one whose box still runs, and those of a fork that a forklift is at work on. Not removed without
    /// --unpublished: a run that holds work which was published nowhere, that is a workspace of an agent that was stuck,
    /// out of time, refused or failed, or a verified commit that could not be published.
    Prune {
        #[command(flatten)]
        prune: PruneArgs,
    },
    /// Install or list the programs of agents
    Agents {
        #[command(subcommand)]
        action: AgentsAction,
    },
    /// Build or check the image that boxes on a container engine come from
    Image {
        #[command(subcommand)]
        action: ImageAction,
    },
    /// List runs, newest first
    Runs,
    /// Show one run
    Show {
        /// The run's name, or the start of it
        run: String,
    },
    /// Show what a run's agent printed
    Log {
        /// The run's name, or the start of it
        run: String,
        /// Go on showing until the agent has ended
        #[arg(long, short)]
        follow: bool,
    },
    /// Merge again what this fork merged before, and say what would have needed nobody
    Replay(commands::replay::ReplayArgs),
    /// Show how far each kind of answer to a conflict is trusted in this fork, and why
    Trust(commands::trust::TrustArgs),
    /// Merge two commits as far as that needs nobody, and print the plan as JSON
    MergePlan(commands::merge_plan::MergePlanArgs),
    /// Say what this machine offers, which backend would be used and why
    Doctor {
        /// The image to look for
        #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
        image: String,
    },
    /// Make a fork with a conflicting upstream in a temporary folder and bring it up to date, with no model
    Demo {
        /// Where the box comes from
        #[arg(long, value_name = "NAME")]
        backend: Option<String>,
        /// The image for docker
        #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
        image: String,
    },
    /// Print the reference of the scripted agent's language
    Script,
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Which run, and what is different this time.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run's name, or the start of it
    pub(crate) run: String,
    /// Seconds of wall clock that the agent has this time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    /// One more thing for the agent to know
    #[arg(long, value_name = "TEXT")]
    pub(crate) instruction: Option<String>,
    /// What the scripted agent plays this time
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
}

/// What is to be looked at.
#[derive(Debug, Args)]
pub(crate) struct LookArgs {
    /// Look at the fork in this folder instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// What would be taken from upstream, as for a run [default: what FORK.md says, else tip]
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<Target>,
    /// The branch to bring up to date, here and upstream
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub(crate) main_branch: String,
}

/// What is to be removed.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove only what is older: a number and w, d, h or m
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = parse_age)]
    pub(crate) older_than: SignedDuration,
    /// Keep so many of the newest runs of every fork, however old they are
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) keep: usize,
    /// Say what would be removed and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove runs with unpublished work as well
    #[arg(long)]
    pub(crate) unpublished: bool,
}

#[derive(Debug, Subcommand)]
enum ImageAction {
    /// Build the image on the engine that answers
    Build(ImageBuildArgs),
    /// Look into an image from a sealed box: every tool, and whether this version of forklift made it
    Check {
        /// The image
        #[arg(value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
        image: String,
    },
}

/// How the image is built.
#[derive(Debug, Args)]
pub(crate) struct ImageBuildArgs {
    /// The name that the image gets
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub(crate) tag: String,
    /// The image that it begins with
    #[arg(long, value_name = "IMAGE", default_value = "ubuntu:24.04")]
    pub(crate) base: String,
    /// Language runtimes, which come from the open internet: any of rust, node, bun and pyenv, or none
    #[arg(long, value_name = "LIST", default_value = "rust node bun pyenv")]
    pub(crate) runtimes: String,
}

#[derive(Debug, Subcommand)]
enum AgentsAction {
    /// Install an agent's program from npm, in the version that forklift was made for
    Install {
        /// opencode, codex, claude or pi
        name: String,
    },
    /// Show which are installed
    List,
}

/// Parses the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    shell::start::run(&PROGRAM, |cli: &Cli| cli.output, |ui, cli| dispatch(cli, ui))
}

fn dispatch(cli: Cli, ui: &Ui) -> Outcome {
    match cli.command {
        None if !cli.all.is_empty() => commands::all::run(ui, &cli.run, &cli.all),
        None => commands::run::run(ui, &cli.run),
        Some(Command::Changelog { look, limit }) => commands::changelog::run(ui, &look, limit),
        Some(Command::Files { look, hash }) => commands::files::run(ui, &look, hash),
        Some(Command::First { look }) => commands::first::run(ui, &look),
        Some(Command::Prune { prune }) => commands::prune::run(ui, &prune),
        Some(Command::Attach { run }) => commands::attach::run(ui, &run),
        Some(Command::Resume { resume, answer }) => {
            commands::resume::resume(ui, &resume, answer.as_deref())
        }
        Some(Command::Retry { resume }) => commands::resume::retry(ui, &resume),
        Some(Command::Agents { action: AgentsAction::Install { name } }) => {
            commands::agents::install(ui, &name)
        }
        Some(Command::Agents { action: AgentsAction::List }) => commands::agents::list(ui),
        Some(Command::Image { action: ImageAction::Build(args) }) => {
            commands::image::build(ui, &args)
        }
        Some(Command::Image { action: ImageAction::Check { image } }) => {
            commands::image::check(ui, &image)
        }
        Some(Command::Runs) => commands::runs::run(ui),
        Some(Command::Show { run }) => commands::show::run(ui, &run),
        Some(Command::Log { run, follow }) => commands::log::run(ui, &run, follow),
        Some(Command::Replay(args)) => commands::replay::run(ui, &args),
        Some(Command::Trust(args)) => commands::trust::run(ui, &args),
        Some(Command::MergePlan(args)) => commands::merge_plan::run(ui, &args),
        Some(Command::Doctor { image }) => commands::doctor::run(ui, &image),
        Some(Command::Demo { backend, image }) => commands::demo::run(ui, backend, image),
        Some(Command::Script) => {
            ui.page(include_str!("../../agent/SCRIPTED.md"));
            Ok(ForkliftExit::Success)
        }
        Some(Command::Completions(args)) => {
            cmd_completions(ui, &PROGRAM, &args)?;
            Ok(ForkliftExit::Success)
        }
        Some(Command::Man) => {
            cmd_man(ui, Cli::command())?;
            Ok(ForkliftExit::Success)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::aggregate_status::WORST_FIRST;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_bare_forklift_is_the_default() {
        let typed = Cli::parse_from(["forklift"]).run;
        assert_eq!(format!("{typed:?}"), format!("{:?}", RunArgs::default()));
    }

    #[test]
    fn the_help_names_the_order_of_statuses_that_holds() {
        let command = Cli::command();
        let all = command.get_arguments().find(|arg| arg.get_id() == "all").expect("the flag");
        let help = all.get_long_help().expect("a help text").to_string();
        let order: Vec<String> = WORST_FIRST.map(|status| status.code().to_string()).to_vec();
        assert!(help.contains(&order.join(", ")), "{help}");
    }

    const EXAMPLES: [&str; 2] = [
        include_str!("../../../docs/cron.md"),
        include_str!("../../../contrib/systemd/forklift.service"),
    ];

    /// Every command line of forklift's own in the examples, as words. None of them needs a shell to be read.
    fn example_lines() -> Vec<Vec<&'static str>> {
        let mut lines = Vec::new();
        for text in EXAMPLES {
            for line in text.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let program = |word: &&str| *word == "forklift" || word.ends_with("/bin/forklift");
                let starts = line.starts_with("forklift ")
                    || line.starts_with("Exec")
                    || line.starts_with(|c: char| c.is_ascii_digit());
                if let Some(at) = words.iter().position(program).filter(|_| starts) {
                    lines.push(words[at..].to_vec());
                }
            }
        }
        lines
    }

    #[test]
    fn the_commands_of_the_examples_are_understood() {
        let lines = example_lines();
        assert_eq!(lines.len(), 8, "{lines:?}");
        for line in lines {
            assert!(!line.concat().contains(['\'', '"', '$', '\\']), "{line:?} needs a shell");
            let parsed = Cli::try_parse_from(&line);
            assert!(parsed.is_ok(), "{line:?}: {}", parsed.expect_err("refused"));
        }
    }
}
