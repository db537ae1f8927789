//! `wf doctor`: checks the machine and the project, and changes nothing.

use model::error_chain;
use serde_json::json;
use shell::doctor::{Finding, FindingState, memory_text};

use super::App;
use crate::disk::effect_log::UnfinishedEffect;
use crate::disk::{ProjectDirs, ProjectEffects, Workflow};
use crate::exit::{Failure, Outcome, WfExit, WfResult};
use crate::flow::product::{check_worktree, open_product};
use crate::flow::stage::StageRunner;

/// Prints the findings; status 2 if one of them must be fixed first.
pub(crate) async fn cmd_doctor(app: &App) -> Outcome {
    let mut findings = observe_machine().await;
    match app.dirs() {
        Ok(dirs) => findings.extend(observe_project(app, &dirs).await),
        Err(failure) => {
            let workflow = Workflow::find(&app.here).ok().flatten();
            let at = workflow
                .map_or_else(|| "none".to_owned(), |found| found.root().display().to_string());
            findings.push(Finding::good("workflow", at));
            findings.push(Finding::bad("project", failure.to_string()));
        }
    }
    for Finding { name, state, text } in &findings {
        let mark = match state {
            FindingState::Good => "ok",
            FindingState::Odd => "odd",
            FindingState::Bad => "BAD",
        };
        app.ui.result(name, &format!("{mark:<4} {text}"));
    }
    let rows: Vec<_> = findings
        .iter()
        .map(|found| json!({"what": found.name, "ok": found.state == FindingState::Good, "fatal": found.state == FindingState::Bad, "words": found.text}))
        .collect();
    app.ui.document(&rows);
    let is_bad = findings.iter().any(|found| found.state == FindingState::Bad);
    Ok(if is_bad { WfExit::Config } else { WfExit::Success })
}

async fn observe_machine() -> Vec<Finding> {
    let mut findings = vec![match host::git::check_version().await {
        Ok(version) => Finding::good("git", version.to_string()),
        Err(error) => Finding::bad("git", error_chain(&error)),
    }];
    for (program, missing) in [
        ("make", "not found; suites without TEST_CMD_* cannot run"),
        ("bwrap", "not found; boxes need bubblewrap or a container engine"),
    ] {
        findings.push(match host::tool::which(program) {
            Some(path) => Finding::good(program, path.display().to_string()),
            None => Finding::odd(program, missing),
        });
    }
    findings.push(Finding::good("memory", memory_text()));
    if host::env::is_root() {
        findings.push(Finding::odd("user", "wf runs as root; an ordinary user is safer"));
    }
    findings
}

async fn observe_project(app: &App, dirs: &ProjectDirs) -> Vec<Finding> {
    let mut findings = vec![
        Finding::good("project", format!("{} in {}", dirs.project.name, dirs.dir.display())),
        Finding::good("ops", dirs.ops.display().to_string()),
    ];
    findings.push(match dirs.load_profile() {
        Ok((_, warnings)) if warnings.is_empty() => Finding::good("profile", "valid"),
        Ok((_, warnings)) => Finding::odd("profile", warnings.join("; ")),
        Err(error) => Finding::bad("profile", error_chain(&error)),
    });
    findings.push(observe_effects(dirs));
    findings.extend(observe_boxes(app, dirs).await);
    match observe_product(dirs).await {
        Ok(found) => findings.extend(found),
        Err(failure) => findings.push(Finding::bad("repository", failure.to_string())),
    }
    findings
}

fn observe_effects(dirs: &ProjectDirs) -> Finding {
    let unfinished =
        ProjectEffects::of(dirs).and_then(|effects| effects.unfinished().map_err(Failure::from));
    match unfinished {
        Ok(open) if open.is_empty() => Finding::good("effects", "all finished"),
        Ok(open) => {
            let name = |effect: &UnfinishedEffect| {
                format!("{} of {} for {}", effect.op, effect.target, effect.workstream)
            };
            let names: Vec<String> = open.iter().map(name).collect();
            let text = format!("interrupted: {}; run the command again", names.join(", "));
            Finding::odd("effects", text)
        }
        Err(failure) => Finding::bad("effects", failure.to_string()),
    }
}

async fn observe_boxes(app: &App, dirs: &ProjectDirs) -> Vec<Finding> {
    let (Ok((profile, _)), Ok(runner)) = (dirs.load_profile(), StageRunner::new(dirs, &app.ui))
    else {
        return Vec::new();
    };
    let mut findings = vec![match runner.describe_backend(&profile).await {
        Ok(words) => Finding::good("boxes", words),
        Err(error) => Finding::odd("boxes", error.to_string()),
    }];
    for (what, choice) in [("implement", &profile.implement), ("review", &profile.review)] {
        findings.push(match runner.resolve_agent(&profile, choice).await {
            Ok(_) => Finding::good(what, choice.provider.clone()),
            Err(error) => Finding::odd(what, format!("{}: {error}", choice.provider)),
        });
    }
    findings
}

async fn observe_product(dirs: &ProjectDirs) -> WfResult<Vec<Finding>> {
    let product = open_product(dirs).await?;
    let mut findings = vec![Finding::good("repository", dirs.project.repo.display().to_string())];
    let (workstreams, faults) = dirs.load_workstreams()?;
    findings.extend(faults.iter().map(|fault| Finding::bad("workstream", error_chain(fault))));
    for workstream in &workstreams {
        let id = workstream.meta.id.as_str();
        if let Err(fault) = check_worktree(dirs, &product, workstream).await? {
            findings.push(Finding::bad(id, fault.to_string()));
        } else if let Err(error) = workstream.load_plan() {
            findings.push(Finding::bad(id, error_chain(&error)));
        } else {
            findings.push(Finding::good(id, workstream.meta.status.word()));
        }
    }
    Ok(findings)
}
