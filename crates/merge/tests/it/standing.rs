//! Trust in this fork: what held in several of its merges, and what people did with the same conflict on another branch.

use host::git::{LineageRange, PastMerge};
use merge::resolver::answer_class::ResolveStrategy;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::{Learned, learn, teach};
use merge::resolver::rule::ResolveRules;
use merge::resolver::{MergeHeads, ResolveOptions, ResolvedMerge, resolve_conflicts};

use crate::resolver::{learned, paths, people_merge, read, resolve_at, resolve_with};
use crate::world::{FORK, UPSTREAM, World};

#[tokio::test]
async fn deletions_are_not_kept_in_a_fork_that_nothing_is_known_about() {
    let world = World::new(&[("gone", "1\n")]);
    world.remove(FORK, "gone");
    world.write(UPSTREAM, "gone", "2\n");
    let resolved = resolve_at(&world, 0.9).await;
    assert_eq!(paths(&resolved), (vec![], vec!["gone".to_owned()]));
}

#[tokio::test]
async fn a_habit_that_held_in_many_merges_is_trusted_until_it_changes() {
    let world = World::new(&[("old/a", "0\n"), ("old/b", "0\n"), ("old/c", "0\n")]);
    for path in ["old/a", "old/b", "old/c"] {
        world.remove(FORK, path);
    }
    let change = |round: usize| {
        for path in ["old/a", "old/b", "old/c"] {
            world.write(UPSTREAM, path, format!("{round}\n"));
        }
    };
    for round in 1..=8 {
        change(round);
        people_merge(&world, &[("old/a", None), ("old/b", None), ("old/c", None)]);
    }
    change(9);
    let at = TrustThreshold::new(0.9).unwrap();
    let knowledge = learned(&world).await.knowledge;
    let resolved = resolve_with(&world, at, &ResolveRules::default(), &knowledge).await;
    assert_eq!(paths(&resolved).1, Vec::<String>::new(), "{:?}", resolved.rest);
    // One merge in which people wanted them back ends the habit for all of them.
    people_merge(&world, &[("old/a", Some("9\n")), ("old/b", Some("9\n")), ("old/c", None)]);
    change(10);
    let knowledge = learned(&world).await.knowledge;
    let resolved = resolve_with(&world, at, &ResolveRules::default(), &knowledge).await;
    assert!(paths(&resolved).1.contains(&"old/c".to_owned()), "{:?}", resolved.receipts);
}

/// Programs that compare mergers replay the merges of all branches by date, and name each one after it was scored.
#[tokio::test]
async fn a_merge_that_was_taught_counts_wherever_it_is() {
    let world = World::new(&[("a", "1\n")]);
    let before = world.write(FORK, "a", "fork\n");
    let theirs = world.write(UPSTREAM, "a", "2\n");
    world.repo.git(&["branch", "side", FORK]);
    people_merge(&world, &[("a", Some("fork 2\n"))]);
    let merge = PastMerge { sha: world.sha(FORK), ours: before, theirs: theirs.clone() };
    let sealed = world.sealed().await;
    let taught = teach(&sealed, &merge, None).await.unwrap();
    assert_eq!(taught.seen, std::slice::from_ref(&merge.sha));
    assert_eq!(teach(&sealed, &merge, Some(taught.clone())).await.unwrap(), taught);
    let side = world.sha("side");
    let range = LineageRange { tip: &side, siblings: &[], upstream: &theirs };
    let mut learned = taught.clone();
    learn(&sealed, range, &mut learned, |_, _| {}).await.unwrap();
    assert_eq!(learned, taught, "the merge is not below this tip, and is kept");
}

/// The fork's `main` and `release` get upstream one after the other, with the same answers.
async fn merged_twice(rounds: usize) -> (World, Learned) {
    let world = World::new(&[("text", "a\nb\nc\n"), ("gone", "1\n"), ("open", "1\n")]);
    world.write(FORK, "text", "a\nfork\nc\n");
    world.remove(FORK, "gone");
    world.repo.git(&["branch", "release"]);
    world.write("release", "open", "release\n");
    for round in 1..=rounds {
        world.write(UPSTREAM, "text", format!("a\nupstream {round}\nc\n"));
        world.write(UPSTREAM, "gone", format!("of {round}\n"));
        let text = format!("a\nfork of {round}\nc\n");
        let files = [("text", Some(text.as_str())), ("gone", None)];
        people_merge(&world, &files);
        if round < rounds {
            let merged = world.merged_on("release", &files);
            world.on("release").git(&["reset", "--quiet", "--hard", merged.as_str()]);
        }
    }
    world.write(UPSTREAM, "open", "upstream\n");
    let (tip, upstream) = (world.sha("release"), world.sha(UPSTREAM));
    let siblings = [world.sha(FORK)];
    let range = LineageRange { tip: &tip, siblings: &siblings, upstream: &upstream };
    let mut learned = Learned::default();
    learn(&world.sealed().await, range, &mut learned, |_, _| {}).await.unwrap();
    (world, learned)
}

async fn resolve_release(world: &World, learned: &Learned, trust: f64) -> ResolvedMerge {
    let trust = TrustThreshold::new(trust).unwrap();
    let options = ResolveOptions { knowledge: &learned.knowledge, ..ResolveOptions::at(trust) };
    let heads = MergeHeads { ours: world.sha("release"), theirs: world.sha(UPSTREAM) };
    resolve_conflicts(&world.sealed().await, &heads, options).await.unwrap()
}

/// People who make each merge on two branches have answered the second one when they made the first.
#[tokio::test]
async fn merges_on_a_second_branch_are_resolved_as_on_the_first() {
    let (world, learned) = merged_twice(6).await;
    let resolved = resolve_release(&world, &learned, 0.9).await;
    let (done, left) = paths(&resolved);
    assert_eq!((done, left), (vec!["gone".into(), "text".into()], vec!["open".to_owned()]));
    for receipt in &resolved.receipts {
        let step = &receipt.steps[0];
        let learned_from = step.learned_from.as_ref();
        assert_eq!(
            (step.strategy, learned_from),
            (ResolveStrategy::Memory, Some(&world.sha(FORK)))
        );
    }
    let text = read(&world, &resolved, "text").await.unwrap();
    assert_eq!(text, "a\nfork of 6\nc\n");
    assert_eq!(read(&world, &resolved, "gone").await, None);
}

/// A merge that is made again may be one that people did not like the first time.
#[tokio::test]
async fn a_second_branch_alone_is_no_habit() {
    let (world, learned) = merged_twice(1).await;
    let at = async |trust| paths(&resolve_release(&world, &learned, trust).await).0;
    assert_eq!(at(0.9).await, Vec::<String>::new());
    assert_eq!(at(0.6).await, ["gone", "text"]);
}
