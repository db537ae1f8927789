//! `forklift`: keeps a fork up to date with its upstream. An agent in a sealed box merges, the host verifies and
//! publishes. The doc comments of the command line are the help texts.

mod commands;
mod exit;
mod flow;
mod manual;
mod rules;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use model::exit::ForkliftExit;
use shell::Ui;
use shell::cli::{CompletionsArgs, OutputArgs, cmd_completions, cmd_man, exit_table};
use shell::config::{ConfigCommand, cmd_config};
use shell::manual::Manual;
use shell::start::{JsonOutput, Program};

use crate::commands::run_args::RunArgs;
use crate::commands::{
    ForkliftDirs, agents, all, attach, changelog, delta, demo, doctor, files, first, image, init,
    log, merge_plan, prune, publish, replay, resume, run, runs, security, show, status, train,
    trust, withdraw,
};
use crate::exit::{Failure, Outcome};
use crate::flow::attempt::{SyncEnd, recorded};

static PROGRAM: Program = Program {
    name: "forklift",
    label_width: 11,
    json: JsonOutput::Events,
    manual: &manual::MANUAL,
};

/// The parts of the manual that the command line does not have.
pub fn manual() -> &'static Manual {
    &manual::MANUAL
}

/// The command line, for manual pages and completions.
pub fn command() -> clap::Command {
    ForkliftCli::command()
}

/// The program.
pub fn main() -> ExitCode {
    shell::start::start(&PROGRAM, &[], |cli: &ForkliftCli| cli.output, dispatch)
}

/// Keep this fork up to date with its upstream
///
/// Run it anywhere inside a checkout whose remotes `origin` (your fork) and `upstream` are set. It fetches both, gives an
/// agent a sealed copy of the repository to merge in, verifies the result against the commits it pinned itself and
/// publishes a branch, or says what is needed. Your checkout is never touched.
#[derive(Debug, Parser)]
#[command(name = "forklift", version, about, after_help = exit_table::<ForkliftExit>())]
struct ForkliftCli {
    #[command(subcommand)]
    command: Option<ForkliftCommand>,
    /// Work on the fork in this folder instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    directory: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    many: all::ManyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Subcommand)]
enum ForkliftCommand {
    Attach(attach::AttachArgs),
    Resume(resume::ResumeArgs),
    Retry(resume::RetryArgs),
    Publish(publish::PublishArgs),
    Withdraw(withdraw::WithdrawArgs),
    Status(status::StatusArgs),
    Changelog(changelog::ChangelogArgs),
    Files(files::FilesArgs),
    Delta(delta::DeltaArgs),
    First(first::FirstArgs),
    Security(Box<security::SecurityArgs>),
    Prune(prune::PruneArgs),
    /// Install or list the programs of agents
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    /// Build or check the image for boxes on a container engine
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// List runs, newest first
    Runs,
    Show(show::ShowArgs),
    Log(log::LogArgs),
    Replay(replay::ReplayArgs),
    Train(Box<train::TrainArgs>),
    Trust(trust::TrustArgs),
    MergePlan(merge_plan::MergePlanArgs),
    Doctor(doctor::DoctorArgs),
    Demo(demo::DemoArgs),
    Init(init::ForkInitArgs),
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the reference of the scripted agent's language
    Script,
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

fn dispatch(ui: &Ui, cli: ForkliftCli) -> Outcome {
    let here = cli.directory.as_deref();
    let Some(command) = cli.command else {
        let run = RunArgs { directory: cli.directory, ..cli.run };
        if cli.many.is_wanted() {
            return all::cmd_run_many(ui, &run, &cli.many);
        }
        cli.many.check_alone()?;
        return recorded(ui, &run, |notes| {
            run::cmd_run(ui, &run, &ForkliftDirs::from_env()?, None, notes).map(SyncEnd::from)
        });
    };
    if cli.run != RunArgs::default() || cli.many.is_given() {
        let text = "options of a run do not go before a subcommand; see: forklift help <COMMAND>";
        return Err(Failure::usage(text));
    }
    match command {
        ForkliftCommand::Attach(args) => attach::cmd_attach(ui, &args, here),
        ForkliftCommand::Resume(args) => resume::cmd_resume(ui, args, here),
        ForkliftCommand::Retry(args) => resume::cmd_retry(ui, &args, here),
        ForkliftCommand::Publish(args) => publish::cmd_publish(ui, &args, here),
        ForkliftCommand::Withdraw(args) => withdraw::cmd_withdraw(ui, &args, here),
        ForkliftCommand::Status(args) => status::cmd_status(ui, &args),
        ForkliftCommand::Changelog(args) => changelog::cmd_changelog(ui, &args, here),
        ForkliftCommand::Files(args) => files::cmd_files(ui, &args, here),
        ForkliftCommand::Delta(args) => delta::cmd_delta(ui, &args, here),
        ForkliftCommand::First(args) => first::cmd_first(ui, &args, here),
        ForkliftCommand::Security(args) => security::cmd_security(ui, *args, here),
        ForkliftCommand::Prune(args) => prune::cmd_prune(ui, &args),
        ForkliftCommand::Agents(command) => agents::cmd_agents(ui, &command),
        ForkliftCommand::Image(command) => image::cmd_image(ui, &command),
        ForkliftCommand::Runs => runs::cmd_runs(ui),
        ForkliftCommand::Show(args) => show::cmd_show(ui, &args, here),
        ForkliftCommand::Log(args) => log::cmd_log(ui, &args, here),
        ForkliftCommand::Replay(args) => replay::cmd_replay(ui, &args, here),
        ForkliftCommand::Train(args) => train::cmd_train(ui, &args, here),
        ForkliftCommand::Trust(args) => trust::cmd_trust(ui, &args, here),
        ForkliftCommand::MergePlan(args) => merge_plan::cmd_merge_plan(ui, &args),
        ForkliftCommand::Doctor(args) => doctor::cmd_doctor(ui, &args, here),
        ForkliftCommand::Demo(args) => demo::cmd_demo(ui, args),
        ForkliftCommand::Init(args) => init::cmd_init(ui, &args, here),
        ForkliftCommand::Config(command) => {
            cmd_config(ui, &PROGRAM, &command)?;
            Ok(ForkliftExit::Success)
        }
        ForkliftCommand::Script => {
            let text = include_str!("../../agent/SCRIPTED.md");
            match ui.is_json() {
                true => ui.document(&serde_json::json!({ "text": text })),
                false => ui.page(text),
            }
            Ok(ForkliftExit::Success)
        }
        ForkliftCommand::Completions(args) => {
            cmd_completions(ui, &PROGRAM, &args)?;
            Ok(ForkliftExit::Success)
        }
        ForkliftCommand::Man => {
            cmd_man(ui, &PROGRAM, ForkliftCli::command())?;
            Ok(ForkliftExit::Success)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::aggregate_status::WORST_FIRST;

    #[test]
    fn every_subcommand_has_examples_that_can_be_parsed() {
        let wrong = shell::manual::check_examples(&ForkliftCli::command(), PROGRAM.manual);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn the_command_line_is_sound() {
        ForkliftCli::command().debug_assert();
    }

    #[test]
    fn a_bare_forklift_is_the_default() {
        let typed = ForkliftCli::parse_from(["forklift"]).run;
        assert_eq!(format!("{typed:?}"), format!("{:?}", RunArgs::default()));
    }

    #[test]
    fn the_help_names_the_order_of_statuses_that_holds() {
        let command = ForkliftCli::command();
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
        assert_eq!(lines.len(), 6, "{lines:?}");
        for line in lines {
            assert!(!line.concat().contains(['\'', '"', '$', '\\']), "{line:?} needs a shell");
            let parsed = ForkliftCli::try_parse_from(&line);
            assert!(parsed.is_ok(), "{line:?}: {}", parsed.expect_err("refused"));
        }
    }
}
