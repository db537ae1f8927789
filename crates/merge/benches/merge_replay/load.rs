//! Reads the list and the clones: every merge made again, with what people made of it.

use std::collections::BTreeMap;
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
use testkit::Repo;

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

/// A line of a list: a fork with its merges in order, or one merge with what is known about it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Fork { repo: String, merges: Vec<Sha> },
    Merge(Row),
}

#[derive(Deserialize)]
struct Row {
    repo: String,
    merge: Sha,
    ct: i64,
    outcome: String,
    took_ours: bool,
    took_theirs: bool,
}

pub(crate) async fn load_forks(clones: &Path, list: &Path, cache: Option<&Path>) -> Vec<Fork> {
    let text = fs::read_to_string(list).unwrap();
    let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut forks = Vec::new();
    for (name, merges) in by_fork(lines) {
        let kept = cache.map(|folder| crate::cache::file_of(folder, &name));
        if let Some(merges) = kept.as_deref().and_then(crate::cache::read) {
            forks.push(Fork { name, merges });
            continue;
        }
        match find_objects(clones, &name) {
            Some(objects) => {
                let fork = load_fork(&name, &objects, &merges).await;
                if let Some(file) = kept {
                    crate::cache::write(&file, &fork.merges);
                }
                forks.push(fork);
            }
            None => println!("{name}: no clone in {}", clones.display()),
        }
    }
    forks
}

/// Merges of each fork, oldest first. A whole merge that took one side was no merge of contents.
fn by_fork(lines: Vec<Line>) -> Vec<(String, Vec<Sha>)> {
    let mut forks: Vec<(String, Vec<Sha>)> = Vec::new();
    let mut rows: BTreeMap<String, Vec<(i64, Sha)>> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Fork { repo, merges } => forks.push((repo, merges)),
            Line::Merge(row) => {
                if row.outcome == "conflict" && !row.took_ours && !row.took_theirs {
                    rows.entry(row.repo).or_default().push((row.ct, row.merge));
                }
            }
        }
    }
    forks.extend(rows.into_iter().map(|(repo, mut merges)| {
        merges.sort();
        (repo, merges.into_iter().map(|(_, merge)| merge).collect())
    }));
    forks
}

async fn load_fork(name: &str, objects: &Path, merges: &[Sha]) -> Fork {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    repo.add_alternate(objects).unwrap();
    let repo = repo.believing_commit_graph();
    let newest = merges.len().saturating_sub(MERGES_CAP);
    let started = Instant::now();
    let mut found = Vec::new();
    for merge in past_merges(&path, &merges[newest..]) {
        let observe = async || observe_merge(&repo, &merge).await;
        match with_stand_ins(scratch.path(), observe).await {
            Ok(facts) => {
                found.push(Past { sha: merge.sha, score_time: time_scoring(&facts), facts });
            }
            Err(error) => println!("{name} {}: {error}", merge.sha.short()),
        }
    }
    println!("{name}: {} merges in {:?}", found.len(), started.elapsed());
    Fork { name: name.to_owned(), merges: found }
}

/// The merges with their parents.
fn past_merges(repo: &Path, merges: &[Sha]) -> Vec<PastMerge> {
    let mut argv = vec!["rev-list", "--no-walk=unsorted", "--parents"];
    argv.extend(merges.iter().map(Sha::as_str));
    let text = Repo::open(repo.to_path_buf()).git(&argv);
    let parse = |line: &str| {
        let ids: Vec<Sha> = line.split(' ').map(|id| Sha::parse(id).unwrap()).collect();
        let [sha, ours, theirs] = ids.try_into().ok()?;
        Some(PastMerge { sha, ours, theirs })
    };
    text.lines().filter_map(parse).collect()
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
