//! The fork's own history: its commits, what each changed at which path, and the files that it renamed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use host::git::{ChangedEntry, CombinedEntry, ComparedCommit, GitError, HistoryCommit, SealedRepo};
use model::id::Sha;

/// The commits that the fork has and upstream does not, each before its parents.
#[derive(Debug, Default)]
pub struct OwnHistory {
    pub commits: Vec<HistoryCommit>,
    parents: Vec<Vec<Parent>>,
    /// Paths by number, so that each is kept once.
    paths: PathNumbers,
    /// For each path the commits that touch it, by their place.
    touches: Vec<BTreeMap<usize, Touch>>,
}

/// Number of a path in an [`OwnHistory`].
pub(super) type PathNumber = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    /// A commit of the fork, by its place.
    Own(usize),
    Upstream,
}

/// Change that a commit makes to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// A commit with one parent, or none, changes it. The modes are those before and after, zero without a file.
    Change { old: Option<Version>, new: Option<Sha>, modes: [u32; 2] },
    /// A merge takes it from this parent as it is.
    Takes(usize),
    /// A merge has it as none of its parents does.
    Merges { parents: Vec<Option<Version>>, new: Option<Sha> },
}

/// A change that a commit with one parent, or none, makes to a file.
pub(super) struct OwnTouch<'a> {
    pub(super) place: usize,
    pub(super) path: &'a [u8],
    /// Path and object before.
    pub(super) old: Option<(&'a [u8], &'a Sha)>,
    pub(super) new: Option<&'a Sha>,
    pub(super) modes: [u32; 2],
}

/// A file as a parent has it, perhaps under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) path: PathNumber,
    pub(super) id: Sha,
}

/// The new and the old name of a file.
type Names<'a> = (&'a [u8], &'a [u8]);

/// A merge and one of its parents, by their places, and a path in the merge.
type MergedPath = (usize, usize, Vec<u8>);

#[derive(Debug, Default)]
struct PathNumbers {
    names: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, PathNumber>,
}

impl PathNumbers {
    fn number(&mut self, path: &[u8]) -> PathNumber {
        if let Some(&known) = self.numbers.get(path) {
            return known;
        }
        let number = self.names.len();
        self.names.push(path.to_vec());
        self.numbers.insert(path.to_vec(), number);
        number
    }
}

impl OwnHistory {
    /// Reads the commits reachable from the fork's tip and from none of upstream's, and what they changed.
    pub async fn read(repo: &SealedRepo, tip: &Sha, upstream: &[Sha]) -> Result<Self, GitError> {
        let commits = repo.history(std::slice::from_ref(tip), upstream).await?;
        let places: HashMap<&Sha, usize> =
            commits.iter().enumerate().map(|(place, commit)| (&commit.sha, place)).collect();
        let parent = |sha: &Sha| places.get(sha).map_or(Parent::Upstream, |&at| Parent::Own(at));
        let parents = commits.iter().map(|it| it.parents.iter().map(parent).collect()).collect();
        let mut found = Self { commits, parents, ..Self::default() };
        found.read_plain(repo).await?;
        found.read_merges(repo).await?;
        Ok(found)
    }

    pub(super) fn parents_of(&self, place: usize) -> &[Parent] {
        &self.parents[place]
    }

    /// Returns whether a commit merges others.
    pub fn is_merge(&self, place: usize) -> bool {
        self.parents[place].len() > 1
    }

    /// Returns whether a commit merges something of upstream.
    pub fn is_sync(&self, place: usize) -> bool {
        self.is_merge(place) && self.parents[place].contains(&Parent::Upstream)
    }

    /// The commit of upstream that the fork began with: the one below the oldest commit of its main line, else below any.
    pub fn began(&self) -> Option<&Sha> {
        let mut at = 0;
        while let Some(Parent::Own(next)) = self.parents.get(at)?.first() {
            at = *next;
        }
        let below = |place: usize| {
            let parents = self.commits[place].parents.iter().zip(&self.parents[place]);
            parents.filter(|(_, parent)| **parent == Parent::Upstream).map(|(sha, _)| sha).next()
        };
        below(at).or_else(|| (0..self.commits.len()).rev().find_map(below))
    }

    /// The place of a commit, which may be given by the beginning of its id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.commits.iter().position(|commit| commit.sha.as_str().starts_with(id))
    }

    pub(super) fn number_of(&self, path: &[u8]) -> Option<PathNumber> {
        self.paths.numbers.get(path).copied()
    }

    pub(super) fn touch(&self, path: PathNumber, place: usize) -> Option<&Touch> {
        self.touches[path].get(&place)
    }

    /// The commits from a place on that touch a path.
    pub(super) fn touches_from(
        &self,
        path: PathNumber,
        place: usize,
    ) -> impl Iterator<Item = &Touch> {
        self.touches[path].range(place..).map(|(_, touch)| touch)
    }

    /// Changes that commits other than merges make, in no order.
    pub(super) fn own_touches(&self) -> impl Iterator<Item = OwnTouch<'_>> {
        self.touches.iter().enumerate().flat_map(move |(number, touches)| {
            touches.iter().filter_map(move |(&place, touch)| match touch {
                Touch::Change { old, new, modes } => Some(OwnTouch {
                    place,
                    path: &self.paths.names[number],
                    old: old.as_ref().map(|it| (self.paths.names[it.path].as_slice(), &it.id)),
                    new: new.as_ref(),
                    modes: *modes,
                }),
                Touch::Takes(_) | Touch::Merges { .. } => None,
            })
        })
    }

    /// The paths that a commit changed itself.
    pub fn paths_of(&self, places: &BTreeSet<usize>) -> BTreeMap<usize, BTreeSet<Vec<u8>>> {
        let mut found: BTreeMap<usize, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for (number, touches) in self.touches.iter().enumerate() {
            for (place, touch) in touches {
                if places.contains(place) && !matches!(touch, Touch::Takes(_)) {
                    found.entry(*place).or_default().insert(self.paths.names[number].clone());
                }
            }
        }
        found
    }

    fn add(&mut self, path: &[u8], place: usize, touch: Touch) {
        let number = self.paths.number(path);
        if self.touches.len() <= number {
            self.touches.resize_with(number + 1, BTreeMap::new);
        }
        self.touches[number].insert(place, touch);
    }

    async fn read_plain(&mut self, repo: &SealedRepo) -> Result<(), GitError> {
        let places: Vec<usize> =
            (0..self.commits.len()).filter(|&place| !self.is_merge(place)).collect();
        let asked = self.questions(&places, None);
        let changes = repo.changes_of(&asked).await?;
        let renaming: Vec<usize> =
            (0..places.len()).filter(|&at| may_rename(&changes[at])).collect();
        let asked: Vec<ComparedCommit> = renaming.iter().map(|&at| asked[at].clone()).collect();
        let renames = repo.renames_of(&asked).await?;
        let mut sources: BTreeMap<usize, BTreeMap<Vec<u8>, Vec<u8>>> = BTreeMap::new();
        for (at, renames) in renaming.into_iter().zip(renames) {
            sources.insert(at, renames.into_iter().map(|it| (it.to, it.from)).collect());
        }
        for (at, entries) in changes.into_iter().enumerate() {
            let sources = sources.get(&at);
            let before: BTreeMap<Vec<u8>, (Sha, u32)> = match sources {
                Some(_) => old_objects(&entries),
                None => BTreeMap::new(),
            };
            for entry in entries {
                let from = sources.and_then(|sources| sources.get(&entry.path));
                let renamed = || from.and_then(|from| Some((from.clone(), before.get(from)?)));
                let (old, old_mode) = match (entry.old, renamed()) {
                    (Some(id), _) => (Some((entry.path.clone(), id)), entry.old_mode),
                    (None, Some((from, (id, mode)))) => (Some((from, id.clone())), *mode),
                    (None, None) => (None, 0),
                };
                let old = old.map(|(path, id)| self.version(&path, id));
                let modes = [old_mode, entry.new_mode];
                self.add(&entry.path, places[at], Touch::Change { old, new: entry.new, modes });
            }
        }
        Ok(())
    }

    fn version(&mut self, path: &[u8], id: Sha) -> Version {
        let path = self.paths.number(path);
        if self.touches.len() <= path {
            self.touches.resize_with(path + 1, BTreeMap::new);
        }
        Version { path, id }
    }

    /// Questions about commits, each compared with its parent of this number, or with its only one.
    fn questions(&self, places: &[usize], parent: Option<usize>) -> Vec<ComparedCommit> {
        let question = |&place: &usize| {
            let commit = &self.commits[place];
            (commit.sha.clone(), parent.map(|parent| commit.parents[parent].clone()))
        };
        places.iter().map(question).collect()
    }

    async fn read_merges(&mut self, repo: &SealedRepo) -> Result<(), GitError> {
        let places: Vec<usize> =
            (0..self.commits.len()).filter(|&place| self.is_merge(place)).collect();
        let ids: Vec<Sha> = places.iter().map(|&place| self.commits[place].sha.clone()).collect();
        let combined = repo.combined_changes(&ids).await?;
        let against_first = repo.changes_of(&self.questions(&places, Some(0))).await?;
        let mut open: Vec<(usize, CombinedEntry)> = Vec::new();
        for ((&place, combined), changed) in places.iter().zip(combined).zip(against_first) {
            let own: BTreeSet<&[u8]> = combined.iter().map(|entry| entry.path.as_slice()).collect();
            let rest: Vec<&ChangedEntry> =
                changed.iter().filter(|entry| !own.contains(entry.path.as_slice())).collect();
            if let [_, _] = self.parents[place].as_slice() {
                rest.iter().for_each(|entry| self.add(&entry.path, place, Touch::Takes(1)));
            } else {
                self.add_octopus(repo, place, &rest).await?;
            }
            open.extend(combined.into_iter().map(|entry| (place, entry)));
        }
        self.add_merged(repo, open).await
    }

    /// A path that such a merge has otherwise than its first parent is as in the first of the others that has it so.
    async fn add_octopus(
        &mut self,
        repo: &SealedRepo,
        place: usize,
        rest: &[&ChangedEntry],
    ) -> Result<(), GitError> {
        let mut open: Vec<&[u8]> = rest.iter().map(|entry| entry.path.as_slice()).collect();
        for parent in 1..self.parents[place].len() {
            if open.is_empty() {
                break;
            }
            let changed = repo.changes_of(&self.questions(&[place], Some(parent))).await?;
            let changed: BTreeSet<&[u8]> =
                changed.iter().flatten().map(|entry| entry.path.as_slice()).collect();
            let (left, taken): (Vec<&[u8]>, Vec<&[u8]>) =
                open.into_iter().partition(|path| changed.contains(path));
            taken.into_iter().for_each(|path| self.add(path, place, Touch::Takes(parent)));
            open = left;
        }
        Ok(())
    }

    /// Adds paths that merges have as none of their parents does. Where a parent lacks the path, it may have it under another
    /// name.
    async fn add_merged(
        &mut self,
        repo: &SealedRepo,
        open: Vec<(usize, CombinedEntry)>,
    ) -> Result<(), GitError> {
        let mut asked: BTreeSet<(usize, usize)> = BTreeSet::new();
        for (place, entry) in &open {
            let absent = entry.parents.iter().enumerate().filter(|(_, id)| id.is_none());
            asked.extend(absent.filter(|_| entry.result.is_some()).map(|(at, _)| (*place, at)));
        }
        let asked: Vec<(usize, usize)> = asked.into_iter().collect();
        let questions: Vec<ComparedCommit> = asked
            .iter()
            .flat_map(|&(place, parent)| self.questions(&[place], Some(parent)))
            .collect();
        let renames = repo.renames_of(&questions).await?;
        let mut from: HashMap<MergedPath, Vec<u8>> = HashMap::new();
        for ((place, parent), renames) in asked.into_iter().zip(renames) {
            from.extend(renames.into_iter().map(|it| ((place, parent, it.to), it.from)));
        }
        let objects = self.renamed_objects(repo, &from).await?;
        for (place, entry) in open {
            let mut parents = Vec::new();
            for (parent, id) in entry.parents.into_iter().enumerate() {
                let version = match id {
                    Some(id) => Some(self.version(&entry.path, id)),
                    None => {
                        let key = (place, parent, entry.path.clone());
                        let old = from.get(&key).zip(objects.get(&key));
                        old.map(|(path, id)| self.version(path, id.clone()))
                    }
                };
                parents.push(version);
            }
            self.add(&entry.path, place, Touch::Merges { parents, new: entry.result });
        }
        Ok(())
    }

    /// The objects of renamed files under their old names.
    async fn renamed_objects(
        &self,
        repo: &SealedRepo,
        from: &HashMap<MergedPath, Vec<u8>>,
    ) -> Result<HashMap<MergedPath, Sha>, GitError> {
        let mut by_parent: BTreeMap<(usize, usize), Vec<Names<'_>>> = BTreeMap::new();
        #[expect(clippy::iter_over_hash_type, reason = "they are sorted by their parents")]
        for ((place, parent, to), old) in from {
            by_parent.entry((*place, *parent)).or_default().push((to, old));
        }
        let mut objects = HashMap::new();
        for ((place, parent), pairs) in by_parent {
            let commit = &self.commits[place].parents[parent];
            let paths: Vec<&[u8]> = pairs.iter().map(|(_, old)| *old).collect();
            let there = repo.entries_at(commit, &paths).await?;
            for (to, old) in pairs {
                if let Some(entry) = there.get(old) {
                    objects.insert((place, parent, to.to_vec()), entry.id.clone());
                }
            }
        }
        Ok(objects)
    }
}

fn old_objects(entries: &[ChangedEntry]) -> BTreeMap<Vec<u8>, (Sha, u32)> {
    entries
        .iter()
        .filter_map(|it| Some((it.path.clone(), (it.old.clone()?, it.old_mode))))
        .collect()
}

/// Returns whether a commit both adds and removes files, as a rename does.
fn may_rename(entries: &[ChangedEntry]) -> bool {
    entries.iter().any(|entry| entry.old.is_none())
        && entries.iter().any(|entry| entry.new.is_none())
}
