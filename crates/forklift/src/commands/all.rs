//! `forklift --all`: several forks, one after the other, and one summary.

use std::path::{Path, PathBuf};

use engine::publish::Publication;
use host::signal::{Cancel, cancel_on_signals};
use model::exit::ForkliftExit;
use run_store::run_dir::RunDir;
use serde::Serialize;
use serde_json::json;
use shell::Ui;
use shell::runtime::stop_status;

use super::run::{advance_stoppable, begin};
use super::{ForkliftDirs, block_on};
use crate::commands::run_args::RunArgs;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::attempt::{RecordedSync, SyncEnd, SyncPlace};
use crate::flow::record::ForkRunRecord;
use crate::flow::show::verdict_words;
use crate::rules::aggregate_status::aggregate_status;
use crate::rules::fork_list::parse_fork_list;
use crate::rules::judge::Verdict;
use crate::rules::review::review_points;

#[derive(Debug, Serialize)]
struct Row {
    fork: PathBuf,
    run: Option<String>,
    verdict: Option<serde_json::Value>,
    words: String,
    pull: Option<String>,
    branch: Option<String>,
    status: u8,
    #[serde(skip)]
    outcome: ForkliftExit,
}

/// Runs on each fork. A failure on one is reported and does not stop the others.
pub(crate) fn cmd_run_all(ui: &Ui, args: &RunArgs, forks: &[PathBuf]) -> Outcome {
    let lists: Vec<RecordedSync> = forks
        .iter()
        .filter_map(|fork| Some(RecordedSync::begin_list(ui, list_file(fork)?, args)))
        .collect();
    let begun = ForkliftDirs::from_env().and_then(|places| Ok((places, expand(forks)?)));
    block_on(async {
        for list in &lists {
            let ended = begun.as_ref().map(|_| SyncEnd::from(ForkliftExit::Success));
            list.end(ui, ended).await;
        }
        if let Err(failure) = &begun {
            for fork in forks.iter().filter(|fork| list_file(fork).is_none()) {
                let args = RunArgs { directory: Some(fork.clone()), ..args.clone() };
                RecordedSync::begin(ui, &args, SyncPlace::Listed).end(ui, Err(failure)).await;
            }
        }
        let (places, forks) = begun?;
        let cancel = cancel_on_signals().or_machine()?;
        let mut rows = Vec::new();
        for (number, fork) in forks.iter().enumerate() {
            if let Some(reason) = cancel.reason() {
                rows.push(not_begun(fork, stop_status(&reason)));
                continue;
            }
            ui.phase(
                "fork",
                &format!("fork {} of {}: {}", number + 1, forks.len(), fork.display()),
            );
            rows.push(run_one(ui, args, &places, fork, cancel.clone()).await);
        }
        let status = aggregate_status(rows.iter().map(|row| row.outcome));
        show(ui, &rows, status);
        Ok(status)
    })
}

/// The file of an argument that names a list.
fn list_file(fork: &Path) -> Option<&Path> {
    fork.to_str()?.strip_prefix('@').map(Path::new)
}

/// The given folders, with those of list files.
fn expand(forks: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for fork in forks {
        let Some(list) = list_file(fork) else {
            found.push(fork.clone());
            continue;
        };
        let text = std::fs::read_to_string(list).map_err(|error| {
            Failure::usage(format!("could not read the list {}: {error}", list.display()))
        })?;
        let folders = parse_fork_list(&text, list.parent().unwrap_or(Path::new("")));
        if folders.is_empty() {
            return Err(Failure::usage(format!("the list {} names no fork", list.display())));
        }
        found.extend(folders);
    }
    Ok(found)
}

async fn run_one(
    ui: &Ui,
    args: &RunArgs,
    places: &ForkliftDirs,
    fork: &Path,
    cancel: Cancel,
) -> Row {
    let args = RunArgs { directory: Some(fork.to_path_buf()), ..args.clone() };
    let sync = RecordedSync::begin(ui, &args, SyncPlace::Listed);
    let (run, fork_lock) = match begin(ui, &args, places, None, cancel).await {
        Ok(begun) => begun,
        Err(failure) => {
            sync.end(ui, Err(&failure)).await;
            return failed(ui, fork, None, &failure);
        }
    };
    let dir = run.run.dir.clone();
    let outcome = advance_stoppable(run).await;
    drop(fork_lock);
    sync.end(ui, outcome.as_ref().map(|status| SyncEnd::from(*status))).await;
    match outcome {
        Ok(status) => finished(fork, &dir, status),
        Err(failure) => failed(ui, fork, Some(&dir), &failure),
    }
}

fn finished(fork: &Path, dir: &RunDir, status: ForkliftExit) -> Row {
    let meta = ForkRunRecord::load(dir).ok();
    let verdict = meta.as_ref().and_then(|meta| meta.verdict.clone());
    let sent = meta.as_ref().and_then(|meta| meta.publication.as_ref());
    let problem = sent.and_then(|sent| sent.problem.clone());
    let words = meta.as_ref().zip(verdict.as_ref());
    let words = words.map_or_else(String::new, |(meta, verdict)| {
        verdict_words(meta, verdict, &review_points(meta))
    });
    let (waiting, waiting_pull) = match &verdict {
        Some(Verdict::AwaitingReview { branch, pull, .. }) => (Some(branch), pull.clone()),
        _ => (None, None),
    };
    Row {
        fork: fork.to_path_buf(),
        run: Some(dir.id().to_string()),
        verdict: verdict.as_ref().map(|verdict| json!(verdict)),
        words: problem.map_or(words, |problem| format!("not published: {problem}")),
        pull: sent
            .and_then(|sent| sent.pull.as_ref())
            .map(|pull| pull.url.clone())
            .or(waiting_pull),
        branch: sent.and_then(pushed_branch).or_else(|| waiting.map(ToString::to_string)),
        status: status.code(),
        outcome: status,
    }
}

/// The branch, if it was pushed.
fn pushed_branch(sent: &Publication) -> Option<String> {
    sent.pushed.then(|| sent.branch.to_string())
}

fn failed(ui: &Ui, fork: &Path, dir: Option<&RunDir>, failure: &Failure) -> Row {
    ui.failure(failure);
    let run = dir.map(|dir| dir.id().to_string());
    Row { run, ..without_run(fork, failure.to_string(), failure.status) }
}

fn not_begun(fork: &Path, status: ForkliftExit) -> Row {
    without_run(fork, "not begun: stopped before it".to_owned(), status)
}

fn without_run(fork: &Path, words: String, status: ForkliftExit) -> Row {
    Row {
        fork: fork.to_path_buf(),
        run: None,
        verdict: None,
        words,
        pull: None,
        branch: None,
        status: status.code(),
        outcome: status,
    }
}

fn show(ui: &Ui, rows: &[Row], status: ForkliftExit) {
    ui.event("summary", &json!({"forks": rows, "status": status.code(), "name": status.name()}));
    let cells = rows.iter().map(|row| {
        let sent = row.pull.as_deref().or(row.branch.as_deref()).unwrap_or("-");
        let fork = row.fork.display().to_string();
        vec![fork, row.status.to_string(), sent.to_owned(), row.words.clone()]
    });
    ui.line("");
    ui.table(&["FORK", "STATUS", "PULL OR BRANCH", "VERDICT"], cells);
}
