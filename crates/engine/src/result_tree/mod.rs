//! The tree of a result, compared with the trees of both sides.
//!
//! The walk reads stored trees level by level and enters a folder only where the result differs from both sides. It counts
//! paths while it walks: a few small objects can name more paths than any list could hold.
//!
//! - `link`: symbolic links, followed within the tree
//! - `marker`: conflict markers that were left
//! - `submodule`: addresses of submodules
//! - `sensitive`: files that act by themselves

pub(crate) mod link;
pub(crate) mod marker;
pub(crate) mod sensitive;
pub(crate) mod submodule;

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, RawTreeEntry, SealedRepo};
use model::escape::escape_line;
use model::id::Sha;

use crate::evidence::Pins;

/// Paths that a result may have that neither side has.
const MOST_PATHS: usize = 200_000;

/// Folders inside one another. Each level is one question to git.
const MOST_DEPTH: usize = 256;

/// Characters of a path that are shown.
const SHOWN_CHARS: usize = 120;

const MODE_TREE: u32 = 0o040_000;
pub(crate) const MODE_LINK: u32 = 0o120_000;
pub(crate) const MODE_GITLINK: u32 = 0o160_000;

/// Entry of a result that neither side has at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MadeEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    /// The mode as stored, if it is not a usual one.
    pub(crate) odd_mode: Option<String>,
    pub(crate) id: Sha,
    /// Files that the sides have at this path.
    pub(crate) sides: Vec<SideEntry>,
}

/// File of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SideEntry {
    pub(crate) mode: u32,
    pub(crate) id: Sha,
}

impl MadeEntry {
    pub(crate) fn is_file(&self) -> bool {
        is_file(self.mode)
    }

    pub(crate) fn is_blob(&self) -> bool {
        self.is_file() || self.mode == MODE_LINK
    }

    pub(crate) fn shown(&self) -> String {
        show_path(&self.path)
    }
}

/// Differences of a result from both sides, sorted by path.
#[derive(Debug, Default)]
pub(crate) struct ResultTree {
    pub(crate) made: Vec<MadeEntry>,
    /// Paths that both sides have and the result has not.
    pub(crate) removed: Vec<Vec<u8>>,
}

/// Result of a walk.
#[derive(Debug)]
pub(crate) enum ResultTreeWalk {
    Whole(ResultTree),
    /// There are more paths or deeper folders than are looked at.
    TooLarge(String),
}

pub(crate) fn is_file(mode: u32) -> bool {
    mode & 0o170_000 == 0o100_000
}

/// Renders a path for display, cut if it is long.
pub(crate) fn show_path(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.chars().count() <= SHOWN_CHARS * 4 {
        return escape_line(&text).into_owned();
    }
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{}…", escape_line(&start))
}

/// Compares the tree of `tip` with the trees of both pins.
pub(crate) async fn compare_trees(
    repo: &SealedRepo,
    pins: &Pins,
    tip: &Sha,
) -> Result<ResultTreeWalk, GitError> {
    let commits = [tip.clone(), pins.base.clone(), pins.upstream.clone()];
    let mut roots = repo.trees_of(&commits).await?.into_iter();
    let root = roots.next().flatten().ok_or_else(|| GitError::Parse {
        args: "cat-file".to_owned(),
        problem: format!("{tip} has no tree"),
    })?;
    let mut open = vec![MadeFolder { path: Vec::new(), tree: Some(root), sides: roots.collect() }];
    let mut found = ResultTree::default();
    for _ in 0..MOST_DEPTH {
        if open.is_empty() {
            found.made.sort_by(|one, other| one.path.cmp(&other.path));
            found.removed.sort();
            return Ok(ResultTreeWalk::Whole(found));
        }
        let trees = read_level(repo, &open).await?;
        let mut below = Vec::new();
        for folder in &open {
            compare_folder(folder, &trees, &mut found, &mut below);
            if found.made.len() + below.len() > MOST_PATHS {
                let at = show_start(&folder.path);
                return Ok(ResultTreeWalk::TooLarge(format!("more than {MOST_PATHS} paths: {at}")));
            }
        }
        open = below;
    }
    let at = open.first().map(|folder| show_start(&folder.path)).unwrap_or_default();
    Ok(ResultTreeWalk::TooLarge(format!("folders more than {MOST_DEPTH} deep: {at}")))
}

fn show_start(path: &[u8]) -> String {
    let start: String = String::from_utf8_lossy(path).chars().take(40).collect();
    format!("{}/…", escape_line(&start))
}

/// Folder that the result has as neither side has it.
struct MadeFolder {
    path: Vec<u8>,
    /// The result's; `None` if it was removed.
    tree: Option<Sha>,
    /// The folders of the sides at the same path.
    sides: Vec<Option<Sha>>,
}

type TreeEntries = BTreeMap<Sha, Vec<RawTreeEntry>>;

/// Reads each tree of a level once, however often it is used.
async fn read_level(repo: &SealedRepo, open: &[MadeFolder]) -> Result<TreeEntries, GitError> {
    let ids = open
        .iter()
        .flat_map(|folder| std::iter::once(&folder.tree).chain(&folder.sides).flatten().cloned());
    let ids: Vec<Sha> = ids.collect::<BTreeSet<Sha>>().into_iter().collect();
    let trees = repo.read_trees(&ids).await?;
    Ok(ids.into_iter().zip(trees).filter_map(|(id, tree)| Some((id, tree?))).collect())
}

fn compare_folder(
    folder: &MadeFolder,
    trees: &TreeEntries,
    found: &mut ResultTree,
    below: &mut Vec<MadeFolder>,
) {
    let entries = |tree: &Option<Sha>| -> &[RawTreeEntry] {
        let found = tree.as_ref().and_then(|tree| trees.get(tree));
        found.map(Vec::as_slice).unwrap_or_default()
    };
    let by_name = |tree: &Option<Sha>| -> BTreeMap<&[u8], &RawTreeEntry> {
        entries(tree).iter().map(|entry| (entry.name.as_slice(), entry)).collect()
    };
    let sides: Vec<BTreeMap<&[u8], &RawTreeEntry>> = folder.sides.iter().map(by_name).collect();
    let mut names: BTreeSet<&[u8]> = BTreeSet::new();
    for entry in entries(&folder.tree) {
        names.insert(&entry.name);
        let here: Vec<Option<&RawTreeEntry>> =
            sides.iter().map(|side| side.get(entry.name.as_slice()).copied()).collect();
        if here.iter().flatten().any(|side| is_same(entry, side)) {
            continue;
        }
        let path = join(&folder.path, &entry.name);
        if entry.mode == MODE_TREE && entry.odd_mode.is_none() {
            let tree = |side: Option<&RawTreeEntry>| {
                side.filter(|side| side.mode == MODE_TREE).map(|side| side.id.clone())
            };
            let sides = here.into_iter().map(tree).collect();
            below.push(MadeFolder { path, tree: Some(entry.id.clone()), sides });
            continue;
        }
        let file = |side: &RawTreeEntry| SideEntry { mode: side.mode, id: side.id.clone() };
        let sides = here.into_iter().flatten().filter(|side| side.mode != MODE_TREE).map(file);
        found.made.push(MadeEntry {
            path,
            mode: entry.mode,
            odd_mode: entry.odd_mode.clone(),
            id: entry.id.clone(),
            sides: sides.collect(),
        });
    }
    add_removed(folder, &sides, &names, found, below);
}

/// Adds paths that both sides have and the result has not. A folder is entered, since a part of it may be one side's alone.
fn add_removed(
    folder: &MadeFolder,
    sides: &[BTreeMap<&[u8], &RawTreeEntry>],
    kept: &BTreeSet<&[u8]>,
    found: &mut ResultTree,
    below: &mut Vec<MadeFolder>,
) {
    let Some(first) = sides.first() else { return };
    for name in first.keys().filter(|name| !kept.contains(**name)) {
        let here: Vec<&RawTreeEntry> =
            sides.iter().filter_map(|side| side.get(name).copied()).collect();
        if here.len() < sides.len() {
            continue;
        }
        let path = join(&folder.path, name);
        if here.iter().all(|side| side.mode == MODE_TREE) {
            let sides = here.into_iter().map(|side| Some(side.id.clone())).collect();
            below.push(MadeFolder { path, tree: None, sides });
        } else {
            found.removed.push(path);
        }
    }
}

/// An odd mode is the side's own only if it has the same one; a usual mode may replace it.
fn is_same(entry: &RawTreeEntry, side: &RawTreeEntry) -> bool {
    let same_mode = entry.odd_mode.is_none() || entry.odd_mode == side.odd_mode;
    same_mode && (entry.mode, &entry.id) == (side.mode, &side.id)
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha(digit: char) -> Sha {
        Sha::parse(&digit.to_string().repeat(40)).expect("legal")
    }

    fn entry(name: &str, mode: u32, id: char) -> RawTreeEntry {
        RawTreeEntry { mode, odd_mode: None, id: sha(id), name: name.as_bytes().to_vec() }
    }

    fn compare(
        tip: Vec<RawTreeEntry>,
        sides: [Vec<RawTreeEntry>; 2],
    ) -> (ResultTree, Vec<MadeFolder>) {
        let [base, upstream] = sides;
        let trees = BTreeMap::from([(sha('1'), tip), (sha('2'), base), (sha('3'), upstream)]);
        let folder = MadeFolder {
            path: b"d".to_vec(),
            tree: Some(sha('1')),
            sides: vec![Some(sha('2')), Some(sha('3'))],
        };
        let (mut found, mut below) = (ResultTree::default(), Vec::new());
        compare_folder(&folder, &trees, &mut found, &mut below);
        (found, below)
    }

    #[test]
    fn only_what_is_neither_sides_is_made() {
        let (found, below) = compare(
            vec![
                entry("base", 0o100_644, 'a'),
                entry("both", 0o100_644, 'c'),
                entry("mode", 0o100_755, 'a'),
                entry("new", MODE_LINK, 'd'),
                entry("sub", MODE_TREE, 'e'),
                entry("upstream", 0o100_644, 'b'),
            ],
            [
                vec![
                    entry("base", 0o100_644, 'a'),
                    entry("both", 0o100_644, 'a'),
                    entry("gone", 0o100_644, 'a'),
                    entry("left", MODE_TREE, 'a'),
                    entry("mode", 0o100_644, 'a'),
                    entry("ours", 0o100_644, 'a'),
                    entry("sub", MODE_TREE, 'a'),
                ],
                vec![
                    entry("both", 0o100_644, 'b'),
                    entry("gone", 0o100_644, 'b'),
                    entry("left", MODE_TREE, 'b'),
                    entry("sub", 0o100_644, 'b'),
                    entry("upstream", 0o100_644, 'b'),
                ],
            ],
        );
        let made: Vec<String> = found.made.iter().map(MadeEntry::shown).collect();
        assert_eq!(made, ["d/both", "d/mode", "d/new"]);
        assert_eq!(found.made[0].sides.len(), 2);
        assert_eq!(found.removed, [b"d/gone".to_vec()]);
        assert_eq!(below.len(), 2);
        assert_eq!(below[0].sides, [Some(sha('a')), None]);
        assert_eq!((below[1].path.as_slice(), &below[1].tree), (b"d/left".as_slice(), &None));
    }

    #[test]
    fn an_odd_mode_is_a_sides_own_or_made_here() {
        let odd = |mode: &str| RawTreeEntry {
            odd_mode: Some(mode.to_owned()),
            ..entry("a", 0o100_644, 'a')
        };
        let made = |tip, side: RawTreeEntry| compare(vec![tip], [vec![side], vec![]]).0.made.len();
        assert_eq!(made(odd("100664"), entry("a", 0o100_644, 'a')), 1);
        assert_eq!(made(odd("100664"), odd("100664")), 0);
        assert_eq!(made(entry("a", 0o100_644, 'a'), odd("100664")), 0);
        assert_eq!(made(odd("100600"), odd("100664")), 1);
    }

    #[test]
    fn a_long_path_is_cut() {
        let shown = show_path(&b"d/".repeat(3000));
        assert!(shown.len() < 200 && shown.ends_with('…'), "{shown}");
        assert_eq!(show_path(b"a\nb"), "a\\nb");
    }
}
