//! The ladder on real repositories: what is settled, what is left, and that nothing odd gets through.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;

use host::git::{ObjectFormat, SealedRepo};
use merge::clean::ConflictKind;
use merge::ladder::decide::Trust;
use merge::ladder::history::{Learned, PastEnds, learn, replay};
use merge::ladder::knowledge::Knowledge;
use merge::ladder::receipt::Deed;
use merge::ladder::rule::{Regenerate, RegenerateFrom, Rules, Ruling};
use merge::ladder::table::Table;
use merge::ladder::touch::add_touches;
use merge::ladder::{Climb, ClimbOptions, Ends, climb};
use testkit::Hermetic;

use crate::world::{FORK, UPSTREAM, World};

async fn climb_with(world: &World, trust: Trust, rules: &Rules, knowledge: &Knowledge) -> Climb {
    let ends = Ends { ours: world.sha(FORK), theirs: world.sha(UPSTREAM) };
    let table = Table::shipped();
    let options = ClimbOptions { trust, rules, table, knowledge, structure: None };
    climb(&world.sealed().await, &ends, options).await.unwrap()
}

async fn climb_at(world: &World, trust: f64) -> Climb {
    let trust = Trust::new(trust).unwrap();
    climb_with(world, trust, &Rules::default(), &Knowledge::default()).await
}

async fn learned(world: &World) -> Learned {
    let (tip, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let ends = PastEnds { tip: &tip, upstream: &upstream };
    learn(&world.sealed().await, ends, None).await.unwrap()
}

async fn read(world: &World, climb: &Climb, path: &str) -> Option<String> {
    let sealed = world.sealed().await;
    let entries = sealed.entries_at(&climb.tree, &[path.as_bytes()]).await.unwrap();
    let entry = entries.get(path.as_bytes())?;
    let blobs = sealed.read_blobs(std::slice::from_ref(&entry.id), 1 << 20).await.unwrap();
    Some(String::from_utf8(blobs.into_iter().next().unwrap()?.bytes).unwrap())
}

fn paths(climb: &Climb) -> (Vec<String>, Vec<String>) {
    let settled = climb.receipts.iter().map(|receipt| receipt.path.to_string());
    (settled.collect(), climb.rest.iter().map(|brief| brief.path.to_string()).collect())
}

/// People merge upstream into the fork, settling conflicts like this.
fn people_merge(world: &World, files: &[(&str, Option<&str>)]) {
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
async fn odd_names_links_and_other_repositories_are_left_and_named() {
    let world = World::new(&[("swap", "1\n"), ("file", "1\n")]);
    let odd: &[u8] = b"new\nline \xe2\x80\xae\xff";
    for (branch, text) in [(FORK, "fork\n"), (UPSTREAM, "upstream\n")] {
        world.on(branch);
        std::fs::write(world.odd_file(odd), text).unwrap();
        std::fs::write(world.odd_file(b".gitattributes"), "* merge=evil filter=evil\n").unwrap();
        world.repo.commit("odd");
    }
    world.write(FORK, "swap", "fork\n");
    world.on(UPSTREAM);
    std::fs::remove_file(world.odd_file(b"swap")).unwrap();
    symlink("/etc/passwd", world.odd_file(b"swap")).unwrap();
    world.repo.commit("a link");
    let climb = climb_at(&world, 0.0).await;
    let (settled, rest) = paths(&climb);
    assert!(
        settled.iter().chain(&rest).all(|path| !path.contains('\n') && !path.contains('\u{202e}'))
    );
    assert!(rest.iter().any(|path| path.starts_with("swap")), "{rest:?}");
    assert!(!settled.iter().any(|path| path.starts_with("swap")), "{settled:?}");
    let all = settled.iter().chain(&rest);
    assert_eq!(all.filter(|path| path.starts_with("new")).count(), 1);
}

#[tokio::test]
async fn a_swapped_submodule_is_left_and_named() {
    let world = World::new(&[("x", "1\n")]);
    for branch in [FORK, UPSTREAM] {
        let commit = world.write(branch, &format!("only-{branch}"), "x\n");
        let link = format!("160000,{commit},sub");
        world.on(branch).git(&["update-index", "--add", "--cacheinfo", &link]);
        world.repo.commit_index("a submodule");
    }
    let climb = climb_at(&world, 0.0).await;
    assert!(climb.rest.iter().any(|brief| brief.path.to_string() == "sub"), "{:?}", climb.rest);
}

#[tokio::test]
async fn huge_and_binary_files_are_not_looked_into() {
    let world = World::new(&[("big", "1\n"), ("bin", "\0one")]);
    let huge = |word: &str| word.repeat(1 << 20);
    world.write(FORK, "big", huge("fork "));
    world.write(FORK, "bin", "\0two");
    world.write(UPSTREAM, "big", huge("upstream "));
    world.write(UPSTREAM, "bin", "\0three");
    let climb = climb_at(&world, 0.9).await;
    let kinds: Vec<_> = climb.rest.iter().map(|brief| (brief.kind, brief.hunks.len())).collect();
    assert!(kinds.iter().all(|(_, hunks)| *hunks == 0), "{kinds:?}");
    assert_eq!(climb.receipts.len() + climb.rest.len(), 2);
}

#[tokio::test]
async fn thousands_of_conflicts_and_of_hunks_are_all_accounted_for() {
    const FILES: usize = 2500;
    let hermetic = Hermetic::new();
    let path = hermetic.root().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    let mut stream = String::new();
    for branch in ["first", "fork", "upstream"] {
        writeln!(stream, "commit refs/heads/{branch}").unwrap();
        stream.push_str("committer A <a@example.com> 1735689600 +0000\ndata 2\nx\n");
        if branch != "first" {
            stream.push_str("from refs/heads/first\n");
        }
        for number in 0..FILES {
            let text = format!("{branch} {number}\n");
            writeln!(stream, "M 100644 inline dir/file{number}").unwrap();
            writeln!(stream, "data {}\n{text}", text.len()).unwrap();
        }
        let many: String =
            (0..9000).map(|line| format!("{branch} {line}\nsame {line}\n")).collect();
        writeln!(stream, "M 100644 inline many\ndata {}\n{many}\n", many.len()).unwrap();
    }
    repo.fast_import(&stream).await.unwrap();
    let tip = async |name: &str| repo.resolve_commit(name).await.unwrap().unwrap();
    let ends =
        Ends { ours: tip("refs/heads/fork").await, theirs: tip("refs/heads/upstream").await };
    let (rules, knowledge) = (Rules::default(), Knowledge::default());
    let (trust, table) = (Trust::USUAL, Table::shipped());
    let options =
        ClimbOptions { trust, rules: &rules, table, knowledge: &knowledge, structure: None };
    let climb = climb(&repo, &ends, options).await.unwrap();
    assert_eq!(climb.receipts.len() + climb.rest.len(), FILES + 1);
    let many = climb.rest.iter().find(|brief| brief.path.to_string() == "many").unwrap();
    assert!(many.hunks.is_empty());
}
