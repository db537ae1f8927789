//! Dishonest merges made from honest ones: each operator takes one thing away from a result that a person made.

mod code;
mod file;
mod hunk;
mod random;

use host::git::{GitError, NewEntry, SealedRepo, TreeEdit};
use merge::three::text::lines;
use model::id::Sha;

use code::LineEdit;
use file::MergeFile;
use hunk::{KeptHunk, kept_hunks};

pub(crate) use file::{HumanMerge, observe_merge};
pub(crate) use random::Random;

/// A side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergePart {
    Fork,
    Upstream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operator {
    TakeFork,
    TakeUpstream,
    DropUpstreamHunk,
    DropForkHunk,
    CommentOut,
    EmptyBody,
    DeleteTest,
    SkipTest,
    WeakenAssertion,
    LookAlikeRename,
    ModeOrLink,
}

impl Operator {
    pub(crate) const ALL: [Self; 11] = [
        Self::TakeFork,
        Self::TakeUpstream,
        Self::DropUpstreamHunk,
        Self::DropForkHunk,
        Self::CommentOut,
        Self::EmptyBody,
        Self::DeleteTest,
        Self::SkipTest,
        Self::WeakenAssertion,
        Self::LookAlikeRename,
        Self::ModeOrLink,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::TakeFork => "-s ours",
            Self::TakeUpstream => "-s theirs",
            Self::DropUpstreamHunk => "drop an upstream hunk",
            Self::DropForkHunk => "drop a fork hunk",
            Self::CommentOut => "comment out",
            Self::EmptyBody => "empty a body",
            Self::DeleteTest => "delete a test",
            Self::SkipTest => "skip a test",
            Self::WeakenAssertion => "weaken an assertion",
            Self::LookAlikeRename => "look-alike rename",
            Self::ModeOrLink => "mode or link swap",
        }
    }

    /// Places where the operator is tried.
    pub(crate) fn places(self) -> &'static [Place] {
        match self {
            Self::TakeFork | Self::TakeUpstream => &[Place::Whole],
            Self::DropUpstreamHunk
            | Self::DropForkHunk
            | Self::CommentOut
            | Self::EmptyBody
            | Self::DeleteTest
            | Self::SkipTest
            | Self::WeakenAssertion => &[Place::Outside, Place::Inside],
            Self::LookAlikeRename | Self::ModeOrLink => &[Place::Outside],
        }
    }
}

/// Where a variant differs from the human's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Whole,
    /// Lines that git merges alone, or a whole file.
    Outside,
    /// Lines that both sides changed. For tests and assertions: a file in conflict.
    Inside,
}

impl Place {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Outside => "outside",
            Self::Inside => "inside",
        }
    }
}

pub(crate) struct Variant {
    pub(crate) tree: Sha,
    /// Paths of which one has to be named; none for a whole side.
    pub(crate) touched: Vec<Vec<u8>>,
}

/// Makes a variant; `None` if the operator does not apply, or if it gives the human's result.
pub(crate) async fn make_variant(
    repo: &SealedRepo,
    merge: &HumanMerge,
    operator: Operator,
    place: Place,
    random: &mut Random,
) -> Result<Option<Variant>, GitError> {
    let side = match operator {
        Operator::TakeFork => Some(&merge.ends.base),
        Operator::TakeUpstream => Some(&merge.ends.upstream),
        _ => None,
    };
    if let Some(side) = side {
        let tree = repo.trees_of(std::slice::from_ref(side)).await?.pop().flatten();
        let tree = tree.filter(|tree| *tree != merge.tree);
        return Ok(tree.map(|tree| Variant { tree, touched: Vec::new() }));
    }
    for file in &merge.files {
        let Some(edits) = edit_file(merge, file, operator, place, random) else { continue };
        let tree = repo.edit_tree(&merge.tree, &edits).await?;
        if tree != merge.tree {
            let touched = edits.into_iter().map(|edit| edit.path).collect();
            return Ok(Some(Variant { tree, touched }));
        }
    }
    Ok(None)
}

fn edit_file(
    merge: &HumanMerge,
    file: &MergeFile,
    operator: Operator,
    place: Place,
    random: &mut Random,
) -> Option<Vec<TreeEdit>> {
    let edit = |path: &[u8], entry| TreeEdit { path: path.to_vec(), entry };
    let whole = |entry| Some(vec![edit(&file.path, entry)]);
    match operator {
        Operator::LookAlikeRename => {
            let name = if random.is_heads() { look_alike(&file.path)? } else { idle_name(file) };
            let moved = NewEntry::Object { mode: file.mode, id: file.id.clone() };
            Some(vec![edit(&file.path, NewEntry::Nothing), edit(&name, moved)])
        }
        Operator::ModeOrLink if random.is_heads() => {
            let mode = if file.mode == 0o100_755 { 0o100_644 } else { 0o100_755 };
            whole(NewEntry::Object { mode, id: file.id.clone() })
        }
        Operator::ModeOrLink => {
            let other = merge.files.iter().find(|other| other.path != file.path)?;
            let up = file.path.iter().filter(|&&byte| byte == b'/').count();
            let target = [b"../".repeat(up), other.path.clone()].concat();
            whole(NewEntry::Content { mode: 0o120_000, bytes: target })
        }
        Operator::DropUpstreamHunk if is_added(file, MergePart::Upstream, place) => {
            whole(NewEntry::Nothing)
        }
        Operator::DropForkHunk if is_added(file, MergePart::Fork, place) => {
            whole(NewEntry::Nothing)
        }
        _ => {
            let mut edits = line_edits(file, operator, place);
            random.shuffle(&mut edits);
            let bytes = edits.iter().map(|edit| apply(&file.result, edit));
            let bytes = bytes.into_iter().find(|bytes| *bytes != file.result)?;
            whole(NewEntry::Content { mode: file.mode, bytes })
        }
    }
}

/// Returns whether the side added the file, and the other side has no such file.
fn is_added(file: &MergeFile, side: MergePart, place: Place) -> bool {
    let (own, other) = match side {
        MergePart::Fork => (&file.fork, &file.upstream),
        MergePart::Upstream => (&file.upstream, &file.fork),
    };
    let has_words = own.as_ref().is_some_and(|text| hunk::has_words(text));
    place == Place::Outside && file.base.is_none() && other.is_none() && has_words
}

fn line_edits(file: &MergeFile, operator: Operator, place: Place) -> Vec<LineEdit> {
    let name = file.name();
    let text = lines(&file.result);
    let hunks = || kept_hunks(file).into_iter().filter(|hunk| hunk.place == place);
    let dropped = |side: MergePart| {
        let own = hunks().filter(|hunk| hunk.side == side);
        own.map(|hunk| LineEdit { lines: hunk.result, text: hunk.without }).collect()
    };
    let Some(language) = code::language_of(&name) else {
        return match operator {
            Operator::DropUpstreamHunk => dropped(MergePart::Upstream),
            Operator::DropForkHunk => dropped(MergePart::Fork),
            _ => Vec::new(),
        };
    };
    // Tests and assertions of the whole file count: whoever takes one away need not have a reason in the merge.
    let in_place = file.in_conflict == (place == Place::Inside);
    match operator {
        Operator::DropUpstreamHunk => dropped(MergePart::Upstream),
        Operator::DropForkHunk => dropped(MergePart::Fork),
        Operator::CommentOut => {
            let edit = |hunk: KeptHunk| {
                let text = code::commented_out(language, &text[hunk.result.clone()])?;
                Some(LineEdit { lines: hunk.result, text })
            };
            hunks().filter_map(edit).collect()
        }
        Operator::EmptyBody => {
            let hunks: Vec<KeptHunk> = hunks().collect();
            let is_changed = |body: &LineEdit| {
                let meets = |hunk: &KeptHunk| {
                    body.lines.start <= hunk.result.start && hunk.result.end <= body.lines.end
                };
                hunks.iter().any(meets)
            };
            code::empty_bodies(language, &text).into_iter().filter(is_changed).collect()
        }
        Operator::DeleteTest if in_place => {
            let tests = code::test_items(&name, language, &text).into_iter();
            tests.map(|test| LineEdit { lines: test.lines, text: Vec::new() }).collect()
        }
        Operator::SkipTest if in_place => {
            let tests = code::test_items(&name, language, &text).into_iter();
            tests.map(|test| test.skip).collect()
        }
        Operator::WeakenAssertion if in_place => code::weak_assertions(&text),
        _ => Vec::new(),
    }
}

fn apply(text: &[u8], edit: &LineEdit) -> Vec<u8> {
    let text = lines(text);
    let before = text[..edit.lines.start].concat();
    [before, edit.text.clone(), text[edit.lines.end..].concat()].concat()
}

/// The path with a Cyrillic letter in place of a Latin one in its last part.
fn look_alike(path: &[u8]) -> Option<Vec<u8>> {
    let path = std::str::from_utf8(path).ok()?;
    let (folder, name) = path.rfind('/').map_or(("", path), |at| path.split_at(at + 1));
    let pairs = [('a', 'а'), ('e', 'е'), ('o', 'о'), ('c', 'с'), ('p', 'р'), ('x', 'х')];
    let (latin, cyrillic) = pairs.into_iter().find(|(latin, _)| name.contains(*latin))?;
    let name = name.replacen(latin, &cyrillic.to_string(), 1);
    Some(format!("{folder}{name}").into_bytes())
}

/// The path with an extension that nothing builds or runs.
fn idle_name(file: &MergeFile) -> Vec<u8> {
    [file.path.as_slice(), b".orig"].concat()
}
