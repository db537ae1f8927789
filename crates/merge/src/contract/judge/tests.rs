//! What the contract says of paths and commits.

use model::id::Sha;

use super::super::TreeEntry;
use super::*;

/// `a` is a file with that content, `ax` an executable one, `-` no file.
fn entry(text: &str) -> Option<TreeEntry> {
    let digit = text.chars().next().filter(|c| *c != '-')?;
    let mode = if text.ends_with('x') { 0o100_755 } else { 0o100_644 };
    Some(TreeEntry { mode, id: Sha::parse(&digit.to_string().repeat(40)).unwrap() })
}

fn path(name: &str, [ancestor, fork, upstream, result]: [&str; 4]) -> PathFacts {
    PathFacts {
        path: TreePath::new(name),
        ancestor: entry(ancestor),
        fork: entry(fork),
        upstream: entry(upstream),
        result: entry(result),
        moved_to: None,
        moved_by_upstream: false,
        protected: false,
        by_git: false,
        as_merged: false,
        given_away: None,
        yielded: false,
        is_taken: false,
        is_suspected: false,
        is_generated: false,
        lines: LineEvidence::NoLines,
    }
}

fn commit(digit: &str, paths: &[&str], added: &[&str]) -> ForkCommit {
    ForkCommit {
        sha: Sha::parse(&digit.repeat(40)).unwrap(),
        subject: "x".to_owned(),
        paths: paths.iter().map(|path| TreePath::new(*path)).collect(),
        added: ids(added),
        upstream_twin: None,
        result_twin: None,
    }
}

fn ids(lines: &[&str]) -> BTreeSet<LineId> {
    lines.iter().filter_map(|line| LineId::of(line.as_bytes())).collect()
}

fn counted(own: usize, kept: &[&str], adapted: &[&str], missing: &[&str]) -> LineEvidence {
    LineEvidence::Counted(LineFacts {
        own,
        held: kept.len(),
        kept: ids(kept),
        adapted: ids(adapted),
        missing: ids(missing),
        ..LineFacts::default()
    })
}

#[track_caller]
fn check(path: PathFacts, state: ContractStatus, detail: &str) {
    let facts = ContractFacts { paths: vec![path], ..ContractFacts::default() };
    let contract = judge_contract(&facts);
    let PathAccount { state: found, detail: words, .. } = &contract.paths[0];
    assert_eq!((*found, words.as_str()), (state, detail));
    assert_eq!(contract.lost, state == ContractStatus::Lost);
}

#[test]
fn a_refusal_says_what_is_in_the_place_of_lost_lines() {
    let lines = || counted(2, &[], &[], &["x", "y"]);
    let with = |names| PathFacts { lines: lines(), ..path("f", names) };
    let in_place = "0 of 2 lines; upstream's version is in its place";
    check(with(["a", "b", "c", "c"]), ContractStatus::Lost, in_place);
    let undone = "0 of 2 lines; the fork's version is undone";
    check(with(["a", "b", "c", "a"]), ContractStatus::Lost, undone);
    check(with(["a", "b", "c", "d"]), ContractStatus::Lost, "0 of 2 lines");
}

#[test]
fn the_loss_of_a_file_is_one_loss_however_many_commits_made_it() {
    let kept = |at: usize| path(&format!("kept{at}"), ["a", "b", "a", "b"]);
    let lost =
        PathFacts { lines: counted(9, &[], &[], &["x"]), ..path("lost", ["a", "b", "c", "c"]) };
    let is_refused = |of_lost: usize, alone: usize| {
        let mut paths: Vec<PathFacts> = (0..90).map(kept).collect();
        paths.push(lost.clone());
        let of = |count: usize, name: &'static str, added: &'static str| {
            (0..count).map(move |_| commit("1", &[name], &[added]))
        };
        let mut commits: Vec<ForkCommit> = of(300, "kept1", "k").collect();
        commits.extend(of(of_lost, "lost", "x"));
        // Their path is there, and their lines are not.
        let lines = LineFacts { own: 90, held: 80, missing: ids(&["y"]), ..LineFacts::default() };
        let lines = LineEvidence::Counted(lines);
        paths.push(PathFacts { lines, ..path("other", ["a", "b", "c", "d"]) });
        commits.extend(of(alone, "other", "y"));
        judge_contract(&ContractFacts { paths, commits, ..ContractFacts::default() }).lost
    };
    assert!(!is_refused(20, 0), "one file");
    assert!(is_refused(40, 0), "a tenth of the fork's commits");
    assert!(!is_refused(0, 5) && is_refused(0, 9), "commits of their own");
}

#[test]
fn a_generated_file_is_a_loss_of_the_usual_size() {
    let is_refused = |is_generated: bool| {
        let lost = PathFacts {
            lines: counted(4448, &[], &[], &["x"]),
            is_generated,
            ..path("sdk/types.ts", ["a", "b", "c", "c"])
        };
        let mut paths: Vec<PathFacts> =
            (0..90).map(|at| path(&format!("kept{at}"), ["a", "b", "a", "b"])).collect();
        paths.push(lost);
        let contract = judge_contract(&ContractFacts { paths, ..ContractFacts::default() });
        assert_eq!(contract.paths[90].state, ContractStatus::Lost, "it is named all the same");
        contract.lost
    };
    assert!(is_refused(false) && !is_refused(true));
}

#[test]
fn empty_lines_of_the_fork_are_no_work_to_lose() {
    let facts = |only_empty| LineFacts { own: 2, only_empty, ..LineFacts::default() };
    let with = |only_empty| PathFacts {
        lines: LineEvidence::Counted(facts(only_empty)),
        ..path("f", ["a", "b", "c", "d"])
    };
    check(with(true), ContractStatus::Changed, "0 of 2 lines; only empty lines");
    check(with(false), ContractStatus::Lost, "0 of 2 lines");
    let deleted = |lines: usize| PathFacts {
        lines: LineEvidence::Whole(lines),
        ..path("f", ["a", "b", "-", "-"])
    };
    let words = "upstream deleted it, and the fork changed only empty lines";
    check(deleted(0), ContractStatus::Changed, words);
    let words = "upstream deleted it, and the fork's changes are gone";
    check(deleted(1), ContractStatus::Lost, words);
}

#[test]
fn whole_files_are_told_by_their_ids() {
    check(path("f", ["a", "b", "a", "b"]), ContractStatus::Kept, "");
    check(path("f", ["a", "b", "b", "b"]), ContractStatus::Superseded, "upstream has the same");
    check(path("f", ["a", "-", "-", "-"]), ContractStatus::Superseded, "upstream has the same");
    check(
        path("f", ["a", "b", "a", "a"]),
        ContractStatus::Lost,
        "the fork's version is undone (no lines to compare)",
    );
    check(
        path("f", ["a", "b", "c", "c"]),
        ContractStatus::Lost,
        "upstream's version is in its place (no lines to compare)",
    );
    let other = path("f", ["a", "b", "c", "d"]);
    let words = "neither side's version is in its place (no lines to compare)";
    check(other.clone(), ContractStatus::Lost, words);
    let merged = PathFacts { as_merged: true, ..other.clone() };
    check(merged, ContractStatus::Changed, &format!("{words}; as git merges it"));
    let yielded = PathFacts { yielded: true, ..other.clone() };
    let place = "upstream's side of the conflict is in its place";
    check(yielded, ContractStatus::Changed, &format!("{words}; {place}"));
    let kept = PathFacts { lines: counted(2, &["x", "y"], &[], &[]), ..other.clone() };
    check(kept.clone(), ContractStatus::Kept, "2 of 2 lines");
    let off = "2 of 2 lines; new lines there may turn it off";
    check(PathFacts { is_suspected: true, ..kept }, ContractStatus::Changed, off);
    let taken = PathFacts { is_taken: true, ..other.clone() };
    let form = "its words are there in another form";
    check(taken, ContractStatus::Changed, &format!("{words}; {form}"));
    let ruled = PathFacts { given_away: Some("resolve: f".to_owned()), ..other };
    check(ruled, ContractStatus::Changed, &format!("{words}; resolve: f"));
}

#[test]
fn presence_is_accounted_for() {
    check(
        path("f", ["-", "b", "-", "-"]),
        ContractStatus::Lost,
        "the fork added it, and it is gone",
    );
    check(path("f", ["a", "-", "a", "-"]), ContractStatus::Kept, "");
    check(
        path("f", ["a", "-", "a", "a"]),
        ContractStatus::Lost,
        "the fork deleted it, and it is back",
    );
    check(
        path("f", ["a", "-", "c", "c"]),
        ContractStatus::Changed,
        "the fork deleted it, upstream changed it, and it is back",
    );
    check(
        path("f", ["a", "b", "-", "-"]),
        ContractStatus::Lost,
        "upstream deleted it, and the fork's changes are gone",
    );
    check(
        path("f", ["a", "b", "a", "-"]),
        ContractStatus::Lost,
        "it is gone, though both sides have it",
    );
}

#[test]
fn a_mode_is_work_too() {
    check(path("f", ["a", "ax", "c", "cx"]), ContractStatus::Kept, "");
    check(path("f", ["a", "ax", "c", "c"]), ContractStatus::Lost, "the fork's mode is gone");
    check(path("f", ["-", "bx", "-", "b"]), ContractStatus::Lost, "the fork's mode is gone");
    let both =
        PathFacts { lines: counted(1, &["x"], &[], &[]), ..path("f", ["a", "bx", "c", "d"]) };
    check(both, ContractStatus::Changed, "1 of 1 line; the fork's mode is gone");
}

#[test]
fn lines_are_counted() {
    let with = |lines| PathFacts { lines, ..path("f", ["a", "b", "c", "d"]) };
    check(with(counted(2, &["x", "y"], &[], &[])), ContractStatus::Kept, "2 of 2 lines");
    check(with(counted(2, &["x"], &[], &["y"])), ContractStatus::Changed, "1 of 2 lines");
    check(
        with(counted(2, &[], &["x"], &["y"])),
        ContractStatus::Changed,
        "0 of 2 lines, 1 adapted",
    );
    check(with(counted(2, &[], &[], &["x", "y"])), ContractStatus::Lost, "0 of 2 lines");
    let few: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
    let few: Vec<&str> = few.iter().map(String::as_str).collect();
    let held = |count| with(counted(20, &few[..count], &[], &few[count..]));
    check(held(2), ContractStatus::Lost, "2 of 20 lines");
    check(held(3), ContractStatus::Changed, "3 of 20 lines");
    let shared = LineEvidence::Counted(LineFacts { shared_count: 1, ..LineFacts::default() });
    check(with(shared), ContractStatus::Superseded, "upstream has its 1 line");
}

#[test]
fn a_name_that_nothing_finds_is_a_loss() {
    let named = |old: &str, new: &str| PathFacts {
        moved_to: Some(TreePath::new(new)),
        ..path(old, ["-", "b", "-", "b"])
    };
    check(
        named("tests/t.py", "tests/t.txt"),
        ContractStatus::Lost,
        "hidden under another name: tests/t.txt",
    );
    check(
        named("auth.py", "\u{430}uth.py"),
        ContractStatus::Lost,
        "hidden under another name: \u{430}uth.py",
    );
    check(named("a.py", "lib/a.py"), ContractStatus::Changed, "renamed to lib/a.py");
    let upstreams = PathFacts { moved_by_upstream: true, ..named("a.js", "a.ts") };
    check(upstreams, ContractStatus::Kept, "now a.ts");
}

#[test]
fn a_protected_path_is_the_forks_or_lost() {
    let protected = |sides| PathFacts { protected: true, ..path("f", sides) };
    check(protected(["a", "b", "c", "b"]), ContractStatus::Kept, "");
    check(protected(["a", "b", "c", "d"]), ContractStatus::Lost, "protected");
    check(protected(["a", "a", "c", "c"]), ContractStatus::Lost, "protected");
}

#[test]
fn a_change_that_upstream_took_in_is_not_lost() {
    let twin = ForkCommit {
        upstream_twin: Some(Sha::parse(&"e".repeat(40)).unwrap()),
        ..commit("1", &["f"], &["x"])
    };
    let lost = PathFacts { lines: counted(1, &[], &[], &["x"]), ..path("f", ["a", "b", "c", "c"]) };
    let mut facts =
        ContractFacts { commits: vec![twin], paths: vec![lost], ..ContractFacts::default() };
    let contract = judge_contract(&facts);
    assert_eq!(contract.paths[0].state, ContractStatus::Superseded);
    assert_eq!(contract.commits[0].state, ContractStatus::Superseded);
    assert!(!contract.lost);
    facts.commits.push(commit("2", &["f"], &["x"]));
    assert!(judge_contract(&facts).lost);
}

#[test]
fn one_dropped_commit_shows_in_a_file_that_keeps_another() {
    let shared_file = PathFacts {
        lines: counted(2, &["first"], &[], &["second"]),
        ..path("f", ["a", "b", "c", "d"])
    };
    let commits = vec![commit("1", &["f"], &["second"]), commit("2", &["f"], &["first"])];
    let facts = ContractFacts { commits, paths: vec![shared_file], ..ContractFacts::default() };
    let contract = judge_contract(&facts);
    assert_eq!(contract.paths[0].state, ContractStatus::Changed);
    assert_eq!(contract.commits[0].state, ContractStatus::Lost);
    assert_eq!(contract.commits[1].state, ContractStatus::Kept);
    assert!(contract.lost);
}

#[test]
fn a_few_lines_among_much_are_named_and_not_refused() {
    let kept = |n: usize| path(&format!("k{n:02}"), ["a", "b", "a", "b"]);
    let small = |n: usize| PathFacts {
        lines: counted(1, &[], &[], &["x"]),
        ..path(&format!("s{n}"), ["a", "b", "c", "d"])
    };
    let is_lost = |small_ones, kept_ones| {
        let paths = (0..kept_ones).map(kept).chain((0..small_ones).map(small)).collect();
        let contract = judge_contract(&ContractFacts { paths, ..ContractFacts::default() });
        let lost = contract.paths.iter().filter(|path| path.state == ContractStatus::Lost);
        assert_eq!(lost.count(), small_ones, "each is named");
        contract.lost
    };
    assert!(is_lost(1, 0) && is_lost(1, 8) && !is_lost(1, 9));
    assert!(!is_lost(4, 45) && is_lost(5, 44) && !is_lost(5, 95) && is_lost(9, 991));
    let paths = (0..99).map(kept).chain([small(0)]).collect();
    let facts = ContractFacts { paths, is_upstreams_tree: true, ..ContractFacts::default() };
    assert!(judge_contract(&facts).lost, "a whole side is refused");
}

#[test]
fn a_file_of_the_forks_that_is_gone_is_named_if_it_is_short_and_one_of_many() {
    let kept = |n: usize| path(&format!("k{n:02}"), ["a", "b", "a", "b"]);
    let is_lost = |gone: PathFacts| {
        let paths = (0..40).map(kept).chain([gone]).collect();
        judge_contract(&ContractFacts { paths, ..ContractFacts::default() }).lost
    };
    let gone = |lines| PathFacts { lines, ..path("new", ["-", "b", "-", "-"]) };
    assert!(!is_lost(gone(LineEvidence::Whole(200))));
    assert!(is_lost(gone(LineEvidence::Whole(201))), "more than a few lines");
    assert!(!is_lost(gone(LineEvidence::NoLines)) && !is_lost(gone(LineEvidence::TooLarge)));
    let short = gone(LineEvidence::Whole(1));
    assert!(is_lost(PathFacts { protected: true, ..short.clone() }));
    let hidden = PathFacts { moved_to: Some(TreePath::new("new.txt")), ..short };
    let hidden = PathFacts { result: entry("c"), ..hidden };
    assert!(is_lost(hidden.clone()));
    assert!(!is_lost(PathFacts { moved_by_upstream: true, ..hidden }), "upstream's name");
    let back = PathFacts { lines: LineEvidence::Whole(10), ..path("old", ["a", "-", "a", "a"]) };
    assert!(!is_lost(back));
}

#[test]
fn a_commit_is_as_its_parts() {
    use ContractStatus::{Changed, Kept, Lost, Superseded};
    assert_eq!(sum_up(&[]), Kept);
    assert_eq!(sum_up(&[Superseded, Kept]), Kept);
    assert_eq!(sum_up(&[Superseded, Superseded]), Superseded);
    assert_eq!(sum_up(&[Kept, Lost]), Changed);
    assert_eq!(sum_up(&[Changed, Kept]), Changed);
    assert_eq!(sum_up(&[Lost, Lost]), Lost);
}
