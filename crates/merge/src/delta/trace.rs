//! Walks the lines of one file back through the fork's history, to the commits that wrote them. Pure: contents are asked for.
//!
//! A commit wrote the lines that none of its parents has, as in `git blame`. Lines that the fork removed are looked for on the
//! way, by their words: the newest commit that takes such a line away removed it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::id::Sha;

use super::history::{OwnHistory, Parent, PathNumber, Touch, Version};
use super::{LineOrigin, Removal};
use crate::contract::LineId;
use crate::three::edits;
use crate::three::text::lines;

/// Contents by their objects.
pub(super) type Contents = HashMap<Sha, Content>;

#[derive(Debug)]
pub(super) enum Content {
    Text(Vec<u8>),
    Binary,
    /// Missing or too large.
    Unread,
}

impl Content {
    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(bytes) => Some(bytes),
            Self::Binary | Self::Unread => None,
        }
    }
}

/// Versions of a file that are asked for beyond the next one at first, and at most.
const FIRST_AHEAD: usize = 2;
const MOST_AHEAD: usize = 64;

/// A line on its way: its number in the fork's file, and where it stands in the version that was reached.
#[derive(Clone, Copy, Debug)]
struct Walker {
    line: usize,
    here: usize,
}

/// One file on its way through the history.
#[derive(Debug)]
pub(super) struct Trace {
    /// Lines that have reached a commit, by its place and the file's name there; parents have greater places.
    open: BTreeMap<(usize, PathNumber), Vec<Walker>>,
    /// Origins of the lines that were asked about.
    pub(super) added: BTreeMap<usize, LineOrigin>,
    /// Removed lines that are looked for, each with its places in the list of removed ones.
    wanted: BTreeMap<LineId, Vec<usize>>,
    /// Commits that removed the lines.
    pub(super) removed: BTreeMap<usize, LineOrigin>,
    ahead: usize,
}

/// Contents that a walk needs before it goes on.
pub(super) type Needs = Vec<Sha>;

impl Trace {
    /// Begins at the fork's tip with the numbers of the lines that the fork added, and the lines that it removed.
    pub(super) fn begin(path: PathNumber, added: &[usize], removed: &[Removal]) -> Self {
        let mut wanted: BTreeMap<LineId, Vec<usize>> = BTreeMap::new();
        for removal in removed {
            wanted.entry(removal.id).or_default().push(removal.number);
        }
        let walkers = added.iter().map(|&line| Walker { line, here: line }).collect();
        Self {
            open: BTreeMap::from([((0, path), walkers)]),
            added: BTreeMap::new(),
            wanted,
            removed: BTreeMap::new(),
            ahead: FIRST_AHEAD,
        }
    }

    /// Goes as far as the contents reach. Returns what it needs to go on, or nothing at the end.
    pub(super) fn advance(&mut self, history: &OwnHistory, contents: &Contents) -> Needs {
        while let Some((&(place, path), _)) = self.open.first_key_value() {
            let touch = history.touch(path, place);
            if let Some(touch) = touch {
                let needs = self.needs_of(touch, contents);
                if !needs.is_empty() {
                    return self.with_later(history, path, place, needs);
                }
            }
            let Some((_, walkers)) = self.open.pop_first() else { break };
            match touch {
                None => self.pass(history, place, 0, path, walkers),
                Some(Touch::Takes(parent)) => self.pass(history, place, *parent, path, walkers),
                Some(Touch::Change { old, new, .. }) => {
                    self.change(history, place, (old.as_ref(), new.as_ref()), walkers, contents);
                }
                Some(Touch::Merges { parents, new }) => {
                    self.merge(history, place, (parents, new.as_ref()), walkers, contents);
                }
            }
        }
        Vec::new()
    }

    fn is_looking(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Hands lines to a parent under a name. Without lines the walk goes on only for removed ones.
    fn pass(
        &mut self,
        history: &OwnHistory,
        place: usize,
        parent: usize,
        path: PathNumber,
        walkers: Vec<Walker>,
    ) {
        if walkers.is_empty() && !self.is_looking() {
            return;
        }
        match next_touched(history, place, parent, path) {
            Some(next) => self.open.entry((next, path)).or_default().extend(walkers),
            None => self.note(&walkers, LineOrigin::Upstream),
        }
    }

    fn note(&mut self, walkers: &[Walker], origin: LineOrigin) {
        self.added.extend(walkers.iter().map(|walker| (walker.line, origin)));
    }

    fn needs_of(&self, touch: &Touch, contents: &Contents) -> BTreeSet<Sha> {
        let (versions, new): (Vec<&Version>, _) = match touch {
            Touch::Takes(_) => return BTreeSet::new(),
            Touch::Change { old, new, .. } => (old.iter().collect(), new),
            Touch::Merges { parents, new } => (parents.iter().flatten().collect(), new),
        };
        // What a file without a version before it or after it says is plain.
        if versions.is_empty() || (new.is_none() && !self.is_looking()) {
            return BTreeSet::new();
        }
        let ids = versions.into_iter().map(|version| &version.id).chain(new);
        ids.filter(|id| !contents.contains_key(*id)).cloned().collect()
    }

    /// Adds what the next versions will need, so that few questions are asked in all.
    fn with_later(
        &mut self,
        history: &OwnHistory,
        path: PathNumber,
        place: usize,
        mut needs: BTreeSet<Sha>,
    ) -> Needs {
        for touch in history.touches_from(path, place).take(self.ahead) {
            match touch {
                Touch::Takes(_) => {}
                Touch::Change { old, new, .. } => {
                    needs.extend(old.iter().map(|version| version.id.clone()).chain(new.clone()));
                }
                Touch::Merges { parents, new } => {
                    let ids = parents.iter().flatten().map(|version| version.id.clone());
                    needs.extend(ids.chain(new.clone()));
                }
            }
        }
        self.ahead = (self.ahead * 2).min(MOST_AHEAD);
        needs.into_iter().collect()
    }

    fn change(
        &mut self,
        history: &OwnHistory,
        place: usize,
        (old, new): (Option<&Version>, Option<&Sha>),
        walkers: Vec<Walker>,
        contents: &Contents,
    ) {
        let Some(old) = old else { return self.note(&walkers, LineOrigin::Commit(place)) };
        let before = contents.get(&old.id).and_then(Content::text);
        let after = match new {
            Some(new) => contents.get(new).and_then(Content::text),
            None => Some(&b""[..]),
        };
        let (Some(before), Some(after)) = (before, after) else {
            return self.note(&walkers, LineOrigin::Commit(place));
        };
        let (before, after) = (lines(before), lines(after));
        let edits = edits(&before, &after);
        for at in edits.iter().flat_map(|edit| edit.before.clone()) {
            self.found(before[at], LineOrigin::Commit(place));
        }
        let (kept, own) = cross(&edits, walkers);
        self.note(&own, LineOrigin::Commit(place));
        self.pass(history, place, 0, old.path, kept);
    }

    fn merge(
        &mut self,
        history: &OwnHistory,
        place: usize,
        (parents, new): (&[Option<Version>], Option<&Sha>),
        mut walkers: Vec<Walker>,
        contents: &Contents,
    ) {
        let text = |id: &Sha| contents.get(id).and_then(Content::text);
        let after = match new {
            Some(new) => text(new),
            None => Some(&b""[..]),
        };
        let Some(after) = after else { return self.note(&walkers, LineOrigin::Merge(place)) };
        let after = lines(after);
        // A line that the merge has in none of its parents' places was removed by it.
        let mut gone: Option<BTreeMap<LineId, usize>> = None;
        for (parent, version) in parents.iter().enumerate() {
            let Some(version) = version else { continue };
            let Some(before) = text(&version.id) else { continue };
            let before = lines(before);
            let edits = edits(&before, &after);
            let removed = count_ids(edits.iter().flat_map(|edit| &before[edit.before.clone()]));
            gone = Some(match gone {
                None => removed,
                Some(known) => in_both(known, &removed),
            });
            let (kept, rest) = cross(&edits, walkers);
            walkers = rest;
            self.pass(history, place, parent, version.path, kept);
        }
        self.note(&walkers, LineOrigin::Merge(place));
        for (id, times) in gone.unwrap_or_default() {
            (0..times).for_each(|_| self.found_id(id, LineOrigin::Merge(place)));
        }
    }

    /// A commit took a line away: if it is looked for, this is its origin.
    fn found(&mut self, line: &[u8], origin: LineOrigin) {
        if self.is_looking() {
            self.found_id(LineId::any(line.trim_ascii_end()), origin);
        }
    }

    fn found_id(&mut self, id: LineId, origin: LineOrigin) {
        let Some(numbers) = self.wanted.get_mut(&id) else { return };
        if let Some(number) = numbers.pop() {
            self.removed.insert(number, origin);
        }
        if numbers.is_empty() {
            self.wanted.remove(&id);
        }
    }
}

/// The next commit of the fork that touches a path, from a parent on; `None` where upstream's history begins.
fn next_touched(
    history: &OwnHistory,
    place: usize,
    parent: usize,
    path: PathNumber,
) -> Option<usize> {
    let mut next = history.parents_of(place).get(parent)?;
    loop {
        match next {
            Parent::Upstream => return None,
            Parent::Own(at) if history.touch(path, *at).is_some() => return Some(*at),
            Parent::Own(at) => next = history.parents_of(*at).first()?,
        }
    }
}

/// Splits lines into those that stand in the version before, with their places there, and the others.
fn cross(edits: &[crate::three::Edit], walkers: Vec<Walker>) -> (Vec<Walker>, Vec<Walker>) {
    let (mut kept, mut own) = (Vec::new(), Vec::new());
    for walker in walkers {
        // The last edit that begins at or before the line.
        let next = edits.partition_point(|edit| edit.after.start <= walker.here);
        match next.checked_sub(1).map(|at| &edits[at]) {
            Some(edit) if edit.after.contains(&walker.here) => own.push(walker),
            Some(edit) => {
                let here = walker.here - edit.after.end + edit.before.end;
                kept.push(Walker { here, ..walker });
            }
            None => kept.push(walker),
        }
    }
    (kept, own)
}

fn count_ids<'a>(lines: impl Iterator<Item = &'a &'a [u8]>) -> BTreeMap<LineId, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts.entry(LineId::any(line.trim_ascii_end())).or_default() += 1;
    }
    counts
}

fn in_both(
    mut one: BTreeMap<LineId, usize>,
    other: &BTreeMap<LineId, usize>,
) -> BTreeMap<LineId, usize> {
    one.retain(|id, times| {
        *times = (*times).min(other.get(id).copied().unwrap_or_default());
        *times > 0
    });
    one
}
