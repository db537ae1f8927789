//! The command line of `wf`: its commands and what they share. The doc comments are the help texts.

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use shell::Ui;
use shell::cli::{CompletionsArgs, OutputArgs, cmd_completions, cmd_man, exit_table};
use shell::config::{ConfigCommand, cmd_config};

use crate::PROGRAM;
use crate::commands::complete::{run_names, workstream_ids};
use crate::commands::{
    self, App, attach, clarify, close, conflicts, delete, demo, diff, docs, doctor, init,
    interview, list, log, mcp, merge, new, open, plan, pr, project, prune, refresh, reset, review,
    run as run_command, serve, show, skip, stats, status, story, switch, uat, update, verdict,
    watch,
};
use crate::exit::{Failure, Outcome, WfExit};

/// Take planned work through implement, test, review and acceptance
///
/// A workstream is a branch with a worktree and a plan of micro-commits. `wf run` takes one micro-commit after the other
/// through an agent in a sealed box, the tests and a review, and stops with one clear question when it needs you.
///
/// Begin: wf interview, then wf new, write the plan, then wf run --loop
#[derive(Debug, Parser)]
#[command(name = "wf", version, about, after_help = exit_table::<WfExit>())]
pub(crate) struct WfCli {
    #[command(subcommand)]
    command: WfCommand,
    /// The project [default: AOS_PROJECT, or that of the current directory, or the only one]
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCandidates::new(commands::complete::project_names))]
    project: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A workstream, or the current one.
#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// The workstream [default: that of the current worktree, or of `wf use`]
    #[arg(value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    pub(crate) id: Option<String>,
}

/// A run, or the last one.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArg {
    /// The run's name, the start of it, or `last` [default: the last one of the current workstream]
    #[arg(add = ArgValueCandidates::new(run_names))]
    pub(crate) run: Option<String>,
    /// The workstream whose last run is meant
    #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    pub(crate) workstream: Option<String>,
}

impl RunArg {
    /// The name that was typed; `None` for the last run.
    pub(crate) fn typed(&self) -> Option<&str> {
        self.run.as_deref().filter(|name| *name != "last")
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum WfCommand {
    Init(init::WfInitArgs),
    Interview(Box<interview::InterviewArgs>),
    /// Register, list and show projects
    #[command(subcommand)]
    Project(project::ProjectCommand),
    List(list::ListArgs),
    New(new::NewArgs),
    /// Stories of the product: list, write, show, and start a workstream for one
    #[command(subcommand)]
    Story(story::StoryCommand),
    /// Show a workstream: fields, plan, blockers, last run
    Status(Which),
    Use(switch::UseArgs),
    Refresh(refresh::RefreshArgs),
    Conflicts(conflicts::ConflictsArgs),
    Update(update::UpdateArgs),
    Run(run_command::RunCycleArgs),
    Attach(attach::BackgroundArgs),
    Plan(plan::PlanArgs),
    /// Record that you approve the last micro-commit
    Approve(Which),
    Reject(verdict::RejectArgs),
    Skip(skip::SkipArgs),
    Reset(reset::ResetArgs),
    Review(review::BranchReviewArgs),
    Merge(merge::MergeArgs),
    /// The pull request of a workstream
    #[command(subcommand)]
    Pr(pr::PrCommand),
    Close(close::CloseArgs),
    Open(open::OpenArgs),
    Delete(delete::DeleteArgs),
    /// Show, answer and ask questions
    #[command(subcommand)]
    Clarify(clarify::ClarifyCommand),
    /// Show and judge acceptance tests
    #[command(subcommand)]
    Uat(uat::UatCommand),
    /// Documentation of a worktree
    #[command(subcommand)]
    Docs(docs::DocsCommand),
    /// Show a run
    Show(RunArg),
    Log(log::RunHistoryArgs),
    Diff(diff::DiffArgs),
    Stats(stats::StatsArgs),
    Prune(prune::PruneCopiesArgs),
    /// Watch all workstreams; answer, approve and reject on one screen
    Watch,
    Serve(serve::BoardServeArgs),
    Mcp(mcp::McpArgs),
    /// Check the machine and the project
    Doctor,
    Demo(demo::WfDemoArgs),
    #[command(subcommand)]
    Config(ConfigCommand),
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

pub(crate) fn dispatch(ui: &Ui, cli: WfCli) -> Outcome {
    let app = App::new(ui, cli.project)?;
    shell::runtime::block_on(execute(&app, cli.command))
}

pub(crate) async fn execute(app: &App, command: WfCommand) -> Outcome {
    match command {
        WfCommand::Init(args) => init::cmd_init(app, &args).await,
        WfCommand::Interview(args) => interview::cmd_interview(app, &args).await,
        WfCommand::Project(command) => project::cmd_project(app, &command).await,
        WfCommand::List(args) => list::cmd_list(app, &args).await,
        WfCommand::New(args) => new::cmd_new(app, &args).await,
        WfCommand::Story(command) => story::cmd_story(app, &command).await,
        WfCommand::Status(which) => status::cmd_status(app, &which).await,
        WfCommand::Use(args) => switch::cmd_use(app, &args),
        WfCommand::Refresh(args) => refresh::cmd_refresh(app, &args).await,
        WfCommand::Conflicts(args) => conflicts::cmd_conflicts(app, &args).await,
        WfCommand::Update(args) => update::cmd_update(app, &args).await,
        WfCommand::Run(args) => run_command::cmd_run(app, &args).await,
        WfCommand::Attach(args) => attach::cmd_attach(app, &args).await,
        WfCommand::Plan(args) => plan::cmd_plan(app, &args).await,
        WfCommand::Approve(which) => verdict::cmd_approve(app, &which).await,
        WfCommand::Reject(args) => verdict::cmd_reject(app, &args).await,
        WfCommand::Skip(args) => skip::cmd_skip(app, &args).await,
        WfCommand::Reset(args) => reset::cmd_reset(app, &args).await,
        WfCommand::Review(args) => review::cmd_review(app, &args).await,
        WfCommand::Merge(args) => merge::cmd_merge(app, &args).await,
        WfCommand::Pr(command) => pr::cmd_pr(app, &command).await,
        WfCommand::Close(args) => close::cmd_close(app, &args).await,
        WfCommand::Open(args) => open::cmd_open(app, &args).await,
        WfCommand::Delete(args) => delete::cmd_delete(app, &args).await,
        WfCommand::Clarify(command) => clarify::cmd_clarify(app, command).await,
        WfCommand::Uat(command) => uat::cmd_uat(app, command).await,
        WfCommand::Docs(command) => docs::cmd_docs(app, &command).await,
        WfCommand::Show(run) => show::cmd_show(app, &run),
        WfCommand::Log(args) => log::cmd_log(app, &args),
        WfCommand::Stats(args) => stats::cmd_stats(app, &args),
        WfCommand::Diff(args) => diff::cmd_diff(app, &args).await,
        WfCommand::Prune(args) => prune::cmd_prune(app, &args).await,
        WfCommand::Watch => watch::cmd_watch(app).await,
        WfCommand::Serve(args) => serve::cmd_serve(app, &args).await,
        WfCommand::Mcp(_) => mcp::cmd_mcp(app).await,
        WfCommand::Doctor => doctor::cmd_doctor(app).await,
        WfCommand::Demo(args) => demo::cmd_demo(app, &args).await,
        WfCommand::Config(command) => {
            cmd_config(&app.ui, &PROGRAM, &command).map(|()| WfExit::Success)
        }
        WfCommand::Completions(args) => {
            cmd_completions(&app.ui, &PROGRAM, &args).map(|()| WfExit::Success)
        }
        WfCommand::Man => cmd_man(&app.ui, &PROGRAM, WfCli::command()).map(|()| WfExit::Success),
    }
}

/// Parses the words of a command for a program that calls it without a process of its own.
pub(crate) fn parse_words(words: &[String]) -> Result<WfCommand, String> {
    let line = std::iter::once("wf").chain(words.iter().map(String::as_str));
    let parsed = WfCli::try_parse_from(line).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("error: ").unwrap_or(first).to_owned()
    })?;
    Ok(parsed.command)
}

/// Runs the command of a background run, as its own process would. Returns its exit status.
pub(crate) fn run_words(words: &[String]) -> u8 {
    let line = std::iter::once("wf").chain(words.iter().map(String::as_str));
    let cli = match WfCli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(error) => {
            let ui = Ui::new(&PROGRAM, OutputArgs { json: false, quiet: false, verbose: false });
            ui.failure(&Failure::usage(error.to_string()));
            return WfExit::Config.code();
        }
    };
    let ui = Ui::new(&PROGRAM, cli.output);
    match dispatch(&ui, cli) {
        Ok(status) => status.code(),
        Err(failure) => {
            ui.failure(&failure);
            failure.status.code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_examples_that_can_be_parsed() {
        let wrong = shell::manual::check_examples(&WfCli::command(), PROGRAM.manual);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn the_command_line_is_sound() {
        WfCli::command().debug_assert();
    }

    #[test]
    fn the_project_may_stand_before_or_after_the_command() {
        for words in [["wf", "--project", "p", "list"], ["wf", "list", "--project", "p"]] {
            assert_eq!(WfCli::try_parse_from(words).unwrap().project.as_deref(), Some("p"));
        }
    }

    #[test]
    fn once_and_loop_exclude_each_other() {
        assert!(WfCli::try_parse_from(["wf", "run", "tf", "--once", "--loop"]).is_err());
        assert!(WfCli::try_parse_from(["wf", "run", "tf"]).is_ok());
    }
}
