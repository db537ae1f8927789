//! Gathers the account: git's own merge, and the contents of the paths in which the result is something else.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, ConflictStage, GitError, SealedRepo, TreeEntry};
use model::id::Sha;
use model::sensitive_path::fold_path;

use super::departure::{beyond_conflict, departure};
use super::judge::is_ci;
use super::regions::{HunkCounts, TextAccount, TextVersions, compare_text};
use super::{
    ConflictAccount, ConflictResolution, DropReason, MergeAccount, MergeSide, SideAccount,
    SideChange, SideStatus,
};
use crate::clean::Conflict;
use crate::contract::{ContractBounds, ContractEnds, plural};
use crate::entry::{
    ByPath, ChangeLists, MergeByGit, MergeChanges, is_file, kind, new_entry, old_entry, read_small,
};
use crate::generated::is_generated;
use crate::path::TreePath;
use crate::pattern::PathPatterns;
use crate::three::text::{is_text, lines};

/// Paths whose contents are in memory at once.
const CHUNK: usize = 300;

/// Reasons why a change of a side may be missing at some paths.
#[derive(Clone, Debug, Default)]
pub struct DropRules {
    rules: Vec<(MergeSide, PathPatterns, String)>,
    habits: BTreeMap<Vec<u8>, String>,
}

impl DropRules {
    /// Adds a rule of the fork: changes of a side may be missing at paths that match.
    #[must_use]
    pub fn with(mut self, side: MergeSide, paths: PathPatterns, reason: impl Into<String>) -> Self {
        self.rules.push((side, paths, reason.into()));
        self
    }

    /// Adds a path where earlier merges kept the fork's version. That explains a file, but not most files of a merge.
    #[must_use]
    pub fn with_habit(mut self, path: &TreePath, reason: impl Into<String>) -> Self {
        self.habits.insert(path.as_bytes().to_vec(), reason.into());
        self
    }

    /// The rule of the fork, if there is one, that lets changes of a side be missing at a path.
    pub(crate) fn rule_of(&self, side: MergeSide, path: &[u8]) -> Option<String> {
        self.reason(side, path).filter(|reason| !reason.is_habit).map(|reason| reason.text)
    }

    fn reason(&self, side: MergeSide, path: &[u8]) -> Option<DropReason> {
        let matches = |(of, paths, _): &&(MergeSide, PathPatterns, String)| {
            *of == side && paths.matches(path)
        };
        if let Some((_, _, reason)) = self.rules.iter().find(matches) {
            return Some(DropReason { text: reason.clone(), is_habit: false });
        }
        let habit = self.habits.get(path).filter(|_| side == MergeSide::Upstream)?;
        Some(DropReason { text: habit.clone(), is_habit: true })
    }
}

pub async fn observe_account(
    changes: &MergeChanges<'_>,
    rules: &DropRules,
    bounds: ContractBounds,
) -> Result<MergeAccount, GitError> {
    let MergeChanges { repo, ends, .. } = *changes;
    // Git answers independent questions side by side.
    let (by_git, lists, gone) =
        tokio::try_join!(changes.by_git(), changes.lists(), changes.gone_folders())?;
    let whole = whole_side(lists, by_git);
    let ChangeLists { fork, upstream, .. } = lists;
    let mut changes = Changes {
        fork,
        upstream,
        departed: &by_git.departed,
        fork_moves: BTreeMap::new(),
        upstream_moves: BTreeMap::new(),
        result_moves: BTreeMap::new(),
    };
    changes.find_renames(repo, ends, &by_git.merged.tree).await?;
    let mut account = MergeAccount {
        whole,
        upstream: SideAccount { paths: changes.upstream.len(), changes: Vec::new() },
        fork: SideAccount { paths: changes.fork.len(), changes: Vec::new() },
        ..MergeAccount::default()
    };
    let mut paths = changes.paths(repo, by_git, &ends.tip).await?;
    find_alike(repo, &ends.tip, &mut paths).await?;
    for path in paths.iter_mut().filter(|path| path.fork.is_none() && path.result.is_none()) {
        path.gone_folder = gone.of(&path.path).map(<[u8]>::to_vec);
    }
    for chunk in paths.chunks(CHUNK) {
        let contents = read_contents(repo, chunk, bounds.file_bytes).await?;
        for path in chunk {
            add_path(&mut account, path, &contents, rules);
        }
    }
    (account.expected_paths, account.present_paths) = expect_paths(lists, &account.upstream);
    Ok(account)
}

/// Numbers of upstream's paths that a merge is expected to change, and of those that the fork already has.
fn expect_paths(lists: &ChangeLists, upstream: &SideAccount) -> (usize, usize) {
    let with_status = |status: SideStatus| {
        let changes = upstream.changes.iter().filter(move |change| change.status == status);
        changes.map(|change| change.path.as_bytes())
    };
    let is_present = |path: &[u8], change: &ChangedEntry| {
        lists.fork.get(path).is_some_and(|own| new_entry(own) == new_entry(change))
    };
    let (present, open): (Vec<_>, Vec<_>) =
        lists.upstream.iter().partition(|(path, change)| is_present(path, change));
    let mut expected: BTreeSet<&[u8]> = open.iter().map(|(path, _)| path.as_slice()).collect();
    for path in with_status(SideStatus::DroppedByRule) {
        expected.remove(path);
    }
    // A conflict may have a name that no side has, and a change that the fork had may be gone.
    expected.extend(with_status(SideStatus::Dropped));
    expected.retain(|path| !is_ci(path));
    (expected.len(), present.len())
}

/// Finds, for files that neither side has, a path of the result that differs only in case, or in letters that look alike: some
/// file systems take both for one, and people take one for the other.
async fn find_alike(
    repo: &SealedRepo,
    tip: &Sha,
    paths: &mut [PathVersions],
) -> Result<(), GitError> {
    let is_new = |path: &&mut PathVersions| path.merged.is_none() && path.conflict.is_none();
    let new: Vec<&mut PathVersions> = paths.iter_mut().filter(is_new).collect();
    if new.is_empty() {
        return Ok(());
    }
    let names = repo.list_paths(tip).await?;
    let mut by_fold: BTreeMap<Vec<String>, Vec<&Vec<u8>>> = BTreeMap::new();
    for name in &names {
        by_fold.entry(fold_path(name)).or_default().push(name);
    }
    for path in new {
        let twins = by_fold.get(&fold_path(&path.path)).into_iter().flatten();
        let mut others = twins.filter(|name| ***name != path.path);
        path.alike = others.next().map(|name| (*name).clone());
    }
    Ok(())
}

/// Side whose tree the result is, although the merge of both sides is another.
fn whole_side(lists: &ChangeLists, by_git: &MergeByGit) -> Option<MergeSide> {
    let ChangeLists { fork, upstream, result } = lists;
    let is_merged = by_git.merged.is_clean && by_git.departed.is_empty();
    match () {
        () if is_merged || fork == upstream => None,
        () if result.is_empty() && !upstream.is_empty() => Some(MergeSide::Fork),
        () if lists.is_upstreams_tree() && !fork.is_empty() => Some(MergeSide::Upstream),
        () => None,
    }
}

struct Changes<'a> {
    fork: &'a ByPath,
    upstream: &'a ByPath,
    /// From git's merge to the result.
    departed: &'a ByPath,
    /// From the new name to the old one.
    fork_moves: BTreeMap<Vec<u8>, Vec<u8>>,
    upstream_moves: BTreeMap<Vec<u8>, Vec<u8>>,
    /// From the name in git's merge to the one in the result.
    result_moves: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A path to compare, with its entries.
pub(super) struct PathVersions {
    pub(super) path: Vec<u8>,
    base: Option<TreeEntry>,
    pub(super) fork: Option<TreeEntry>,
    pub(super) upstream: Option<TreeEntry>,
    pub(super) result: Option<TreeEntry>,
    /// Git's merge; none for a conflict.
    pub(super) merged: Option<TreeEntry>,
    conflict: Option<Conflict>,
    pub(super) moved_to: Option<Vec<u8>>,
    /// Path of the result that a new file's name could be taken for.
    pub(super) alike: Option<Vec<u8>>,
    /// Folder of the path that the fork deleted as a whole.
    gone_folder: Option<Vec<u8>>,
}

impl Changes<'_> {
    /// Asks git for renames only where they can matter.
    async fn find_renames(
        &mut self,
        repo: &SealedRepo,
        ends: &ContractEnds,
        merged: &Sha,
    ) -> Result<(), GitError> {
        let has = |side: &ByPath, old: bool| side.values().any(|entry| entry.old.is_some() == old);
        let gone = |side: &ByPath| side.values().any(|entry| entry.new.is_none());
        let departed = |side: &ByPath| self.departed.keys().any(|path| side.contains_key(path));
        if departed(self.fork) && has(self.fork, false) && gone(self.fork) {
            let renames = repo.renames(&ends.merge_base, &ends.base).await?;
            self.fork_moves = renames.into_iter().map(|it| (it.to, it.from)).collect();
        }
        if departed(self.upstream) && has(self.upstream, false) && gone(self.upstream) {
            let renames = repo.renames(&ends.merge_base, &ends.upstream).await?;
            self.upstream_moves = renames.into_iter().map(|it| (it.to, it.from)).collect();
        }
        if has(self.departed, false) && gone(self.departed) {
            let renames = repo.renames(merged, &ends.tip).await?;
            self.result_moves = renames.into_iter().map(|it| (it.from, it.to)).collect();
        }
        Ok(())
    }

    /// Conflicts first, then the paths in which the result departs from git's merge.
    async fn paths(
        &self,
        repo: &SealedRepo,
        by_git: &MergeByGit,
        tip: &Sha,
    ) -> Result<Vec<PathVersions>, GitError> {
        let MergeByGit { merged, conflicts, in_conflict, .. } = by_git;
        // A resolved file is not as git left it, so the list of departures has it.
        let (known, asked): (Vec<&[u8]>, Vec<&[u8]>) = in_conflict
            .iter()
            .map(Vec::as_slice)
            .partition(|path| self.departed.contains_key(*path));
        let mut now = match asked.is_empty() {
            true => BTreeMap::new(),
            false => repo.entries_at(tip, &asked).await?,
        };
        let known = known.into_iter().filter_map(|path| {
            let entry = self.departed.get(path).and_then(new_entry)?;
            Some((path.to_vec(), entry))
        });
        now.extend(known);
        let mut paths = Vec::new();
        for conflict in conflicts {
            for path in std::iter::once(&conflict.path).chain(&conflict.also) {
                paths.extend(conflicting(conflict, path.as_bytes(), &merged.stages, &now));
            }
        }
        let moved_to: BTreeSet<&Vec<u8>> = self.result_moves.values().collect();
        let departed = self.departed.values().filter(|entry| {
            !in_conflict.contains(entry.path.as_slice()) && !moved_to.contains(&entry.path)
        });
        paths.extend(departed.map(|entry| self.departed_path(entry)));
        Ok(paths)
    }

    fn departed_path(&self, change: &ChangedEntry) -> PathVersions {
        let path = &change.path;
        let merged = old_entry(change);
        let moved_to = self.result_moves.get(path).cloned();
        let result = match &moved_to {
            Some(name) => self.departed.get(name).and_then(new_entry),
            None => new_entry(change),
        };
        let (fork_change, upstream_change) = (self.fork.get(path), self.upstream.get(path));
        let old_name = self.fork_moves.get(path).or_else(|| self.upstream_moves.get(path));
        let old_name = old_name.unwrap_or(path);
        let base_of = |side: &ByPath, change: &ChangedEntry| {
            side.get(old_name).and_then(old_entry).or_else(|| old_entry(change))
        };
        // The other side knows the file by its old name, if it is a rename.
        let other_of = |side: &ByPath, base: &Option<TreeEntry>| match side.get(old_name) {
            Some(change) => new_entry(change).or_else(|| self.moved(old_name)),
            None => base.clone(),
        };
        let (base, fork, upstream) = match (fork_change, upstream_change) {
            (None, None) => (merged.clone(), merged.clone(), merged.clone()),
            (Some(change), None) => {
                let base = base_of(self.fork, change);
                let upstream = other_of(self.upstream, &base);
                (base, new_entry(change), upstream)
            }
            (None, Some(change)) => {
                let base = base_of(self.upstream, change);
                let fork = other_of(self.fork, &base);
                (base, fork, new_entry(change))
            }
            (Some(change), Some(other)) => {
                (base_of(self.fork, change), new_entry(change), new_entry(other))
            }
        };
        let path = path.clone();
        PathVersions {
            path,
            base,
            fork,
            upstream,
            result,
            merged,
            conflict: None,
            moved_to,
            alike: None,
            gone_folder: None,
        }
    }

    /// Entry under the new name that a side gave to a path.
    fn moved(&self, old_name: &[u8]) -> Option<TreeEntry> {
        let sides = [(&self.fork_moves, self.fork), (&self.upstream_moves, self.upstream)];
        sides.into_iter().find_map(|(moves, side)| {
            let (to, _) = moves.iter().find(|(_, from)| from.as_slice() == old_name)?;
            side.get(to).and_then(new_entry)
        })
    }
}

/// The versions of a conflict at one of its paths.
fn conflicting(
    conflict: &Conflict,
    path: &[u8],
    stages: &[ConflictStage],
    now: &BTreeMap<Vec<u8>, TreeEntry>,
) -> Option<PathVersions> {
    let side = |wanted: u8| {
        let stage = stages.iter().find(|stage| stage.stage == wanted && stage.path == path)?;
        Some(TreeEntry { mode: stage.mode, id: stage.id.clone() })
    };
    let [base, fork, upstream] = [1, 2, 3].map(side);
    let is_named = base.is_some() || fork.is_some() || upstream.is_some();
    is_named.then(|| PathVersions {
        result: now.get(path).cloned(),
        path: path.to_vec(),
        base,
        fork,
        upstream,
        merged: None,
        conflict: Some(conflict.clone()),
        moved_to: None,
        alike: None,
        gone_folder: None,
    })
}

async fn read_contents(
    repo: &SealedRepo,
    paths: &[PathVersions],
    cap: usize,
) -> Result<BTreeMap<Sha, Vec<u8>>, GitError> {
    let entries = paths.iter().flat_map(|path| {
        [&path.base, &path.fork, &path.upstream, &path.result].into_iter().flatten()
    });
    let wanted = entries.filter(|it| is_file(it)).map(|it| &it.id).collect();
    read_small(repo, wanted, cap).await
}

/// Text of an entry; a missing entry is empty, and `None` is no text.
pub(super) fn text_of<'a>(
    entry: Option<&TreeEntry>,
    contents: &'a BTreeMap<Sha, Vec<u8>>,
) -> Option<&'a [u8]> {
    let Some(entry) = entry else { return Some(b"") };
    let bytes = is_file(entry).then(|| contents.get(&entry.id))??;
    is_text(bytes).then_some(bytes)
}

fn is_generated_path(path: &PathVersions, contents: &BTreeMap<Sha, Vec<u8>>) -> bool {
    let sides = [&path.fork, &path.upstream].into_iter().flatten();
    let texts: Vec<&[u8]> = sides.filter_map(|side| text_of(Some(side), contents)).collect();
    is_generated(&TreePath::new(path.path.as_slice()), &texts)
}

fn add_path(
    account: &mut MergeAccount,
    path: &PathVersions,
    contents: &BTreeMap<Sha, Vec<u8>>,
    rules: &DropRules,
) {
    let text = compare_as_text(path, contents);
    let compared = text.clone().unwrap_or_else(|| compare_whole(path, contents));
    let is_generated = is_generated_path(path, contents);
    for side in [MergeSide::Upstream, MergeSide::Fork] {
        let change = side_change(path, side, &compared, text.is_some(), rules);
        let change = change.map(|change| SideChange { is_generated, ..change });
        let list = match side {
            MergeSide::Upstream => &mut account.upstream.changes,
            MergeSide::Fork => &mut account.fork.changes,
        };
        list.extend(change);
    }
    match &path.conflict {
        Some(conflict) => {
            account.departures.extend(beyond_conflict(path, &compared));
            account.conflicts.push(ConflictAccount {
                path: TreePath::new(path.path.as_slice()),
                kind: conflict.kind,
                resolution: resolution(path, &compared),
                hunk: compared.hunk,
            });
        }
        None => account.departures.extend(departure(path, &compared, contents)),
    }
}

/// Compares lines if all versions that exist are texts. Without a result, or with a side that deleted the file, there is
/// nothing to compare line by line.
fn compare_as_text(path: &PathVersions, contents: &BTreeMap<Sha, Vec<u8>>) -> Option<TextAccount> {
    path.result.as_ref()?;
    let is_deletion = |side: &Option<TreeEntry>| side.is_none() && path.base.is_some();
    if is_deletion(&path.fork) || is_deletion(&path.upstream) {
        return None;
    }
    Some(compare_text(TextVersions {
        base: text_of(path.base.as_ref(), contents)?,
        fork: text_of(path.fork.as_ref(), contents)?,
        upstream: text_of(path.upstream.as_ref(), contents)?,
        result: text_of(path.result.as_ref(), contents)?,
    }))
}

/// Compares whole files: each side's change is one hunk.
fn compare_whole(path: &PathVersions, contents: &BTreeMap<Sha, Vec<u8>>) -> TextAccount {
    let id =
        |entry: &Option<TreeEntry>| entry.as_ref().map(|entry| (kind(entry), entry.id.clone()));
    let (base, result) = (id(&path.base), id(&path.result));
    let one = |own: &Option<TreeEntry>, other: &Option<TreeEntry>| {
        let text = text_of(own.as_ref(), contents).unwrap_or_default();
        let (own, other) = (id(own), id(other));
        let mut counts = HunkCounts::default();
        if own == base {
            return counts;
        }
        counts.hunks = 1;
        if result == own {
            return counts;
        }
        let is_dropped = result == base || result == other || result.is_none();
        counts.dropped = usize::from(is_dropped);
        counts.dropped_clean = usize::from(is_dropped && path.conflict.is_none());
        counts.adapted = usize::from(!is_dropped);
        counts.adapted_in_conflict = usize::from(!is_dropped && path.conflict.is_some());
        counts.lines_missing = lines(text).len();
        counts.lines_dropped_clean = counts.dropped_clean * counts.lines_missing;
        counts
    };
    TextAccount {
        fork: one(&path.fork, &path.upstream),
        upstream: one(&path.upstream, &path.fork),
        ..TextAccount::default()
    }
}

fn side_change(
    path: &PathVersions,
    side: MergeSide,
    compared: &TextAccount,
    is_text: bool,
    rules: &DropRules,
) -> Option<SideChange> {
    let (counts, own, other) = match side {
        MergeSide::Upstream => (&compared.upstream, &path.upstream, &path.fork),
        MergeSide::Fork => (&compared.fork, &path.fork, &path.upstream),
    };
    let mode_dropped = is_mode_dropped(path, own.as_ref());
    let mut status = match () {
        () if counts.dropped > 0 || mode_dropped => SideStatus::Dropped,
        () if counts.adapted > 0 => SideStatus::Adapted,
        () => return None,
    };
    let mut reason = None;
    if status == SideStatus::Dropped {
        // A file that the other side took away stays away.
        let is_deleted = path.base.is_some() && other.is_none() && path.result.is_none();
        reason = rules.reason(side, &path.path).or_else(|| {
            let text = match side {
                MergeSide::Upstream => "the fork deleted the file",
                MergeSide::Fork => "upstream deleted the file",
            };
            let reason = |text: String| DropReason { text, is_habit: false };
            let by_file = is_deleted && path.conflict.is_some();
            // A new file of upstream in a folder that the fork took away is none that the fork wants.
            let folder = path.gone_folder.as_ref().filter(|_| side == MergeSide::Upstream);
            let by_folder = |folder: &Vec<u8>| {
                let folder = TreePath::new(folder.as_slice());
                reason(format!("the fork deleted the folder {folder}"))
            };
            by_file.then(|| reason(text.to_owned())).or_else(|| folder.map(by_folder))
        });
        if reason.is_some() {
            status = SideStatus::DroppedByRule;
        }
    }
    Some(SideChange {
        path: TreePath::new(path.path.as_slice()),
        status,
        hunks: (counts.hunks + usize::from(mode_dropped)).max(1),
        adapted: counts.adapted,
        adapted_in_conflict: counts.adapted_in_conflict,
        dropped: counts.dropped + usize::from(mode_dropped),
        dropped_clean: counts.dropped_clean + usize::from(mode_dropped),
        lines: counts.lines_missing,
        lines_dropped_clean: Some(counts.lines_dropped_clean),
        reason,
        is_generated: false,
        detail: detail(path, counts, is_text, mode_dropped),
    })
}

/// Returns whether a side's new mode is not the result's.
fn is_mode_dropped(path: &PathVersions, own: Option<&TreeEntry>) -> bool {
    let (Some(own), Some(result)) = (own, &path.result) else { return false };
    let is_new = path.base.as_ref().is_none_or(|base| base.mode != own.mode);
    is_file(own) && is_file(result) && is_new && result.mode != own.mode && {
        let is_set = own.mode & 0o111 != 0;
        path.base.is_some() || is_set
    }
}

fn detail(path: &PathVersions, counts: &HunkCounts, is_text: bool, mode_dropped: bool) -> String {
    let mut parts = Vec::new();
    if path.result.is_none() {
        parts.push("the file is gone".to_owned());
    } else if !is_text && counts.dropped + counts.adapted > 0 {
        parts.push(whole_detail(path).to_owned());
    } else if counts.dropped + counts.adapted > 0 {
        let HunkCounts { hunks, adapted, dropped, lines_missing, commented_out, .. } = *counts;
        let of = |count: usize, word: &str| format!("{count} of {} {word}", plural(hunks, "hunk"));
        parts.extend((dropped > 0).then(|| of(dropped, "dropped")));
        parts.extend((adapted > 0).then(|| of(adapted, "adapted")));
        parts.extend(
            (lines_missing > 0).then(|| format!("{} missing", plural(lines_missing, "line"))),
        );
        parts.extend((commented_out > 0).then(|| format!("{commented_out} commented out")));
    }
    parts.extend(mode_dropped.then(|| "its mode is gone".to_owned()));
    parts.join(", ")
}

fn whole_detail(path: &PathVersions) -> &'static str {
    let is = |side: &Option<TreeEntry>| *side == path.result;
    let kind = |side: &Option<TreeEntry>| side.as_ref().map(kind);
    match () {
        () if is(&path.fork) => "the file is the fork's",
        () if is(&path.upstream) => "the file is upstream's",
        () if is(&path.base) => "the file is as before",
        () if kind(&path.result) != kind(&path.fork)
            && kind(&path.result) != kind(&path.upstream) =>
        {
            "the file has become something else"
        }
        () => "the file is as neither side has it",
    }
}

fn resolution(path: &PathVersions, compared: &TextAccount) -> ConflictResolution {
    match () {
        () if path.result.is_none() => ConflictResolution::Deleted,
        () if path.result == path.fork => ConflictResolution::Ours,
        () if path.result == path.upstream => ConflictResolution::Theirs,
        () => compared.resolution.unwrap_or(ConflictResolution::New),
    }
}
