//! The command line of `bot-bottle`: its commands. The doc comments are the help texts.

use clap::{CommandFactory, Parser, Subcommand};
use model::exit::BottleExit;
use model::secret::Secret;
use shell::Ui;
use shell::cli::{CompletionsArgs, OutputArgs, cmd_completions, cmd_man, exit_table};
use shell::terminal::hide;

use crate::PROGRAM;
use crate::commands::{
    demo, destroy, diff, dispatch, doctor, exec, fleet, freeze, hook, init, key, list, logs,
    manifest, orchestrate, provenance, prune, serve, show, start, worker,
};
use crate::exit::{Outcome, SUCCESS};
use crate::flow::end::End;
use crate::flow::home::{Home, ManifestKind};
use crate::flow::hooks::all_secrets;

/// Run a coding agent in a bottle: sealed while it works, frozen while people review
///
/// A bottle is a workspace of its own and the agent's own files, kept between runs. The agent gets a copy of the
/// repository with no remotes, no credentials and no network but its model; what it commits is taken out and judged by
/// the host. With a forge (`orchestrate`) the result becomes a pull request.
#[derive(Debug, Parser)]
#[command(name = "bot-bottle", version, about, after_help = after_help())]
pub(crate) struct BottleCli {
    #[command(subcommand)]
    command: BottleCommand,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
enum BottleCommand {
    Start(start::StartArgs),
    Resume(start::ResumeBottleArgs),
    /// End the agent of a bottle and keep everything, to resume later
    Freeze(freeze::EndArgs),
    /// End the agent of a bottle for good; its work is kept and not published
    Stop(freeze::EndArgs),
    Destroy(destroy::DestroyArgs),
    Prune(prune::PruneBottlesArgs),
    /// List bottles
    List,
    Show(show::ShowBottleArgs),
    Logs(logs::LogsArgs),
    Diff(diff::DiffArgs),
    Apply(diff::ApplyArgs),
    Checkout(diff::CheckoutArgs),
    Exec(exec::ExecArgs),
    Doctor(doctor::BottleDoctorArgs),
    /// Agents: who works, with which model, within which limits
    #[command(subcommand)]
    Agent(manifest::ManifestCommand),
    /// Bottles: what a box is made of
    #[command(subcommand)]
    Bottle(manifest::ManifestCommand),
    /// Start and resume on behalf of a forge, from variables
    #[command(subcommand)]
    Orchestrate(orchestrate::OrchestrateCommand),
    Serve(serve::ServeArgs),
    Worker(worker::WorkerArgs),
    /// Several hosts on one database: which there are, and logins for workers
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    Dispatch(dispatch::DispatchArgs),
    Init(init::BottleInitArgs),
    /// Show or change the shared configuration; show or check that of `serve`
    #[command(subcommand)]
    Config(serve::BottleConfigCommand),
    /// Webhooks: how a forge reports to `bot-bottle serve`
    #[command(subcommand)]
    Hook(hook::HookCommand),
    /// The key that signs statements about runs
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// What a run was: agent, timing, operations, scans, commits; and whether that is true
    #[command(subcommand)]
    Provenance(provenance::ProvenanceCommand),
    Demo(demo::BottleDemoArgs),
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Redacts the secrets of this home in the output. An unreadable file is reported where it is needed.
fn hide_secrets() {
    let Ok(home) = Home::from_env() else { return };
    let token = host::file::read_private(&home.token_file).ok();
    let token = token.map(|bytes| Secret::new(String::from_utf8_lossy(&bytes).trim()));
    hide(all_secrets(&home).chain(token));
}

pub(crate) fn dispatch(ui: &Ui, cli: BottleCli) -> Outcome {
    hide_secrets();
    match cli.command {
        BottleCommand::Start(args) => start::cmd_start(ui, args),
        BottleCommand::Resume(args) => start::cmd_resume(ui, args),
        BottleCommand::Freeze(args) => freeze::cmd_end(ui, &args, End::Freeze),
        BottleCommand::Stop(args) => freeze::cmd_end(ui, &args, End::Stop),
        BottleCommand::Destroy(args) => destroy::cmd_destroy(ui, &args),
        BottleCommand::Prune(args) => prune::cmd_prune(ui, &args),
        BottleCommand::List => list::cmd_list(ui),
        BottleCommand::Show(args) => show::cmd_show(ui, &args),
        BottleCommand::Logs(args) => logs::cmd_logs(ui, &args),
        BottleCommand::Diff(args) => diff::cmd_diff(ui, &args),
        BottleCommand::Apply(args) => diff::cmd_apply(ui, &args),
        BottleCommand::Checkout(args) => diff::cmd_checkout(ui, &args),
        BottleCommand::Exec(args) => exec::cmd_exec(ui, args),
        BottleCommand::Doctor(args) => doctor::cmd_doctor(ui, &args),
        BottleCommand::Agent(command) => manifest::cmd_manifest(ui, ManifestKind::Agents, &command),
        BottleCommand::Bottle(command) => {
            manifest::cmd_manifest(ui, ManifestKind::Bottles, &command)
        }
        BottleCommand::Orchestrate(command) => orchestrate::cmd_orchestrate(ui, command),
        BottleCommand::Serve(args) => serve::cmd_serve(ui, &args),
        BottleCommand::Fleet(command) => fleet::cmd_fleet(ui, &command),
        BottleCommand::Worker(args) => worker::cmd_worker(ui, &args),
        BottleCommand::Dispatch(args) => dispatch::cmd_dispatch(ui, &args),
        BottleCommand::Init(args) => init::cmd_init(ui, &args),
        BottleCommand::Config(command) => serve::cmd_config(ui, &command),
        BottleCommand::Hook(command) => hook::cmd_hook(ui, &command),
        BottleCommand::Key(command) => key::cmd_key(ui, &command),
        BottleCommand::Provenance(command) => provenance::cmd_provenance(ui, &command),
        BottleCommand::Demo(args) => demo::cmd_demo(ui, &args),
        BottleCommand::Completions(args) => {
            cmd_completions(ui, &PROGRAM, &args)?;
            Ok(SUCCESS)
        }
        BottleCommand::Man => {
            cmd_man(ui, &PROGRAM, BottleCli::command())?;
            Ok(SUCCESS)
        }
    }
}

fn after_help() -> String {
    let runs = "Runs return the agent's own status: 124 out of time, 137 out of memory or space, 143 stopped or \
                frozen, 130 stopped by Ctrl-C.";
    format!("{}\n\n{runs}", exit_table::<BottleExit>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_examples_that_can_be_parsed() {
        let wrong = shell::manual::check_examples(&BottleCli::command(), PROGRAM.manual);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn the_synopsis_of_orchestrate_is_the_documents() {
        let parse = |line: &str| BottleCli::try_parse_from(line.split(' '));
        assert!(parse("bot-bottle orchestrate start --agent a --bottle b c --prompt p --label l --backend bwrap").is_ok());
        assert!(parse("bot-bottle orchestrate resume --slug s --prompt p --backend bwrap").is_ok());
        assert!(parse("bot-bottle orchestrate status").is_ok());
        assert!(parse("bot-bottle orchestrate start --agent a").is_err());
        assert!(parse("bot-bottle orchestrate resume --prompt p").is_err());
    }
}
