//! Writes a commit-graph file by hand, because git would not write one that lies.
//!
//! Layout (`gitformat-commit-graph`): a header, a table of chunks, a fan-out of first bytes (`OIDF`), the sorted
//! object ids (`OIDL`), one record per commit (`CDAT`), and a checksum of all that.

use std::collections::BTreeMap;

use sha1::{Digest, Sha1};

use super::Repo;

/// Stands for "no parent".
const NO_PARENT: u32 = 0x7000_0000;
const HEADER: usize = 8;
const CHUNKS: usize = 3;
const CHUNK_ENTRY: usize = 12;
const ID: usize = 20;
const FANOUT: usize = 256 * 4;
const RECORD: usize = ID + 16;

struct Commit {
    tree: String,
    parents: Vec<String>,
    secs: u64,
}

/// The bytes of a commit-graph over the histories of `tip` and `extra` in which `claim`, which `extra` must not
/// contain, has `extra` as its last parent.
pub(super) fn forge(repo: &Repo, tip: &str, claim: &str, extra: &str) -> Vec<u8> {
    let mut commits = observe_commits(repo, &[tip, extra]);
    commits.get_mut(claim).expect("among them").parents.push(extra.to_owned());
    render(&commits)
}

/// Every commit that can be reached, by its id; the order of the map is the order of the file.
fn observe_commits(repo: &Repo, tips: &[&str]) -> BTreeMap<String, Commit> {
    let log = repo.git(&[&["log", "--format=%H %T %ct %P"], tips].concat());
    log.lines()
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let mut word = || words.next().expect("an id, a tree and a date");
            let (id, tree, secs) = (word(), word(), word());
            assert_eq!(id.len(), 2 * ID, "only SHA-1 repositories");
            let secs = secs.parse().expect("seconds");
            (id, Commit { tree, parents: words.collect(), secs })
        })
        .collect()
}

fn render(commits: &BTreeMap<String, Commit>) -> Vec<u8> {
    let ids: Vec<&String> = commits.keys().collect();
    let position =
        |id: &String| u32::try_from(ids.binary_search(&id).expect("known")).expect("few");
    let levels = levels(commits);

    let mut file = Vec::new();
    file.extend_from_slice(b"CGPH");
    let chunk_count = u8::try_from(CHUNKS).expect("few");
    file.extend_from_slice(&[1, 1, chunk_count, 0]);
    let fanout_at = HEADER + (CHUNKS + 1) * CHUNK_ENTRY;
    let ids_at = fanout_at + FANOUT;
    let records_at = ids_at + ids.len() * ID;
    let end = records_at + ids.len() * RECORD;
    for (name, at) in
        [(b"OIDF", fanout_at), (b"OIDL", ids_at), (b"CDAT", records_at), (&[0; 4], end)]
    {
        file.extend_from_slice(name);
        file.extend_from_slice(&(at as u64).to_be_bytes());
    }
    for first in 0..=u8::MAX {
        let up_to = ids.iter().filter(|id| bytes(id)[0] <= first).count();
        file.extend_from_slice(&u32::try_from(up_to).expect("few").to_be_bytes());
    }
    for id in &ids {
        file.extend_from_slice(&bytes(id));
    }
    for (id, commit) in commits {
        assert!(commit.parents.len() <= 2, "{id} has more than two parents");
        file.extend_from_slice(&bytes(&commit.tree));
        for slot in 0..2 {
            let parent = commit.parents.get(slot).map_or(NO_PARENT, position);
            file.extend_from_slice(&parent.to_be_bytes());
        }
        // Thirty bits of level, then thirty-four bits of date.
        file.extend_from_slice(&((levels[id] << 34) | commit.secs).to_be_bytes());
    }
    assert_eq!(file.len(), end, "the table of chunks tells the truth");
    let checksum = Sha1::digest(&file);
    file.extend_from_slice(&checksum);
    file
}

/// One more than the highest level among the parents. Git stops searching by it, so the lie has to reach this far.
fn levels(commits: &BTreeMap<String, Commit>) -> BTreeMap<&String, u64> {
    let mut levels: BTreeMap<&String, u64> = BTreeMap::new();
    while levels.len() < commits.len() {
        for (id, commit) in commits {
            let parents: Option<Vec<u64>> =
                commit.parents.iter().map(|parent| levels.get(parent).copied()).collect();
            if let Some(parents) = parents {
                levels.insert(id, 1 + parents.into_iter().max().unwrap_or(0));
            }
        }
    }
    levels
}

fn bytes(id: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&id[at..at + 2], 16).expect("hexadecimal");
    (0..id.len()).step_by(2).map(byte).collect()
}
