//! The words and flags of `bot-bottle`. The doc comments are the help texts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use model::exit::BottleExit;
use model::secret::Secret;
use shell::Ui;
use shell::cli::{CompletionsArgs, OutputArgs, cmd_completions, cmd_man, exit_table};
use shell::terminal::hide;

use crate::PROGRAM;
use crate::commands::{
    destroy, doctor, exec, freeze, hook, key, list, logs, manifest, orchestrate, provenance, serve,
    start,
};
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::{End, Loss};
use crate::flow::home::{Home, Shelf};
use crate::flow::hooks::installed_hooks;

/// Run a coding agent in a bottle: sealed while it works, frozen while people review
///
/// A bottle is a workspace of its own and the agent's own files, kept between runs. The agent gets a copy of the
/// repository with no remotes, no credentials and no network but its model; what it commits is taken out and judged by
/// the host. With a forge (`orchestrate`) the result becomes a pull request.
#[derive(Debug, Parser)]
#[command(name = "bot-bottle", version, about, after_help = after_help())]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a new bottle: at your terminal, or headless with one prompt
    ///
    /// Without --headless the agent shows its own interface on this terminal and gets the keys; --prompt is then what it
    /// is told first, and may be left out. With --headless it works on --prompt by itself. Either way it works in a
    /// sealed copy of the checkout, and what it commits is taken out and judged when it ends. Returns the agent's status,
    /// or 125 if the failure is ours.
    #[command(after_help = START_EXAMPLES)]
    Start(StartArgs),
    /// Go on with a frozen bottle: at your terminal, or headless with one more prompt
    ///
    /// The workspace, the agent's files and, where the agent can, its conversation are those of the last run; what is new
    /// at origin is brought in first. Returns the agent's status, or 125 if the failure is ours.
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ResumeArgs),
    /// End the agent of a bottle and keep everything, to go on later
    Freeze {
        /// The bottle
        slug: String,
    },
    /// End the agent of a bottle for good reason; what it did is kept and not published
    Stop {
        /// The bottle
        slug: String,
    },
    /// Remove a bottle's workspace and the agent's files; the records of its runs stay
    Destroy {
        /// The bottle
        slug: String,
        /// Also where work would be lost
        #[arg(long)]
        force: bool,
    },
    /// List bottles
    List,
    /// Show what the agent of the newest run printed
    Logs {
        /// The bottle
        slug: String,
        /// Go on showing until the agent has ended
        #[arg(long, short)]
        follow: bool,
    },
    /// Run a command on a bottle's workspace, in a sealed box of its own; returns its status
    Exec {
        /// The bottle
        slug: String,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Say what this machine offers, which backend would be used and why, and whether forge and models answer
    Doctor,
    /// Agents: who works, with which model, on what leash
    Agent {
        #[command(subcommand)]
        action: ManifestAction,
    },
    /// Bottles: what a box is made of
    Bottle {
        #[command(subcommand)]
        action: ManifestAction,
    },
    /// Start and resume with a forge's wiring, for whoever listens to the forge
    Orchestrate {
        #[command(subcommand)]
        action: OrchestrateAction,
    },
    /// Serve webhooks, the page and the API: issues become pull requests with nobody watching
    Serve {
        /// The configuration; see: bot-bottle config show
        #[arg(long)]
        config: PathBuf,
    },
    /// Show the configuration of `serve`, every key with what it means
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Webhooks: how a forge tells `bot-bottle serve` what happened
    Hook {
        #[command(subcommand)]
        action: HookAction,
    },
    /// The key that statements about runs are signed with
    Key {
        #[command(subcommand)]
        action: KeyAction,
    },
    /// What a run was: agent, timing, operations, scans, commits; and whether that is true
    Provenance {
        #[command(subcommand)]
        action: ProvenanceAction,
    },
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print a configuration in which every key is explained
    Show,
    /// Read a configuration and say what is wrong with it
    Check {
        /// The file
        file: PathBuf,
    },
}

const START_EXAMPLES: &str = "Examples:
  bot-bottle agent new worker                             write a manifest to begin with
  bot-bottle start worker                                 sit at the agent's own interface
  bot-bottle start worker --headless --prompt @task.md    let it work by itself
  git diff | bot-bottle start worker --headless --prompt - --label review";

const FORGE_VARIABLES: &str = "Variables:
  FORGE_GITEA_API         the API's address, as in https://git.example/api/v1
  FORGE_OWNER             the repository's owner
  FORGE_REPO              the repository's name
  FORGE_ISSUE_NUMBER      the issue; with its pull request, all that the agent may write to
  FORGE_PR_NUMBER         its pull request, if it is not the token's own
  FORGE_ORG               whose members may assign issues [default: bot-bottle]
  FORGE_TRIGGERS          others who may set agents to work, with commas between them
  FORGE_WATCHDOG_TIMEOUT  seconds without a sign of life before the agent is frozen [default: 1800]
  FORGE_KIND, FORGE_URL   github or gitlab, and its front page, in the place of FORGE_GITEA_API
  FORGE_TOKEN             the token; or put it into ~/.bot-bottle/forge-token (mode 0600)";

const RESUME_EXAMPLES: &str = "Examples:
  bot-bottle list                                         find the bottle's name
  bot-bottle resume worker                                sit at it again
  bot-bottle resume worker --headless --prompt 'Add tests.'";

/// A new bottle.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The agent's manifest
    pub(crate) agent: String,
    /// A bottle's manifest, in the place of the agent's own (repeatable)
    #[arg(long = "bottle", value_name = "NAME")]
    pub(crate) bottles: Vec<String>,
    /// Run without a terminal; needs --prompt
    #[arg(long)]
    pub(crate) headless: bool,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// What the bottle's name is made from [default: the agent's name]
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Where the box comes from: docker or bwrap
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The checkout to work on [default: the one around the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
}

/// A frozen bottle.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The bottle
    pub(crate) slug: String,
    /// Run without a terminal; needs --prompt
    #[arg(long)]
    pub(crate) headless: bool,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Where the box comes from this time: docker or bwrap
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
}

/// What can be done with manifests.
#[derive(Debug, Subcommand)]
pub(crate) enum ManifestAction {
    /// List them
    List,
    /// Show one
    Show {
        /// Its name
        name: String,
    },
    /// Check one against this machine
    Check {
        /// Its name
        name: String,
    },
    /// Write one to begin with
    New {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
enum OrchestrateAction {
    /// Work on an issue in a new bottle: `start --headless` with the forge's wiring
    ///
    /// The issue has to be assigned to a member of FORGE_ORG and labelled `bot-bottle:<agent>`. What the agent commits is
    /// pushed as a branch and opened as a pull request.
    #[command(after_help = FORGE_VARIABLES)]
    Start(OrchestrateStartArgs),
    /// Go on with the bottle of an issue: `resume --headless` with the forge's wiring
    ///
    /// The agent is given what people have said since, and what is new at origin. The variables have to name the bottle's
    /// own issue.
    #[command(after_help = FORGE_VARIABLES)]
    Resume(OrchestrateResumeArgs),
    /// List active bottles with the pages of their issues and pull requests
    Status,
}

/// A new bottle for an issue.
#[derive(Debug, Args)]
pub(crate) struct OrchestrateStartArgs {
    /// The agent's manifest
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: String,
    /// A bottle's manifest, in the place of the agent's own (repeatable)
    #[arg(long = "bottle", value_name = "BOTTLE", num_args = 1..)]
    pub(crate) bottles: Vec<String>,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "PROMPT")]
    pub(crate) prompt: String,
    /// What the bottle's name is made from [default: agent and issue]
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Where the box comes from: docker or bwrap
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
}

/// A frozen bottle of an issue.
#[derive(Debug, Args)]
pub(crate) struct OrchestrateResumeArgs {
    /// The bottle
    #[arg(long, value_name = "SLUG")]
    pub(crate) slug: String,
    /// What is to be done: a text, @file, or - for standard input
    #[arg(long, value_name = "PROMPT")]
    pub(crate) prompt: String,
    /// Where the box comes from this time: docker or bwrap
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
}

#[derive(Debug, Subcommand)]
enum ProvenanceAction {
    /// Show the newest run of a bottle, or the run of this name
    Show {
        /// The bottle, or the run's name or the start of it
        name: String,
    },
    /// Check the signed statements about a run against its records, offline; 0 if they hold, 1 if not
    Verify {
        /// A file (provenance.json), the bottle (its newest run), or the run's name or the start of it
        name: String,
        /// The public key that must have signed, or one that rotations lead from [default: this home's key]
        #[arg(long, value_name = "PEM")]
        key: Option<PathBuf>,
    },
}

/// What can be done with webhooks.
#[derive(Debug, Subcommand)]
pub(crate) enum HookAction {
    /// Make the webhook of a repository, with a fresh secret; one that is there is replaced
    Install {
        /// owner/name on the forge of FORGE_GITEA_API, or the repository's whole address
        repo: String,
        /// Where the forge posts to; a server alone stands for `/webhooks/` with the kind of forge behind it
        #[arg(long, value_name = "URL")]
        url: String,
    },
    /// List the webhooks that were installed from here
    List,
    /// Remove the webhook of a repository and its secret
    Remove {
        /// owner/name on the forge of FORGE_GITEA_API, or the repository's whole address
        repo: String,
    },
}

/// What can be done with the key.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyAction {
    /// Make a key; done by itself when the first run ends
    Create,
    /// Show the public key and its id
    Show,
    /// Replace the key by a new one, with a statement that both sign
    Rotate,
}

/// Parses the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    shell::start::run(&PROGRAM, |cli: &Cli| cli.output, |ui, cli| dispatch(cli.command, ui))
}

/// Strikes the secrets of this home out of the output. A file that cannot be read is reported where it is needed.
fn hide_secrets() {
    let Ok(home) = Home::from_env() else { return };
    let token = host::file::read_private(&home.token_file()).ok();
    let token = token.map(|bytes| Secret::new(String::from_utf8_lossy(&bytes).trim()));
    let hooks = installed_hooks(&home).unwrap_or_default();
    hide(hooks.into_iter().flat_map(|hook| hook.secrets).chain(token));
}

fn dispatch(command: Command, ui: &Ui) -> Outcome {
    hide_secrets();
    match command {
        Command::Start(args) => start::start(ui, args),
        Command::Resume(args) => start::resume(ui, args),
        Command::Freeze { slug } => freeze::run(ui, &slug, End::Freeze),
        Command::Stop { slug } => freeze::run(ui, &slug, End::Stop),
        Command::Destroy { slug, force } => {
            destroy::run(ui, &slug, if force { Loss::Accepted } else { Loss::Refused })
        }
        Command::List => list::run(ui),
        Command::Logs { slug, follow } => logs::run(ui, &slug, follow),
        Command::Exec { slug, command } => exec::run(ui, &slug, command),
        Command::Doctor => doctor::run(ui),
        Command::Agent { action } => manifest::run(ui, Shelf::Agents, &action),
        Command::Bottle { action } => manifest::run(ui, Shelf::Bottles, &action),
        Command::Orchestrate { action } => match action {
            OrchestrateAction::Start(args) => orchestrate::start(ui, args),
            OrchestrateAction::Resume(args) => orchestrate::resume(ui, args),
            OrchestrateAction::Status => orchestrate::status(ui),
        },
        Command::Serve { config } => serve::run(ui, &config),
        Command::Config { action } => serve::config(ui, &action),
        Command::Hook { action } => hook::run(ui, &action),
        Command::Key { action } => key::run(ui, &action),
        Command::Provenance { action } => match action {
            ProvenanceAction::Show { name } => provenance::show(ui, &name),
            ProvenanceAction::Verify { name, key } => provenance::verify(ui, &name, key.as_deref()),
        },
        Command::Completions(args) => {
            cmd_completions(ui, &PROGRAM, &args)?;
            Ok(SUCCESS)
        }
        Command::Man => {
            cmd_man(ui, Cli::command())?;
            Ok(SUCCESS)
        }
    }
}

fn after_help() -> String {
    let runs = "Runs return the agent's own status: 124 out of time, 137 out of memory or space, 143 stopped or \
                frozen.";
    format!("{}\n\n{runs}", exit_table::<BottleExit>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_synopsis_of_orchestrate_is_the_documents() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("bot-bottle orchestrate start --agent a --bottle b c --prompt p --label l --backend bwrap").is_ok());
        assert!(parse("bot-bottle orchestrate resume --slug s --prompt p --backend bwrap").is_ok());
        assert!(parse("bot-bottle orchestrate status").is_ok());
        assert!(parse("bot-bottle orchestrate start --agent a").is_err());
        assert!(parse("bot-bottle orchestrate resume --prompt p").is_err());
    }
}
