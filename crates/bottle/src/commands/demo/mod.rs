//! `bot-bottle demo`: an issue becomes a pull request, with a folder in place of a forge and a script in place of a model.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use host::git::check_out;
use serde_json::{Value, json};
use shell::Ui;
use shell::demo::{DemoFolder, DemoOptions, DemoUser, make_repository};

use super::block_on;
use crate::PROGRAM;
use crate::exit::{Failure, OrGeneral, Outcome, SUCCESS};

const HISTORY: &str = include_str!("history.txt");
const SCRIPT: &str = include_str!("agent.toml");
const MANIFEST: &str = "provider = \"scripted\"\nscript = \"worker-script.toml\"\n";

/// The bottle of the demo's issue.
const SLUG: &str = "worker-issue-1";

/// Turn an issue into a pull request, without a model and without a forge
///
/// In a temporary folder, with a folder as the forge (`FORGE_URL=file:///path`), each command of the way is shown and run:
/// the agent works on the issue in a sealed box, the host judges what it committed and opens the pull request, and the
/// signed record of the run is verified.
#[derive(Debug, Args)]
pub(crate) struct BottleDemoArgs {
    #[command(flatten)]
    options: DemoOptions,
}

/// Paths of the demo below its folder.
struct DemoForge {
    forge: PathBuf,
    /// Issues, pull requests and comments of the repository.
    files: PathBuf,
    checkout: PathBuf,
}

pub(crate) fn cmd_demo(ui: &Ui, args: &BottleDemoArgs) -> Outcome {
    block_on(async {
        let folder = DemoFolder::create(&PROGRAM, &args.options)?;
        ui.phase("demo", &format!("making a forge with an issue in {}", folder.path().display()));
        let forge = make_forge(folder.path()).await?;
        ui.finish();
        let user = DemoUser::new(ui, &PROGRAM, &folder, &forge.checkout)?
            .with_env("FORGE_URL", format!("file://{}", forge.forge.display()))
            .with_env("FORGE_OWNER", "you")
            .with_env("FORGE_REPO", "greeter")
            .with_env("FORGE_ISSUE_NUMBER", "1");
        let backend = args.options.backend();
        walk(&user, backend.as_deref()).await?;
        show_pull(ui, &forge.files)?;
        let look = format!("ls {0}/threads {0}/comments", forge.files.display());
        folder.finish(ui, &look).or_general()?;
        Ok(SUCCESS)
    })
}

async fn walk(user: &DemoUser<'_>, backend: Option<&str>) -> Result<(), Failure> {
    user.comment(&[
        "you/greeter#1 \"Greet by name\" is assigned to bot-bottle and labelled bot-bottle:worker;",
        "FORGE_URL, FORGE_OWNER, FORGE_REPO and FORGE_ISSUE_NUMBER name it",
    ]);
    let mut start =
        vec!["orchestrate", "start", "--agent", "worker", "--prompt", "Work on your issue"];
    start.extend(backend.map_or_else(Vec::new, |backend| vec!["--backend", backend]));
    user.run(&start, 0).await?;
    user.comment(&["the bottle is frozen while people review; the record of its run is signed"]);
    user.run(&["list"], 0).await?;
    user.run(&["provenance", "verify", SLUG], 0).await
}

/// Makes a repository with an issue on a forge that is a folder, a checkout of it, and the agent's manifest.
async fn make_forge(folder: &Path) -> Result<DemoForge, Failure> {
    let forge = folder.join("forge");
    let (repo, files) = (forge.join("you/greeter.git"), forge.join("you/greeter.git.forge"));
    let agents = folder.join("home/.bot-bottle/agents");
    for dir in [&files.join("threads"), &agents] {
        host::file::create_dirs(dir).or_general()?;
    }
    make_repository(&repo, HISTORY).await.or_general()?;
    let checkout = folder.join("greeter");
    check_out(&checkout, &repo).await.or_general()?;
    let issue = json!({
        "number": 1, "title": "Greet by name", "body": "`greeter.sh Ada` should say \"Hello, Ada\".",
        "labels": ["bot-bottle:worker"], "assignees": ["bot-bottle"],
    });
    let members = json!({ "bot-bottle": ["bot-bottle"] });
    fs::write(files.join("threads/000001.json"), issue.to_string()).or_general()?;
    fs::write(files.join("organisations.json"), members.to_string()).or_general()?;
    fs::write(agents.join("worker.toml"), MANIFEST).or_general()?;
    fs::write(agents.join("worker-script.toml"), SCRIPT).or_general()?;
    Ok(DemoForge { forge, files, checkout })
}

/// Prints the pull request as the forge has it.
fn show_pull(ui: &Ui, files: &Path) -> Result<(), Failure> {
    let text = fs::read(files.join("threads/000002.json")).or_general()?;
    let pull: Value = serde_json::from_slice(&text).or_general()?;
    let word = |pointer: &str| pull.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    ui.result("pull", &format!("#2 {} ({})", word("/title"), word("/pull/head")));
    let shown = |line: &&str| !line.is_empty() && !line.starts_with("<!--");
    for line in word("/body").lines().filter(shown) {
        ui.item(line);
    }
    Ok(())
}
