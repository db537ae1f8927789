//! Decides the contract from facts. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    CommitAccount, Contract, ContractFacts, ContractStatus, ForkCommit, LineEvidence, LineFacts,
    LineId, PathAccount, PathFacts,
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
    // A file may have many commits, and its loss is one.
    let lost_paths: BTreeSet<&TreePath> = lost.iter().map(|path| &path.path).collect();
    let is_of_path =
        |commit: &ForkCommit| commit.paths.iter().any(|path| lost_paths.contains(path));
    let pairs = || facts.commits.iter().zip(commits).filter(|(_, it)| is_lost(it.state));
    let lost_commits = pairs().count();
    let lost_alone = pairs().filter(|(commit, _)| !is_of_path(commit)).count();
    if facts.is_upstreams_tree && !lost.is_empty() {
        return true;
    }
    let few = few_changes(paths.len());
    let Some(lines) = lost.iter().map(|path| lines_of_loss(path)).sum::<Option<usize>>() else {
        return true;
    };
    lost.len() > few.min(paths.len() / FEW_AMONG)
        || lines > few * LINES_PER_CHANGE
        || lost_commits > commits.len() / FEW_AMONG
        || lost_alone > few
}

/// Lines of a loss that may be one of a few; `None` if the file is hidden, has become something else or is protected. A
/// binary, generated or very large file counts as much as a change may on average: such files are mostly written by
/// programs, or pictures.
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
        LineEvidence::Counted(LineFacts { own: lines, .. }) | LineEvidence::Whole(lines) => {
            Some(if path.is_generated { (*lines).min(LINES_PER_CHANGE) } else { *lines })
        }
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
    let (state, detail) = match judge_change(path) {
        (ContractStatus::Kept, detail) if path.is_suspected => {
            (ContractStatus::Changed, join(&detail, "new lines there may turn it off"))
        }
        judged => judged,
    };
    if path.protected && (path.result != path.fork || path.moved_to.is_some()) {
        return (ContractStatus::Lost, "protected".to_owned());
    }
    if path.as_merged && state == ContractStatus::Lost {
        return (ContractStatus::Changed, join(&detail, "as git merges it"));
    }
    if let Some(rule) = path.given_away.as_ref().filter(|_| state == ContractStatus::Lost) {
        return (ContractStatus::Changed, join(&detail, rule));
    }
    if path.is_taken && state == ContractStatus::Lost {
        return (ContractStatus::Changed, join(&detail, "its words are there in another form"));
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
        None if state == ContractStatus::Lost => (state, join(&detail, replacement(path))),
        None => (state, detail),
    }
}

/// Words about what is in the place of lost lines; empty if neither side's version is, or if it was said.
fn replacement(path: &PathFacts) -> &'static str {
    let LineEvidence::Counted(lines) = &path.lines else { return "" };
    match () {
        () if lines.own == 0 || path.result.is_none() => "",
        () if path.result == path.upstream => "upstream's version is in its place",
        () if path.result == path.ancestor => "the fork's version is undone",
        () => "",
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
    if path.by_git && !path.protected && !mode_lost {
        // A file that the fork only renamed has upstream's content, and the fork's name.
        return if path.result == path.upstream && !content_is_ancestors {
            say(ContractStatus::Superseded, "upstream has the same change")
        } else {
            say(ContractStatus::Kept, "as git merges it")
        };
    }
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
        (Some(_), Some(_), None) if path.lines == LineEvidence::Whole(0) => {
            (ContractStatus::Changed, "upstream deleted it, and the fork changed only empty lines")
        }
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
    let mut detail = format!("{held} of {own_word}");
    for (count, word) in [(adapted, "adapted"), (lines.moved.len(), "moved")] {
        if count > 0 {
            detail.push_str(&format!(", {count} {word}"));
        }
    }
    if held == own {
        let is_in_place = lines.moved.is_empty();
        return (if is_in_place { ContractStatus::Kept } else { ContractStatus::Changed }, detail);
    }
    // A tenth of what the fork made is not the fork's work any more.
    let is_lost = (held + adapted) * 10 <= own;
    if is_lost && lines.only_empty {
        return (ContractStatus::Changed, join(&detail, "only empty lines"));
    }
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
            LineEvidence::Counted(lines)
                if ![facts.protected, facts.yielded, facts.is_taken, facts.is_suspected]
                    .contains(&true) =>
            {
                by_path.push(state);
                let sets = [&lines.kept, &lines.shared, &lines.adapted, &lines.missing];
                let has = |set: &BTreeSet<LineId>| commit.added.intersection(set).next().is_some();
                for (seen, set) in seen.iter_mut().zip(sets) {
                    *seen |= has(set);
                }
                seen[2] |= has(&lines.moved);
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
    match (one, other) {
        (one, "") => one.to_owned(),
        ("", other) => other.to_owned(),
        (one, other) => format!("{one}; {other}"),
    }
}

pub(crate) fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("{count} {word}") } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests;
