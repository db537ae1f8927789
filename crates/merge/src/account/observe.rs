//! Gathers the account: git's own merge, and the contents of the paths in which the result is something else.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, ConflictStage, GitError, MergedTree, SealedRepo, TreeEntry};
use model::id::Sha;

use super::regions::{HunkCounts, TextAccount, TextVersions, compare_text};
use super::{
    ConflictAccount, ConflictResolution, Departure, DepartureKind, DropReason, MergeAccount,
    MergeSide, SideAccount, SideChange, SideStatus,
};
use crate::clean::{Conflict, conflicts_of};
use crate::contract::{ContractBounds, ContractEnds, plural};
use crate::entry::{
    ByPath, ChangeLists, MergeChanges, by_path, is_file, kind, new_entry, old_entry, read_small,
};
use crate::path::TreePath;
use crate::pattern::PathPatterns;
use crate::three::text::{is_text, lines};

/// Paths whose contents are in memory at once.
const CHUNK: usize = 300;

/// Lines from which on a file can be gutted.
const FEWEST_LINES: usize = 10;

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
    let ContractEnds { merge_base, base, upstream, tip } = ends;
    let roots = [tip, base, upstream, merge_base].map(Clone::clone);
    // Git answers independent questions side by side.
    let (merged, lists, roots) =
        tokio::try_join!(repo.merge_tree(base, upstream), changes.lists(), repo.trees_of(&roots))?;
    let departed = repo.changed_entries(&merged.tree, tip).await?;
    let whole = whole_side(&roots, &merged);
    let ChangeLists { fork, upstream, .. } = lists;
    let mut changes = Changes {
        fork,
        upstream,
        departed: by_path(departed),
        fork_moves: BTreeMap::new(),
        upstream_moves: BTreeMap::new(),
        result_moves: BTreeMap::new(),
    };
    changes.find_renames(repo, ends, &merged.tree).await?;
    let mut account = MergeAccount {
        whole,
        upstream: SideAccount { paths: changes.upstream.len(), changes: Vec::new() },
        fork: SideAccount { paths: changes.fork.len(), changes: Vec::new() },
        ..MergeAccount::default()
    };
    let paths = changes.paths(repo, &merged, tip).await?;
    for chunk in paths.chunks(CHUNK) {
        let contents = read_contents(repo, chunk, bounds.file_bytes).await?;
        for path in chunk {
            add_path(&mut account, path, &contents, rules);
        }
    }
    Ok(account)
}

/// Tree that the result is, although the merge of both sides is another. The trees are those of the result, the fork,
/// upstream and the merge base.
fn whole_side(trees: &[Option<Sha>], merged: &MergedTree) -> Option<MergeSide> {
    let [tip, base, upstream, merge_base] = trees else { return None };
    let is_merged = merged.is_clean && tip.as_ref() == Some(&merged.tree);
    match () {
        () if is_merged || base == upstream => None,
        () if tip == base && upstream != merge_base => Some(MergeSide::Fork),
        () if tip == upstream && base != merge_base => Some(MergeSide::Upstream),
        () => None,
    }
}

struct Changes<'a> {
    fork: &'a ByPath,
    upstream: &'a ByPath,
    /// From git's merge to the result.
    departed: ByPath,
    /// From the new name to the old one.
    fork_moves: BTreeMap<Vec<u8>, Vec<u8>>,
    upstream_moves: BTreeMap<Vec<u8>, Vec<u8>>,
    /// From the name in git's merge to the one in the result.
    result_moves: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A path to compare, with its entries.
struct PathVersions {
    path: Vec<u8>,
    base: Option<TreeEntry>,
    fork: Option<TreeEntry>,
    upstream: Option<TreeEntry>,
    result: Option<TreeEntry>,
    /// Git's merge; none for a conflict.
    merged: Option<TreeEntry>,
    conflict: Option<Conflict>,
    moved_to: Option<Vec<u8>>,
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
        if has(&self.departed, false) && gone(&self.departed) {
            let renames = repo.renames(merged, &ends.tip).await?;
            self.result_moves = renames.into_iter().map(|it| (it.from, it.to)).collect();
        }
        Ok(())
    }

    /// Conflicts first, then the paths in which the result departs from git's merge.
    async fn paths(
        &self,
        repo: &SealedRepo,
        merged: &MergedTree,
        tip: &Sha,
    ) -> Result<Vec<PathVersions>, GitError> {
        let conflicts = conflicts_of(merged);
        let mut in_conflict: BTreeSet<&[u8]> =
            merged.stages.iter().map(|stage| stage.path.as_slice()).collect();
        for conflict in &conflicts {
            in_conflict.insert(conflict.path.as_bytes());
            in_conflict.extend(conflict.also.iter().map(TreePath::as_bytes));
        }
        // A resolved file is not as git left it, so the list of departures has it.
        let (known, asked): (Vec<&[u8]>, Vec<&[u8]>) =
            in_conflict.iter().partition(|path| self.departed.contains_key(**path));
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
        for conflict in &conflicts {
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
        PathVersions { path, base, fork, upstream, result, merged, conflict: None, moved_to }
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
fn text_of<'a>(
    entry: Option<&TreeEntry>,
    contents: &'a BTreeMap<Sha, Vec<u8>>,
) -> Option<&'a [u8]> {
    let Some(entry) = entry else { return Some(b"") };
    let bytes = is_file(entry).then(|| contents.get(&entry.id))??;
    is_text(bytes).then_some(bytes)
}

fn add_path(
    account: &mut MergeAccount,
    path: &PathVersions,
    contents: &BTreeMap<Sha, Vec<u8>>,
    rules: &DropRules,
) {
    let text = compare_as_text(path, contents);
    let compared = text.clone().unwrap_or_else(|| compare_whole(path, contents));
    for side in [MergeSide::Upstream, MergeSide::Fork] {
        let change = side_change(path, side, &compared, text.is_some(), rules);
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
        None => account.departures.extend(departure(path, &compared)),
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
        counts.lines_missing = lines(text).len();
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
            let reason = DropReason { text: text.to_owned(), is_habit: false };
            (is_deleted && path.conflict.is_some()).then_some(reason)
        });
        if reason.is_some() {
            status = SideStatus::DroppedByRule;
        }
    }
    Some(SideChange {
        path: TreePath::new(path.path.as_slice()),
        status,
        hunks: counts.hunks.max(1),
        adapted: counts.adapted,
        dropped: counts.dropped + usize::from(mode_dropped),
        dropped_clean: counts.dropped_clean + usize::from(mode_dropped),
        lines: counts.lines_missing,
        reason,
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

fn departure(path: &PathVersions, compared: &TextAccount) -> Option<Departure> {
    let gutted = is_gutted(compared);
    let say = |kind, detail: String| {
        Some(Departure { path: TreePath::new(path.path.as_slice()), kind, detail, gutted })
    };
    if let Some(name) = &path.moved_to {
        let name = TreePath::new(name.as_slice());
        return say(
            DepartureKind::Renamed,
            format!("is now {name}, a name that neither side gave it"),
        );
    }
    let (merged, result) = match (&path.merged, &path.result) {
        (None, Some(_)) => return say(DepartureKind::Added, "neither side has it".to_owned()),
        (_, None) => return say(DepartureKind::Removed, "is gone".to_owned()),
        (Some(merged), Some(result)) => (merged, result),
    };
    if merged.mode != result.mode {
        let modes = format!("mode {:o} is {:o} now", merged.mode, result.mode);
        return say(DepartureKind::Mode, modes);
    }
    say(DepartureKind::Content, strange_lines(compared))
}

/// Words about lines and modes that a file in conflict has or lacks and that no resolution of the conflict explains.
fn beyond_conflict(path: &PathVersions, compared: &TextAccount) -> Option<Departure> {
    let result = path.result.as_ref()?;
    let sides = || [&path.fork, &path.upstream].into_iter().flatten();
    let is_strange = sides().count() > 0 && sides().all(|side| side.mode != result.mode);
    let (kind, detail) = if is_strange {
        (
            DepartureKind::Mode,
            format!("beyond the conflict: mode {:o}, which neither side has", result.mode),
        )
    } else {
        (DepartureKind::Content, conflict_lines(compared))
    };
    (!detail.is_empty()).then(|| Departure {
        path: TreePath::new(path.path.as_slice()),
        kind,
        detail,
        gutted: is_gutted(compared),
    })
}

fn is_gutted(compared: &TextAccount) -> bool {
    let TextAccount { lines_removed, lines_common, .. } = *compared;
    lines_removed >= FEWEST_LINES && lines_removed * 10 >= lines_common * 9
}

/// Lines of the result that no side explains.
fn strange_lines(compared: &TextAccount) -> String {
    let mut parts = lines_beyond(compared);
    parts.extend(compared.turns_off.then(|| TURNS_OFF.to_owned()));
    parts.join(", ")
}

/// The same for a file in conflict. A line in the place of a conflict may combine both sides.
fn conflict_lines(compared: &TextAccount) -> String {
    let beyond = lines_beyond(compared);
    let mut parts = Vec::new();
    parts.extend((compared.lines_made > 0).then(|| {
        let made = plural(compared.lines_made, "line");
        format!("inside the conflict: {made} that neither side has as it is")
    }));
    parts.extend(
        (!beyond.is_empty()).then(|| format!("beyond the conflict: {}", beyond.join(", "))),
    );
    parts.extend(compared.turns_off.then(|| TURNS_OFF.to_owned()));
    parts.join(", ")
}

const TURNS_OFF: &str = "a new line may turn code off";

fn lines_beyond(compared: &TextAccount) -> Vec<String> {
    let TextAccount { lines_added, lines_removed, .. } = *compared;
    let added =
        (lines_added > 0).then(|| format!("{} that neither side has", plural(lines_added, "line")));
    let removed = (lines_removed > 0)
        .then(|| format!("{} gone that both sides have", plural(lines_removed, "line")));
    added.into_iter().chain(removed).collect()
}
