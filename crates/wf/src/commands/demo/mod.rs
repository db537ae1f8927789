//! `wf demo`: a workstream of two micro-commits from its plan to the merge, with scripted agents in place of models.

use std::path::Path;

use host::git::check_out;
use shell::demo::{DemoFolder, DemoOptions, DemoUser, make_repository};

use super::App;
use crate::PROGRAM;
use crate::exit::{OrExit, Outcome, WfExit, WfResult};

const HISTORY: &str = include_str!("history.txt");
const PROFILE: &str = include_str!("profile.env");
const PLAN: &str = include_str!("plan.md");

/// The implementer's script, and what it holds before the second micro-commit.
const IMPLEMENT_SCRIPT: &str = "implement.toml";
const SECOND_SCRIPT: &str = include_str!("second.toml");

/// Files of the project, and the scripts of its agents.
const PROJECT_FILES: [(&str, &str); 3] = [
    ("project_profile.env", PROFILE),
    (IMPLEMENT_SCRIPT, include_str!("first.toml")),
    ("review.toml", include_str!("review.toml")),
];

/// Take a small product through a plan of two micro-commits, without a model
///
/// In a temporary folder, each command of the way is shown and run: implement, test and review by agents in sealed boxes;
/// approval, acceptance and merge as you would do them.
#[derive(Debug, clap::Args)]
pub(crate) struct WfDemoArgs {
    #[command(flatten)]
    options: DemoOptions,
}

pub(crate) async fn cmd_demo(app: &App, args: &WfDemoArgs) -> Outcome {
    let ui = &app.ui;
    let folder = DemoFolder::create(&PROGRAM, &args.options)?;
    let product = folder.path().join("greeter");
    ui.phase("demo", &format!("making a product in {}", folder.path().display()));
    make_product(folder.path(), &product).await?;
    ui.finish();
    let user = DemoUser::new(ui, &PROGRAM, &folder, &product)?;
    let repo_path = product.display().to_string();
    user.run(&["project", "add", "greeter", "--repo-path", &repo_path], 0).await?;
    user.run(&["new", "greet", "Greet people", "greeter.sh tests.sh"], 0).await?;
    let project = folder.path().join("greeter.ops/workflow/projects/greeter");
    write_plan(&project, args.options.backend().as_deref())?;
    walk(&user, &project).await?;
    let look = format!("git -C {repo_path} log -p");
    folder.finish(ui, &look).or_exit(WfExit::General)?;
    Ok(WfExit::Success)
}

/// The commands of the way, with what a person does at each gate.
async fn walk(user: &DemoUser<'_>, project: &Path) -> WfResult<()> {
    user.comment(&["the plan is written (plan.md): two micro-commits; agents take the first one"]);
    user.run(&["run", "greet", "--once"], 0).await?;
    user.comment(&["the gate after a micro-commit: you read what it changed, and approve"]);
    user.run(&["diff", "--workstream", "greet"], 0).await?;
    user.run(&["approve", "greet"], 0).await?;
    user.comment(&["the second one"]);
    std::fs::write(project.join(IMPLEMENT_SCRIPT), SECOND_SCRIPT).or_exit(WfExit::General)?;
    user.run(&["run", "greet", "--once"], 0).await?;
    user.run(&["approve", "greet"], 0).await?;
    user.comment(&["all are done: acceptance waits for you; you try it, and pass it"]);
    user.run(&["run", "greet", "--once"], WfExit::Blocked.code()).await?;
    user.run(&["uat", "pass", "UAT-001"], 0).await?;
    user.run(&["list"], 0).await?;
    user.comment(&["it is merge-ready: you merge"]);
    user.run(&["merge", "greet"], 0).await
}

async fn make_product(folder: &Path, product: &Path) -> WfResult<()> {
    let origin = folder.join("origin.git");
    make_repository(&origin, HISTORY).await.or_exit(WfExit::General)?;
    check_out(product, &origin).await.or_exit(WfExit::General)
}

/// Writes what `wf interview` and an editor would: the profile, and the plan of the workstream.
fn write_plan(project: &Path, backend: Option<&str>) -> WfResult<()> {
    for (name, text) in PROJECT_FILES {
        std::fs::write(project.join(name), text).or_exit(WfExit::General)?;
    }
    if let Some(backend) = backend {
        let profile = format!("{PROFILE}BOX_BACKEND={backend}\n");
        std::fs::write(project.join("project_profile.env"), profile).or_exit(WfExit::General)?;
    }
    std::fs::write(project.join("workstreams/greet/plan.md"), PLAN).or_exit(WfExit::General)
}
