//! Proof that the check can fail: it has to be red on a break that is seeded into the sources.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{CommitDraft, NewEntry, SealedRepo, TreeEdit, TreeEntry};
use jiff::Timestamp;
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::json;
use shell::Ui;

use super::check_bench::{CheckBench, words};
use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::rules::train::seed::{SEED, choose_seeded};
use crate::rules::words::counted;

/// Largest source file that a break is seeded into.
const MOST_BYTES: usize = 1 << 20;

/// Seeds a break into the source files that upstream changed between two commits, and fails unless the check is red then.
pub(crate) async fn prove_check(
    ui: &Ui,
    bench: &CheckBench<'_>,
    repo: &SealedRepo,
    fork: &Sha,
    (before, target): (&Sha, &Sha),
    check: &str,
) -> Result<(), Failure> {
    let changed = repo.changed_entries(before, target).await.or_machine()?;
    let upstream: BTreeSet<Vec<u8>> = changed.into_iter().map(|entry| entry.path).collect();
    let files = repo.list_paths(fork).await.or_machine()?;
    let seeded = choose_seeded(&files, &upstream, check);
    if seeded.is_empty() {
        return Err(Failure::usage(
            "--prove-check found no source file of a known language to seed a break into",
        ));
    }
    let paths: Vec<&[u8]> = seeded.iter().map(Vec::as_slice).collect();
    let entries = repo.entries_at(fork, &paths).await.or_machine()?;
    let ids = entries.values().map(|entry| entry.id.clone()).collect();
    let blobs = repo.read_small_blobs(ids, MOST_BYTES).await.or_machine()?;
    let blobs: BTreeMap<Sha, Vec<u8>> = blobs.into_iter().collect();
    let edit = |(path, entry): (Vec<u8>, TreeEntry)| {
        let old = blobs.get(&entry.id)?;
        let bytes = [SEED.as_bytes(), old.as_slice(), SEED.as_bytes()].concat();
        Some(TreeEdit { path, entry: NewEntry::Content { mode: entry.mode, bytes } })
    };
    let edits: Vec<TreeEdit> = entries.into_iter().filter_map(edit).collect();
    let trees = repo.trees_of(std::slice::from_ref(fork)).await.or_machine()?;
    let unknown = || Failure::new(ForkliftExit::Internal, format!("{fork} has no tree"));
    let tree = trees.into_iter().flatten().next().ok_or_else(unknown)?;
    let broken = repo.edit_tree(&tree, &edits).await.or_machine()?;
    let draft = CommitDraft {
        tree: &broken,
        parents: std::slice::from_ref(fork),
        identity: &host_identity(),
        when: Timestamp::UNIX_EPOCH,
        message: "a seeded break\n",
    };
    let commit = repo.commit_tree(draft).await.or_machine()?;
    let what = format!("a break seeded into {}", counted(edits.len(), "source file"));
    let checked = bench.check(repo, &commit, &what).await?;
    let passed = checked.summary.passed();
    let names: Vec<_> = edits.iter().map(|edit| String::from_utf8_lossy(&edit.path)).collect();
    ui.event("proof", &json!({"seeded": names, "check": checked.summary, "red": !passed}));
    if passed {
        let shown = names.iter().take(5).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
        let text = format!(
            "the check {} although {shown} cannot be parsed any more: its success says nothing",
            words(&checked.summary)
        );
        let remedy =
            "let the check build or test what upstream changes, or leave out --prove-check";
        return Err(Failure::new(ForkliftExit::NotIntegrated, text).with_remedy(remedy));
    }
    ui.note("the check can fail: it was red on a seeded break");
    Ok(())
}
