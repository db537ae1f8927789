//! The resolver on real repositories: resolved conflicts, open conflicts, receipts and briefs.

use host::git::LineageRange;
use host::signal::{Cancel, CancelReason};
use merge::clean::ConflictKind;
use merge::path::TreePath;
use merge::resolver::answer_class::ResolveStrategy;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::habit::Resolution;
use merge::resolver::history::{Learned, MergesRead, learn};
use merge::resolver::hunk::Side;
use merge::resolver::knowledge::Knowledge;
use merge::resolver::receipt::FileAction;
use merge::resolver::replayed::ReplayedMerge;
use merge::resolver::rule::{PathRule, Regenerate, ResolveRules};
use merge::resolver::touch::add_touches;
use merge::resolver::{
    MergeHeads, RegeneratedFile, RegeneratedFiles, ResolveOptions, ResolvedMerge, resolve_conflicts,
};

use crate::world::{FORK, UPSTREAM, World};

pub(crate) async fn resolve_with(
    world: &World,
    trust: TrustThreshold,
    rules: &ResolveRules,
    knowledge: &Knowledge,
) -> ResolvedMerge {
    let heads = MergeHeads { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    let options = ResolveOptions { rules, knowledge, ..ResolveOptions::at(trust) };
    resolve_conflicts(&world.sealed().await, &heads, options).await.unwrap()
}

pub(crate) async fn resolve_at(world: &World, trust: f64) -> ResolvedMerge {
    let trust = TrustThreshold::new(trust).unwrap();
    resolve_with(world, trust, &ResolveRules::default(), &Knowledge::default()).await
}

pub(crate) async fn learned(world: &World) -> Learned {
    learned_from(world, Learned::default()).await
}

/// Learns on, from what was learned before.
async fn learned_from(world: &World, mut learned: Learned) -> Learned {
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let range = LineageRange { tip: &tip, siblings: &[], upstream: &upstream };
    learn(&world.sealed().await, range, &mut learned, |_, _| {}).await.unwrap();
    learned
}

pub(crate) async fn read(world: &World, resolved: &ResolvedMerge, path: &str) -> Option<String> {
    let sealed = world.sealed().await;
    let entries = sealed.entries_at(&resolved.tree, &[path.as_bytes()]).await.unwrap();
    let entry = entries.get(path.as_bytes())?;
    let blobs = sealed.read_blobs(std::slice::from_ref(&entry.id), 1 << 20).await.unwrap();
    Some(String::from_utf8(blobs.into_iter().next().unwrap()?.bytes).unwrap())
}

pub(crate) fn paths(resolved: &ResolvedMerge) -> (Vec<String>, Vec<String>) {
    let replayed = resolved.receipts.iter().map(|receipt| receipt.path.to_string());
    (replayed.collect(), resolved.rest.iter().map(|brief| brief.path.to_string()).collect())
}

/// Merges upstream into the fork by hand, with these files as the result.
pub(crate) fn people_merge(world: &World, files: &[(&str, Option<&str>)]) {
    let merged = world.merged_by_hand(files);
    world.on(FORK).git(&["reset", "--quiet", "--hard", merged.as_str()]);
}

#[tokio::test]
async fn what_the_fork_deleted_stays_deleted_and_the_rest_is_briefed() {
    let world = World::new(&[("gone", "1\n"), ("text", "a\nb\nc\n")]);
    world.remove(FORK, "gone");
    world.write(FORK, "text", "a\nfork's own words\nc\n");
    world.write(UPSTREAM, "gone", "2\n");
    world.write(UPSTREAM, "text", "a\nsomething else entirely\nc\n");
    let resolved = resolve_at(&world, 0.6).await;
    assert_eq!(paths(&resolved), (vec!["gone".to_owned()], vec!["text".to_owned()]));
    let receipt = &resolved.receipts[0];
    assert_eq!((receipt.kind, receipt.action), (ConflictKind::DeleteModify, FileAction::Deleted));
    assert_eq!((receipt.dropped.of_ours, receipt.dropped.of_theirs), (0, 1));
    assert!(receipt.confidence >= 0.6 && receipt.inputs.ours.is_none());
    assert_eq!(read(&world, &resolved, "gone").await, None);
    let brief = &resolved.rest[0];
    assert_eq!(brief.hunks[0].ours, "fork's own words\n");
    assert!(!brief.hunks[0].proposals.is_empty(), "{brief:?}");
    assert!(read(&world, &resolved, "text").await.unwrap().contains("<<<<<<<"));
}

#[tokio::test]
async fn a_brief_names_the_commits_of_both_sides() {
    let world = World::new(&[("text", "1\n")]);
    let ours = world.write(FORK, "text", "fork\n");
    world.write(UPSTREAM, "other", "x\n");
    let theirs = world.write(UPSTREAM, "text", "upstream\n");
    let mut resolved = resolve_at(&world, 1.0).await;
    let heads = MergeHeads { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    add_touches(&world.sealed().await, &heads, &mut resolved.rest).await.unwrap();
    let brief = &resolved.rest[0];
    assert_eq!((brief.ours_commits.len(), &brief.ours_commits[0].sha), (1, &ours));
    assert_eq!((brief.theirs_commits.len(), &brief.theirs_commits[0].sha), (1, &theirs));
    assert_eq!(brief.theirs_commits[0].subject, "up: text");
}

#[tokio::test]
async fn at_full_trust_nothing_is_ever_done() {
    let world = World::new(&[("gone", "1\n")]);
    world.remove(FORK, "gone");
    world.write(UPSTREAM, "gone", "2\n");
    let resolved = resolve_at(&world, 1.0).await;
    assert_eq!((resolved.receipts.len(), resolved.rest.len()), (0, 1));
}

#[tokio::test]
async fn the_owner_outranks_what_was_learned() {
    let world = World::new(&[("docs/a", "1\n"), ("lock", "1\n"), ("other", "1\n")]);
    for (path, text) in [("docs/a", "fork\n"), ("lock", "fork\n"), ("other", "fork\n")] {
        world.write(FORK, path, text);
        world.write(UPSTREAM, path, "upstream\n");
    }
    let how = Regenerate { from: Side::Theirs, command: "make lock".to_owned() };
    let rules = ResolveRules::default()
        .with("docs", PathRule::Ours)
        .with("lock", PathRule::Regenerate(how.clone()))
        .with("other", PathRule::Trust(TrustThreshold::NEVER));
    let resolved =
        resolve_with(&world, TrustThreshold::new(0.0).unwrap(), &rules, &Knowledge::default())
            .await;
    assert_eq!(read(&world, &resolved, "docs/a").await.unwrap(), "fork\n");
    assert_eq!(read(&world, &resolved, "lock").await.unwrap(), "upstream\n");
    assert_eq!(resolved.regenerate[0].1, how);
    assert_eq!(resolved.rest[0].path.to_string(), "other");
}

#[tokio::test]
async fn a_resolution_that_people_repeat_is_repeated_for_them() {
    let world = World::new(&[("config", "version 1\n")]);
    world.write(FORK, "config", "version 1 fork\n");
    for round in 2..12 {
        world.write(UPSTREAM, "config", format!("version {round}\n"));
        people_merge(&world, &[("config", Some(&format!("version {round} fork\n")))]);
    }
    world.write(UPSTREAM, "config", "version 12\n");
    let learned = learned(&world).await;
    assert_eq!((learned.seen.len(), learned.skipped.len()), (10, 0));
    let resolved =
        resolve_with(&world, TrustThreshold::DEFAULT, &ResolveRules::default(), &learned.knowledge)
            .await;
    assert_eq!(read(&world, &resolved, "config").await.unwrap(), "version 12 fork\n");
    let receipt = &resolved.receipts[0];
    assert_eq!((receipt.action, receipt.steps.len()), (FileAction::Merged, 1));
    let again =
        resolve_with(&world, TrustThreshold::DEFAULT, &ResolveRules::default(), &learned.knowledge)
            .await;
    assert_eq!(again, resolved);
}

#[tokio::test]
async fn what_was_learned_is_kept_and_brought_up_to_date() {
    let world = World::new(&[("a", "1\n")]);
    world.write(FORK, "a", "fork\n");
    world.write(UPSTREAM, "a", "2\n");
    people_merge(&world, &[("a", Some("fork 2\n"))]);
    let first = learned(&world).await;
    world.write(UPSTREAM, "a", "3\n");
    people_merge(&world, &[("a", Some("fork 3\n"))]);
    let text = serde_json::to_string(&first).unwrap();
    let kept = serde_json::from_str(&text).unwrap();
    let second = learned_from(&world, kept).await;
    assert_eq!((first.seen.len(), second.seen.len()), (1, 2));
    let anew = learned(&world).await;
    assert_eq!((&second.seen, &second.knowledge), (&anew.seen, &anew.knowledge));
    assert_eq!(second.replayed[0], first.replayed[0], "a merge is replayed once");
    // A merge that was taken back must not be remembered.
    world.on(FORK).git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let third = learned_from(&world, second).await;
    assert_eq!(third.seen, first.seen);
}

#[tokio::test]
async fn a_replay_looks_at_no_merge_before_its_time() {
    let world = World::new(&[("gone", "1\n"), ("a", "1\n")]);
    world.remove(FORK, "gone");
    world.write(UPSTREAM, "gone", "2\n");
    people_merge(&world, &[("gone", None)]);
    world.write(UPSTREAM, "b", "clean\n");
    people_merge(&world, &[]);
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let range = LineageRange { tip: &tip, siblings: &[], upstream: &upstream };
    let (mut watched, mut learned) = (0, Learned::default());
    let sealed = world.sealed().await;
    learn(&sealed, range, &mut learned, |_, _| watched += 1).await.unwrap();
    let tried = &learned.replayed;
    assert_eq!((tried.len(), watched, learned.seen.len()), (2, 2, 2));
    let score = |merge: &ReplayedMerge| merge.score(TrustThreshold::new(0.6).unwrap());
    assert_eq!((tried[0].conflicts, score(&tried[0]).merges_agreed), (1, 1), "{tried:?}");
    assert_eq!((tried[1].conflicts, score(&tried[1]).merges), (0, 0));
}

#[tokio::test]
async fn an_answer_that_people_did_not_give_is_kept_with_both_versions() {
    let world = World::new(&[("a", "1\n2\n3\n"), ("gone", "1\n")]);
    world.write(FORK, "a", "1\nfork\n3\n");
    world.remove(FORK, "gone");
    world.write(UPSTREAM, "a", "1\n2 upstream\n3\n");
    world.write(UPSTREAM, "gone", "2\n");
    people_merge(&world, &[("a", Some("1\ntheir own\n3\n")), ("gone", Some("2\n"))]);
    let learned = learned(&world).await;
    let anyhow = TrustThreshold::new(0.0).unwrap();
    let files = &learned.replayed[0].files;
    let otherwise = |at: usize| files[at].answer(anyhow).unwrap().otherwise.clone().unwrap();
    assert_eq!(files[1].path.to_string(), "gone");
    let deleted = otherwise(1);
    assert_eq!((deleted.resolver, deleted.people), (Resolution::Absent, Resolution::Theirs));
    assert_eq!(otherwise(0).people, Resolution::Other);
    assert_eq!(learned.past(anyhow).files_agreed, 0);
}

#[tokio::test]
async fn what_was_learned_before_an_interruption_is_kept() {
    let world = World::new(&[("a", "1\n")]);
    world.write(FORK, "a", "fork\n");
    for round in 2..5 {
        world.write(UPSTREAM, "a", format!("{round}\n"));
        people_merge(&world, &[("a", Some(&format!("fork {round}\n")))]);
    }
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let range = LineageRange { tip: &tip, siblings: &[], upstream: &upstream };
    let (cancel, mut half) = (Cancel::new(), Learned::default());
    let sealed = world.sealed().await.cancelled_by(cancel.clone());
    let stop = |merges: MergesRead, _: &Learned| {
        if merges.read == 2 {
            cancel.cancel(CancelReason::Asked("enough".into()));
        }
    };
    learn(&sealed, range, &mut half, stop).await.unwrap_err();
    assert_eq!((half.seen.len(), half.replayed.len()), (2, 2));
    let (whole, anew) = (learned_from(&world, half).await, learned(&world).await);
    assert_eq!((whole.seen, whole.knowledge), (anew.seen, anew.knowledge));
}

/// A merge with `-s ours` decides about all of upstream's work at once.
#[tokio::test]
async fn a_merge_that_took_one_side_whole_teaches_nothing() {
    let world = World::new(&[("a", "1\n")]);
    world.write(FORK, "a", "fork\n");
    world.write(UPSTREAM, "a", "2\n");
    world.write(UPSTREAM, "b", "new upstream\n");
    world.on(FORK).git(&["merge", "--quiet", "--strategy=ours", "--message=no", UPSTREAM]);
    let none = learned(&world).await;
    assert_eq!((none.seen.len(), none.one_sided, none.knowledge.merges), (1, 1, 0));
    // Where there was nothing else, the side is what people chose for the conflict.
    world.write(UPSTREAM, "a", "3\n");
    people_merge(&world, &[("a", Some("fork\n"))]);
    let some = learned(&world).await;
    assert_eq!((some.seen.len(), some.one_sided, some.knowledge.merges), (2, 1, 1));
}

#[tokio::test]
async fn a_result_that_is_no_json_any_more_is_refused() {
    let world = World::new(&[("a.json", "{\n\"a\": 1\n}\n")]);
    world.write(FORK, "a.json", "{\n\"a\": 1,\n\"fork\": 2\n}\n");
    world.write(UPSTREAM, "a.json", "{\n\"a\": 1,\n\"up\": 3\n}\n");
    let resolved = resolve_at(&world, 0.0).await;
    if let Some(text) = read(&world, &resolved, "a.json").await.filter(|_| resolved.rest.is_empty())
    {
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }
}

#[tokio::test]
async fn a_brief_tells_what_earlier_merges_did_nearby() {
    let world = World::new(&[("src/a", "1\n"), ("src/b", "1\n")]);
    world.write(FORK, "src/a", "fork\n");
    world.write(UPSTREAM, "src/a", "2\n");
    people_merge(&world, &[("src/a", Some("fork\n"))]);
    let merge = world.sha(FORK);
    for path in ["src/a", "src/b"] {
        world.write(FORK, path, "something of the fork's own\n");
        world.write(UPSTREAM, path, "and something quite different\n");
    }
    let learned = learned(&world).await;
    let nearly = TrustThreshold::new(0.999).unwrap();
    let resolved = resolve_with(&world, nearly, &ResolveRules::default(), &learned.knowledge).await;
    assert_eq!(resolved.rest.len(), 2, "{:?}", resolved.receipts);
    for brief in &resolved.rest {
        let [earlier] = brief.nearby.as_slice() else { panic!("{brief:?}") };
        assert_eq!((&earlier.merge, earlier.choice), (&merge, Resolution::Ours), "{}", brief.path);
        assert_eq!(earlier.path.to_string(), "src/a");
        assert_eq!(earlier.hunks, [(Resolution::Ours, 1)].into());
    }
}

#[tokio::test]
async fn what_its_command_made_is_judged_and_has_a_receipt() {
    let files = [("good.json", "{}\n"), ("bad.json", "{}\n"), ("failed", "1\n")];
    let world = World::new(&files);
    for (path, _) in files {
        world.write(FORK, path, "{\"a\": 1}\n");
        world.write(UPSTREAM, path, "{\"b\": 2}\n");
    }
    let how = Regenerate { from: Side::Theirs, command: "make it".to_owned() };
    let rules = ResolveRules::default().with("**", PathRule::Regenerate(how));
    let first = resolve_with(&world, TrustThreshold::DEFAULT, &rules, &Knowledge::default()).await;
    assert_eq!((first.regenerate.len(), first.rest.len()), (3, 0));
    let made = |path: &str, made| (TreePath::new(path.as_bytes()), made);
    let regenerated: RegeneratedFiles = [
        made("good.json", RegeneratedFile::Text(b"{\"a\": 1, \"b\": 2}\n".to_vec())),
        made("bad.json", RegeneratedFile::Text(b"{\n".to_vec())),
        made("failed", RegeneratedFile::Failed("status 3: no such target".to_owned())),
    ]
    .into();
    let options = ResolveOptions {
        rules: &rules,
        regenerated: &regenerated,
        ..ResolveOptions::at(TrustThreshold::DEFAULT)
    };
    let heads = MergeHeads { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    let resolved = resolve_conflicts(&world.sealed().await, &heads, options).await.unwrap();
    assert_eq!(resolved.regenerate, []);
    let receipt = &resolved.receipts[0];
    assert_eq!(
        (receipt.action, receipt.steps[0].strategy),
        (FileAction::Regenerated, ResolveStrategy::Regenerate)
    );
    assert_eq!(receipt.steps[0].program.as_deref(), Some("make it"));
    assert_eq!(read(&world, &resolved, "good.json").await.unwrap(), "{\"a\": 1, \"b\": 2}\n");
    let why: Vec<&str> = resolved.rest.iter().map(|brief| brief.why.as_str()).collect();
    assert!(why[0].contains("`make it`") && why[0].contains("valid JSON on both sides"), "{why:?}");
    assert!(why[1].contains("no such target"), "{why:?}");
    assert!(read(&world, &resolved, "failed").await.unwrap().contains("<<<<<<<"));
}
