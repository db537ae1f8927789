//! Changes of a fork beside upstream's files: whether upstream has all that a change does, in its place, and else how much.
//!
//! A file of a change is upstream's if a merge of that change alone gives upstream's file, to the byte, with its mode and its
//! name. Anything less is a likeness.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use host::git::{GitError, SealedRepo, TreeEntry};
use model::id::Sha;
use serde::Serialize;

use super::change::LineAssignment;
use super::compose::compose;
use super::{Delta, DeltaFile, FileContent};
use crate::entry::{is_file, kind, read_small};
use crate::likeness::Likeness;
use crate::path::TreePath;
use crate::three::text::lines;
use crate::three::{Change, Touching, three_way};

/// Largest file whose lines are compared, in bytes.
const FILE_BYTES: usize = 4 << 20;

/// Files that are compared at once.
const AT_ONCE: usize = 300;

/// A change beside upstream's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamComparison {
    /// All of its lines that are not blank, those that tell something, and how many of both upstream has anywhere in its files.
    pub all: Likeness,
    pub telling: Likeness,
    /// Files in which the change has something, and those in which upstream has all of it.
    pub files: usize,
    pub exact: usize,
    /// The first file in which upstream does not have all of it.
    pub differs: Option<(TreePath, Difference)>,
}

impl UpstreamComparison {
    /// Returns whether upstream has all of the change in its place.
    pub fn is_exact(&self) -> bool {
        self.files > 0 && self.exact == self.files
    }
}

/// Reason why upstream's file does not have all of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    Absent,
    StillThere,
    Name,
    Mode,
    Content,
    Lines,
    /// They stand in a comment or behind `#if 0`.
    SwitchedOff,
    Unread,
}

impl Difference {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "upstream has no such file",
            Self::StillThere => "upstream still has the file",
            Self::Name => "upstream's file has another name",
            Self::Mode => "upstream's file has another mode",
            Self::Content => "upstream's file has another content",
            Self::Lines => "its lines do not all stand in the same place there",
            Self::SwitchedOff => "lines of it are switched off there",
            Self::Unread => "it is too large to be compared",
        }
    }
}

/// Compares all changes, each as if it were the only one of the fork.
pub(super) async fn compare_changes(
    repo: &SealedRepo,
    delta: &Delta,
    assignment: &LineAssignment,
    target: &Sha,
) -> Result<Vec<UpstreamComparison>, GitError> {
    let mut found = vec![UpstreamComparison::default(); assignment.changes.len()];
    let renames = repo.renames_of(&[(target.clone(), Some(delta.parted.clone()))]).await?;
    let renames: HashMap<Vec<u8>, Vec<u8>> =
        renames.into_iter().flatten().map(|it| (it.from, it.to)).collect();
    let numbers: Vec<usize> = (0..delta.files.len()).collect();
    for chunk in numbers.chunks(AT_ONCE) {
        let theirs = Theirs::read(repo, delta, chunk, target, &renames).await?;
        let files = chunk.iter().map(|&number| &delta.files[number]);
        let ends = files.flat_map(|file| [&file.old, &file.new]).flatten();
        let ends = ends.chain(theirs.entries.values()).filter(|entry| is_file(entry));
        let texts = read_small(repo, ends.map(|entry| &entry.id).collect(), FILE_BYTES).await?;
        for &number in chunk {
            compare_file(&delta.files[number], (number, assignment), (&theirs, &texts), &mut found);
        }
    }
    Ok(found)
}

/// Entries of upstream's tree.
struct Theirs<'a> {
    entries: BTreeMap<Vec<u8>, TreeEntry>,
    renames: &'a HashMap<Vec<u8>, Vec<u8>>,
}

impl<'a> Theirs<'a> {
    async fn read(
        repo: &SealedRepo,
        delta: &Delta,
        numbers: &[usize],
        target: &Sha,
        renames: &'a HashMap<Vec<u8>, Vec<u8>>,
    ) -> Result<Self, GitError> {
        let files = numbers.iter().map(|&number| &delta.files[number]);
        let own = files.flat_map(|file| [Some(&file.path), file.was.as_ref()]).flatten();
        let own: BTreeSet<&[u8]> = own.map(TreePath::as_bytes).collect();
        let moved = own.iter().filter_map(|path| renames.get(*path)).map(Vec::as_slice);
        let asked: BTreeSet<&[u8]> = own.iter().copied().chain(moved).collect();
        let asked: Vec<&[u8]> = asked.into_iter().collect();
        Ok(Self { entries: repo.entries_at(target, &asked).await?, renames })
    }

    /// Upstream's version of a file of the fork, under the fork's name, the one before, or upstream's new one.
    fn of(&self, file: &DeltaFile) -> Option<(&[u8], &TreeEntry)> {
        let names = || [Some(&file.path), file.was.as_ref()].into_iter().flatten();
        let moved = names().filter_map(|path| self.renames.get(path.as_bytes()));
        let all = names().map(TreePath::as_bytes).chain(moved.map(Vec::as_slice));
        all.into_iter().find_map(|name| {
            let (name, entry) = self.entries.get_key_value(name)?;
            Some((name.as_slice(), entry))
        })
    }
}

fn compare_file(
    file: &DeltaFile,
    (number, assignment): (usize, &LineAssignment),
    (theirs, texts): (&Theirs<'_>, &BTreeMap<Sha, Vec<u8>>),
    found: &mut [UpstreamComparison],
) {
    let their = theirs.of(file);
    let origins = file.origins().into_keys().chain([file.whole]);
    let changes: BTreeSet<usize> =
        origins.filter_map(|it| assignment.change_of(number, it)).collect();
    let empty = Vec::new();
    let text = |entry: Option<&TreeEntry>| match entry {
        Some(entry) => texts.get(&entry.id),
        None => Some(&empty),
    };
    let versions = [text(file.old.as_ref()), text(file.new.as_ref()), text(their.map(|it| it.1))];
    for change in changes {
        let is_its = |origin| assignment.change_of(number, origin) == Some(change);
        let has_lines = file.origins().into_keys().any(is_its);
        let whole = if is_its(file.whole) { compare_whole(file, their, theirs) } else { None };
        let lines = match (has_lines, versions) {
            (false, _) => None,
            (true, [Some(before), Some(after), Some(other)]) => {
                let with = compose(file.hunks(), before, after, is_its);
                let comparison = &mut found[change];
                comparison.telling += known_share(Likeness::measure(before, &with, other), their);
                comparison.all += known_share(Likeness::measure_all(before, &with, other), their);
                match (&file.new, their) {
                    (None, _) => None,
                    (Some(_), None) => Some(Difference::Absent),
                    (Some(_), Some(_)) => compare_lines(before, &with, other),
                }
            }
            (true, _) => Some(Difference::Unread),
        };
        if !has_lines && !is_its(file.whole) {
            continue;
        }
        // A file with lines counts as one with lines, even where a change has none of them but made it.
        let comparison = &mut found[change];
        comparison.files += 1;
        match whole.or(lines) {
            None => comparison.exact += 1,
            Some(difference) if comparison.differs.is_none() => {
                comparison.differs = Some((file.path.clone(), difference));
            }
            Some(_) => {}
        }
    }
}

/// In a file that upstream does not have, nobody knows where the lines are that a change removes.
fn known_share(likeness: Likeness, their: Option<(&[u8], &TreeEntry)>) -> Likeness {
    match their {
        Some(_) => likeness,
        None => Likeness { removed: 0, removed_found: 0, ..likeness },
    }
}

/// Compares what is not in the lines of a file: that it is there, its name, its mode, and a content without lines.
fn compare_whole(
    file: &DeltaFile,
    their: Option<(&[u8], &TreeEntry)>,
    theirs: &Theirs<'_>,
) -> Option<Difference> {
    let Some(new) = &file.new else {
        return their.is_some().then_some(Difference::StillThere);
    };
    let Some((name, entry)) = their else { return Some(Difference::Absent) };
    let is_named = file.old.is_none() || file.was.is_some();
    let left = file.was.as_ref().is_some_and(|was| theirs.entries.contains_key(was.as_bytes()));
    if is_named && (name != file.path.as_bytes() || left) {
        return Some(Difference::Name);
    }
    let is_moded = file.old.as_ref().is_none_or(|old| old.mode != new.mode);
    if (is_moded && entry.mode != new.mode) || kind(entry) != kind(new) {
        return Some(Difference::Mode);
    }
    match &file.content {
        FileContent::Text(_) => None,
        FileContent::Unread if entry.id != new.id => Some(Difference::Unread),
        // A rename or a mode alone changes no content.
        FileContent::Whole if file.old.as_ref().is_some_and(|old| old.id == new.id) => None,
        FileContent::Whole | FileContent::Unread => {
            (entry.id != new.id).then_some(Difference::Content)
        }
    }
}

/// Compares the lines of a change with upstream's file: a merge of both must give upstream's.
fn compare_lines(before: &[u8], with: &[u8], other: &[u8]) -> Option<Difference> {
    let [base, ours, theirs] = [before, with, other].map(lines);
    let regions = three_way(&base, &ours, &theirs, Touching::Joins);
    let is_ours = |change| matches!(change, Change::Ours | Change::Conflict);
    if regions.iter().any(|region| is_ours(region.change)) {
        return Some(Difference::Lines);
    }
    let [off_ours, off_theirs] = [&ours, &theirs].map(|text| switched_off(text));
    let same = regions.iter().filter(|region| region.change == Change::Same);
    let is_off = same.flat_map(|region| region.ours.clone().zip(region.theirs.clone()));
    let is_off = is_off.into_iter().any(|(own, other)| off_theirs[other] && !off_ours[own]);
    is_off.then_some(Difference::SwitchedOff)
}

/// Lines of a text that are behind `#if 0` or in a comment of several lines.
fn switched_off(text: &[&[u8]]) -> Vec<bool> {
    let mut off = Vec::with_capacity(text.len());
    // One entry for each open condition: whether it switches off.
    let mut conditions: Vec<bool> = Vec::new();
    let mut in_comment = false;
    for line in text {
        let bare = line.trim_ascii();
        let directive = bare.strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
        let is = |word: &[u8]| directive.is_some_and(|it| it.starts_with(word));
        off.push(in_comment || conditions.contains(&true));
        if is(b"endif") {
            conditions.pop();
        } else if is(b"else") || is(b"elif") {
            if let Some(last) = conditions.last_mut() {
                *last = false;
            }
        } else if is(b"if") {
            let value = directive.and_then(|it| it.strip_prefix(b"if")).map(<[u8]>::trim_ascii);
            conditions.push(value.is_some_and(is_never));
        }
        let last = |mark: &[u8]| bare.windows(2).rposition(|it| it == mark);
        in_comment = match (last(b"/*"), last(b"*/")) {
            (None, None) => in_comment,
            (start, end) => start > end,
        };
    }
    off
}

fn is_never(condition: &[u8]) -> bool {
    let end = condition.iter().position(|byte| !byte.is_ascii_alphanumeric());
    matches!(&condition[..end.unwrap_or(condition.len())], b"0" | b"false" | b"FALSE")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "void guard() {\n  password(user);\n  token(user);\n}\n";

    #[track_caller]
    fn check(with: &str, other: &str, expected: Option<Difference>) {
        let found = compare_lines(BEFORE.as_bytes(), with.as_bytes(), other.as_bytes());
        assert_eq!(found, expected, "{other}");
    }

    #[test]
    fn upstream_has_a_change_only_where_each_of_its_lines_stands_in_its_place() {
        let with = BEFORE.replace("}\n", "  limit(user);\n}\n");
        check(&with, &with, None);
        check(&with, &format!("#include <a>\n{with}int later;\n"), None);
        check(&with, BEFORE, Some(Difference::Lines));
        check(&with, &with.replace("  limit", "    limit"), Some(Difference::Lines));
        check(&with, &with.replace("limit(user)", "limit(all)"), Some(Difference::Lines));
        let parked = format!("{BEFORE}#if 0\nvoid old() {{\n  limit(user);\n}}\n#endif\n");
        check(&with, &parked, Some(Difference::Lines));
        let elsewhere = format!("{BEFORE}void other() {{\n  limit(user);\n}}\n");
        check(&with, &elsewhere, Some(Difference::Lines));
    }

    #[test]
    fn what_upstream_switches_off_it_does_not_have() {
        let with = BEFORE.replace("}\n", "  limit(user);\n}\n");
        check(&with, &format!("#if 0\n{with}#endif\n"), Some(Difference::SwitchedOff));
        check(&with, &format!("/* not now\n{with}*/\n"), Some(Difference::SwitchedOff));
        check(&with, &format!("#if 0\nint a;\n#endif\n/* x */\n{with}"), None);
        check(&with, &format!("#if 0\n#else\n{with}#endif\n"), None);
        check(&with, &format!("#ifdef GUARD\n{with}#endif\n"), None);
    }

    #[test]
    fn a_removal_counts_only_if_all_of_it_is_gone() {
        check("", "", None);
        let without = "void guard() {\n}\n";
        check(without, without, None);
        check(without, BEFORE, Some(Difference::Lines));
        check(without, "void guard() {\n  token(user);\n}\n", Some(Difference::Lines));
    }
}
