//! Where upstream changed few files, a few drops are most of its work, and that is refused.

use merge::account::{DropRules, MergeSide, judge_account};
use merge::path::TreePath;
use merge::pattern::PathPatterns;

use crate::world::{FORK, UPSTREAM, World};

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
const CI: &str = ".github/workflows/ci.yml";

fn changed() -> String {
    TEXT.replace("two", "two of upstream")
}

/// Upstream changed the files a, b, c and so on, so many of them; the fork has a file of its own.
fn world(count: usize) -> World {
    let names = ["a", "b", "c", "d", "e"];
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, TEXT)).collect();
    let world = World::new(&files);
    world.write(FORK, "own", "own\n");
    for name in &names[..count] {
        world.write(UPSTREAM, name, changed());
    }
    world
}

async fn refusals(world: &World, dropped: &[&str], rules: &DropRules) -> Vec<String> {
    let files: Vec<_> = dropped.iter().map(|name| (*name, Some(TEXT))).collect();
    let tip = world.merged_by_hand(&files);
    let account = world.account(&tip, rules).await;
    let judged = judge_account(&account);
    let explained = account.upstream.changes.iter().filter(|change| change.reason.is_some());
    let named = judged.looks.len() + explained.count();
    assert!(named >= dropped.len(), "each is named or explained: {account:?}");
    judged.upstream_dropped
}

#[tokio::test]
async fn a_small_merge_without_most_of_upstreams_files_is_refused() {
    let none = DropRules::default();
    let three = "most of upstream's work is missing: its changes in 3 of 4 files (a, b, c)";
    assert_eq!(refusals(&world(4), &["a", "b", "c"], &none).await, [three]);
    assert_eq!(refusals(&world(4), &["a", "b"], &none).await, Vec::<String>::new());
    assert_eq!(refusals(&world(2), &["a"], &none).await, Vec::<String>::new());
}

#[tokio::test]
async fn files_of_ci_beside_them_make_a_merge_no_larger() {
    let none = DropRules::default();
    let one = "most of upstream's work is missing: its changes in 1 of 1 file (a)";
    let world = world(1);
    world.write(UPSTREAM, CI, "on: push\n");
    world.write(UPSTREAM, ".gitlab-ci.yml", "test: {}\n");
    assert_eq!(refusals(&world, &["a"], &none).await, [one]);
    let tip = world.merged_by_hand(&[(CI, None), (".gitlab-ci.yml", None)]);
    let account = world.account(&tip, &none).await;
    assert!(judge_account(&account).upstream_dropped.is_empty(), "{account:?}");
}

#[tokio::test]
async fn a_file_that_lost_most_of_its_hunks_is_missing() {
    let world = world(0);
    let all = TEXT.replace("one", "1").replace("four", "4").replace("seven", "7");
    world.write(UPSTREAM, "a", &all);
    world.write(UPSTREAM, CI, "on: push\n");
    for (result, is_refused) in
        [(TEXT.replace("seven", "7"), true), (all.replace("1\n", "one\n"), false)]
    {
        let tip = world.merged_by_hand(&[("a", Some(&result))]);
        let account = world.account(&tip, &DropRules::default()).await;
        assert_eq!(!judge_account(&account).upstream_dropped.is_empty(), is_refused, "{account:?}");
    }
}

#[tokio::test]
async fn conflicts_that_upstream_loses_count() {
    let world = world(2);
    world.write(FORK, "a", TEXT.replace("two", "two of the fork"));
    world.write(FORK, "b", TEXT.replace("two", "two of the fork"));
    world.write(UPSTREAM, "c", changed());
    let ours = TEXT.replace("two", "two of the fork");
    let tip = world.merged_by_hand(&[("a", Some(&ours)), ("b", Some(&ours))]);
    let account = world.account(&tip, &DropRules::default()).await;
    let two = "most of upstream's work is missing: its changes in 2 of 3 files (a, b)";
    assert_eq!(judge_account(&account).upstream_dropped, [two]);
}

#[tokio::test]
async fn what_a_rule_or_an_earlier_merge_explains_is_not_missing() {
    let paths = PathPatterns::new(["a", "b", "c"]);
    let rules = DropRules::default().with(MergeSide::Upstream, paths, "protect");
    assert_eq!(refusals(&world(4), &["a", "b", "c"], &rules).await, Vec::<String>::new());
    let habits = DropRules::default()
        .with_habit(&TreePath::new("a"), "as in 1")
        .with_habit(&TreePath::new("b"), "as in 1");
    assert_eq!(refusals(&world(4), &["a", "b"], &habits).await, Vec::<String>::new());
    // What a rule explains does not hide what none explains.
    let paths = PathPatterns::new(["a", "b", "c"]);
    let rules = DropRules::default().with(MergeSide::Upstream, paths, "protect");
    let one = "most of upstream's work is missing: its changes in 1 of 1 file (d)";
    let world = world(4);
    world.write(UPSTREAM, CI, "on: push\n");
    assert_eq!(refusals(&world, &["a", "b", "c", "d"], &rules).await, [one]);
}

#[tokio::test]
async fn what_the_fork_had_before_is_neither_missing_nor_an_excuse() {
    let world = world(3);
    for name in ["a", "b"] {
        world.write(FORK, name, changed());
    }
    let account = world.account(&world.merged_by_git(), &DropRules::default()).await;
    assert!(judge_account(&account).upstream_dropped.is_empty(), "{account:?}");
    assert_eq!((account.expected_paths, account.present_paths), (1, 2));
    // All that is new is left out by a rule.
    let rules = DropRules::default().with(MergeSide::Upstream, PathPatterns::new(["c"]), "protect");
    let tip = world.merged_by_hand(&[("c", Some(TEXT))]);
    let account = world.account(&tip, &rules).await;
    assert_eq!(account.whole, Some(MergeSide::Fork));
    assert!(judge_account(&account).upstream_dropped.is_empty(), "{account:?}");
    // All that is new is dropped, beside a file of CI.
    world.write(UPSTREAM, CI, "on: push\n");
    let one = "most of upstream's work is missing: its changes in 1 of 1 file (c)";
    assert_eq!(refusals(&world, &["c"], &DropRules::default()).await, [one]);
}

#[tokio::test]
async fn a_lock_file_that_was_written_anew_is_not_missing() {
    let lines = |mark: &str| (0..60).map(|n| format!("p{n} = {mark}{n}\n")).collect::<String>();
    let world = World::new(&[("Cargo.lock", &lines("")), ("a", TEXT)]);
    world.write(FORK, "own", "own\n");
    let odd = |text: &str| {
        let line = |(at, line): (usize, &str)| match at % 4 {
            0 => line.replace(" = ", " = up"),
            _ => line.to_owned(),
        };
        text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n") + "\n"
    };
    world.write(UPSTREAM, "Cargo.lock", odd(&lines("")));
    world.write(UPSTREAM, CI, "on: push\n");
    let anew = odd(&lines("")).replacen("= up", "= anew", 14);
    let account = world.merged_by_hand(&[("Cargo.lock", Some(&anew))]);
    let account = world.account(&account, &DropRules::default()).await;
    assert!(judge_account(&account).upstream_dropped.is_empty(), "{account:?}");
    let account = world.merged_by_hand(&[("Cargo.lock", Some(&lines("")))]);
    let account = world.account(&account, &DropRules::default()).await;
    assert_eq!(judge_account(&account).upstream_dropped.len(), 1, "{account:?}");
}

/// Fork and upstream changed other lines of each file; the result lacks the fork's first change in the first files.
async fn fork_drops(count: usize) -> Vec<String> {
    let names: Vec<String> = (0..24).map(|n| format!("f{n}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), TEXT)).collect();
    let world = World::new(&files);
    let (first, both) = ("two of the fork", TEXT.replace("two", "two of the fork"));
    let ours = both.replace("nine", "nine of the fork");
    for name in &names {
        world.write(FORK, name, &ours);
    }
    world.write(UPSTREAM, "new", "new\n");
    let result = ours.replace(first, "two");
    let dropped: Vec<_> =
        names.iter().take(count).map(|name| (name.as_str(), Some(result.as_str()))).collect();
    let account = world.account(&world.merged_by_hand(&dropped), &DropRules::default()).await;
    judge_account(&account).fork_dropped
}

#[tokio::test]
async fn many_changes_of_the_fork_that_git_could_merge_are_not_dropped_unseen() {
    assert_eq!(fork_drops(8).await, Vec::<String>::new());
    let reasons = fork_drops(24).await;
    assert!(reasons.len() == 1 && reasons[0].starts_with("24 changes of the fork"), "{reasons:?}");
}
