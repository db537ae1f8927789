//! `forklift runs`: the runs of this user, newest first.

use std::collections::{BTreeMap, BTreeSet};

use engine::publish::Publication;
use engine::run::Phase;
use jiff::{SignedDuration, Timestamp};
use model::exit::ForkliftExit;
use model::id::RunId;
use run_store::StoreError;
use run_store::run_dir::{self, RunDir};
use serde_json::json;
use shell::Ui;

use super::ForkliftDirs;
use crate::exit::{OrExit, Outcome};
use crate::flow::record::ForkRunRecord;
use crate::rules::judge::Verdict;
use crate::rules::security::fix::FixRecord;

pub(crate) fn cmd_runs(ui: &Ui) -> Outcome {
    let dirs = run_dir::list(&ForkliftDirs::from_env()?.runs).or_machine()?;
    let runs: Vec<ListedRun> =
        dirs.into_iter().map(|dir| (ForkRunRecord::load(&dir), dir)).collect();
    let (later, withdrawn) = (find_publishers(&runs), find_withdrawn(&runs));
    if ui.is_json() {
        let rows: Vec<_> = runs
            .iter()
            .map(|(meta, dir)| {
                let (meta, later) = (meta.as_ref().ok(), later.get(dir.id()).map(|it| &it.run));
                let withdrawn = withdrawn.contains(later.unwrap_or(dir.id()));
                json!({"run": dir.id(), "path": dir.path(), "metadata": meta, "published_by": later, "withdrawn": withdrawn})
            })
            .collect();
        ui.document(&rows);
        return Ok(ForkliftExit::Success);
    }
    if runs.is_empty() {
        ui.line("No runs yet. Start one in a checkout of your fork with: forklift");
        return Ok(ForkliftExit::Success);
    }
    let now = host::clock::now();
    let rows = runs.iter().map(|run| row(run, (&later, &withdrawn), now).to_vec());
    ui.table(&["RUN", "AGE", "STATE", "VERDICT", "PULL OR BRANCH"], rows);
    Ok(ForkliftExit::Success)
}

type ListedRun = (Result<ForkRunRecord, StoreError>, RunDir);

/// The newest run that published the commit of another one, by the other one's name.
fn find_publishers(runs: &[ListedRun]) -> BTreeMap<RunId, &ForkRunRecord> {
    let mut found = BTreeMap::new();
    // Runs come newest first, and the newest stays.
    for meta in runs.iter().rev().filter_map(|(meta, _)| meta.as_ref().ok()) {
        let sent = meta.publication.as_ref().filter(|sent| sent.is_published());
        if let (Some(earlier), Some(_)) = (&meta.publishes, sent) {
            found.insert(earlier.clone(), meta);
        }
    }
    found
}

/// The runs whose publication was taken back.
fn find_withdrawn(runs: &[ListedRun]) -> BTreeSet<RunId> {
    let mut found = BTreeSet::new();
    for meta in runs.iter().rev().filter_map(|(meta, _)| meta.as_ref().ok()) {
        match &meta.verdict {
            Some(Verdict::Withdrawn { run }) if meta.phase == Phase::Closed => {
                found.insert(run.clone());
            }
            _ => {
                // One that was published again is no longer withdrawn.
                meta.publishes.as_ref().map(|earlier| found.remove(earlier));
            }
        }
    }
    found
}

fn row(
    (meta, dir): &ListedRun,
    (later, withdrawn): (&BTreeMap<RunId, &ForkRunRecord>, &BTreeSet<RunId>),
    now: Timestamp,
) -> [String; 5] {
    let run = dir.id().to_string();
    match meta {
        Ok(meta) => {
            let state = if meta.phase == Phase::Closed { "closed" } else { "open" };
            let age = render_age(now.duration_since(meta.started_at));
            let later = later.get(dir.id());
            let sent = later.and_then(|later| later.publication.as_ref());
            let sent = match sent.or(meta.publication.as_ref()) {
                Some(_) if withdrawn.contains(later.map_or(dir.id(), |it| &it.run)) => {
                    "withdrawn".to_owned()
                }
                sent => sent.map_or_else(|| "-".to_owned(), where_to),
            };
            let verdict = match &meta.verdict {
                Some(Verdict::Publish) if meta.fix.as_ref().is_some_and(FixRecord::is_adapted) => {
                    "adapted"
                }
                verdict => verdict.as_ref().map_or("", Verdict::word),
            };
            [run, age, state.to_owned(), verdict.to_owned(), sent]
        }
        Err(error) => {
            [run, "-".to_owned(), "unreadable".to_owned(), error.to_string(), "-".to_owned()]
        }
    }
}

pub(crate) fn where_to(sent: &Publication) -> String {
    match &sent.pull {
        Some(pull) => pull.url.clone(),
        None if sent.is_published() => sent.branch.to_string(),
        None => "not published".to_owned(),
    }
}

/// In the largest unit that makes sense.
fn render_age(age: SignedDuration) -> String {
    let minutes = age.as_mins().max(0);
    match minutes {
        0..60 => format!("{minutes}m"),
        60..1440 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (minutes, expected) in
            [(-5, "0m"), (0, "0m"), (59, "59m"), (60, "1h"), (1439, "23h"), (4320, "3d")]
        {
            assert_eq!(render_age(SignedDuration::from_mins(minutes)), expected);
        }
    }
}
