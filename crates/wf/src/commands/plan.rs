//! `wf plan`: an agent drafts micro-commits for a story; a person reviews, edits and accepts the draft.

use std::io::Read;

use clap::Args;
use merge::three::text::unified_diff;
use serde_json::json;

use super::clarify::{editor, open_editor};
use super::plan_edit::{PlanEditCommand, cmd_plan_edit};
use super::{App, person};
use crate::cli::Which;
use crate::disk::{DiskError, ProjectDirs, Workstream, load_text, remove_optional, save};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::product::{check_worktree, open_product};
use crate::flow::stage::{StageContext, StageRunError, run_alone};
use crate::rules::breakdown::{append_draft, extract_breakdown};
use crate::rules::plan::parse_plan;
use crate::rules::prompt::render_breakdown;
use crate::rules::run_id::RunTopic;

/// The draft, and the plan that it was made for.
const DRAFT: &str = "plan.draft.md";
const DRAFT_BASE: &str = "plan.draft.base.md";

/// Draft micro-commits for a story with an agent, review and accept them; or change the plan by hand
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    edit_command: Option<PlanEditCommand>,
    #[command(flatten)]
    which: Which,
    /// The story: a file, - for standard input, or the words themselves
    #[arg(long, value_name = "TEXT|FILE")]
    from: Option<String>,
    /// Make the draft the plan
    #[arg(long)]
    accept: bool,
    /// Open the draft in VISUAL or EDITOR first
    #[arg(long)]
    edit: bool,
}

pub(crate) async fn cmd_plan(app: &App, args: &PlanArgs) -> Outcome {
    if let Some(command) = &args.edit_command {
        return cmd_plan_edit(app, command).await;
    }
    let (dirs, workstream) = app.open(&args.which)?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "plan")?;
    if let Some(from) = &args.from {
        let story = read_story(app, from)?;
        draft(app, &dirs, &workstream, &story).await?;
    }
    let Some(mut text) = load_text(&workstream.dir.join(DRAFT))? else {
        return Err(Failure::usage("there is no draft; create one: wf plan --from STORY"));
    };
    if args.edit {
        open_editor(&editor()?, &workstream.dir.join(DRAFT)).await?;
        text = load_text(&workstream.dir.join(DRAFT))?.unwrap_or_default();
    }
    let plan = workstream.plan_text()?.unwrap_or_default();
    app.ui.document(
        &json!({"workstream": workstream.meta.id, "draft": text, "accepted": args.accept}),
    );
    if !app.ui.is_json() {
        app.ui.page(&unified_diff(["plan.md", DRAFT], &plan, &text));
    }
    if args.accept {
        return accept(app, &workstream, &plan, &text);
    }
    app.ui.status(&format!(
        "Accept it: wf plan {0} --accept, or edit it: wf plan {0} --edit",
        workstream.meta.id
    ));
    Ok(WfExit::Success)
}

/// Reads the story: a file of that name, standard input for `-`, or the text itself.
fn read_story(app: &App, from: &str) -> WfResult<String> {
    let path = app.here.join(from);
    let story = if from == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).or_exit(WfExit::General)?;
        text
    } else if path.is_file() {
        std::fs::read_to_string(&path).or_exit(WfExit::Config)?
    } else {
        from.to_owned()
    };
    if story.trim().is_empty() {
        return Err(Failure::usage("the story is empty; give some text or a file"));
    }
    Ok(story)
}

async fn draft(
    app: &App,
    dirs: &ProjectDirs,
    workstream: &Workstream,
    story: &str,
) -> WfResult<()> {
    let before = workstream.plan_text()?.unwrap_or_default();
    let plan = parse_plan(&before).map_err(DiskError::in_file(&workstream.plan_path()))?;
    app.ui.status("> plan");
    let answer = ask(app, dirs, workstream, &before, story).await?;
    let draft = extract_breakdown(&answer).or_exit(WfExit::Implement)?;
    let after = append_draft(&before, &plan, workstream.meta.id.as_str(), &draft);
    parse_plan(&after).or_exit(WfExit::Implement)?;
    save(&workstream.dir.join(DRAFT_BASE), before.as_bytes())?;
    Ok(save(&workstream.dir.join(DRAFT), after.as_bytes())?)
}

async fn ask(
    app: &App,
    dirs: &ProjectDirs,
    workstream: &Workstream,
    plan: &str,
    story: &str,
) -> WfResult<String> {
    let (profile, _) = dirs.load_profile()?;
    let product = open_product(dirs).await?;
    check_worktree(dirs, &product, workstream).await?.or_exit(WfExit::Implement)?;
    let (title, max_files, max_lines) =
        (&workstream.meta.title, profile.max_files, profile.max_lines);
    let raw: Vec<&str> = profile
        .raw_requirements
        .iter()
        .map(String::as_str)
        .filter(|path| workstream.meta.worktree.join(path).exists())
        .collect();
    let prompt = render_breakdown(title, plan, story, &raw, [max_files as u64, max_lines]);
    let draft = async |stage: StageContext<'_>| stage.draft(&prompt).await;
    let topic = RunTopic::Plan;
    let (answer, _) =
        run_alone(&app.ui, dirs, &product, workstream, &profile, topic, draft).await?;
    answer.map_err(|error| match error {
        StageRunError::Stopped(message) | StageRunError::Machine(message) => {
            Failure::new(WfExit::General, message)
        }
        StageRunError::Config(message) => Failure::usage(message),
        StageRunError::Failed(message) => Failure::new(WfExit::Implement, message),
    })
}

/// Replaces the plan with the draft, if the draft is valid and the plan did not change since.
fn accept(app: &App, workstream: &Workstream, plan: &str, text: &str) -> Outcome {
    if load_text(&workstream.dir.join(DRAFT_BASE))?.as_deref() != Some(plan) {
        return Err(Failure::usage(
            "plan.md was changed since the draft was made; create a new one: wf plan --from STORY",
        ));
    }
    parse_plan(text).map_err(|error| DiskError::invalid(&workstream.dir.join(DRAFT), error))?;
    save(&workstream.plan_path(), text.as_bytes())?;
    for name in [DRAFT, DRAFT_BASE] {
        remove_optional(&workstream.dir.join(name))?;
    }
    workstream.note(&format!("{} accepted a drafted plan", person()), host::clock::now())?;
    app.ui.line("Accepted the draft");
    app.ui.status(&format!("Next: wf run {} --loop", workstream.meta.id));
    Ok(WfExit::Success)
}
