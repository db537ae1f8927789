//! Decides the contract from facts. Pure.

use std::collections::BTreeMap;

use super::{
    CommitAccount, Contract, ContractFacts, ContractStatus, ForkCommit, LineEvidence, LineFacts,
    PathAccount, PathFacts,
};
use crate::account::{LINES_PER_CHANGE, few_changes};
use crate::path::TreePath;

/// Gives every commit and path a status.
pub fn judge_contract(facts: &ContractFacts) -> Contract {
    let adopted = adopted_paths(&facts.commits);
    let paths: Vec<PathAccount> = facts
        .paths
        .iter()
        .map(|path| {
            let (state, detail) = judge_path(path, adopted.get(&path.path) == Some(&true));
            PathAccount { path: path.path.clone(), state, detail }
        })
        .collect();
    let known: BTreeMap<&TreePath, (&PathFacts, ContractStatus)> = facts
        .paths
        .iter()
        .zip(&paths)
        .map(|(facts, account)| (&facts.path, (facts, account.state)))
        .collect();
    let commits: Vec<CommitAccount> = facts
        .commits
        .iter()
        .map(|commit| CommitAccount {
            sha: commit.sha.clone(),
            subject: commit.subject.clone(),
            state: judge_commit(commit, &known),
            same_as: commit.upstream_twin.clone().or_else(|| commit.result_twin.clone()),
        })
        .collect();
    let lost = is_refused(facts, &paths, &commits);
    Contract { commits, commits_left_off: facts.commits_left_off, paths, lost }
}

/// Share of all paths or commits that losses may be without being refused, as one in so many. People do remove work of
/// theirs that a merge made obsolete.
const FEW_AMONG: usize = 10;

/// Returns whether more is lost than a few changes among many. Those are named first, as a few dropped changes of upstream
/// are, and on the same scale.
fn is_refused(facts: &ContractFacts, paths: &[PathAccount], commits: &[CommitAccount]) -> bool {
    let is_lost = |state: ContractStatus| state == ContractStatus::Lost;
    let lost: Vec<&PathFacts> = facts
        .paths
        .iter()
        .zip(paths)
        .filter(|(_, path)| is_lost(path.state))
        .map(|(it, _)| it)
        .collect();
    let lost_commits = commits.iter().filter(|commit| is_lost(commit.state)).count();
    if facts.is_upstreams_tree && !lost.is_empty() {
        return true;
    }
    let few = few_changes(paths.len());
    let Some(lines) = lost.iter().map(|path| lines_of_loss(path)).sum::<Option<usize>>() else {
        return true;
    };
    lost.len() > few.min(paths.len() / FEW_AMONG)
        || lines > few * LINES_PER_CHANGE
        || lost_commits > few.min(commits.len() / FEW_AMONG)
}

/// Lines of a loss that may be one of a few; `None` if the file is hidden, has become something else or is protected. A
/// binary or very large file counts as much as a change may on average: such files are mostly generated or pictures.
fn lines_of_loss(path: &PathFacts) -> Option<usize> {
    let is_other_kind = match (&path.fork, &path.result) {
        (Some(fork), Some(result)) => fork.mode != result.mode,
        _ => false,
    };
    let is_hidden = path.moved_to.is_some() && !path.moved_by_upstream;
    if is_hidden || path.protected || is_other_kind {
        return None;
    }
    match &path.lines {
        LineEvidence::Counted(lines) => Some(lines.own),
        LineEvidence::Whole(lines) => Some(*lines),
        LineEvidence::NotNeeded | LineEvidence::NoLines | LineEvidence::TooLarge => {
            Some(LINES_PER_CHANGE)
        }
    }
}

/// For each path, whether upstream has all the commits that the fork made to it.
fn adopted_paths(commits: &[ForkCommit]) -> BTreeMap<&TreePath, bool> {
    let mut adopted = BTreeMap::new();
    for commit in commits {
        for path in &commit.paths {
            *adopted.entry(path).or_insert(true) &= commit.upstream_twin.is_some();
        }
    }
    adopted
}

fn judge_path(path: &PathFacts, adopted: bool) -> (ContractStatus, String) {
    let (state, detail) = judge_change(path);
    if path.protected && (path.result != path.fork || path.moved_to.is_some()) {
        return (ContractStatus::Lost, "protected".to_owned());
    }
    if path.as_merged && state == ContractStatus::Lost {
        return (ContractStatus::Changed, join(&detail, "as git merges it"));
    }
    if let Some(rule) = path.given_away.as_ref().filter(|_| state == ContractStatus::Lost) {
        return (ContractStatus::Changed, join(&detail, rule));
    }
    if path.yielded && state == ContractStatus::Lost {
        let words = "upstream's side of the conflict is in its place";
        return (ContractStatus::Changed, join(&detail, words));
    }
    // Upstream took the fork's commits and changed the path further.
    if adopted && state >= ContractStatus::Changed && path.result == path.upstream {
        return (ContractStatus::Superseded, "upstream has the same commits".to_owned());
    }
    match &path.moved_to {
        Some(_) if state == ContractStatus::Lost => (state, detail),
        Some(name) if path.moved_by_upstream || path.fork.is_none() => {
            (state, join(&detail, &format!("now {name}")))
        }
        // Neither side gave it that name, and perhaps nothing builds, runs or finds it any more.
        Some(name) if hides(&path.path, name) => {
            (ContractStatus::Lost, join(&detail, &format!("hidden under another name: {name}")))
        }
        Some(name) => {
            (state.max(ContractStatus::Changed), join(&detail, &format!("renamed to {name}")))
        }
        None => (state, detail),
    }
}

/// Returns whether a new name takes a file away from what finds it by its name: another extension, or letters that
/// only look like those of the old name.
fn hides(old: &TreePath, new: &TreePath) -> bool {
    let extension = |path: &TreePath| {
        let path = path.as_bytes();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
        let dot = name.iter().rposition(|&byte| byte == b'.').filter(|at| *at > 0);
        dot.map(|at| name[at..].to_vec())
    };
    let is_foreign = |path: &TreePath| path.as_bytes().iter().any(|byte| !byte.is_ascii());
    extension(old) != extension(new) || (is_foreign(new) && !is_foreign(old))
}

fn judge_change(path: &PathFacts) -> (ContractStatus, String) {
    let say = |state, words: &str| (state, words.to_owned());
    if path.result == path.fork {
        return if path.upstream == path.fork {
            say(ContractStatus::Superseded, "upstream has the same")
        } else {
            say(ContractStatus::Kept, "")
        };
    }
    let (Some(fork), Some(result)) = (&path.fork, &path.result) else {
        return judge_presence(path);
    };
    let is_forks_mode = path.ancestor.as_ref().is_none_or(|ancestor| ancestor.mode != fork.mode);
    let mode_lost = is_forks_mode && result.mode != fork.mode;
    let content_is_ancestors = path.ancestor.as_ref().is_some_and(|entry| entry.id == fork.id);
    let (state, detail) = match &path.lines {
        _ if fork.id == result.id => say(ContractStatus::Kept, ""),
        _ if content_is_ancestors => say(ContractStatus::Kept, ""),
        LineEvidence::Counted(lines) => judge_lines(path, lines),
        LineEvidence::NotNeeded | LineEvidence::NoLines | LineEvidence::Whole(_) => {
            judge_whole(path, "no lines to compare")
        }
        LineEvidence::TooLarge => judge_whole(path, "too large to compare"),
    };
    match (mode_lost, content_is_ancestors || fork.id == result.id) {
        (false, _) => (state, detail),
        (true, true) => say(ContractStatus::Lost, "the fork's mode is gone"),
        (true, false) => {
            (state.max(ContractStatus::Changed), join(&detail, "the fork's mode is gone"))
        }
    }
}

/// Status of a path that exists only in the fork or only in the result.
fn judge_presence(path: &PathFacts) -> (ContractStatus, String) {
    let untouched = path.upstream == path.ancestor;
    let (state, words) = match (&path.fork, &path.ancestor, &path.upstream) {
        (None, _, _) if untouched => (ContractStatus::Lost, "the fork deleted it, and it is back"),
        (None, _, _) => {
            (ContractStatus::Changed, "the fork deleted it, upstream changed it, and it is back")
        }
        (Some(_), None, _) => (ContractStatus::Lost, "the fork added it, and it is gone"),
        (Some(_), Some(_), None) => {
            (ContractStatus::Lost, "upstream deleted it, and the fork's changes are gone")
        }
        (Some(_), Some(_), Some(_)) => {
            (ContractStatus::Lost, "it is gone, though both sides have it")
        }
    };
    (state, words.to_owned())
}

/// Status of a path whose lines cannot be compared.
fn judge_whole(path: &PathFacts, why: &str) -> (ContractStatus, String) {
    if path.result == path.upstream && path.upstream != path.ancestor {
        (ContractStatus::Lost, format!("upstream's version is in its place ({why})"))
    } else if path.result == path.ancestor {
        (ContractStatus::Lost, format!("the fork's version is undone ({why})"))
    } else {
        (ContractStatus::Lost, format!("neither side's version is in its place ({why})"))
    }
}

fn judge_lines(path: &PathFacts, lines: &LineFacts) -> (ContractStatus, String) {
    let LineFacts { own, held, shared_count, .. } = *lines;
    let (own_word, adapted) = (plural(own, "line"), lines.adapted.len());
    if own == 0 {
        return judge_without_lines(path, shared_count);
    }
    if held == own {
        return (ContractStatus::Kept, format!("{own} of {own_word}"));
    }
    let mut detail = format!("{held} of {own_word}");
    if adapted > 0 {
        detail.push_str(&format!(", {adapted} adapted"));
    }
    // A tenth of what the fork made is not the fork's work any more.
    let is_lost = (held + adapted) * 10 <= own;
    (if is_lost { ContractStatus::Lost } else { ContractStatus::Changed }, detail)
}

/// Status of a path without lines of the fork's own: upstream has the same lines, or the fork moved lines, or it removed
/// lines that upstream rewrote.
fn judge_without_lines(path: &PathFacts, shared: usize) -> (ContractStatus, String) {
    if shared > 0 {
        return (
            ContractStatus::Superseded,
            format!("upstream has its {}", plural(shared, "line")),
        );
    }
    if path.result == path.ancestor {
        return (ContractStatus::Lost, "the fork's version is undone".to_owned());
    }
    if path.result == path.upstream {
        let words = "upstream rewrote what the fork took out or moved, and its version is in place";
        return (ContractStatus::Changed, words.to_owned());
    }
    (ContractStatus::Kept, String::new())
}

/// Status of a commit: by its own lines where they were counted, otherwise by its paths.
fn judge_commit(
    commit: &ForkCommit,
    known: &BTreeMap<&TreePath, (&PathFacts, ContractStatus)>,
) -> ContractStatus {
    if commit.upstream_twin.is_some() {
        return ContractStatus::Superseded;
    }
    let mut states = Vec::new();
    let mut seen = [false; 4];
    let mut by_path = Vec::new();
    for path in &commit.paths {
        let Some(&(facts, state)) = known.get(path) else { continue };
        match &facts.lines {
            LineEvidence::Counted(lines) if !facts.protected && !facts.yielded => {
                by_path.push(state);
                let sets = [&lines.kept, &lines.shared, &lines.adapted, &lines.missing];
                for (seen, set) in seen.iter_mut().zip(sets) {
                    *seen |= commit.added.intersection(set).next().is_some();
                }
            }
            LineEvidence::Counted(_)
            | LineEvidence::Whole(_)
            | LineEvidence::NotNeeded
            | LineEvidence::NoLines
            | LineEvidence::TooLarge => states.push(state),
        }
    }
    match seen {
        [false, false, false, false] => states.extend(by_path),
        [false, false, false, true] => states.push(ContractStatus::Lost),
        [_, _, true, _] | [_, _, _, true] => states.push(ContractStatus::Changed),
        [true, _, false, false] => states.push(ContractStatus::Kept),
        [false, true, false, false] => states.push(ContractStatus::Superseded),
    }
    sum_up(&states)
}

/// Combines statuses. A commit is lost only if all of it is lost; a lost part has its own row.
fn sum_up(states: &[ContractStatus]) -> ContractStatus {
    let has = |state| states.contains(&state);
    match (states.iter().max(), states.iter().min()) {
        (Some(ContractStatus::Lost), Some(ContractStatus::Lost)) => ContractStatus::Lost,
        (Some(ContractStatus::Lost | ContractStatus::Changed), _) => ContractStatus::Changed,
        (Some(ContractStatus::Superseded), _) if !has(ContractStatus::Kept) => {
            ContractStatus::Superseded
        }
        // A commit that the fork itself reverted has nothing to lose.
        (Some(ContractStatus::Superseded | ContractStatus::Kept) | None, _) => ContractStatus::Kept,
    }
}

fn join(one: &str, other: &str) -> String {
    if one.is_empty() { other.to_owned() } else { format!("{one}; {other}") }
}

pub(crate) fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("{count} {word}") } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::id::Sha;

    use super::super::{LineId, TreeEntry};
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
            as_merged: false,
            given_away: None,
            yielded: false,
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
        let account = &contract.paths[0];
        assert_eq!((account.state, account.detail.as_str()), (state, detail));
        assert_eq!(contract.lost, state == ContractStatus::Lost);
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
        check(with(counted(20, &few[..2], &[], &few[2..])), ContractStatus::Lost, "2 of 20 lines");
        check(
            with(counted(20, &few[..3], &[], &few[3..])),
            ContractStatus::Changed,
            "3 of 20 lines",
        );
        let shared = LineFacts { shared_count: 1, ..LineFacts::default() };
        let shared = LineEvidence::Counted(shared);
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
        let lost =
            PathFacts { lines: counted(1, &[], &[], &["x"]), ..path("f", ["a", "b", "c", "c"]) };
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
        let is_lost = |small_ones: usize, kept_ones: usize| {
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
        let back =
            PathFacts { lines: LineEvidence::Whole(10), ..path("old", ["a", "-", "a", "a"]) };
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
}
