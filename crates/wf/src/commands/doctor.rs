//! `wf doctor`: tries a box, its egress and the agents, checks the project, and changes nothing.

use std::path::Path;

use agent::Provider;
use host::dirs::Dirs;
use model::error_chain;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::config::Config;
use shell::doctor::{DoctorOptions, Finding, MachineReport, show_findings};

use super::App;
use crate::disk::effect_log::UnfinishedEffect;
use crate::disk::project_dirs::{PROFILE_ENV, agents_dir};
use crate::disk::{OpenRun, PendingChange, ProjectDirs, ProjectEffects, Workflow, Workstream};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::product::{check_worktree, missing_branches, open_product};
use crate::flow::stage::StageRunner;
use crate::rules::build_system::parse_targets;
use crate::rules::profile::{Profile, Suite, SuiteRunner};

/// Prints the findings; status 2 if one of them must be fixed first.
pub(crate) async fn cmd_doctor(app: &App) -> Outcome {
    let dirs = app.dirs();
    let mut findings = observe_machine(app, dirs.as_ref().ok()).await?;
    match dirs {
        Ok(dirs) => findings.extend(observe_project(app, &dirs).await),
        Err(failure) => {
            let workflow = Workflow::find(&app.here).ok().flatten();
            let at = workflow
                .map_or_else(|| "none".to_owned(), |found| found.root().display().to_string());
            findings.push(Finding::good("workflow", at));
            findings.push(Finding::bad("project", failure.to_string()));
        }
    }
    show_findings(&app.ui, &findings);
    app.ui.document(&findings);
    let is_bad = findings.iter().any(Finding::is_bad);
    Ok(if is_bad { WfExit::Config } else { WfExit::Success })
}

/// The machine, tried with the backend and the image that the project's profile names.
async fn observe_machine(app: &App, dirs: Option<&ProjectDirs>) -> WfResult<Vec<Finding>> {
    let user_dirs = Dirs::from_env().or_exit(WfExit::Config)?;
    let profile = dirs.and_then(|dirs| dirs.load_profile().ok()).map(|(profile, _)| profile);
    let backend = profile.as_ref().and_then(|profile| profile.box_backend.as_deref());
    let image = profile.as_ref().and_then(|profile| profile.box_image.as_deref());
    let runs = dirs.map_or_else(|| app.here.clone(), ProjectDirs::runs_dir);
    let agents = agents_dir(&user_dirs);
    let used = profile.as_ref().map_or_else(Vec::new, used_providers);
    let machine = MachineReport::observe(DoctorOptions {
        backend: backend.map(str::parse).transpose().or_exit(WfExit::Config)?,
        image: image.unwrap_or(DEFAULT_IMAGE),
        runs: &runs,
        agents: &agents,
        used: &used,
        free_floor_bytes: profile.as_ref().map(Profile::disk_floor_bytes),
    })
    .await;
    let mut findings = machine.findings();
    findings.push(match host::tool::which("make") {
        Some(path) => Finding::good("make", path.display().to_string()),
        None => Finding::odd("make", "not found; suites without TEST_CMD_* cannot run"),
    });
    if host::env::is_root() {
        findings.push(Finding::odd("user", "wf runs as root; an ordinary user is safer"));
    }
    Ok(findings)
}

/// Providers of the agents that the profile uses.
fn used_providers(profile: &Profile) -> Vec<Provider> {
    let config = Config::load().unwrap_or_default();
    let choices = [&profile.implement, &profile.review, &profile.plan];
    let choices = choices.into_iter().chain(profile.compete.iter().map(|it| &it.agent));
    choices.filter_map(|it| Some(config.agent_options(&it.provider).ok()?.provider)).collect()
}

async fn observe_project(app: &App, dirs: &ProjectDirs) -> Vec<Finding> {
    let mut findings = vec![
        Finding::good("project", format!("{} in {}", dirs.project.name, dirs.dir.display())),
        Finding::good("ops", dirs.ops.display().to_string()),
    ];
    let has_profile = dirs.dir.join(PROFILE_ENV).exists();
    findings.push(match dirs.load_profile() {
        Ok(_) if !has_profile => {
            Finding::odd("profile", "not written, so defaults hold; write it: wf init")
        }
        Ok((_, warnings)) if warnings.is_empty() => Finding::good("profile", "valid"),
        Ok((_, warnings)) => Finding::odd("profile", warnings.join("; ")),
        Err(error) => Finding::bad("profile", error_chain(&error)),
    });
    findings.extend(dirs.load_profile().ok().map(|(profile, _)| observe_suites(dirs, &profile)));
    findings.push(observe_effects(dirs));
    findings.extend(observe_agents(app, dirs).await);
    match observe_product(dirs).await {
        Ok(found) => findings.extend(found),
        Err(failure) => findings.push(Finding::bad("repository", failure.to_string())),
    }
    findings
}

/// The suites that can run: without one, nothing that passes is tested.
fn observe_suites(dirs: &ProjectDirs, profile: &Profile) -> Finding {
    let makefile = profile.makefile.as_ref().map(|path| dirs.project.repo.join(path));
    let makefile = makefile.and_then(|path| std::fs::read(path).ok());
    let targets = makefile.map(|text| parse_targets(&String::from_utf8_lossy(&text)));
    let can_run = |suite: &&Suite| match (&suite.how, &targets) {
        (SuiteRunner::Skip(_), _) | (SuiteRunner::Make(_), None) => false,
        (SuiteRunner::Command(_), _) => true,
        (SuiteRunner::Make(target), Some(targets)) => targets.has(target) || !targets.is_complete,
    };
    let names: Vec<&str> = profile.suites.iter().filter(can_run).map(|suite| suite.name).collect();
    let unknown: Vec<String> =
        profile.suites.iter().filter_map(|suite| unknown_program(suite, dirs)).collect();
    match names.is_empty() {
        false if !unknown.is_empty() => Finding::odd("tests", unknown.join("; ")),
        false => Finding::good("tests", names.join(", ")),
        true => Finding::bad("tests", no_suite(&dirs.dir.join(PROFILE_ENV))),
    }
}

/// Says that the program of a suite is not on this machine. An image may have it, so that it need not be wrong.
fn unknown_program(suite: &Suite, dirs: &ProjectDirs) -> Option<String> {
    let SuiteRunner::Command(argv) = &suite.how else { return None };
    let program = argv.first()?;
    let is_there = match program.contains('/') {
        true => dirs.project.repo.join(program).exists(),
        false => host::tool::which(program).is_some(),
    };
    let text = format!("{}: there is no program {program} on this machine", suite.name);
    (!is_there).then_some(text)
}

/// The remedy names the profile only where there is one.
fn no_suite(profile: &Path) -> String {
    match profile.exists() {
        true => format!(
            "no suite can run; name a target that exists (MAKE_TARGET_UNIT) or a command (TEST_CMD_UNIT) in {}",
            profile.display()
        ),
        false => {
            "no suite can run; write the profile by what the repository has: wf init".to_owned()
        }
    }
}

/// Commands on whole workstreams that were killed.
fn observe_interrupted(dirs: &ProjectDirs) -> WfResult<Vec<Finding>> {
    let mut findings = Vec::new();
    for (id, change) in PendingChange::load_all(dirs)? {
        let text = match change {
            PendingChange::New { .. } => format!(
                "wf new {id} was interrupted; run it again, or take it back: wf delete {id} --confirm"
            ),
            PendingChange::Delete(_) => {
                format!("wf delete {id} was interrupted; finish it: wf delete {id} --confirm")
            }
            PendingChange::Open { .. } => {
                format!("wf open {id} was interrupted; run it again: wf open {id}")
            }
            PendingChange::Close { .. } => {
                format!("wf close {id} was interrupted; finish it: wf close {id}")
            }
        };
        findings.push(Finding::odd("interrupted", text));
    }
    Ok(findings)
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

/// Agents of the stages: without them no stage runs.
async fn observe_agents(app: &App, dirs: &ProjectDirs) -> Vec<Finding> {
    let (Ok((profile, _)), Ok(runner)) = (dirs.load_profile(), StageRunner::new(dirs, &app.ui))
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let stages = [("implement", &profile.implement), ("review", &profile.review)];
    let plan = Some(("plan", &profile.plan)).filter(|_| profile.plan != profile.review);
    for (what, choice) in stages.into_iter().chain(plan) {
        findings.push(match runner.resolve_agent(&profile, choice).await {
            Ok(_) => Finding::good(what, choice.provider.clone()),
            Err(error) => Finding::bad(what, format!("{}: {error}", choice.provider)),
        });
    }
    findings
}

async fn observe_product(dirs: &ProjectDirs) -> WfResult<Vec<Finding>> {
    let product = open_product(dirs).await?;
    let repo = dirs.project.repo.display().to_string();
    let mut findings = vec![match product.user().is_shallow() {
        false => Finding::good("repository", repo),
        true => Finding::bad(
            "repository",
            format!("{repo} is a shallow clone; run 'git fetch --unshallow' in it first"),
        ),
    }];
    findings.extend(
        dirs.folders_without_meta()?.into_iter().map(|text| Finding::odd("workstream", text)),
    );
    findings.extend(observe_interrupted(dirs)?);
    let (workstreams, faults) = dirs.load_workstreams()?;
    findings.extend(faults.iter().map(|fault| Finding::bad("workstream", error_chain(fault))));
    let listed: Vec<&Workstream> = workstreams.iter().collect();
    let gone = missing_branches(&product, &listed).await?;
    for (workstream, gone) in workstreams.iter().zip(gone) {
        let id = workstream.meta.id.as_str();
        if let Err(fault) = check_worktree(dirs, &product, workstream).await? {
            findings.push(Finding::bad(id, fault.to_string()));
        } else if let Some(fault) = gone {
            findings.push(Finding::bad(id, fault));
        } else if let Err(error) = workstream.load_plan() {
            findings.push(Finding::bad(id, error_chain(&error)));
        } else if let Some(run) = OpenRun::load_interrupted(dirs, &workstream.meta.id)? {
            let text = format!(
                "the run {} was interrupted in {}; go on: wf run {id}",
                run.directory, run.stage
            );
            findings.push(Finding::odd(id, text));
        } else {
            findings.push(Finding::good(id, workstream.meta.status.word()));
        }
    }
    Ok(findings)
}
