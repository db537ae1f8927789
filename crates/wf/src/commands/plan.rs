//! `wf plan`: an agent drafts micro-commits for a story; a person reviews, edits and accepts the draft.

use std::io::Read;

use clap::Args;
use merge::three::text::unified_diff;
use serde_json::json;

use super::clarify::{editor, open_editor};
use super::plan_edit::{PlanEditCommand, cmd_plan_edit};
use super::{App, person};
use crate::cli::Which;
use crate::disk::story::StoryFolder;
use crate::disk::{DiskError, ProjectDirs, Workstream, load_text, remove_optional, save};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::page::{PageError, read_page};
use crate::flow::product::{check_worktree, open_product};
use crate::flow::pull::{find_forge_host, read_issue};
use crate::flow::stage::{StageContext, StageRunError, permitted_addresses, run_alone};
use crate::rules::breakdown::{append_draft, extract_breakdown};
use crate::rules::page_url::strip_scheme;
use crate::rules::plan::parse_plan;
use crate::rules::prompt::render_breakdown;
use crate::rules::run_id::RunTopic;
use crate::rules::story_source::{StorySource, parse_story_source};

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
    /// The story: an issue (#12 or its address), the address of a page, a file, - for standard input, or the words themselves
    #[arg(long, value_name = "ISSUE|URL|FILE|TEXT")]
    from: Option<String>,
    /// The story in words, never the name of a file
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    text: Option<String>,
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
    let story = match (&args.from, &args.text) {
        (Some(from), _) => Some(read_story(app, &dirs, from).await?),
        (None, Some(text)) => Some(check_story(text.clone())?),
        (None, None) => story_of(&dirs, &workstream)?,
    };
    if let Some(story) = story {
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

/// Text of the story that the workstream was made for, while there is no draft.
fn story_of(dirs: &ProjectDirs, workstream: &Workstream) -> WfResult<Option<String>> {
    let Some(id) = &workstream.meta.story else { return Ok(None) };
    if workstream.dir.join(DRAFT).exists() {
        return Ok(None);
    }
    let (profile, _) = dirs.load_profile()?;
    let folder = StoryFolder::load(dirs, &profile)?;
    let story = folder.find(id).ok_or_else(|| {
        let message = format!("{id}, the story of {}, is not in the checkout", workstream.meta.id);
        Failure::usage(format!("{message}; give another: wf plan --from STORY"))
    })?;
    check_story(story.text.clone()).map(Some)
}

/// Reads the story: an issue, standard input for `-`, a file of that name, or the text itself.
async fn read_story(app: &App, dirs: &ProjectDirs, from: &str) -> WfResult<String> {
    let (profile, _) = dirs.load_profile()?;
    let host = match strip_scheme(from).is_some() {
        true => find_forge_host(&open_product(dirs).await?, &profile).await?,
        false => None,
    };
    let story = match parse_story_source(from, host.as_deref()) {
        StorySource::Issue(number) => read_issue(dirs, number).await?,
        StorySource::Page(url) => {
            let permitted = permitted_addresses(&profile).map_err(stage_failure)?;
            read_page(url, permitted).await.map_err(|error| page_failure(url, &error))?
        }
        StorySource::Stdin => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).or_exit(WfExit::General)?;
            text
        }
        StorySource::File(name) => read_file(app, name)?.ok_or_else(|| {
            let remedy = format!("if these are the words themselves: wf plan --text '{name}'");
            Failure::usage(format!("there is no file {name}")).with_remedy(remedy)
        })?,
        StorySource::Words(words) => read_file(app, words)?.unwrap_or_else(|| words.to_owned()),
    };
    check_story(story)
}

fn read_file(app: &App, name: &str) -> WfResult<Option<String>> {
    let path = app.here.join(name);
    match path.is_file() {
        true => std::fs::read_to_string(&path).map(Some).or_exit(WfExit::Config),
        false => Ok(None),
    }
}

/// What was asked for cannot be read: a wrong address is the user's to change, a server that fails is not.
fn page_failure(url: &str, error: &PageError) -> Failure {
    let message = format!("{url} {}", model::error_chain(error));
    let failure = match error.is_refusal() {
        true => Failure::usage(message),
        false => Failure::new(WfExit::General, message),
    };
    failure.with_remedy("pass its text on standard input: wf plan --from -")
}

fn check_story(story: String) -> WfResult<String> {
    match story.trim().is_empty() {
        true => Err(Failure::usage("the story is empty; give some text or a file")),
        false => Ok(story),
    }
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
    answer.map_err(stage_failure)
}

fn stage_failure(error: StageRunError) -> Failure {
    match error {
        StageRunError::Stopped(message) | StageRunError::Machine(message) => {
            Failure::new(WfExit::General, message)
        }
        StageRunError::Config(message) => Failure::usage(message),
        StageRunError::Failed(message) => Failure::new(WfExit::Implement, message),
    }
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
