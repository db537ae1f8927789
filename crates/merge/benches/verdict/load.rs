//! Merges that people made, from a list and a folder of clones.

use std::fs;
use std::path::{Path, PathBuf};

use host::git::{ObjectFormat, SealedRepo};
use merge::contract::ContractEnds;
use model::id::Sha;
use serde::Deserialize;

use crate::clone::find_objects;

/// A fork with its merges, and a repository that sees the clone's objects and takes new ones.
pub(crate) struct Fork {
    pub(crate) name: String,
    pub(crate) repo: SealedRepo,
    pub(crate) merges: Vec<ContractEnds>,
    /// Merges that the clone cannot make again.
    pub(crate) left_out: usize,
    /// Folder of the repository; it goes with the fork.
    pub(crate) scratch: tempfile::TempDir,
}

#[derive(Deserialize)]
pub(crate) struct MergeRow {
    pub(crate) repo: String,
    merge: Sha,
    parents: [Sha; 2],
    ct: i64,
}

pub(crate) fn load_rows(list: &Path) -> Vec<MergeRow> {
    let text = fs::read_to_string(list).unwrap();
    let mut rows: Vec<MergeRow> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row.ct);
    rows
}

/// Names of the forks in the list that have a clone.
pub(crate) fn fork_names(rows: &[MergeRow], clones: &Path) -> Vec<(String, PathBuf)> {
    let mut names: Vec<&String> = rows.iter().map(|row| &row.repo).collect();
    names.sort();
    names.dedup();
    let found = |name: &&String| find_objects(clones, name).map(|path| ((*name).clone(), path));
    names.iter().filter_map(found).collect()
}

/// Loads the newest merges of a fork.
pub(crate) async fn load_fork(name: &str, objects: &Path, rows: &[MergeRow], cap: usize) -> Fork {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    repo.add_alternate(objects).unwrap();
    let repo = repo.believing_commit_graph();
    let newest = rows.iter().rev().filter(|row| row.repo == name).take(cap);
    let (mut merges, mut left_out) = (Vec::new(), 0);
    for row in newest {
        let [base, upstream] = row.parents.clone();
        match repo.merge_base(&base, &upstream).await {
            Ok(Some(merge_base)) => {
                merges.push(ContractEnds { merge_base, base, upstream, tip: row.merge.clone() });
            }
            Ok(None) | Err(_) => left_out += 1,
        }
    }
    Fork { name: name.to_owned(), repo, merges, left_out, scratch }
}
