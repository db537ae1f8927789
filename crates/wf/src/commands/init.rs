//! `wf init`: registers the project of the current directory, with a profile from what is there, and chooses the agent.

use clap::Args;
use host::dirs::Dirs;
use shell::init::{InitArgs, InitAsker, ask_shared};

use super::App;
use super::interview::{InterviewArgs, prepare_interview};
use crate::disk::project_dirs::agents_dir;
use crate::exit::{OrExit, Outcome, WfExit};

/// Register this repository with a profile from what is there, and choose the agent
///
/// The profile comes from what is there: the targets of the Makefile, else the build system (just, cargo, npm, pnpm, yarn, bun,
/// pytest, uv, go, gradle, maven), the branch that is checked out, and the values of an earlier profile.
/// `wf interview` asks for each of them. Run again, it changes nothing that is set.
///
/// Example: wf init --yes --provider claude --key-command 'pass show key'
#[derive(Debug, Clone, Args)]
pub(crate) struct WfInitArgs {
    /// The project's name [default: that of the repository's folder]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The host of the forge whose token is asked for
    #[arg(long, value_name = "HOST")]
    forge: Option<String>,
    #[command(flatten)]
    shared: InitArgs,
}

pub(crate) async fn cmd_init(app: &App, args: &WfInitArgs) -> Outcome {
    let asker = InitAsker::new("wf", &args.shared)?;
    let agents = agents_dir(&Dirs::from_env().or_exit(WfExit::Config)?);
    // The project asks nothing, so that a folder that cannot be one is refused before the first question.
    let mut project = prepare_interview(app, &InterviewArgs::of_init(args.name.clone())).await?;
    let to = (agents.as_path(), args.forge.as_deref());
    let answers = ask_shared::<WfExit>("wf", &args.shared, asker, to)?;
    if let Some(agent) = &answers.agent {
        project.set_agent(&agent.name)?;
    }
    answers.write::<WfExit>(&app.ui, &agents)?;
    project.write(app)
}
