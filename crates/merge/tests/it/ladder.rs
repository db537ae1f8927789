//! The ladder on real repositories: what is settled, what is left, and what is said about both.

use merge::clean::ConflictKind;
use merge::ladder::decide::Trust;
use merge::ladder::grade::Rung;
use merge::ladder::habit::Choice;
use merge::ladder::history::{Learned, PastEnds, learn, replay};
use merge::ladder::knowledge::Knowledge;
use merge::ladder::receipt::Deed;
use merge::ladder::rule::{Regenerate, RegenerateFrom, Rules, Ruling};
use merge::ladder::table::Table;
use merge::ladder::touch::add_touches;
use merge::ladder::{Climb, ClimbOptions, Ends, Made, Remade, climb};
use merge::path::TreePath;

use crate::world::{FORK, UPSTREAM, World};

pub(crate) async fn climb_with(
    world: &World,
    trust: Trust,
    rules: &Rules,
    knowledge: &Knowledge,
) -> Climb {
    let ends = Ends { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    let table = Table::shipped();
    let remade = Remade::new();
    let options = ClimbOptions { trust, rules, table, knowledge, structure: None, remade: &remade };
    climb(&world.sealed().await, &ends, options).await.unwrap()
}

pub(crate) async fn climb_at(world: &World, trust: f64) -> Climb {
    let trust = Trust::new(trust).unwrap();
    climb_with(world, trust, &Rules::default(), &Knowledge::default()).await
}

pub(crate) async fn learned(world: &World) -> Learned {
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let ends = PastEnds { tip: &tip, upstream: &upstream };
    learn(&world.sealed().await, ends, None).await.unwrap()
}

pub(crate) async fn read(world: &World, climb: &Climb, path: &str) -> Option<String> {
    let sealed = world.sealed().await;
    let entries = sealed.entries_at(&climb.tree, &[path.as_bytes()]).await.unwrap();
    let entry = entries.get(path.as_bytes())?;
    let blobs = sealed.read_blobs(std::slice::from_ref(&entry.id), 1 << 20).await.unwrap();
    Some(String::from_utf8(blobs.into_iter().next().unwrap()?.bytes).unwrap())
}

pub(crate) fn paths(climb: &Climb) -> (Vec<String>, Vec<String>) {
    let settled = climb.receipts.iter().map(|receipt| receipt.path.to_string());
    (settled.collect(), climb.rest.iter().map(|brief| brief.path.to_string()).collect())
}

/// People merge upstream into the fork, settling conflicts like this.
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
    let climb = climb_at(&world, 0.9).await;
    assert_eq!(paths(&climb), (vec!["gone".to_owned()], vec!["text".to_owned()]));
    let receipt = &climb.receipts[0];
    assert_eq!((receipt.kind, receipt.deed), (ConflictKind::DeleteModify, Deed::Deleted));
    assert_eq!((receipt.dropped.of_ours, receipt.dropped.of_theirs), (0, 1));
    assert!(receipt.confidence >= 0.9 && receipt.inputs.ours.is_none());
    assert_eq!(read(&world, &climb, "gone").await, None);
    let brief = &climb.rest[0];
    assert_eq!(brief.hunks[0].ours, "fork's own words\n");
    assert!(!brief.hunks[0].proposals.is_empty(), "{brief:?}");
    assert!(read(&world, &climb, "text").await.unwrap().contains("<<<<<<<"));
}

#[tokio::test]
async fn a_brief_names_the_commits_of_both_sides() {
    let world = World::new(&[("text", "1\n")]);
    let ours = world.write(FORK, "text", "fork\n");
    world.write(UPSTREAM, "other", "x\n");
    let theirs = world.write(UPSTREAM, "text", "upstream\n");
    let mut climb = climb_at(&world, 1.0).await;
    let ends = Ends { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    add_touches(&world.sealed().await, &ends, &mut climb.rest).await.unwrap();
    let brief = &climb.rest[0];
    assert_eq!((brief.ours_commits.len(), &brief.ours_commits[0].sha), (1, &ours));
    assert_eq!((brief.theirs_commits.len(), &brief.theirs_commits[0].sha), (1, &theirs));
    assert_eq!(brief.theirs_commits[0].subject, "up: text");
}

#[tokio::test]
async fn at_full_trust_nothing_is_ever_done() {
    let world = World::new(&[("gone", "1\n")]);
    world.remove(FORK, "gone");
    world.write(UPSTREAM, "gone", "2\n");
    let climb = climb_at(&world, 1.0).await;
    assert_eq!((climb.receipts.len(), climb.rest.len()), (0, 1));
}

#[tokio::test]
async fn the_owner_outranks_what_was_learned() {
    let world = World::new(&[("docs/a", "1\n"), ("lock", "1\n"), ("other", "1\n")]);
    for (path, text) in [("docs/a", "fork\n"), ("lock", "fork\n"), ("other", "fork\n")] {
        world.write(FORK, path, text);
        world.write(UPSTREAM, path, "upstream\n");
    }
    let how = Regenerate { from: RegenerateFrom::Theirs, command: "make lock".to_owned() };
    let rules = Rules::default()
        .with("docs", Ruling::Ours)
        .with("lock", Ruling::Regenerate(how.clone()))
        .with("other", Ruling::Trust(Trust::NEVER));
    let climb = climb_with(&world, Trust::new(0.0).unwrap(), &rules, &Knowledge::default()).await;
    assert_eq!(read(&world, &climb, "docs/a").await.unwrap(), "fork\n");
    assert_eq!(read(&world, &climb, "lock").await.unwrap(), "upstream\n");
    assert_eq!(climb.regenerate[0].1, how);
    assert_eq!(climb.rest[0].path.to_string(), "other");
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
    let climb = climb_with(&world, Trust::USUAL, &Rules::default(), &learned.knowledge).await;
    assert_eq!(read(&world, &climb, "config").await.unwrap(), "version 12 fork\n");
    let receipt = &climb.receipts[0];
    assert_eq!((receipt.deed, receipt.steps.len()), (Deed::Merged, 1));
    let again = climb_with(&world, Trust::USUAL, &Rules::default(), &learned.knowledge).await;
    assert_eq!(again, climb);
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
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let ends = PastEnds { tip: &tip, upstream: &upstream };
    let sealed = world.sealed().await;
    let text = serde_json::to_string(&first).unwrap();
    let kept = serde_json::from_str(&text).unwrap();
    let second = learn(&sealed, ends, Some(kept)).await.unwrap();
    assert_eq!((first.seen.len(), second.seen.len()), (1, 2));
    assert_eq!(second, learn(&sealed, ends, None).await.unwrap());
    // A merge that was taken back must not be remembered.
    world.on(FORK).git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let tip = world.sha(FORK);
    let ends = PastEnds { tip: &tip, upstream: &upstream };
    let third = learn(&sealed, ends, Some(second)).await.unwrap();
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
    let ends = PastEnds { tip: &tip, upstream: &upstream };
    let mut watched = 0;
    let (learned, tried) =
        replay(&world.sealed().await, ends, Trust::new(0.8).unwrap(), |_| watched += 1)
            .await
            .unwrap();
    assert_eq!((tried.len(), watched, learned.seen.len()), (2, 2, 2));
    assert_eq!((tried[0].conflicts, tried[0].score.merges_agreed), (1, 1), "{tried:?}");
    assert_eq!((tried[1].conflicts, tried[1].score.merges), (0, 0));
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
    let climb = climb_at(&world, 0.0).await;
    if let Some(text) = read(&world, &climb, "a.json").await.filter(|_| climb.rest.is_empty()) {
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
    let nearly = Trust::new(0.999).unwrap();
    let climb = climb_with(&world, nearly, &Rules::default(), &learned.knowledge).await;
    assert_eq!(climb.rest.len(), 2, "{:?}", climb.receipts);
    for brief in &climb.rest {
        let [earlier] = brief.nearby.as_slice() else { panic!("{brief:?}") };
        assert_eq!((&earlier.merge, earlier.choice), (&merge, Choice::Ours), "{}", brief.path);
        assert_eq!(earlier.path.to_string(), "src/a");
        assert_eq!(earlier.hunks, [(Choice::Ours, 1)].into());
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
    let how = Regenerate { from: RegenerateFrom::Theirs, command: "make it".to_owned() };
    let rules = Rules::default().with("**", Ruling::Regenerate(how));
    let first = climb_with(&world, Trust::USUAL, &rules, &Knowledge::default()).await;
    assert_eq!((first.regenerate.len(), first.rest.len()), (3, 0));
    let made = |path: &str, made| (TreePath::new(path.as_bytes()), made);
    let remade: Remade = [
        made("good.json", Made::Text(b"{\"a\": 1, \"b\": 2}\n".to_vec())),
        made("bad.json", Made::Text(b"{\n".to_vec())),
        made("failed", Made::Failed("status 3: no such target".to_owned())),
    ]
    .into();
    let (trust, table, knowledge) = (Trust::USUAL, Table::shipped(), &Knowledge::default());
    let options =
        ClimbOptions { trust, rules: &rules, table, knowledge, structure: None, remade: &remade };
    let ends = Ends { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    let climb = climb(&world.sealed().await, &ends, options).await.unwrap();
    assert_eq!(climb.regenerate, []);
    let receipt = &climb.receipts[0];
    assert_eq!((receipt.deed, receipt.steps[0].rung), (Deed::Remade, Rung::Regenerate));
    assert_eq!(receipt.steps[0].program.as_deref(), Some("make it"));
    assert_eq!(read(&world, &climb, "good.json").await.unwrap(), "{\"a\": 1, \"b\": 2}\n");
    let why: Vec<&str> = climb.rest.iter().map(|brief| brief.why.as_str()).collect();
    assert!(why[0].contains("`make it`") && why[0].contains("valid JSON on both sides"), "{why:?}");
    assert!(why[1].contains("no such target"), "{why:?}");
    assert!(read(&world, &climb, "failed").await.unwrap().contains("<<<<<<<"));
}
