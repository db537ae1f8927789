//! Both sides are accounted for: nothing of upstream, and nothing of the fork, goes missing unseen.

use merge::account::{
    ConflictResolution, DepartureKind, DropRules, MergeAccount, MergeSide, SideStatus,
    judge_account,
};
use merge::pattern::PathPatterns;
use model::id::Sha;

use crate::world::{FORK, UPSTREAM, World};

const TEXT: &str =
    "one = 1\ntwo = 2\nthree = 3\nfour = 4\nfive = 5\nsix = 6\nseven = 7\neight = 8\nnine = 9\n";

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(TEXT.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Both sides changed `conf` at its end, differently; upstream also at its beginning, the fork in its middle.
/// Upstream changed `clean` alone and added `new.txt`; the fork added `run.sh`.
fn both() -> World {
    let world = World::new(&[("conf", TEXT), ("clean", TEXT)]);
    world.write(FORK, "conf", with(&[("five = 5", "five = 50"), ("nine = 9", "nine = fork")]));
    world.write(FORK, "run.sh", "echo fork\n");
    world.write(UPSTREAM, "conf", with(&[("one = 1", "one = 10"), ("nine = 9", "nine = up")]));
    world.write(UPSTREAM, "clean", with(&[("two = 2", "two = 20"), ("eight = 8", "eight = 80")]));
    world.write(UPSTREAM, "new.txt", "new\nof upstream\n");
    world
}

fn good() -> String {
    with(&[
        ("one = 1", "one = 10"),
        ("five = 5", "five = 50"),
        ("nine = 9", "nine = fork\nnine = up"),
    ])
}

fn looks(account: &MergeAccount) -> Vec<String> {
    let looks = judge_account(account).looks;
    looks.iter().map(|look| format!("{}: {}", look.path, look.what)).collect()
}

async fn by_hand(world: &World, files: &[(&str, Option<&str>)]) -> MergeAccount {
    let tip = world.merged_by_hand(files);
    world.account(&tip, &DropRules::default()).await
}

#[tokio::test]
async fn an_honest_merge_needs_no_look() {
    let world = both();
    let account = by_hand(&world, &[("conf", Some(&good()))]).await;
    assert!(looks(&account).is_empty(), "{account:?}");
    assert_eq!(account.conflicts[0].resolution, ConflictResolution::Both);
    assert!(account.conflicts[0].hunk.contains("nine = up"), "{}", account.conflicts[0].hunk);
    assert_eq!((account.upstream.paths, account.fork.paths), (3, 2));
    assert!(judge_account(&account).upstream_dropped.is_empty());
}

#[tokio::test]
async fn the_forks_tree_is_no_merge() {
    let world = both();
    world.on(FORK).git(&["checkout", "--quiet", "-B", "result"]);
    world.repo.git(&["merge", "--quiet", "-s", "ours", "--no-edit", UPSTREAM]);
    let tip = world.sha("result");
    let account = world.account(&tip, &DropRules::default()).await;
    assert_eq!(account.whole, Some(MergeSide::Fork));
    assert_eq!(judge_account(&account).upstream_dropped.len(), 1);
    let upstream = world.account(&world.sha(UPSTREAM), &DropRules::default()).await;
    assert_eq!(upstream.whole, Some(MergeSide::Upstream));
}

#[tokio::test]
async fn a_dropped_hunk_is_named_wherever_it_was() {
    let world = both();
    // Outside of a conflict, in a file of upstream's alone.
    let lacking = with(&[("two = 2", "two = 20")]);
    let account = by_hand(&world, &[("conf", Some(&good())), ("clean", Some(&lacking))]).await;
    assert_eq!(
        looks(&account),
        ["clean: upstream's change is dropped: 1 of 2 hunks dropped, 2 lines missing"]
    );
    assert_eq!(account.upstream.changes[0].status, SideStatus::Dropped);
    assert_eq!(account.upstream.changes[0].dropped_clean, 1);
    // Outside of the conflict, in the file of the conflict.
    let lacking = good().replace("one = 10", "one = 1");
    let account = by_hand(&world, &[("conf", Some(&lacking))]).await;
    assert!(looks(&account)[0].starts_with("conf: upstream's change is dropped"), "{account:?}");
    let lacking = good().replace("five = 50", "five = 5");
    let account = by_hand(&world, &[("conf", Some(&lacking))]).await;
    assert!(looks(&account)[0].starts_with("conf: the fork's change is dropped"), "{account:?}");
    // In the conflict.
    let ours = good().replace("nine = fork\nnine = up", "nine = fork");
    let account = by_hand(&world, &[("conf", Some(&ours))]).await;
    assert!(looks(&account)[0].starts_with("conf: upstream's change is dropped"), "{account:?}");
    assert_eq!(account.conflicts[0].resolution, ConflictResolution::Ours);
    assert_eq!(account.upstream.changes[0].dropped_clean, 0);
}

#[tokio::test]
async fn a_file_of_upstreams_that_is_left_out_is_named() {
    let world = both();
    let account = by_hand(&world, &[("conf", Some(&good())), ("new.txt", None)]).await;
    assert_eq!(looks(&account), ["new.txt: upstream's change is dropped: the file is gone"]);
    assert_eq!(account.departures[0].kind, DepartureKind::Removed);
}

#[tokio::test]
async fn commented_out_is_not_taken() {
    let world = both();
    let commented = good().replace("nine = fork\nnine = up", "nine = fork\n# nine = up");
    let account = by_hand(&world, &[("conf", Some(&commented))]).await;
    assert!(looks(&account)[0].contains("1 commented out"), "{account:?}");
    let commented = with(&[("two = 2", "// two = 20"), ("eight = 8", "eight = 80")]);
    let account = by_hand(&world, &[("conf", Some(&good())), ("clean", Some(&commented))]).await;
    assert!(looks(&account)[0].contains("1 commented out"), "{account:?}");
    let off =
        format!("#if 0\n{}#endif\n", with(&[("two = 2", "two = 20"), ("eight = 8", "eight = 80")]));
    let account = by_hand(&world, &[("conf", Some(&good())), ("clean", Some(&off))]).await;
    assert!(looks(&account)[0].contains("may turn code off"), "{account:?}");
}

#[tokio::test]
async fn what_no_resolution_explains_is_named_in_a_conflict_too() {
    let world = both();
    let account = by_hand(&world, &[("conf", Some(&good().replace("three = 3\n", "")))]).await;
    assert_eq!(looks(&account), ["conf: beyond the conflict: 1 line gone that both sides have"]);
    let account =
        by_hand(&world, &[("conf", Some(&good().replace("three = 3", "three = 3\nskip")))]).await;
    assert_eq!(looks(&account), ["conf: beyond the conflict: 1 line that neither side has"]);
    let combined = good().replace("nine = fork\nnine = up", "nine = fork, up");
    let account = by_hand(&world, &[("conf", Some(&combined))]).await;
    let words = looks(&account).concat();
    let inside = "inside the conflict: 1 line that neither side has as it is";
    assert!(words.contains(inside) && !words.contains("beyond the conflict"), "{words}");
    let tip = world.merged_by_hand(&[("conf", Some(&good()))]);
    world.repo.git(&["checkout", "--quiet", "--force", "-B", "changed", tip.as_str()]);
    world.repo.git(&["update-index", "--chmod=+x", "conf"]);
    let tip = Sha::parse(&world.repo.commit_index("change")).unwrap();
    let account = world.account(&tip, &DropRules::default()).await;
    let words = "conf: beyond the conflict: mode 100755, which neither side has";
    assert_eq!(looks(&account), [words]);
}

#[tokio::test]
async fn names_modes_and_types_count() {
    let world = both();
    let tip = world.merged_by_hand(&[("conf", Some(&good()))]);
    let again = |change: &dyn Fn(&World)| {
        world.repo.git(&["checkout", "--quiet", "--force", "-B", "changed", tip.as_str()]);
        change(&world);
        Sha::parse(&world.repo.commit_index("change")).unwrap()
    };
    let renamed = again(&|world| drop(world.repo.git(&["mv", "run.sh", "run.txt"])));
    let account = world.account(&renamed, &DropRules::default()).await;
    assert_eq!(
        looks(&account),
        ["run.sh: not as git merges it: is now run.txt, a name that neither side gave it"]
    );
    let executable = again(&|world| {
        world.repo.git(&["update-index", "--chmod=+x", "run.sh"]);
    });
    let account = world.account(&executable, &DropRules::default()).await;
    assert_eq!(looks(&account), ["run.sh: not as git merges it: mode 100644 is 100755 now"]);
    let link = again(&|world| {
        std::fs::remove_file(world.repo.dir().join("run.sh")).unwrap();
        std::os::unix::fs::symlink("conf", world.repo.dir().join("run.sh")).unwrap();
        world.repo.git(&["add", "run.sh"]);
    });
    let account = world.account(&link, &DropRules::default()).await;
    assert!(looks(&account)[0].contains("something else"), "{account:?}");
}

#[tokio::test]
async fn a_rule_of_the_fork_explains_what_is_missing() {
    let world = both();
    let ours =
        good().replace("nine = fork\nnine = up", "nine = fork").replace("one = 10", "one = 1");
    let tip = world.merged_by_hand(&[("conf", Some(&ours))]);
    let rules = DropRules::default().with(
        MergeSide::Upstream,
        PathPatterns::new(["conf"]),
        "resolve: conf",
    );
    let account = world.account(&tip, &rules).await;
    assert_eq!(account.upstream.changes[0].status, SideStatus::DroppedByRule);
    assert!(looks(&account).is_empty(), "{account:?}");
}

#[tokio::test]
async fn taking_the_forks_side_of_most_conflicts_drops_upstream() {
    let names: Vec<String> = (0..9).map(|n| format!("f{n}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), TEXT)).collect();
    let world = World::new(&files);
    for name in &names {
        world.write(FORK, name, with(&[("nine = 9", "nine = fork")]));
        world.write(UPSTREAM, name, with(&[("nine = 9", "nine = up")]));
    }
    world.write(UPSTREAM, "other", "upstream\n");
    let fork = with(&[("nine = 9", "nine = fork")]);
    let ours: Vec<_> = names.iter().map(|name| (name.as_str(), Some(fork.as_str()))).collect();
    let account = by_hand(&world, &ours).await;
    assert_eq!(account.whole, None);
    let reasons = judge_account(&account).upstream_dropped;
    assert_eq!(
        reasons,
        ["upstream's side of 9 of 9 files in conflict is dropped (f0, f1, f2 and 6 more)"]
    );
}

#[tokio::test]
async fn a_new_file_in_a_folder_that_the_fork_deleted_may_stay_away() {
    let world = World::new(&[("shots/a.png", "a\n"), ("shots/b.png", "b\n"), ("kept/a", "a\n")]);
    world.remove(FORK, "shots/a.png");
    world.remove(FORK, "shots/b.png");
    world.remove(FORK, "kept/a");
    world.write(FORK, "kept/own", "own\n");
    for number in 0..40 {
        world.write(UPSTREAM, &format!("shots/new{number}.png"), format!("{number}\n"));
    }
    let away: Vec<String> = (0..40).map(|number| format!("shots/new{number}.png")).collect();
    let away: Vec<(&str, Option<&str>)> = away.iter().map(|name| (name.as_str(), None)).collect();
    let account = by_hand(&world, &away).await;
    assert!(judge_account(&account).upstream_dropped.is_empty(), "{account:?}");
    let change = &account.upstream.changes[0];
    let reason = change.reason.as_ref().map(|reason| reason.text.as_str());
    assert_eq!(change.status, SideStatus::DroppedByRule);
    assert_eq!(reason, Some("the fork deleted the folder shots"));
}

#[tokio::test]
async fn a_new_file_in_a_folder_that_the_fork_only_changed_is_dropped() {
    let world = World::new(&[("kept/a", "a\n"), ("kept/b", "b\n")]);
    world.remove(FORK, "kept/a");
    let names: Vec<String> = (0..40).map(|number| format!("kept/new{number}")).collect();
    for name in &names {
        world.write(UPSTREAM, name, format!("{name}\n"));
    }
    let away: Vec<(&str, Option<&str>)> = names.iter().map(|name| (name.as_str(), None)).collect();
    let account = by_hand(&world, &away).await;
    assert!(!judge_account(&account).upstream_dropped.is_empty(), "{account:?}");
}
