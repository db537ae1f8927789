//! `wf doctor`: what this machine offers and whether the project is in order. It changes nothing.

use model::exit::WfExit;
use model::told;
use serde_json::json;

use super::App;
use crate::disk::project_dirs::ProjectDirs;
use crate::disk::workflow::Workflow;
use crate::exit::{Failure, Outcome};
use crate::flow::product::{check_worktree, open_product};
use crate::flow::stage::StageRunner;

/// One thing that was looked at.
struct Finding {
    what: String,
    state: State,
    words: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Odd,
    Bad,
}

/// Looks around and tells; status 2 if something must be put right first.
pub(crate) async fn run(app: &App) -> Outcome {
    let mut findings = observe_machine().await;
    match app.dirs() {
        Ok(dirs) => findings.extend(observe_project(app, &dirs).await),
        Err(failure) => {
            let workflow = Workflow::find(&app.here).ok().flatten();
            let at = workflow
                .map_or_else(|| "none".to_owned(), |found| found.root().display().to_string());
            findings.push(finding("workflow", State::Good, at));
            findings.push(finding("project", State::Bad, failure.to_string()));
        }
    }
    for Finding { what, state, words } in &findings {
        let mark = match state {
            State::Good => "ok",
            State::Odd => "odd",
            State::Bad => "BAD",
        };
        app.ui.result(what, &format!("{mark:<4} {words}"));
    }
    let rows: Vec<_> = findings
        .iter()
        .map(|found| json!({"what": found.what, "ok": found.state == State::Good, "fatal": found.state == State::Bad, "words": found.words}))
        .collect();
    app.ui.document(&rows);
    let is_bad = findings.iter().any(|found| found.state == State::Bad);
    Ok(if is_bad { WfExit::Config } else { WfExit::Success })
}

fn finding(what: &str, state: State, words: impl Into<String>) -> Finding {
    Finding { what: what.to_owned(), state, words: words.into() }
}

async fn observe_machine() -> Vec<Finding> {
    let mut findings = vec![match host::git::check_version().await {
        Ok(version) => finding("git", State::Good, version.to_string()),
        Err(error) => finding("git", State::Bad, told(&error)),
    }];
    for (program, missing) in [
        ("make", "not found; suites without TEST_CMD_* cannot run"),
        ("bwrap", "not found; boxes need bubblewrap or a container engine"),
    ] {
        findings.push(match host::tool::which(program) {
            Some(path) => finding(program, State::Good, path.display().to_string()),
            None => finding(program, State::Odd, missing),
        });
    }
    if host::env::is_root() {
        findings.push(finding("user", State::Odd, "wf runs as root; an ordinary user is safer"));
    }
    findings
}

async fn observe_project(app: &App, dirs: &ProjectDirs) -> Vec<Finding> {
    let mut findings = vec![
        finding("project", State::Good, format!("{} in {}", dirs.project.name, dirs.dir.display())),
        finding("ops", State::Good, dirs.ops.display().to_string()),
    ];
    findings.push(match dirs.load_profile() {
        Ok((_, warnings)) if warnings.is_empty() => finding("profile", State::Good, "valid"),
        Ok((_, warnings)) => finding("profile", State::Odd, warnings.join("; ")),
        Err(error) => finding("profile", State::Bad, told(&error)),
    });
    findings.extend(observe_workshop(app, dirs).await);
    match observe_product(dirs).await {
        Ok(found) => findings.extend(found),
        Err(failure) => findings.push(finding("repository", State::Bad, failure.to_string())),
    }
    findings
}

/// Whether boxes can be had, and the agents of the profile.
async fn observe_workshop(app: &App, dirs: &ProjectDirs) -> Vec<Finding> {
    let (Ok((profile, _)), Ok(runner)) = (dirs.load_profile(), StageRunner::new(dirs, app.ui))
    else {
        return Vec::new();
    };
    let mut findings = vec![match runner.describe_backend(&profile).await {
        Ok(words) => finding("boxes", State::Good, words),
        Err(error) => finding("boxes", State::Odd, error.to_string()),
    }];
    for (what, choice) in [("implement", &profile.implement), ("review", &profile.review)] {
        findings.push(match runner.resolve_agent(&profile, choice).await {
            Ok(_) => finding(what, State::Good, choice.provider.clone()),
            Err(error) => finding(what, State::Odd, format!("{}: {error}", choice.provider)),
        });
    }
    findings
}

async fn observe_product(dirs: &ProjectDirs) -> Result<Vec<Finding>, Failure> {
    let product = open_product(dirs).await?;
    let mut findings =
        vec![finding("repository", State::Good, dirs.project.repo.display().to_string())];
    let (workstreams, faults) = dirs.load_workstreams()?;
    findings.extend(faults.iter().map(|fault| finding("workstream", State::Bad, told(fault))));
    for workstream in &workstreams {
        let id = workstream.meta.id.as_str();
        if let Err(fault) = check_worktree(dirs, &product, workstream).await? {
            findings.push(finding(id, State::Bad, fault.to_string()));
        } else if let Err(error) = workstream.load_plan() {
            findings.push(finding(id, State::Bad, told(&error)));
        } else {
            findings.push(finding(id, State::Good, workstream.meta.status.word()));
        }
    }
    Ok(findings)
}
