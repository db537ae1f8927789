//! The words and flags of `wf`. The doc comments are the help texts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use merge::ladder::decide::Trust;
use model::exit::WfExit;
use shell::Ui;
use shell::cli::{CompletionsArgs, OutputArgs, cmd_completions, cmd_man, exit_table};

use crate::PROGRAM;
use crate::commands::complete::{question_ids, run_names, uat_ids, workstream_ids};
use crate::commands::{self, App};
use crate::exit::Outcome;
use crate::rules::clarification::Urgency;

/// Take planned work through implement, test, review and acceptance
///
/// A workstream is a branch with a worktree and a plan of micro-commits. `wf run` takes one micro-commit after the other
/// through an agent in a sealed box, the tests and a review, and stops with one clear question when it needs you.
///
/// Begin: wf interview, then wf new, write the plan, then wf run --loop
#[derive(Debug, Parser)]
#[command(name = "wf", version, about, after_help = exit_table::<WfExit>())]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The project [default: AOS_PROJECT, or the one you stand in, or the only one]
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCandidates::new(commands::complete::project_names))]
    project: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// A workstream, or the current one.
#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// The workstream [default: the one whose worktree you stand in, or that of `wf use`]
    #[arg(value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    pub(crate) id: Option<String>,
}

/// What happens to a draft.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
    /// The story: a file, - for standard input, or the words themselves
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) from: Option<String>,
    /// Make the draft the plan
    #[arg(long)]
    pub(crate) accept: bool,
    /// Open the draft in VISUAL or EDITOR first
    #[arg(long)]
    pub(crate) edit: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Register a project and describe how it is built and tested
    Interview(Box<InterviewArgs>),
    /// Register, list and show projects
    Project {
        #[command(subcommand)]
        action: ProjectAction,
    },
    /// List active workstreams
    List,
    /// Create a workstream: a branch, a worktree and an empty plan
    New {
        /// Lower-case letters, digits, _ and -, starting with a letter
        id: String,
        /// 1 to 100 characters
        title: String,
        /// Paths that it is expected to touch, separated by blanks
        #[arg(default_value = "")]
        expected_paths: String,
        /// What the branch starts with, instead of BRANCH_PREFIX
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<String>,
    },
    /// Show a workstream: fields, plan, what it waits for, its last run
    Status(Which),
    /// Choose the workstream that commands mean when they name none
    Use {
        /// The workstream
        #[arg(add = ArgValueCandidates::new(workstream_ids))]
        id: String,
    },
    /// Find out anew which files workstreams have touched
    Refresh {
        /// The workstream [default: all]
        #[arg(add = ArgValueCandidates::new(workstream_ids))]
        id: Option<String>,
    },
    /// Show where a workstream meets others, and what merging would bring
    Conflicts {
        #[command(flatten)]
        which: Which,
        /// End with status 1 if there is any overlap
        #[arg(long)]
        exit_code: bool,
    },
    /// Bring a workstream's branch up to date with its base branch
    Update {
        #[command(flatten)]
        which: Which,
        /// How sure an answer to a conflict must be, from 0 to 1; at 1 none is settled
        #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = Trust::parse)]
        trust: Trust,
    },
    /// Take the next micro-commit through all stages
    Run {
        #[command(flatten)]
        which: Which,
        /// One cycle (the default)
        #[arg(long, conflicts_with = "looped")]
        once: bool,
        /// Go on until something needs you
        #[arg(long = "loop")]
        looped: bool,
    },
    /// Let an agent draft micro-commits for a story, look at them, accept them
    Plan {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        args: PlanArgs,
    },
    /// Write down that you are content with the last micro-commit
    Approve(Which),
    /// Send the last micro-commit back to the agent, and say why
    Reject {
        #[command(flatten)]
        which: Which,
        /// Why; the agent is told
        #[arg(long, short, value_name = "WORDS")]
        message: String,
    },
    /// Mark the next micro-commit as done without doing it
    Skip {
        #[command(flatten)]
        which: Which,
        /// The micro-commit, instead of the next one
        #[arg(long, value_name = "COMMIT")]
        commit: Option<String>,
        /// Why; it goes into the notes
        #[arg(long, short, value_name = "WORDS")]
        message: Option<String>,
    },
    /// Merge a workstream that is merge-ready
    Merge {
        #[command(flatten)]
        which: Which,
        /// Push the merged branch to origin
        #[arg(long)]
        push: bool,
    },
    /// Archive a workstream: its worktree goes, its branch stays
    Close {
        #[command(flatten)]
        which: Which,
        /// Close it although it is not complete, and discard what is not committed
        #[arg(long)]
        force: bool,
    },
    /// Delete a workstream with its worktree and branch; without --confirm only show what would go
    Delete {
        /// The workstream
        #[arg(add = ArgValueCandidates::new(workstream_ids))]
        id: String,
        /// Really delete it
        #[arg(long)]
        confirm: bool,
        /// Leave the branch on origin
        #[arg(long)]
        keep_remote: bool,
    },
    /// Questions that need you
    Clarify {
        #[command(subcommand)]
        action: ClarifyAction,
    },
    /// Acceptance tests that need you
    Uat {
        #[command(subcommand)]
        action: UatAction,
    },
    /// Documentation of a worktree
    Docs {
        #[command(subcommand)]
        action: DocsAction,
    },
    /// Show a run
    Show(RunArg),
    /// List the runs of a workstream, newest first
    Log {
        #[command(flatten)]
        which: Which,
        /// The most runs to show
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show what a run changed
    Diff(RunArg),
    /// Remove the copies that failed runs left, once their micro-commit is accepted; without --apply only name them
    Prune {
        /// Really remove them
        #[arg(long)]
        apply: bool,
    },
    /// Watch all workstreams, answer, approve and reject on one screen
    Watch,
    /// Say what this machine offers and whether the project is in order
    Doctor,
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// A run, or the last one.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArg {
    /// The run's name, or the start of it [default: the last one of the current workstream]
    #[arg(add = ArgValueCandidates::new(run_names))]
    pub(crate) run: Option<String>,
    /// The workstream whose last run is meant
    #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    pub(crate) workstream: Option<String>,
}

/// What the interview asks; every question has a flag.
#[derive(Debug, Clone, Args)]
pub(crate) struct InterviewArgs {
    /// Ask nothing; take flags and defaults
    #[arg(long)]
    pub(crate) non_interactive: bool,
    /// The project's name [default: that of the repository's folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The product repository [default: the one you stand in]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo_path: Option<PathBuf>,
    /// Where worktrees, runs and locks go [default: <repository>.ops]
    #[arg(long, value_name = "DIR")]
    pub(crate) ops_path: Option<PathBuf>,
    /// The workflow repository [default: the one that is found, or <ops>/workflow]
    #[arg(long, value_name = "DIR")]
    pub(crate) workflow_repo: Option<PathBuf>,
    /// The branch that workstreams start from and are merged into
    #[arg(long, value_name = "BRANCH")]
    pub(crate) default_branch: Option<String>,
    /// What branches of workstreams start with
    #[arg(long, value_name = "PREFIX")]
    pub(crate) branch_prefix: Option<String>,
    /// The Makefile, relative to the repository; empty if there is none
    #[arg(long, value_name = "PATH")]
    pub(crate) makefile_path: Option<String>,
    /// The target of the unit tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    pub(crate) make_target_unit: Option<String>,
    /// The target of the integration tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    pub(crate) make_target_integration: Option<String>,
    /// The target of the smoke tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    pub(crate) make_target_smoke: Option<String>,
    /// The target of the end-to-end tests; empty to skip them
    #[arg(long, value_name = "TARGET")]
    pub(crate) make_target_e2e: Option<String>,
    /// The documentation, relative to the repository
    #[arg(long, value_name = "PATH")]
    pub(crate) docs_path: Option<String>,
    /// When people are asked: strict, stage-only, exceptions or off
    #[arg(long, value_name = "MODE")]
    pub(crate) hitl_mode: Option<String>,
    /// Where raw requirements are, separated by blanks
    #[arg(long, value_name = "PATHS")]
    pub(crate) raw_requirements_paths: Option<String>,
}

#[derive(Debug, Subcommand)]
enum ProjectAction {
    /// Register a project, with a profile of defaults
    Add(ProjectAddArgs),
    /// List projects
    List,
    /// Show a project and its profile
    Show {
        /// The project [default: the one that is meant]
        #[arg(add = ArgValueCandidates::new(commands::complete::project_names))]
        name: Option<String>,
    },
}

/// A project in a few flags.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProjectAddArgs {
    /// The project's name
    pub(crate) name: String,
    /// The product repository
    #[arg(long, value_name = "DIR")]
    pub(crate) repo_path: PathBuf,
    /// Where worktrees, runs and locks go [default: <repository>.ops]
    #[arg(long, value_name = "DIR")]
    pub(crate) ops_path: Option<PathBuf>,
    /// The workflow repository [default: the one that is found, or <ops>/workflow]
    #[arg(long, value_name = "DIR")]
    pub(crate) workflow_repo: Option<PathBuf>,
    /// The branch that workstreams start from [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    pub(crate) default_branch: Option<String>,
    /// What branches of workstreams start with [default: feat]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) branch_prefix: Option<String>,
}

#[derive(Debug, Subcommand)]
enum ClarifyAction {
    /// List questions that wait
    List {
        /// Only those of this workstream
        #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
        workstream: Option<String>,
        /// Also those that were answered
        #[arg(long)]
        all: bool,
    },
    /// Show a question
    Show(QueueArg),
    /// Answer a question: with an option's number, in words, or in your editor
    Answer {
        #[command(flatten)]
        which: QueueArg,
        /// The number or id of an option, or words [default: $EDITOR opens]
        answer: Option<String>,
    },
    /// Ask a question of your own
    Ask {
        #[command(flatten)]
        which: Which,
        /// The question
        #[arg(long, value_name = "WORDS")]
        question: String,
        /// An answer to choose from (repeatable)
        #[arg(long = "option", value_name = "WORDS")]
        options: Vec<String>,
        /// How pressing it is
        #[arg(long, value_enum, default_value_t)]
        urgency: Urgency,
    },
}

/// A question.
#[derive(Debug, Clone, Args)]
pub(crate) struct QueueArg {
    /// The question, such as CLQ-001
    #[arg(add = ArgValueCandidates::new(question_ids))]
    pub(crate) id: String,
    /// Its workstream, if the id alone is ambiguous
    #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    pub(crate) workstream: Option<String>,
}

/// An acceptance test.
#[derive(Debug, Clone, Args)]
pub(crate) struct UatArg {
    /// The acceptance test, such as UAT-001
    #[arg(add = ArgValueCandidates::new(uat_ids))]
    pub(crate) id: String,
    /// Its workstream, if the id alone is ambiguous
    #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    pub(crate) workstream: Option<String>,
}

#[derive(Debug, Subcommand)]
enum UatAction {
    /// List acceptance tests that wait
    List {
        /// Only those of this workstream
        #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
        workstream: Option<String>,
        /// Also those that have a verdict
        #[arg(long)]
        all: bool,
    },
    /// Show an acceptance test
    Show(UatArg),
    /// Accept
    Pass(UatArg),
    /// Do not accept, and say why
    Fail {
        #[command(flatten)]
        which: UatArg,
        /// What is wrong (repeatable)
        #[arg(long, value_name = "WORDS", required = true)]
        issues: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
enum DocsAction {
    /// Count pages and pictures, and name pictures that no page mentions
    Status(Which),
    /// Remove pictures that no page mentions, in the workstream's worktree; without --apply only name them
    Cleanup {
        #[command(flatten)]
        which: Which,
        /// Really remove them
        #[arg(long)]
        apply: bool,
    },
}

/// Parses the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    let command = |ui: &Ui, cli: Cli| {
        let app = App::new(ui, cli.project)?;
        commands::block_on(dispatch(&app, cli.command))
    };
    shell::start::run(&PROGRAM, |cli: &Cli| cli.output, command)
}

async fn dispatch(app: &App, command: Command) -> Outcome {
    match command {
        Command::Interview(args) => commands::interview::run(app, &args).await,
        Command::Project { action } => match action {
            ProjectAction::Add(args) => commands::project::add(app, &args).await,
            ProjectAction::List => commands::project::list(app),
            ProjectAction::Show { name } => commands::project::show(app, name.as_deref()),
        },
        Command::List => commands::list::run(app),
        Command::New { id, title, expected_paths, prefix } => {
            commands::new::run(app, &id, &title, &expected_paths, prefix.as_deref()).await
        }
        Command::Status(which) => commands::status::run(app, &which),
        Command::Use { id } => commands::switch::run(app, &id),
        Command::Refresh { id } => commands::refresh::run(app, id.as_deref()).await,
        Command::Conflicts { which, exit_code } => {
            commands::conflicts::run(app, &which, exit_code).await
        }
        Command::Update { which, trust } => commands::update::run(app, &which, trust).await,
        Command::Run { which, looped, once: _ } => commands::run::run(app, &which, looped).await,
        Command::Plan { which, args } => commands::plan::run(app, &which, &args).await,
        Command::Approve(which) => commands::verdict::approve(app, &which).await,
        Command::Reject { which, message } => {
            commands::verdict::reject(app, &which, &message).await
        }
        Command::Skip { which, commit, message } => {
            commands::skip::run(app, &which, commit.as_deref(), message.as_deref()).await
        }
        Command::Merge { which, push } => commands::merge::run(app, &which, push).await,
        Command::Close { which, force } => commands::close::run(app, &which, force).await,
        Command::Delete { id, confirm, keep_remote } => {
            commands::delete::run(app, &id, confirm, keep_remote).await
        }
        Command::Clarify { action } => clarify(app, action).await,
        Command::Uat { action } => uat(app, action).await,
        Command::Docs { action } => match action {
            DocsAction::Status(which) => commands::docs::status(app, &which),
            DocsAction::Cleanup { which, apply } => {
                commands::docs::cleanup(app, &which, apply).await
            }
        },
        Command::Show(run) => commands::show::run(app, &run),
        Command::Log { which, limit } => commands::log::run(app, &which, limit),
        Command::Diff(run) => commands::diff::run(app, &run),
        Command::Prune { apply } => commands::prune::run(app, apply).await,
        Command::Watch => commands::watch::run(app).await,
        Command::Doctor => commands::doctor::run(app).await,
        Command::Completions(args) => {
            cmd_completions(&app.ui, &PROGRAM, &args)?;
            Ok(WfExit::Success)
        }
        Command::Man => {
            cmd_man(&app.ui, Cli::command())?;
            Ok(WfExit::Success)
        }
    }
}

async fn clarify(app: &App, action: ClarifyAction) -> Outcome {
    match action {
        ClarifyAction::List { workstream, all } => {
            commands::clarify::list(app, workstream.as_deref(), all)
        }
        ClarifyAction::Show(which) => commands::clarify::show(app, &which),
        ClarifyAction::Answer { which, answer } => {
            commands::clarify::answer(app, &which, answer.as_deref()).await
        }
        ClarifyAction::Ask { which, question, options, urgency } => {
            commands::clarify::ask(app, &which, question, options, urgency).await
        }
    }
}

async fn uat(app: &App, action: UatAction) -> Outcome {
    match action {
        UatAction::List { workstream, all } => commands::uat::list(app, workstream.as_deref(), all),
        UatAction::Show(which) => commands::uat::show(app, &which),
        UatAction::Pass(which) => commands::uat::pass(app, &which).await,
        UatAction::Fail { which, issues } => commands::uat::fail(app, &which, issues).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_project_may_stand_before_or_after_the_command() {
        for words in [["wf", "--project", "p", "list"], ["wf", "list", "--project", "p"]] {
            assert_eq!(Cli::try_parse_from(words).unwrap().project.as_deref(), Some("p"));
        }
    }

    #[test]
    fn once_and_loop_exclude_each_other() {
        assert!(Cli::try_parse_from(["wf", "run", "tf", "--once", "--loop"]).is_err());
        assert!(Cli::try_parse_from(["wf", "run", "tf"]).is_ok());
    }
}
