//! `wf completions`, and the answers to a shell that completes: ids come from the files of the moment.

use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};
use model::exit::WfExit;

use super::App;
use crate::disk::names_in;
use crate::disk::project_dirs::ProjectDirs;
use crate::disk::question::PENDING;
use crate::disk::run_dir::list_runs;
use crate::disk::workflow::Workflow;
use crate::exit::{Failure, OrExit, Outcome};

/// The variable by which a shell asks.
const VARIABLE: &str = "COMPLETE";

/// Answers a shell that asks for completions; tells whether one did.
pub(crate) fn answer_shell(command: fn() -> clap::Command) -> clap::error::Result<bool> {
    let here = host::env::current_dir().ok();
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .try_complete(std::env::args_os(), here.as_deref())
}

/// Prints what a shell must read once.
pub(crate) fn print(app: &App, shell: &str) -> Outcome {
    let shells = Shells::builtins();
    let known: Vec<&str> = shells.names().collect();
    let completer = shells.completer(shell).ok_or_else(|| {
        Failure::usage(format!("the shell '{shell}' is not one of {}", known.join(", ")))
    })?;
    let mut page = Vec::new();
    completer.write_registration(VARIABLE, "wf", "wf", "wf", &mut page).or_exit(WfExit::General)?;
    app.ui.page(&String::from_utf8_lossy(&page));
    Ok(WfExit::Success)
}

/// Projects, for completion.
pub(crate) fn project_names() -> Vec<CompletionCandidate> {
    let names = || -> Option<Vec<String>> {
        let here = host::env::current_dir().ok()?;
        Workflow::find(&here).ok()??.project_names().ok()
    };
    candidates(names())
}

/// Workstreams, for completion.
pub(crate) fn workstream_ids() -> Vec<CompletionCandidate> {
    candidates(dirs().and_then(|dirs| dirs.workstream_names().ok()))
}

/// Runs, for completion.
pub(crate) fn run_names() -> Vec<CompletionCandidate> {
    candidates(dirs().and_then(|dirs| list_runs(&dirs.runs_dir()).ok()))
}

/// Questions that wait, for completion.
pub(crate) fn question_ids() -> Vec<CompletionCandidate> {
    candidates(dirs().map(|dirs| ids_in(&dirs, PENDING)))
}

/// Acceptance tests that wait, for completion.
pub(crate) fn uat_ids() -> Vec<CompletionCandidate> {
    candidates(dirs().map(|dirs| ids_in(&dirs, "uat/pending")))
}

fn ids_in(dirs: &ProjectDirs, folder: &str) -> Vec<String> {
    let dirs: Vec<PathBuf> = dirs
        .workstream_names()
        .unwrap_or_default()
        .into_iter()
        .map(|name| dirs.workstreams_dir().join(name).join(folder))
        .collect();
    let names = dirs.iter().flat_map(|dir| names_in(dir).unwrap_or_default());
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}

fn dirs() -> Option<ProjectDirs> {
    ProjectDirs::resolve(None, &host::env::current_dir().ok()?).ok()
}

fn candidates(names: Option<Vec<String>>) -> Vec<CompletionCandidate> {
    names.unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}
