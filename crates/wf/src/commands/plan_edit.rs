//! `wf plan add`, `edit`, `move`, `drop` and `supersede`: changes of a plan by command.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use model::id::MicroCommitId;
use serde_json::json;

use super::clarify::{editor, open_editor};
use super::{App, person};
use crate::cli::Which;
use crate::commands::complete::workstream_ids;
use crate::disk::{DiskError, Workstream, save};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::gate::update_status;
use crate::rules::breakdown::Breakdown;
use crate::rules::plan::edit::{
    PlanEditError, PlanPlace, add_commit, drop_commit, move_commit, open_block, replace_commit,
    supersede_commit, with_title,
};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PlanEditCommand {
    Add(PlanAddArgs),
    Edit(PlanCommitEditArgs),
    Move(PlanMoveArgs),
    Drop(PlanDropArgs),
    Supersede(PlanSupersedeArgs),
}

/// The workstream of a plan.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanOf {
    /// The workstream [default: that of the current worktree, or of `wf use`]
    #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    workstream: Option<String>,
}

/// A place in the plan.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(crate) struct PlaceArgs {
    /// Before this micro-commit
    #[arg(long, value_name = "COMMIT")]
    before: Option<String>,
    /// After this micro-commit
    #[arg(long, value_name = "COMMIT")]
    after: Option<String>,
}

/// Add a micro-commit, at the end or at a place
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanAddArgs {
    /// What it does, in the imperative
    title: String,
    #[command(flatten)]
    of: PlanOf,
    /// Why, and how it should be done
    #[arg(long, value_name = "TEXT", default_value = "")]
    text: String,
    /// What a person can check (repeatable)
    #[arg(long, value_name = "TEXT")]
    acceptance: Vec<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Change a micro-commit that is not done: its title, or all of it in VISUAL or EDITOR
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanCommitEditArgs {
    /// The micro-commit
    commit: String,
    #[command(flatten)]
    of: PlanOf,
    /// The new title; without it the editor opens
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Move a micro-commit that is not done, to the end or to a place
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanMoveArgs {
    /// The micro-commit
    commit: String,
    #[command(flatten)]
    of: PlanOf,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Drop a micro-commit that is not done
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanDropArgs {
    /// The micro-commit
    commit: String,
    #[command(flatten)]
    of: PlanOf,
    /// Reason for the notes
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

/// Mark a micro-commit as superseded: it stays in the plan, and is not run
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanSupersedeArgs {
    /// The micro-commit; one that is done stays done
    commit: String,
    #[command(flatten)]
    of: PlanOf,
    /// The micro-commit that stands in its place
    #[arg(long, value_name = "COMMIT")]
    by: Option<String>,
    /// Reason, for the plan and the notes
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    message: String,
}

pub(crate) async fn cmd_plan_edit(app: &App, command: &PlanEditCommand) -> Outcome {
    match command {
        PlanEditCommand::Add(args) => add(app, args).await,
        PlanEditCommand::Edit(args) => edit(app, args).await,
        PlanEditCommand::Move(args) => {
            let id = parse_id(&args.commit)?;
            let (before, after) = parse_place(&args.place)?;
            let place = place_of(before.as_ref(), after.as_ref());
            let act = |text: &str| move_commit(text, &id, place);
            change(app, &args.of, (&id, "moved"), act).await
        }
        PlanEditCommand::Drop(args) => {
            let id = parse_id(&args.commit)?;
            let why = args.message.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let act = |text: &str| drop_commit(text, &id);
            let done = format!("dropped{why}");
            change(app, &args.of, (&id, &done), act).await
        }
        PlanEditCommand::Supersede(args) => {
            let id = parse_id(&args.commit)?;
            let by = args.by.as_deref().map(parse_id).transpose()?;
            let act = |text: &str| supersede_commit(text, &id, by.as_ref(), &args.message);
            change(app, &args.of, (&id, "superseded"), act).await
        }
    }
}

async fn add(app: &App, args: &PlanAddArgs) -> Outcome {
    if args.title.trim().is_empty() {
        return Err(Failure::usage("the title is empty; say what the micro-commit does"));
    }
    let draft = Breakdown::one(&args.title, &args.text, &args.acceptance);
    let (before, after) = parse_place(&args.place)?;
    let place = place_of(before.as_ref(), after.as_ref());
    let (dirs, mut workstream) = app.open(&which(&args.of))?;
    let _lock = dirs.lock_global(&format!("plan {}", workstream.meta.id)).await?;
    let text = workstream.plan_text()?.unwrap_or_default();
    let id = workstream.meta.id.clone();
    let (text, new) = add_commit(&text, id.as_str(), &draft, place).or_exit(WfExit::Config)?;
    finish(app, &mut workstream, &text, (&new, "added"))
}

async fn edit(app: &App, args: &PlanCommitEditArgs) -> Outcome {
    let id = parse_id(&args.commit)?;
    let block = match &args.title {
        Some(title) if title.trim().is_empty() => {
            return Err(Failure::usage("the title is empty; say what the micro-commit does"));
        }
        Some(_) => None,
        None => {
            let (_, workstream) = app.open(&which(&args.of))?;
            let text = workstream.plan_text()?.unwrap_or_default();
            Some(edit_block(open_block(&text, &id).or_exit(WfExit::Config)?).await?)
        }
    };
    let act = |text: &str| {
        let block = match (&block, &args.title) {
            (Some(block), _) => block.clone(),
            (None, title) => with_title(text, &id, title.as_deref().unwrap_or_default())?,
        };
        replace_commit(text, &id, &block)
    };
    change(app, &args.of, (&id, "changed"), act).await
}

async fn edit_block(block: &str) -> WfResult<String> {
    let file = tempfile::Builder::new().suffix(".md").tempfile().or_exit(WfExit::General)?;
    std::fs::write(file.path(), block).or_exit(WfExit::General)?;
    open_editor(&editor()?, file.path()).await?;
    std::fs::read_to_string(file.path()).or_exit(WfExit::General)
}

/// Changes a plan. Refused while a run is active: its micro-commit must not be moved or dropped under it.
async fn change(
    app: &App,
    of: &PlanOf,
    what: (&MicroCommitId, &str),
    act: impl FnOnce(&str) -> Result<String, PlanEditError>,
) -> Outcome {
    let (dirs, mut workstream) = app.open(&which(of))?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "plan")?;
    let _lock = dirs.lock_global(&format!("plan {}", workstream.meta.id)).await?;
    let text = workstream.plan_text()?.unwrap_or_default();
    let changed = act(&text).or_exit(WfExit::Config)?;
    finish(app, &mut workstream, &changed, what)
}

fn finish(
    app: &App,
    workstream: &mut Workstream,
    text: &str,
    (commit, done): (&MicroCommitId, &str),
) -> Outcome {
    let path = workstream.plan_path();
    crate::rules::plan::parse_plan(text).map_err(DiskError::in_file(&path))?;
    save(&path, text.as_bytes())?;
    workstream.note(&format!("{} {done} {commit}", person()), host::clock::now())?;
    let status = update_status(workstream)?;
    let id = &workstream.meta.id;
    app.ui.line(&format!("{commit} {done}; {id} is {status}"));
    app.ui.document(&json!({"workstream": id, "commit": commit, "done": done, "status": status}));
    Ok(WfExit::Success)
}

fn which(of: &PlanOf) -> Which {
    Which { id: of.workstream.clone() }
}

fn parse_id(text: &str) -> WfResult<MicroCommitId> {
    MicroCommitId::parse(text).or_exit(WfExit::Config)
}

type PlaceIds = (Option<MicroCommitId>, Option<MicroCommitId>);

fn parse_place(place: &PlaceArgs) -> WfResult<PlaceIds> {
    let parse = |text: &Option<String>| text.as_deref().map(parse_id).transpose();
    Ok((parse(&place.before)?, parse(&place.after)?))
}

fn place_of<'a>(
    before: Option<&'a MicroCommitId>,
    after: Option<&'a MicroCommitId>,
) -> PlanPlace<'a> {
    match (before, after) {
        (Some(before), _) => PlanPlace::Before(before),
        (None, Some(after)) => PlanPlace::After(after),
        (None, None) => PlanPlace::End,
    }
}
