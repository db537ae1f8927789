//! Gathers the delta: the files that differ, their lines, and the commits that the lines come from.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{ChangedEntry, GitError, Rename, SealedRepo, TreeEntry};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::history::{Parent, Touch};
use super::trace::{Content, Contents, Trace};
use super::{Delta, DeltaFile, DeltaHunk, FileContent, LineOrigin, OwnHistory, Removal};
use crate::contract::LineId;
use crate::entry::{by_path, is_file, new_entry, old_entry};
use crate::own::{OwnFile, own_files};
use crate::three::edits;
use crate::three::text::{is_text, lines};

/// The fork's commit and upstream's.
#[derive(Clone, Debug)]
pub struct DeltaEnds {
    pub tip: Sha,
    /// The target, and the tips of all that is upstream's beside it, such as branches of releases.
    pub target: Sha,
    pub upstream: Vec<Sha>,
}

/// Largest file whose lines are traced, in bytes.
const FILE_BYTES: usize = 4 << 20;

/// Files that are traced at once, and bytes of contents that are kept for them.
const AT_ONCE: usize = 400;
const CONTENT_BYTES: usize = 512 << 20;

/// Lines of a delta that were traced before. They depend on commits alone, so the caller can keep them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedContents {
    /// Digest of everything that they depend on.
    key: String,
    /// In the order of the files.
    contents: Vec<FileContent>,
}

/// Raised when the same history may give other lines.
const TRACE_VERSION: u32 = 1;

/// Reads the delta; `None` without a common ancestor. What was `kept` is used if it is of the same commits, and replaced
/// otherwise. `watch` gets the numbers of files that are done and of all.
pub async fn observe_delta(
    repo: &SealedRepo,
    ends: &DeltaEnds,
    kept: &mut Option<TracedContents>,
    mut watch: impl FnMut(usize, usize),
) -> Result<Option<Delta>, GitError> {
    let mut upstream = vec![ends.target.clone()];
    upstream.extend(ends.upstream.iter().filter(|tip| **tip != ends.target).cloned());
    let Some(parted) = repo.merge_base_of_all(&ends.tip, &upstream).await? else { return Ok(None) };
    let history = OwnHistory::read(repo, &ends.tip, &upstream).await?;
    let whole = [(ends.tip.clone(), Some(parted.clone()))];
    let (ours, renames, theirs) = tokio::try_join!(
        repo.changed_entries(&parted, &ends.tip),
        repo.renames_of(&whole),
        repo.changed_entries(&parted, &ends.target),
    )?;
    let renames: Vec<Rename> = renames.into_iter().flatten().collect();
    let listed = own_files(&ours, &renames, &theirs);
    let ours = by_path(ours);
    let key = key_of(ends, &parted, &history);
    let known = kept.take().filter(|it| it.key == key && it.contents.len() == listed.len());
    if let Some(known) = known {
        let files = listed.iter().zip(&known.contents).map(|(file, content)| DeltaFile {
            content: content.clone(),
            ..open_file(&history, &ours, file)
        });
        let files = files.collect();
        *kept = Some(known);
        return Ok(Some(Delta { parted, tip: ends.tip.clone(), history, files }));
    }
    let mut files = Vec::with_capacity(listed.len());
    let count = listed.len();
    for chunk in listed.chunks(AT_ONCE) {
        watch(files.len(), count);
        let chunk = chunk.iter().map(|file| open_file(&history, &ours, file)).collect();
        files.extend(trace_files(repo, &history, chunk).await?);
    }
    let contents = files.iter().map(|file: &DeltaFile| file.content.clone()).collect();
    *kept = Some(TracedContents { key, contents });
    Ok(Some(Delta { parted, tip: ends.tip.clone(), history, files }))
}

fn key_of(ends: &DeltaEnds, parted: &Sha, history: &OwnHistory) -> String {
    let mut text = format!("{TRACE_VERSION} {} {} {parted}", ends.tip, ends.target);
    for commit in &history.commits {
        text.push(' ');
        text.push_str(commit.sha.as_str());
    }
    model::digest::short_sha256(text.as_bytes(), 32)
}

/// A file with its entries and the commit that touched it last; its lines are not known yet.
fn open_file(
    history: &OwnHistory,
    ours: &BTreeMap<Vec<u8>, ChangedEntry>,
    file: &OwnFile,
) -> DeltaFile {
    let change = ours.get(file.path.as_bytes());
    let source = file.was.as_ref().map_or(change, |was| ours.get(was.as_bytes()));
    DeltaFile {
        path: file.path.clone(),
        was: file.was.clone(),
        fork: file.fork,
        upstream: file.upstream,
        old: source.and_then(old_entry),
        new: change.and_then(new_entry),
        whole: last_touch(history, file.path.as_bytes()),
        content: FileContent::Whole,
    }
}

/// The newest commit that touched a path, along the line from which the tip has it.
fn last_touch(history: &OwnHistory, path: &[u8]) -> LineOrigin {
    let Some(path) = history.number_of(path) else { return LineOrigin::Unknown };
    let mut at = 0;
    loop {
        let parent = match history.touch(path, at) {
            None => 0,
            Some(Touch::Takes(parent)) => *parent,
            Some(Touch::Change { .. }) => return LineOrigin::Commit(at),
            Some(Touch::Merges { .. }) => return LineOrigin::Merge(at),
        };
        match history.parents_of(at).get(parent) {
            Some(Parent::Own(next)) => at = *next,
            Some(Parent::Upstream) | None => return LineOrigin::Upstream,
        }
    }
}

/// A file on its way: what is traced, and what comes of it.
struct OpenFile {
    file: DeltaFile,
    /// `None` for a file without lines to be traced.
    trace: Option<Trace>,
}

async fn trace_files(
    repo: &SealedRepo,
    history: &OwnHistory,
    files: Vec<DeltaFile>,
) -> Result<Vec<DeltaFile>, GitError> {
    let ends = files.iter().flat_map(|file| [&file.old, &file.new]).flatten();
    let ids = ends.filter(|entry| is_file(entry)).map(|entry| entry.id.clone()).collect();
    let mut contents = Contents::new();
    read_into(repo, &mut contents, ids).await?;
    let mut open: Vec<OpenFile> =
        files.into_iter().map(|file| begin(history, file, &contents)).collect();
    loop {
        let traces = open.iter_mut().filter_map(|file| file.trace.as_mut());
        let needs: BTreeSet<Sha> =
            traces.flat_map(|trace| trace.advance(history, &contents)).collect();
        if needs.is_empty() {
            break;
        }
        if contents.values().filter_map(Content::text).map(<[u8]>::len).sum::<usize>()
            > CONTENT_BYTES
        {
            contents.clear();
        }
        read_into(repo, &mut contents, needs).await?;
    }
    Ok(open.into_iter().map(finish).collect())
}

async fn read_into(
    repo: &SealedRepo,
    contents: &mut Contents,
    ids: BTreeSet<Sha>,
) -> Result<(), GitError> {
    let ids: Vec<Sha> = ids.into_iter().filter(|id| !contents.contains_key(id)).collect();
    contents.extend(ids.iter().map(|id| (id.clone(), Content::Unread)));
    for (id, bytes) in repo.read_small_blobs(ids, FILE_BYTES).await? {
        let content = if is_text(&bytes) { Content::Text(bytes) } else { Content::Binary };
        contents.insert(id, content);
    }
    Ok(())
}

/// Compares the two ends of a file, and begins to trace what differs.
fn begin(history: &OwnHistory, mut file: DeltaFile, contents: &Contents) -> OpenFile {
    let is_plain = |entry: &Option<TreeEntry>| entry.as_ref().is_none_or(is_file);
    if !is_plain(&file.old) || !is_plain(&file.new) {
        return OpenFile { file, trace: None };
    }
    let empty = Content::Text(Vec::new());
    let content = |entry: &Option<TreeEntry>| match entry {
        None => &empty,
        Some(entry) => contents.get(&entry.id).unwrap_or(&Content::Unread),
    };
    let (before, after) = match (content(&file.old), content(&file.new)) {
        (Content::Text(before), Content::Text(after)) => (before, after),
        (Content::Unread, _) | (_, Content::Unread) => {
            file.content = FileContent::Unread;
            return OpenFile { file, trace: None };
        }
        (Content::Binary, _) | (_, Content::Binary) => return OpenFile { file, trace: None },
    };
    let hunks = hunks_of(before, after);
    let path = history.number_of(file.path.as_bytes());
    let trace = path.filter(|_| file.new.is_some()).and_then(|path| {
        let added: Vec<usize> = hunks.iter().flat_map(|hunk| hunk.after.clone()).collect();
        let removed = removals(&lines(before), &hunks);
        (!added.is_empty() || !removed.is_empty()).then(|| Trace::begin(path, &added, &removed))
    });
    file.content = if hunks.is_empty() { FileContent::Whole } else { FileContent::Text(hunks) };
    OpenFile { file, trace }
}

fn hunks_of(before: &[u8], after: &[u8]) -> Vec<DeltaHunk> {
    let edits = edits(&lines(before), &lines(after));
    let hunks = edits.into_iter().map(|edit| DeltaHunk {
        removed: vec![LineOrigin::Unknown; edit.before.len()],
        added: vec![LineOrigin::Unknown; edit.after.len()],
        before: edit.before,
        after: edit.after,
    });
    hunks.collect()
}

/// Lines that have nothing in their place: only the history says who removed them.
fn removals(before: &[&[u8]], hunks: &[DeltaHunk]) -> Vec<Removal> {
    let bare = hunks.iter().filter(|hunk| hunk.after.is_empty());
    bare.flat_map(|hunk| hunk.before.clone())
        .map(|number| Removal { number, id: LineId::any(before[number].trim_ascii_end()) })
        .collect()
}

/// Gives every line its origin. A removed line with another in its place was removed by that one's commit; one that no commit
/// removed by its words belongs to its neighbours, or to the commit that touched the file last.
fn finish(open: OpenFile) -> DeltaFile {
    let OpenFile { mut file, trace } = open;
    let (fork, whole) = (file.new.is_some(), file.whole);
    let FileContent::Text(hunks) = &mut file.content else { return file };
    let Some(trace) = trace else {
        // A deleted file, or one that no commit of the fork has touched.
        for hunk in hunks {
            let origin = if fork { LineOrigin::Unknown } else { whole };
            hunk.removed.fill(origin);
            hunk.added.fill(origin);
        }
        return file;
    };
    for hunk in hunks.iter_mut() {
        for (line, origin) in hunk.after.clone().zip(&mut hunk.added) {
            *origin = trace.added.get(&line).copied().unwrap_or(LineOrigin::Unknown);
        }
        let last = hunk.added.len().checked_sub(1);
        let mut known = None;
        for (at, (line, origin)) in hunk.before.clone().zip(&mut hunk.removed).enumerate() {
            let paired = last.map(|last| hunk.added[at.min(last)]);
            let found = trace.removed.get(&line).copied();
            known = found.or(paired).or(known);
            *origin = known.unwrap_or(LineOrigin::Unknown);
        }
        // Lines before the first one that was found.
        let first = hunk.removed.iter().copied().find(|origin| *origin != LineOrigin::Unknown);
        for origin in &mut hunk.removed {
            if *origin == LineOrigin::Unknown {
                *origin = first.unwrap_or(LineOrigin::Unknown);
            }
        }
    }
    file
}
