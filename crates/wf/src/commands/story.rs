//! `wf story`: Markdown files of the product that say what is wanted, each made into a workstream.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use model::id::WorkstreamId;
use serde_json::json;

use super::App;
use super::new::show_created;
use crate::disk::story::{StoryFolder, digest_story, find_uncovered, story_work};
use crate::disk::{ProjectDirs, make_dir, save};
use crate::exit::{Failure, Outcome, WfExit, WfResult};
use crate::flow::base::find_lost;
use crate::flow::create::{CheckoutExtent, CreateRequest, create};
use crate::flow::product::open_product;
use crate::rules::meta::StoryLink;
use crate::rules::story::{
    Story, StoryState, StoryWork, find_requirements, next_id, render_story, work_of,
};
use crate::rules::suggest::hint;

#[derive(Debug, Subcommand)]
pub(crate) enum StoryCommand {
    List(StoryListArgs),
    Add(StoryAddArgs),
    Show(StoryArg),
    Start(StoryStartArgs),
}

/// List the stories, the state of each, and the requirements that none of them names
#[derive(Debug, Args)]
pub(crate) struct StoryListArgs {
    /// Merged ones too
    #[arg(long, short)]
    all: bool,
}

/// Write a story into the checkout, with the next number; you commit it
#[derive(Debug, Args)]
pub(crate) struct StoryAddArgs {
    /// What people get
    title: String,
    /// The story in Markdown
    #[arg(long, value_name = "TEXT", default_value = "")]
    text: String,
    /// A requirement that it meets, such as REQ-12 (repeatable)
    #[arg(long, value_name = "REQ")]
    requirement: Vec<String>,
}

/// Show a story and its state
#[derive(Debug, Args)]
pub(crate) struct StoryArg {
    /// The story, such as STORY-0001
    story: String,
}

/// Create a workstream for a story; `wf plan` then drafts its micro-commits from the story
#[derive(Debug, Args)]
pub(crate) struct StoryStartArgs {
    /// The story, such as STORY-0001
    story: String,
    /// Id of the workstream [default: that of the story, in lower case]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Paths that it is expected to touch, separated by blanks
    #[arg(long, value_name = "PATHS", default_value = "")]
    paths: String,
    /// The branch or workstream to start from and to be merged into [default: DEFAULT_BRANCH]
    #[arg(long, value_name = "BRANCH|ID")]
    base: Option<String>,
}

pub(crate) async fn cmd_story(app: &App, command: &StoryCommand) -> Outcome {
    match command {
        StoryCommand::List(args) => list(app, args).await,
        StoryCommand::Add(args) => add(app, args).await,
        StoryCommand::Show(args) => show(app, args).await,
        StoryCommand::Start(args) => start(app, args).await,
    }
}

async fn list(app: &App, args: &StoryListArgs) -> Outcome {
    let dirs = app.dirs()?;
    let (profile, _) = dirs.load_profile()?;
    let folder = load(app, &dirs)?;
    let work = load_work(&dirs).await?;
    let uncovered = find_uncovered(&dirs, &profile, &folder.stories)?;
    let views = folder.stories.iter().map(|story| StoryView::of(story, &work));
    let is_shown = |view: &StoryView<'_>| args.all || view.state().word() != "done";
    let views: Vec<StoryView<'_>> = views.filter(is_shown).collect();
    if app.ui.is_json() {
        let uncovered = uncovered.iter().map(|(id, file)| json!({"id": id, "file": file}));
        app.ui.document(&json!({
            "stories": views.iter().map(StoryView::json).collect::<Vec<_>>(),
            "uncovered_requirements": uncovered.collect::<Vec<_>>(),
        }));
        return Ok(WfExit::Success);
    }
    if views.is_empty() {
        app.ui.line("No open stories. Write one: wf story add \"<title>\"");
    } else {
        let rows = views.iter().map(|view| {
            vec![
                view.story.id.clone(),
                view.words(),
                view.work.map(|work| work.workstream.clone()).unwrap_or_default(),
                view.story.title.clone(),
            ]
        });
        app.ui.table(&["STORY", "STATE", "WORKSTREAM", "TITLE"], rows);
    }
    if !uncovered.is_empty() {
        app.ui.line("Requirements that no story names:");
    }
    for (id, file) in &uncovered {
        app.ui.line(&format!("  {id} ({file})"));
    }
    Ok(WfExit::Success)
}

async fn add(app: &App, args: &StoryAddArgs) -> Outcome {
    if args.title.trim().is_empty() {
        return Err(Failure::usage("the title is empty; say what people get"));
    }
    for typed in &args.requirement {
        if find_requirements(typed) != [typed.as_str()] {
            let message = format!("{typed} is no id of a requirement; one reads REQ-12 or REQ-A-3");
            return Err(Failure::usage(message));
        }
    }
    let dirs = app.dirs()?;
    let (profile, _) = dirs.load_profile()?;
    let _lock = dirs.lock_global("story add").await?;
    let id = next_id(&load(app, &dirs)?.stories);
    let folder = dirs.project.repo.join(&profile.stories_path);
    make_dir(&folder)?;
    let path = folder.join(format!("{id}.md"));
    save(&path, render_story(&id, &args.title, &args.text, &args.requirement).as_bytes())?;
    app.ui.line(&format!("{id}: {}", path.display()));
    app.ui.document(&json!({"story": id, "path": path}));
    app.ui.status(&format!("Complete and commit it, then: wf story start {id}"));
    Ok(WfExit::Success)
}

async fn show(app: &App, args: &StoryArg) -> Outcome {
    let dirs = app.dirs()?;
    let folder = load(app, &dirs)?;
    let story = find(&folder, &args.story)?;
    let work = load_work(&dirs).await?;
    let view = StoryView::of(story, &work);
    if app.ui.is_json() {
        app.ui.document(&view.json());
        return Ok(WfExit::Success);
    }
    app.ui.result("story", &format!("{}: {}", story.id, story.title));
    app.ui.result("state", &view.words());
    if let Some(work) = view.work {
        app.ui.result("workstream", &work.workstream);
    }
    app.ui.result("file", &story.path);
    app.ui.page(&format!("\n{}", story.text));
    Ok(WfExit::Success)
}

async fn start(app: &App, args: &StoryStartArgs) -> Outcome {
    let dirs = app.dirs()?;
    let folder = load(app, &dirs)?;
    let story = find(&folder, &args.story)?;
    let work = load_work(&dirs).await?;
    if let Some(work) = work_of(&story.id, &work) {
        let (id, status) = (&work.workstream, work.status);
        let message = format!("{} is in the workstream {id} already, which is {status}", story.id);
        return Err(Failure::usage(format!("{message}; see: wf status {id}")));
    }
    let id = args.id.clone().unwrap_or_else(|| story.id.to_lowercase());
    let product = open_product(&dirs).await?;
    let request = CreateRequest {
        id: &id,
        title: &story.title,
        expected: &args.paths,
        prefix: None,
        base: args.base.as_deref(),
        after: &[],
        checkout: CheckoutExtent::Profile,
        story: Some(StoryLink { id: story.id.clone(), digest: digest_story(&story.text) }),
    };
    let (workstream, warnings) = create(&dirs, &product, &request).await?;
    show_created(app, &dirs, &workstream, &warnings);
    let id: &WorkstreamId = &workstream.meta.id;
    app.ui.status(&format!("Draft its plan: wf plan {id}, or write it; then: wf run {id} --loop"));
    Ok(WfExit::Success)
}

fn load(app: &App, dirs: &ProjectDirs) -> WfResult<StoryFolder> {
    let (profile, _) = dirs.load_profile()?;
    let folder = StoryFolder::load(dirs, &profile)?;
    for warning in &folder.warnings {
        app.ui.warn(warning);
    }
    Ok(folder)
}

/// Workstreams that were made for stories. Whether those that were merged still are is looked up.
async fn load_work(dirs: &ProjectDirs) -> WfResult<Vec<StoryWork>> {
    let (open, closed) = (dirs.load_workstreams()?.0, dirs.load_closed()?.0);
    let of_stories = open.iter().chain(&closed).filter(|it| it.meta.story.is_some());
    let named: BTreeSet<&str> = of_stories.clone().map(|it| it.meta.id.as_str()).collect();
    let product = open_product(dirs).await?;
    let lost = find_lost(&product, of_stories, &named).await?;
    let open = open.iter().filter_map(|it| story_work(it, false, &lost));
    let closed = closed.iter().filter_map(|it| story_work(it, true, &lost));
    Ok(open.chain(closed).collect())
}

fn find<'a>(folder: &'a StoryFolder, typed: &str) -> WfResult<&'a Story> {
    folder.find(typed).ok_or_else(|| {
        let known = folder.stories.iter().map(|story| story.id.as_str());
        let message = format!("there is no story {typed}{}", hint(typed, known));
        Failure::usage(format!("{message}; see: wf story list"))
    })
}

/// A story and the workstream that its state is taken from.
struct StoryView<'a> {
    story: &'a Story,
    work: Option<&'a StoryWork>,
}

impl<'a> StoryView<'a> {
    fn of(story: &'a Story, work: &'a [StoryWork]) -> Self {
        Self { story, work: work_of(&story.id, work) }
    }

    fn state(&self) -> StoryState {
        match self.work {
            None => StoryState::Open,
            Some(work) if work.is_lost => StoryState::Lost,
            Some(work) => StoryState::In(work.status),
        }
    }

    /// True if the story is not the one that the workstream was made for.
    fn has_changed(&self) -> bool {
        let made_for = self.work.and_then(|work| work.digest.as_ref());
        made_for.is_some_and(|digest| *digest != digest_story(&self.story.text))
    }

    fn words(&self) -> String {
        let lost = match self.state() {
            StoryState::Lost => ": it was merged, and its work is not in the base branch",
            StoryState::Open | StoryState::In(_) => "",
        };
        let changed = if self.has_changed() { ", story changed since" } else { "" };
        format!("{}{lost}{changed}", self.state().word())
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "story": self.story, "state": self.state().word(), "text": self.story.text,
            "workstream": self.work.map(|work| &work.workstream), "changed": self.has_changed(),
        })
    }
}
