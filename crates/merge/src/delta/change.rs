//! Named changes: the lines and files of a delta, grouped by what people said about them. Pure.
//!
//! The first of these that applies names the change of a line: a change that the fork declares, by the line's commit or by its
//! path; the trailer `Fork-Change` of its commit; its commit, or the branch that the commit was merged with; the folder of its
//! file, where no commit is known.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::history::OwnHistory;
use super::topic::{Topics, trailer};
use super::{Delta, DeltaFile, FileContent, LineCount, LineOrigin};
use crate::pattern::PathPatterns;

/// Trailer of a commit that names its change.
pub const TRAILER: &str = "Fork-Change";

/// A change that the fork declares.
#[derive(Clone, Debug, Default)]
pub struct DeclaredChange {
    pub name: String,
    pub intent: Option<String>,
    pub paths: PathPatterns,
    /// Beginnings of ids of commits; of a merge all that it brought in.
    pub commits: Vec<String>,
    pub upstream: Option<UpstreamState>,
    pub retire_when: Option<String>,
}

/// State of a change at upstream, as the fork says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamState {
    NotSent,
    /// Proposed at this address.
    Open(String),
    /// Merged in this version.
    Merged(String),
    /// Rejected at this address.
    Rejected(String),
}

/// Source of the name of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// The fork declares it.
    Declared,
    /// A trailer.
    Trailer,
    /// A commit, or a branch of them.
    Commit,
    /// A folder: no commit of the fork is known for its lines.
    Path,
}

impl Ground {
    pub const ALL: [Self; 4] = [Self::Declared, Self::Trailer, Self::Commit, Self::Path];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Trailer => "trailer",
            Self::Commit => "commit",
            Self::Path => "path",
        }
    }
}

/// A change with what the fork's tree has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedChange {
    pub name: String,
    pub ground: Ground,
    pub intent: Option<String>,
    pub upstream: Option<UpstreamState>,
    pub retire_when: Option<String>,
    /// Its commits that lines of the tree come from, by their places.
    pub commits: BTreeSet<usize>,
    /// Its files, by their numbers in the delta, with their lines.
    pub files: BTreeMap<usize, LineCount>,
    pub lines: LineCount,
}

/// The changes of a delta, and which of them each line belongs to.
#[derive(Debug)]
pub struct LineAssignment {
    /// The largest first; declared ones come before the others, in their order, also without lines.
    pub changes: Vec<NamedChange>,
    of: BTreeMap<(usize, LineOrigin), usize>,
    /// Declared changes by the commits that they name.
    declared_commits: BTreeMap<usize, usize>,
    /// The paths of declared changes, in their order.
    declared_paths: Vec<PathPatterns>,
    /// Other changes by their commits, also those of which no line is left.
    commits: BTreeMap<usize, usize>,
}

impl LineAssignment {
    /// The change of a file's lines of an origin, by its number.
    pub fn change_of(&self, file: usize, origin: LineOrigin) -> Option<usize> {
        self.of.get(&(file, origin)).copied()
    }

    /// The changes that have a part in what a commit did to a path. A declared change has all that happened at its paths.
    pub(super) fn changes_at(&self, place: usize, path: &[u8]) -> BTreeSet<usize> {
        let by_path = self.declared_paths.iter().enumerate();
        let by_path = by_path.filter(|(_, paths)| paths.matches(path)).map(|(number, _)| number);
        let mut found: BTreeSet<usize> = by_path.collect();
        found.extend(self.declared_commits.get(&place));
        if found.is_empty() {
            found.extend(self.commits.get(&place));
        }
        found
    }

    /// Number of lines that are named on each ground.
    pub fn lines_by_ground(&self) -> BTreeMap<Ground, usize> {
        let mut counts = BTreeMap::new();
        for change in &self.changes {
            *counts.entry(change.ground).or_default() += change.lines.total();
        }
        counts
    }
}

/// Groups a delta into changes.
pub fn assign(delta: &Delta, declared: &[DeclaredChange]) -> LineAssignment {
    let mut open = OpenAssignment::new(&delta.history, declared);
    for (number, file) in delta.files.iter().enumerate() {
        let counts = file.origins();
        for (origin, count) in &counts {
            let change = open.change_of(number, file, *origin);
            open.count(change, number, *origin, *count);
        }
        // A file without lines belongs to the commit that touched it, and so do the other parts of any file.
        let change = open.change_of(number, file, file.whole);
        if counts.is_empty() {
            open.count(change, number, file.whole, LineCount::default());
        }
    }
    open.finish(declared.len())
}

/// Identity of a change: lines of the same key belong together. Two commits of one subject are two changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeKey {
    Declared(String),
    Trailer(String),
    /// The commit that names the topic.
    Commit(usize),
    Folder(String),
}

struct OpenAssignment<'a> {
    history: &'a OwnHistory,
    declared: &'a [DeclaredChange],
    /// Declared changes by the commits that they name.
    by_commit: BTreeMap<usize, usize>,
    topics: Topics,
    changes: Vec<NamedChange>,
    numbers: BTreeMap<ChangeKey, usize>,
    of: BTreeMap<(usize, LineOrigin), usize>,
}

impl<'a> OpenAssignment<'a> {
    fn new(history: &'a OwnHistory, declared: &'a [DeclaredChange]) -> Self {
        let topics = Topics::find(history);
        let mut by_commit = BTreeMap::new();
        for (number, change) in declared.iter().enumerate() {
            for place in change.commits.iter().filter_map(|id| history.find(id)) {
                for place in topics.brought_by(history, place) {
                    by_commit.entry(place).or_insert(number);
                }
            }
        }
        let changes: Vec<NamedChange> = declared.iter().map(open_declared).collect();
        let keys = changes.iter().map(|change| ChangeKey::Declared(change.name.clone()));
        let numbers = keys.enumerate().map(|(number, key)| (key, number)).collect();
        let of = BTreeMap::new();
        Self { history, declared, by_commit, topics, changes, numbers, of }
    }

    fn change_of(&mut self, number: usize, file: &DeltaFile, origin: LineOrigin) -> usize {
        if let Some(&known) = self.of.get(&(number, origin)) {
            return known;
        }
        let change = self.find(file, origin);
        self.of.insert((number, origin), change);
        change
    }

    fn find(&mut self, file: &DeltaFile, origin: LineOrigin) -> usize {
        let commit = match origin {
            LineOrigin::Commit(place) | LineOrigin::Merge(place) => Some(place),
            LineOrigin::Upstream | LineOrigin::Unknown => None,
        };
        if let Some(&declared) = commit.and_then(|place| self.by_commit.get(&place)) {
            return declared;
        }
        let names = [Some(&file.path), file.was.as_ref()];
        let is_at = |change: &DeclaredChange| {
            names.into_iter().flatten().any(|path| change.paths.matches(path.as_bytes()))
        };
        if let Some(declared) = self.declared.iter().position(is_at) {
            return declared;
        }
        match origin {
            LineOrigin::Commit(place) => self.named(self.key_of(place)),
            LineOrigin::Merge(place) => match self.trailer_key(place) {
                Some(key) => self.named(key),
                None => self.named(ChangeKey::Folder(folder_name(file.path.as_bytes()))),
            },
            LineOrigin::Upstream | LineOrigin::Unknown => {
                self.named(ChangeKey::Folder(folder_name(file.path.as_bytes())))
            }
        }
    }

    /// The change of a commit that FORK.toml does not name.
    fn key_of(&self, place: usize) -> ChangeKey {
        self.trailer_key(place).unwrap_or_else(|| ChangeKey::Commit(self.topics.naming(place)))
    }

    /// A trailer may name a change that is declared.
    fn trailer_key(&self, place: usize) -> Option<ChangeKey> {
        let name = trailer(&self.history.commits[place].message)?;
        let declared = ChangeKey::Declared(name.clone());
        Some(match self.numbers.contains_key(&declared) {
            true => declared,
            false => ChangeKey::Trailer(name),
        })
    }

    fn named(&mut self, key: ChangeKey) -> usize {
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let (name, ground) = match &key {
            ChangeKey::Declared(name) => (name.clone(), Ground::Declared),
            ChangeKey::Trailer(name) => (name.clone(), Ground::Trailer),
            ChangeKey::Commit(place) => (Topics::title(self.history, *place), Ground::Commit),
            ChangeKey::Folder(name) => (name.clone(), Ground::Path),
        };
        let number = self.changes.len();
        self.numbers.insert(key, number);
        self.changes.push(NamedChange {
            name,
            ground,
            intent: None,
            upstream: None,
            retire_when: None,
            commits: BTreeSet::new(),
            files: BTreeMap::new(),
            lines: LineCount::default(),
        });
        number
    }

    fn count(&mut self, change: usize, file: usize, origin: LineOrigin, count: LineCount) {
        let change = &mut self.changes[change];
        *change.files.entry(file).or_default() += count;
        change.lines += count;
        if let LineOrigin::Commit(place) | LineOrigin::Merge(place) = origin {
            change.commits.insert(place);
        }
    }

    /// Sorts the changes, and leaves out those that nothing is left of.
    fn finish(self, declared: usize) -> LineAssignment {
        let mut order: Vec<usize> = (0..self.changes.len())
            .filter(|&number| number < declared || !self.changes[number].files.is_empty())
            .collect();
        order.sort_by_key(|&number| {
            let change = &self.changes[number];
            match number < declared {
                true => (0, number, 0),
                false => (1, usize::MAX - change.lines.total(), number),
            }
        });
        let places: BTreeMap<usize, usize> =
            order.iter().enumerate().map(|(place, &number)| (number, place)).collect();
        let mut changes: Vec<NamedChange> =
            order.iter().map(|&number| self.changes[number].clone()).collect();
        let naming = self.numbers.iter().filter_map(|(key, number)| match key {
            ChangeKey::Commit(place) => Some((*places.get(number)?, *place)),
            ChangeKey::Declared(_) | ChangeKey::Trailer(_) | ChangeKey::Folder(_) => None,
        });
        tell_apart(&mut changes, &naming.collect(), self.history);
        let of = self.of.iter();
        let of = of.filter_map(|(key, number)| Some((*key, *places.get(number)?))).collect();
        let plain = (0..self.history.commits.len()).filter(|&place| !self.history.is_merge(place));
        let named = plain.filter_map(|place| {
            Some((place, *places.get(self.numbers.get(&self.key_of(place))?)?))
        });
        let commits = named.collect();
        let declared_paths = self.declared.iter().map(|change| change.paths.clone()).collect();
        LineAssignment { changes, of, declared_commits: self.by_commit, declared_paths, commits }
    }
}

/// Changes that commits name and whose names are not theirs alone get the ids of the commits.
fn tell_apart(changes: &mut [NamedChange], naming: &BTreeMap<usize, usize>, history: &OwnHistory) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for change in changes.iter() {
        *times.entry(change.name.clone()).or_default() += 1;
    }
    for (&number, &place) in naming {
        let change = &mut changes[number];
        if times[&change.name] > 1 {
            change.name = format!("{} ({})", change.name, history.commits[place].sha.short());
        }
    }
}

fn open_declared(change: &DeclaredChange) -> NamedChange {
    NamedChange {
        name: change.name.clone(),
        ground: Ground::Declared,
        intent: change.intent.clone(),
        upstream: change.upstream.clone(),
        retire_when: change.retire_when.clone(),
        commits: BTreeSet::new(),
        files: BTreeMap::new(),
        lines: LineCount::default(),
    }
}

/// Name of what is left in a folder at the top of the tree.
fn folder_name(path: &[u8]) -> String {
    match path.iter().position(|&byte| byte == b'/') {
        Some(end) => format!("left in {}/", String::from_utf8_lossy(&path[..end])),
        None => "left at the top".to_owned(),
    }
}

impl Delta {
    /// Number of lines in which the fork differs.
    pub fn lines(&self) -> LineCount {
        let mut all = LineCount::default();
        self.files.iter().for_each(|file| all += file.lines());
        all
    }

    /// Number of files whose lines could not be read.
    pub fn unread(&self) -> usize {
        self.files.iter().filter(|file| file.content == FileContent::Unread).count()
    }
}
