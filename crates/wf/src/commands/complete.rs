//! Ids for a shell that completes, from the files of the moment.

use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;

use crate::disk::question::PENDING;
use crate::disk::uat::PENDING_UATS;
use crate::disk::{ProjectDirs, Workflow, list_runs, names_in};

pub(crate) fn project_names() -> Vec<CompletionCandidate> {
    let names = || -> Option<Vec<String>> {
        let here = host::env::current_dir().ok()?;
        Workflow::find(&here).ok()??.project_names().ok()
    };
    candidates(names())
}

pub(crate) fn workstream_ids() -> Vec<CompletionCandidate> {
    candidates(dirs().and_then(|dirs| dirs.workstream_names().ok()))
}

pub(crate) fn run_names() -> Vec<CompletionCandidate> {
    candidates(dirs().and_then(|dirs| list_runs(&dirs.runs_dir()).ok()))
}

pub(crate) fn question_ids() -> Vec<CompletionCandidate> {
    candidates(dirs().map(|dirs| ids_in(&dirs, PENDING)))
}

pub(crate) fn uat_ids() -> Vec<CompletionCandidate> {
    candidates(dirs().map(|dirs| ids_in(&dirs, PENDING_UATS)))
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
