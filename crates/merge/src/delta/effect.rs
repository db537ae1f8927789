//! Effect of a change's commits together, and how much of it a tree has: lines added and removed, modes, names, and files
//! without lines.
//!
//! Commits of one change count as one: a line that a follow-up rewrote was not written. Lines are counted by file and by
//! number, so a line that came back after it was removed counts as undone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use host::git::{ChangedEntry, GitError, SealedRepo, TreeEntry};
use model::id::Sha;
use serde::Serialize;

use super::change::LineAssignment;
use super::{Delta, LineOrigin};
use crate::contract::LineId;
use crate::entry::{is_file, read_small};
use crate::three::edits;
use crate::three::text::{is_text, lines};

/// Largest file whose lines are compared, in bytes.
const FILE_BYTES: usize = 4 << 20;

/// Changed files that are read at once.
const AT_ONCE: usize = 300;

/// A number of what the commits of a change did, and what of it there is in the fork's tree and in upstream's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EffectCount {
    pub written: usize,
    pub in_fork: usize,
    pub in_upstream: usize,
}

impl std::ops::AddAssign for EffectCount {
    fn add_assign(&mut self, other: Self) {
        self.written += other.written;
        self.in_fork += other.in_fork;
        self.in_upstream += other.in_upstream;
    }
}

/// Effect of the commits of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeEffect {
    /// Lines added and removed.
    pub lines: EffectCount,
    /// Modes, names, submodules, links and files without lines.
    pub parts: EffectCount,
    /// Parts that the fork's tree has and upstream's does not.
    pub parts_of_fork: usize,
}

/// A commit's change of a file, and the changes that it belongs to.
struct Write {
    changes: BTreeSet<usize>,
    file: usize,
    old_path: Option<Vec<u8>>,
    path: Vec<u8>,
    old: Option<Sha>,
    new: Option<Sha>,
    modes: [u32; 2],
}

/// Counts the effects of all changes. `merged` has commits of declared changes that upstream's history has.
pub(super) async fn observe_effects(
    repo: &SealedRepo,
    delta: &Delta,
    assignment: &LineAssignment,
    (target, merged): (&Sha, &[(usize, Sha)]),
) -> Result<Vec<ChangeEffect>, GitError> {
    let mut files = Files::default();
    let mut writes = Vec::new();
    let asked: Vec<(Sha, Option<Sha>)> = merged.iter().map(|(_, it)| (it.clone(), None)).collect();
    for ((change, _), entries) in merged.iter().zip(repo.changes_of(&asked).await?) {
        writes.extend(entries.into_iter().map(|entry| files.of_entry(*change, entry)));
    }
    writes.extend(files.of_history(delta, assignment));
    let mut nets: BTreeMap<(usize, usize), Net> = BTreeMap::new();
    writes.sort_by_key(|write| write.file);
    for some in writes.chunks(AT_ONCE) {
        let ids = some.iter().flat_map(|write| [&write.old, &write.new]).flatten().collect();
        let texts = read_small(repo, ids, FILE_BYTES).await?;
        for write in some {
            for &change in &write.changes {
                nets.entry((write.file, change)).or_default().add(write, &texts);
            }
        }
    }
    let trees = [
        NamedTree::read(repo, &delta.tip, delta.history.began().unwrap_or(&delta.parted), &files)
            .await?,
        NamedTree::read(repo, target, &delta.parted, &files).await?,
    ];
    let mut tallies = vec![OpenTally::default(); assignment.changes.len()];
    let mut by_file: BTreeMap<usize, Vec<(usize, Net)>> = BTreeMap::new();
    for ((file, change), net) in nets {
        by_file.entry(file).or_default().push((change, net));
    }
    let by_file: Vec<(usize, Vec<(usize, Net)>)> = by_file.into_iter().collect();
    for some in by_file.chunks(AT_ONCE) {
        let found: Vec<[NamedEntry<'_>; 2]> = some
            .iter()
            .map(|(file, _)| [&trees[0], &trees[1]].map(|tree| tree.find(&files, *file)))
            .collect();
        let traced = Traced::new(delta, assignment, found.iter().filter_map(|it| it[0]));
        let ends = found.iter().flatten().flatten().map(|(_, entry)| &entry.id);
        let firsts = some.iter().flat_map(|(_, nets)| nets).filter_map(|(_, it)| it.first.as_ref());
        let ids = ends.chain(firsts).chain(traced.contents()).collect();
        let texts = read_small(repo, ids, FILE_BYTES).await?;
        for ((_, nets), found) in some.iter().zip(found) {
            let counts =
                found.map(|it| it.and_then(|(_, it)| texts.get(&it.id)).map(|it| count(it)));
            for (change, net) in nets {
                let known = found[0].map(|(path, _)| traced.lines(path, *change, &texts));
                let known = known.unwrap_or_default();
                net.count(&mut tallies[*change], (&found, &counts), (&texts, &known));
            }
        }
    }
    Ok(tallies.into_iter().map(OpenTally::finish).collect())
}

/// Files that changes wrote to, each with the names that it had, the newest last.
#[derive(Default)]
struct Files {
    names: Vec<Vec<Vec<u8>>>,
    by_name: HashMap<Vec<u8>, usize>,
    /// New names by old ones, for files that another branch of the history knows by the old one.
    moves: HashMap<Vec<u8>, Vec<u8>>,
}

impl Files {
    fn number(&mut self, path: &[u8], old_path: Option<&[u8]>) -> usize {
        let was = old_path.filter(|was| *was != path);
        if let Some(was) = was {
            self.moves.insert(was.to_vec(), path.to_vec());
        }
        let known = match was {
            Some(was) => self.by_name.remove(was),
            None => self.by_name.get(path).copied(),
        };
        let number = known.unwrap_or_else(|| {
            self.names.push(was.into_iter().map(<[u8]>::to_vec).collect());
            self.names.len() - 1
        });
        if self.names[number].last().is_none_or(|last| last != path) {
            self.names[number].push(path.to_vec());
        }
        self.by_name.insert(path.to_vec(), number);
        number
    }

    fn of_entry(&mut self, change: usize, entry: ChangedEntry) -> Write {
        Write {
            changes: BTreeSet::from([change]),
            file: self.number(&entry.path, None),
            old_path: entry.old.is_some().then(|| entry.path.clone()),
            path: entry.path,
            old: entry.old,
            new: entry.new,
            modes: [entry.old_mode, entry.new_mode],
        }
    }

    /// The writes of the fork's commits, the oldest first.
    fn of_history(&mut self, delta: &Delta, assignment: &LineAssignment) -> Vec<Write> {
        let mut touches: Vec<_> = delta.history.own_touches().collect();
        touches.sort_by_key(|touch| (std::cmp::Reverse(touch.place), touch.path));
        // The old name of a renamed file is no deleted file.
        let left: BTreeSet<(usize, &[u8])> = touches
            .iter()
            .filter_map(|touch| Some((touch.place, touch.old?.0)).filter(|it| it.1 != touch.path))
            .collect();
        let mut writes = Vec::new();
        for touch in touches {
            if touch.new.is_none() && left.contains(&(touch.place, touch.path)) {
                continue;
            }
            let file = self.number(touch.path, touch.old.map(|it| it.0));
            let mut changes = assignment.changes_at(touch.place, touch.path);
            if let Some((was, _)) = touch.old.filter(|it| it.0 != touch.path) {
                changes.extend(assignment.changes_at(touch.place, was));
            }
            if !changes.is_empty() {
                writes.push(Write {
                    changes,
                    file,
                    old_path: touch.old.map(|it| it.0.to_vec()),
                    path: touch.path.to_vec(),
                    old: touch.old.map(|it| it.1.clone()),
                    new: touch.new.cloned(),
                    modes: touch.modes,
                });
            }
        }
        writes
    }
}

/// An entry of a tree with its name there.
type NamedEntry<'a> = Option<(&'a [u8], &'a TreeEntry)>;

/// The entries of a tree at the names of files.
struct NamedTree {
    entries: BTreeMap<Vec<u8>, TreeEntry>,
    /// New names of files that were renamed since.
    renames: HashMap<Vec<u8>, Vec<u8>>,
}

impl NamedTree {
    async fn read(
        repo: &SealedRepo,
        commit: &Sha,
        since: &Sha,
        files: &Files,
    ) -> Result<Self, GitError> {
        let own: BTreeSet<&[u8]> = files.names.iter().flatten().map(Vec::as_slice).collect();
        let asked: Vec<&[u8]> = own.iter().copied().collect();
        let mut entries = repo.entries_at(commit, &asked).await?;
        let has_any = |names: &Vec<Vec<u8>>| names.iter().any(|name| entries.contains_key(name));
        let mut renames = HashMap::new();
        if !files.names.iter().all(has_any) {
            let asked = [(commit.clone(), Some(since.clone()))];
            let found = repo.renames_of(&asked).await?.into_iter().flatten();
            renames.extend(found.map(|it| (it.from, it.to)));
            let others = own.iter().filter_map(|name| renames.get(*name)).map(Vec::as_slice);
            let others: Vec<&[u8]> = others.collect();
            entries.extend(repo.entries_at(commit, &others).await?);
        }
        Ok(Self { entries, renames })
    }

    /// The file under its newest name, under the one that it has here, or under an old one.
    fn find<'a>(&'a self, files: &'a Files, file: usize) -> NamedEntry<'a> {
        let names = || files.names[file].iter().rev();
        let moved = || {
            let mut seen = BTreeSet::new();
            let mut name = names().next()?;
            while !self.entries.contains_key(name) && seen.insert(name) {
                name = files.moves.get(name)?;
            }
            Some(name)
        };
        let renamed = names().filter_map(|name| self.renames.get(name));
        let all = names().take(1).chain(moved()).chain(renamed).chain(names().skip(1));
        all.into_iter().find_map(|name| Some((name.as_slice(), self.entries.get(name)?)))
    }
}

/// Sum of a change's writes to a file, over all of its commits.
#[derive(Default)]
struct Net {
    /// Object before the first of them; `None` without a file.
    first: Option<Sha>,
    is_open: bool,
    lines: BTreeMap<LineId, NetLine>,
    /// Mode before the first and after the last.
    modes: [u32; 2],
    /// The entry after the last, for a file whose lines are not compared.
    whole: Option<Option<TreeEntry>>,
    /// The name before it was renamed.
    was: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Default)]
struct NetLine {
    times: i64,
    /// It has words.
    is_telling: bool,
}

impl Net {
    fn add(&mut self, write: &Write, texts: &BTreeMap<Sha, Vec<u8>>) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.first.clone_from(&write.old);
            self.modes[0] = write.modes[0];
        }
        self.modes[1] = write.modes[1];
        if write.old_path.as_ref().is_some_and(|was| *was != write.path) {
            self.was.clone_from(&write.old_path);
        }
        let empty = Vec::new();
        let text = |id: &Option<Sha>| match id {
            None => Some(&empty),
            Some(id) => texts.get(id).filter(|text| is_text(text)),
        };
        let is_plain = write.modes.iter().all(|mode| matches!(mode & 0o170_000, 0 | 0o100_000));
        let (Some(before), Some(after), true) = (text(&write.old), text(&write.new), is_plain)
        else {
            let mode = write.modes[1];
            self.whole = Some(write.new.clone().map(|id| TreeEntry { mode, id }));
            return;
        };
        if before.is_empty() && after.is_empty() && write.old.is_some() != write.new.is_some() {
            let mode = write.modes[1];
            self.whole = Some(write.new.clone().map(|id| TreeEntry { mode, id }));
        }
        let (before, after) = (lines(before), lines(after));
        for edit in edits(&before, &after) {
            edit.before.for_each(|at| self.note(before[at], -1));
            edit.after.for_each(|at| self.note(after[at], 1));
        }
    }

    fn note(&mut self, line: &[u8], times: i64) {
        let bare = line.trim_ascii_end();
        if !bare.is_empty() {
            let is_telling = LineId::of(bare).is_some();
            let known = self.lines.entry(LineId::any(bare)).or_default();
            *known = NetLine { times: known.times + times, is_telling };
        }
    }

    /// Adds what there is of it in both trees.
    fn count(
        &self,
        tally: &mut OpenTally,
        (found, counts): (&[NamedEntry<'_>; 2], &[Option<CountedLines>; 2]),
        (texts, known): (&BTreeMap<Sha, Vec<u8>>, &CountedLines),
    ) {
        let first = self.first.as_ref().and_then(|id| texts.get(id)).map(|text| count(text));
        let first = first.unwrap_or_default();
        for (id, line) in &self.lines {
            let written = line.times.unsigned_abs();
            let at = |counts: &CountedLines| counts.get(id).copied().unwrap_or_default();
            let in_tree = |counts: &Option<CountedLines>| {
                let there = counts.as_ref().map_or(0, at);
                let more = if line.times > 0 { there - at(&first) } else { at(&first) - there };
                more.max(0).unsigned_abs().min(written)
            };
            // Lines that were traced to the change are its own, whatever else has the same words.
            let own = known.get(id).copied().unwrap_or_default() * line.times.signum();
            let own = own.max(0).unsigned_abs().min(written);
            let [in_fork, in_upstream] = [in_tree(&counts[0]).max(own), in_tree(&counts[1])];
            let [written, in_fork, in_upstream] =
                [written, in_fork, in_upstream].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
            let lines = EffectCount { written, in_fork, in_upstream };
            tally.all += lines;
            if line.is_telling {
                tally.telling += lines;
            }
        }
        let is_moded = self.modes[1] != 0 && self.modes[0] != self.modes[1];
        let is_plain_new = self.modes == [0, 0o100_644];
        if is_moded && !is_plain_new && self.whole.is_none() {
            tally.part(found.map(|it| it.is_some_and(|(_, entry)| entry.mode == self.modes[1])));
        }
        if let Some(was) = &self.was {
            tally.part(found.map(|it| it.is_some_and(|(name, _)| name != was.as_slice())));
        }
        if let Some(whole) = &self.whole {
            tally.part(found.map(|it| it.map(|(_, entry)| entry) == whole.as_ref()));
        }
    }
}

/// Counts of a change that is not finished.
#[derive(Clone, Default)]
struct OpenTally {
    /// Lines with words, and all that are not blank.
    telling: EffectCount,
    all: EffectCount,
    parts: EffectCount,
    parts_of_fork: usize,
}

impl OpenTally {
    fn part(&mut self, [in_fork, in_upstream]: [bool; 2]) {
        self.parts += EffectCount {
            written: 1,
            in_fork: usize::from(in_fork),
            in_upstream: usize::from(in_upstream),
        };
        self.parts_of_fork += usize::from(in_fork && !in_upstream);
    }

    /// Braces stand everywhere, so they count only in a change that has nothing else.
    fn finish(self) -> ChangeEffect {
        let lines = if self.telling.written > 0 { self.telling } else { self.all };
        ChangeEffect { lines, parts: self.parts, parts_of_fork: self.parts_of_fork }
    }
}

/// Lines by how often they are there.
type CountedLines = BTreeMap<LineId, i64>;

fn count(text: &[u8]) -> CountedLines {
    let mut counts = CountedLines::new();
    for line in text.split(|&byte| byte == b'\n') {
        *counts.entry(LineId::any(line.trim_ascii_end())).or_default() += 1;
    }
    counts
}

/// Lines of the delta in some files.
struct Traced<'a> {
    assignment: &'a LineAssignment,
    files: BTreeMap<&'a [u8], (usize, &'a super::DeltaFile)>,
}

impl<'a> Traced<'a> {
    fn new(
        delta: &'a Delta,
        assignment: &'a LineAssignment,
        names: impl Iterator<Item = (&'a [u8], &'a TreeEntry)>,
    ) -> Self {
        let names: BTreeSet<&[u8]> = names.map(|(name, _)| name).collect();
        let files = delta.files.iter().enumerate();
        let files = files.filter(|(_, file)| names.contains(file.path.as_bytes()));
        let files = files.map(|(number, file)| (file.path.as_bytes(), (number, file))).collect();
        Self { assignment, files }
    }

    fn contents(&self) -> impl Iterator<Item = &'a Sha> {
        let ends = self.files.values().flat_map(|(_, file)| [&file.old, &file.new]).flatten();
        ends.filter(|entry| is_file(entry)).map(|entry| &entry.id)
    }

    /// The lines that were traced to a change: how many more there are, and, below zero, how many less.
    fn lines(&self, path: &[u8], change: usize, texts: &BTreeMap<Sha, Vec<u8>>) -> CountedLines {
        let mut found = CountedLines::new();
        let Some((number, file)) = self.files.get(path) else { return found };
        let text = |entry: &Option<TreeEntry>| entry.as_ref().and_then(|it| texts.get(&it.id));
        let (before, after) = (text(&file.old), text(&file.new));
        let [before, after] = [before, after].map(|it| it.map_or(Vec::new(), |text| lines(text)));
        let is_its = |origin: &LineOrigin| {
            matches!(origin, LineOrigin::Commit(_))
                && self.assignment.change_of(*number, *origin) == Some(change)
        };
        let mut note = |line: Option<&&[u8]>, times| {
            if let Some(line) = line {
                *found.entry(LineId::any(line.trim_ascii_end())).or_default() += times;
            }
        };
        for hunk in file.hunks() {
            let added = hunk.after.clone().zip(&hunk.added).filter(|(_, origin)| is_its(origin));
            added.for_each(|(at, _)| note(after.get(at), 1));
            let removed = hunk.before.clone().zip(&hunk.removed).filter(|(_, it)| is_its(it));
            removed.for_each(|(at, _)| note(before.get(at), -1));
        }
        found
    }
}
