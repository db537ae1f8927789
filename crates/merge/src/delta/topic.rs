//! Topics of commits: the branch that a commit was merged with, or the commit itself with what mends or undoes it. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::change::TRAILER;
use super::history::{OwnHistory, Parent};

/// Most commits of a branch that is one topic. A longer one is a line of development with topics of its own.
const MOST_COMMITS: usize = 60;

/// Topics of the fork's commits, each named by one of them.
#[derive(Debug, Default)]
pub(super) struct Topics {
    /// The commit that names the topic of a commit, where it is another one.
    named_by: BTreeMap<usize, usize>,
}

impl Topics {
    pub(super) fn find(history: &OwnHistory) -> Self {
        let mut topics = Self::default();
        if !history.commits.is_empty() {
            topics.read_line(history, 0, &mut BTreeSet::new());
        }
        topics.read_amends(history);
        topics
    }

    /// The commit that names the topic of a commit.
    pub(super) fn naming(&self, place: usize) -> usize {
        let mut place = place;
        // What amends a commit of a branch belongs to the branch.
        while let Some(&by) = self.named_by.get(&place) {
            place = by;
        }
        place
    }

    /// Name of the topic that a commit names.
    pub(super) fn title(history: &OwnHistory, place: usize) -> String {
        let commit = &history.commits[place];
        let name = match history.is_merge(place) {
            true => merge_title(&commit.message),
            false => subject_name(commit.subject()).to_owned(),
        };
        if name.is_empty() { format!("commit {}", commit.sha.short()) } else { name }
    }

    /// A commit, and for a merge of a branch all that it brought in.
    pub(super) fn brought_by(&self, history: &OwnHistory, place: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([place]);
        if history.is_merge(place) {
            let by = self.named_by.iter().filter(|(_, by)| **by == place);
            found.extend(by.map(|(commit, _)| *commit));
        }
        found
    }

    /// Walks a line of development and what it merged, oldest merge first, so that each commit belongs to the merge that brought
    /// it in. A branch that is no topic is a line itself.
    fn read_line(&mut self, history: &OwnHistory, tip: usize, seen: &mut BTreeSet<usize>) {
        let mut line = Vec::new();
        let mut next = Some(tip);
        while let Some(place) = next.filter(|place| seen.insert(*place)) {
            line.push(place);
            next = match history.parents_of(place).first() {
                Some(Parent::Own(parent)) => Some(*parent),
                Some(Parent::Upstream) | None => None,
            };
        }
        for merge in line.into_iter().rev().filter(|&place| history.is_merge(place)) {
            for parent in history.parents_of(merge).iter().skip(1) {
                let &Parent::Own(branch) = parent else { continue };
                let brought = reached(history, branch, seen);
                if is_topic(history, &brought) {
                    let plain = brought.iter().filter(|&&place| !history.is_merge(place)).count();
                    // A single commit names itself better than its merge does.
                    let named = brought.iter().filter(|_| plain > 1);
                    self.named_by.extend(named.map(|&place| (place, merge)));
                    seen.extend(brought);
                } else {
                    self.read_line(history, branch, seen);
                }
            }
        }
    }

    /// Commits that mend or undo another one belong to it.
    fn read_amends(&mut self, history: &OwnHistory) {
        let mut newest: HashMap<&str, usize> = HashMap::new();
        let mut ids: HashMap<&str, usize> = HashMap::new();
        for (place, commit) in history.commits.iter().enumerate().rev() {
            let amended = match amended_subject(commit.subject()) {
                Some(subject) => newest.get(subject).copied(),
                None => None,
            };
            let undone =
                || reverted_id(&commit.message).and_then(|id| ids.get(id.get(..12)?).copied());
            let other = undone().or(amended).filter(|other| *other != place);
            if let Some(other) = other
                && !history.is_merge(place)
            {
                self.named_by.insert(place, other);
            }
            if !history.is_merge(place) {
                newest.insert(commit.subject(), place);
                ids.insert(&commit.sha.as_str()[..12], place);
            }
        }
    }
}

/// Returns whether what a branch brings in is about one thing: few commits, and no merge of upstream.
fn is_topic(history: &OwnHistory, brought: &BTreeSet<usize>) -> bool {
    let plain = brought.iter().filter(|&&place| !history.is_merge(place)).count();
    plain <= MOST_COMMITS && !brought.iter().any(|&place| history.is_sync(place))
}

/// Commits of the fork that a branch brings in: those that were not seen before.
fn reached(history: &OwnHistory, branch: usize, seen: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![branch];
    while let Some(place) = open.pop() {
        if seen.contains(&place) || !found.insert(place) {
            continue;
        }
        for parent in history.parents_of(place) {
            if let Parent::Own(parent) = parent {
                open.push(*parent);
            }
        }
    }
    found
}

/// The subject of the commit that this one mends or undoes, by its own subject.
fn amended_subject(subject: &str) -> Option<&str> {
    for prefix in ["fixup! ", "squash! ", "amend! "] {
        if let Some(rest) = subject.strip_prefix(prefix) {
            return Some(rest);
        }
    }
    let rest = subject.strip_prefix("Revert \"").or_else(|| subject.strip_prefix("Reapply \""))?;
    rest.rfind('"').map(|end| &rest[..end])
}

/// The commit that a message says it undoes.
fn reverted_id(message: &str) -> Option<&str> {
    let start = message.find("This reverts commit ")? + "This reverts commit ".len();
    let rest = &message[start..];
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    (end >= 12).then(|| &rest[..end])
}

/// The value of the trailer that names a change, if the last paragraph has it.
pub(super) fn trailer(message: &str) -> Option<String> {
    let last = message.trim_end().rsplit("\n\n").next()?;
    let value = last.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(TRAILER).then(|| value.trim())
    })?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// A subject without the number of the pull request that forges append.
fn subject_name(subject: &str) -> &str {
    let subject = subject.trim();
    match subject.rsplit_once(" (#") {
        Some((name, number))
            if number.ends_with(')')
                && number[..number.len() - 1].bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name.trim_end()
        }
        _ => subject,
    }
}

/// The title of a merged pull request, as forges write it into the message of the merge; else the name of the branch.
fn merge_title(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let subject = lines.next().unwrap_or_default();
    let is_forges = subject.starts_with("Merge pull request ")
        || (subject.starts_with("Merge branch ") && message.contains("See merge request"));
    let quoted = || subject.split('\'').nth(1).filter(|name| !name.is_empty());
    match (is_forges, lines.next()) {
        (true, Some(title)) => title.to_owned(),
        (false, _) if subject.starts_with("Merge branch ") => {
            quoted().unwrap_or(subject).to_owned()
        }
        _ => subject.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_is_named_by_its_pull_request_or_its_branch() {
        for (message, title) in [
            ("Merge pull request #7 from a/b\n\nParse faster\n\nmore\n", "Parse faster"),
            (
                "Merge branch 'fast' into 'main'\n\nParse faster\n\nSee merge request a/b!7\n",
                "Parse faster",
            ),
            ("Merge branch 'fast'\n\n# Conflicts:\n", "fast"),
            ("Merge pull request #7 from a/b\n", "Merge pull request #7 from a/b"),
            ("merge: the parser\n", "merge: the parser"),
        ] {
            assert_eq!(merge_title(message), title, "{message}");
        }
    }

    #[test]
    fn the_number_of_a_pull_request_is_no_part_of_a_name() {
        assert_eq!(subject_name("Parse faster (#12)"), "Parse faster");
        assert_eq!(subject_name("Parse faster (see #12)"), "Parse faster (see #12)");
        assert_eq!(subject_name("Parse (#x)"), "Parse (#x)");
    }

    #[test]
    fn a_trailer_stands_in_the_last_paragraph() {
        assert_eq!(
            trailer("one\n\ntext\n\nfork-change: login\nSigned-off-by: A\n").as_deref(),
            Some("login")
        );
        assert_eq!(trailer("one\n\nFork-Change: login\n\nmore text\n"), None);
        assert_eq!(trailer("one\n\nFork-Change:  \n"), None);
    }

    #[test]
    fn amends_and_reverts_name_another_commit() {
        assert_eq!(amended_subject("fixup! Parse faster"), Some("Parse faster"));
        assert_eq!(amended_subject("Revert \"Say \"hi\"\""), Some("Say \"hi\""));
        assert_eq!(amended_subject("Revert it"), None);
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(reverted_id(&format!("x\n\nThis reverts commit {id}.\n")), Some(id));
        assert_eq!(reverted_id("This reverts commit 0123.\n"), None);
    }
}
