//! Reads the list and the clones: every merge made again, with what people made of it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use host::git::{ObjectFormat, PastMerge, SealedRepo};
use merge::resolver::knowledge::Knowledge;
use merge::resolver::replay::{MergeFacts, observe_merge};
use merge::resolver::scorer::Scorer;
use merge::resolver::table::Table;
use model::id::Sha;
use serde::Deserialize;

use crate::clone::find_objects;
use crate::stand_in::with_stand_ins;

/// The newest merges of a fork that are tried.
const MERGES_CAP: usize = 300;

pub(crate) struct Fork {
    pub(crate) name: String,
    pub(crate) merges: Vec<Past>,
}

pub(crate) struct Past {
    pub(crate) sha: Sha,
    pub(crate) facts: MergeFacts,
    pub(crate) score_time: Duration,
}

#[derive(Deserialize)]
struct Row {
    repo: String,
    merge: Sha,
    parents: [Sha; 2],
    ct: i64,
    outcome: String,
    took_ours: bool,
    took_theirs: bool,
}

pub(crate) async fn load_forks(clones: &Path, list: &Path, only: Option<&str>) -> Vec<Fork> {
    let text = fs::read_to_string(list).unwrap();
    let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut names: Vec<String> = Vec::new();
    for row in &rows {
        if !names.contains(&row.repo) && only.is_none_or(|only| row.repo.contains(only)) {
            names.push(row.repo.clone());
        }
    }
    let mut forks = Vec::new();
    for name in names {
        let rows = rows.iter().filter(|row| row.repo == name);
        match find_objects(clones, &name) {
            Some(objects) => forks.push(load_fork(&name, &objects, rows).await),
            None => println!("{name}: no clone in {}", clones.display()),
        }
    }
    forks
}

/// A whole merge that took one side was no merge of contents.
async fn load_fork(name: &str, objects: &Path, rows: impl Iterator<Item = &Row>) -> Fork {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    repo.add_alternate(objects).unwrap();
    let repo = repo.believing_commit_graph();
    let is_tried = |row: &&Row| row.outcome == "conflict" && !row.took_ours && !row.took_theirs;
    let mut rows: Vec<&Row> = rows.filter(is_tried).collect();
    rows.sort_by_key(|row| row.ct);
    let rows = rows.split_off(rows.len().saturating_sub(MERGES_CAP));
    let started = Instant::now();
    let mut merges = Vec::new();
    for row in rows {
        let [ours, theirs] = row.parents.clone();
        let merge = PastMerge { sha: row.merge.clone(), ours, theirs };
        let observe = async || observe_merge(&repo, &merge).await;
        match with_stand_ins(scratch.path(), observe).await {
            Ok(facts) => {
                merges.push(Past { sha: merge.sha, score_time: time_scoring(&facts), facts });
            }
            Err(error) => println!("{name} {}: {error}", merge.sha.short()),
        }
    }
    println!("{name}: {} merges in {:?}", merges.len(), started.elapsed());
    Fork { name: name.to_owned(), merges }
}

/// Without a past: looking at the hunks is what takes time.
fn time_scoring(facts: &MergeFacts) -> Duration {
    let knowledge = Knowledge::default();
    let conflict_count = facts.conflict_count;
    let scorer = Scorer { table: Table::shipped(), knowledge: &knowledge, conflict_count };
    let started = Instant::now();
    for (conflict, _) in &facts.conflicts {
        std::hint::black_box(scorer.score(conflict));
    }
    started.elapsed()
}
