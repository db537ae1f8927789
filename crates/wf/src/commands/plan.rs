//! `wf plan`: an agent drafts micro-commits for a story; a person reviews, edits and accepts the draft.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use merge::three::text::unified_diff;
use model::exit::WfExit;
use model::redact::Redactor;
use run_store::commands_log::CommandsLog;
use serde_json::json;

use super::clarify::{editor, open_editor};
use super::{App, person};
use crate::cli::Which;
use crate::disk::project_dirs::ProjectDirs;
use crate::disk::run_dir::WfRunDir;
use crate::disk::secrets::load_secrets;
use crate::disk::workstream::Workstream;
use crate::disk::{DiskError, read_optional, remove_optional, save};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::product::{check_worktree, open_product};
use crate::flow::stage::{StageContext, StageRunError, StageRunner, WorkLocation};
use crate::rules::breakdown::{append_draft, extract_breakdown};
use crate::rules::plan::parse_plan;
use crate::rules::run_id::{RunTopic, run_stem};

/// The draft, and the plan that it was made for.
const DRAFT: &str = "plan.draft.md";
const DRAFT_BASE: &str = "plan.draft.base.md";

/// Draft micro-commits for a story with an agent, review and accept them
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
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

/// Drafts, edits and accepts, depending on the flags.
pub(crate) async fn cmd_plan(app: &App, args: &PlanArgs) -> Outcome {
    let which = &args.which;
    let dirs = app.dirs()?;
    let workstream = app.workstream(&dirs, which)?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "plan")?;
    if let Some(from) = &args.from {
        let story = read_story(app, from)?;
        draft(app, &dirs, &workstream, &story).await?;
    }
    let Some(mut text) = load_text(&workstream, DRAFT)? else {
        return Err(Failure::usage("there is no draft; create one: wf plan --from STORY"));
    };
    if args.edit {
        open_editor(&editor()?, &workstream.dir.join(DRAFT)).await?;
        text = load_text(&workstream, DRAFT)?.unwrap_or_default();
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
fn read_story(app: &App, from: &str) -> Result<String, Failure> {
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
) -> Result<(), Failure> {
    let before = workstream.plan_text()?.unwrap_or_default();
    let plan =
        parse_plan(&before).map_err(|error| DiskError::invalid(&workstream.plan_path(), error))?;
    let stem = run_stem(host::clock::now(), &dirs.project.name, &workstream.meta.id);
    let mut run = WfRunDir::create(&dirs.runs_dir(), &stem)?;
    run.set_topic(RunTopic::Plan)?;
    app.ui.status("> plan");
    let answer = ask(app, dirs, workstream, &run.path(), (&before, story)).await?;
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
    run_dir: &Path,
    (plan, story): (&str, &str),
) -> Result<String, Failure> {
    let (profile, _) = dirs.load_profile()?;
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let product = open_product(dirs).await?;
    check_worktree(dirs, &product, workstream).await?.or_exit(WfExit::Implement)?;
    let head = product.head(&workstream.meta.worktree).await.or_exit(WfExit::General)?;
    let head = head.ok_or_else(|| Failure::new(WfExit::Implement, "the worktree has no commit"))?;
    let runner = StageRunner::new(dirs, &app.ui)?;
    let redactor = Arc::new(Redactor::new(load_secrets(dirs)?));
    let log = CommandsLog::open_in(run_dir, redactor).or_exit(WfExit::General)?;
    let log = Arc::new(log).callback();
    let context = StageContext {
        workstream,
        profile: &profile,
        product: &product,
        run_dir,
        cancel: &cancel,
        log: &log,
    };
    let end = runner.draft(context, &head, plan, story).await;
    runner.tidy(run_dir, WorkLocation::Unknown);
    match end {
        Ok(answer) => Ok(answer),
        Err(StageRunError::Stopped(message)) => Err(Failure::new(WfExit::General, message)),
        Err(StageRunError::Config(message)) => Err(Failure::usage(message)),
        Err(StageRunError::Failed(message)) => Err(Failure::new(WfExit::Implement, message)),
    }
}

fn load_text(workstream: &Workstream, name: &str) -> Result<Option<String>, Failure> {
    let path: PathBuf = workstream.dir.join(name);
    let Some(bytes) = read_optional(&path)? else { return Ok(None) };
    let text =
        String::from_utf8(bytes).map_err(|error| DiskError::invalid(&path, error.utf8_error()))?;
    Ok(Some(text))
}

/// Replaces the plan with the draft, if the draft is valid and the plan did not change since.
fn accept(app: &App, workstream: &Workstream, plan: &str, text: &str) -> Outcome {
    if load_text(workstream, DRAFT_BASE)?.as_deref() != Some(plan) {
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
