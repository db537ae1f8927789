//! Evidence about the commits that came out of a box: facts from the host's own repository, for the product's verdict.
//! Nothing here trusts a ref or a file of the workspace.

use std::collections::BTreeSet;

use host::git::{ChangedEntry, CommitFacts, GitError, GitIdentity, SealedRepo};
use model::escape::escape_line;
use model::id::Sha;
use serde::{Deserialize, Serialize};

/// Commits beyond this many are counted as "too many" rather than listed.
const MOST_COMMITS: usize = 10_000;

/// Bytes of a file that are searched for conflict markers.
const SCAN_CAP: usize = 4 << 20;

const MODE_LINK: u32 = 0o120_000;
const MODE_GITLINK: u32 = 0o160_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// The branch before the run.
    pub base: Sha,
    /// The commit to integrate.
    pub upstream: Sha,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub file_bytes: u64,
    pub path_bytes: usize,
    pub files: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { file_bytes: 100 << 20, path_bytes: 4096, files: 100_000 }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub tip: Option<Sha>,
    /// The pinned upstream commit is an ancestor of the tip.
    pub upstream_reachable: bool,
    /// The pinned base is an ancestor of the tip: no history of the fork was dropped.
    pub base_reachable: bool,
    /// Commits that neither base nor upstream has.
    pub new_commits: Vec<NewCommit>,
    pub files_changed: usize,
    /// Paths whose content is neither the base's nor upstream's, so made by the agent.
    pub files_made: Vec<String>,
    /// Symbolic links that lead out of the tree.
    pub links_leaving: Vec<String>,
    /// Links to other repositories that neither side had.
    pub gitlinks_made: Vec<String>,
    /// Files in which conflict markers were left.
    pub markers_left: Vec<String>,
    /// Files and paths beyond the bounds.
    pub oversize: Vec<String>,
    /// Commits with another identity than the box's own.
    pub foreign_identities: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewCommit {
    pub sha: Sha,
    pub subject: String,
    pub parents: usize,
}

pub async fn gather(
    repo: &SealedRepo,
    pins: &Pins,
    tip: &Sha,
    identity: (&str, &str),
    bounds: Bounds,
) -> Result<Evidence, GitError> {
    let known = [pins.base.clone(), pins.upstream.clone()];
    let commits = repo.new_commits(tip, &known, MOST_COMMITS).await?;
    let from_base = repo.changed_entries(&pins.base, tip).await?;
    let from_upstream = repo.changed_entries(&pins.upstream, tip).await?;
    let made = made_here(&from_base, &from_upstream);
    Ok(Evidence {
        tip: Some(tip.clone()),
        upstream_reachable: repo.is_ancestor(&pins.upstream, tip).await?,
        base_reachable: repo.is_ancestor(&pins.base, tip).await?,
        foreign_identities: foreign(&commits, identity),
        files_changed: from_base.len(),
        files_made: made.iter().map(|entry| shown(entry)).collect(),
        links_leaving: links_leaving(repo, &made).await?,
        gitlinks_made: with_mode(&made, MODE_GITLINK).map(shown).collect(),
        markers_left: markers_left(repo, &made).await?,
        oversize: oversize(repo, &from_base, &made, bounds).await?,
        new_commits: commits.into_iter().map(NewCommit::from).collect(),
    })
}

/// Entries of the tip that are the same on neither side.
fn made_here<'a>(base: &'a [ChangedEntry], upstream: &[ChangedEntry]) -> Vec<&'a ChangedEntry> {
    let differs: BTreeSet<&[u8]> = upstream.iter().map(|entry| entry.path.as_slice()).collect();
    base.iter()
        .filter(|entry| entry.new.is_some() && differs.contains(entry.path.as_slice()))
        .collect()
}

fn with_mode<'a>(
    entries: &'a [&'a ChangedEntry],
    mode: u32,
) -> impl Iterator<Item = &'a ChangedEntry> {
    entries.iter().copied().filter(move |entry| entry.new_mode == mode)
}

async fn links_leaving(repo: &SealedRepo, made: &[&ChangedEntry]) -> Result<Vec<String>, GitError> {
    let links: Vec<&ChangedEntry> = with_mode(made, MODE_LINK).collect();
    let ids: Vec<Sha> = links.iter().filter_map(|entry| entry.new.clone()).collect();
    let targets = repo.read_blobs(&ids, 4096).await?;
    let leaving = links.iter().zip(targets).filter(|(entry, target)| {
        target.as_ref().is_none_or(|blob| leaves_tree(&entry.path, &blob.bytes))
    });
    Ok(leaving.map(|(entry, _)| shown(entry)).collect())
}

/// Returns whether a link at `path` with this target points outside of its tree.
fn leaves_tree(path: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut depth = path.split(|byte| *byte == b'/').count() as i64 - 1;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

async fn markers_left(repo: &SealedRepo, made: &[&ChangedEntry]) -> Result<Vec<String>, GitError> {
    let files: Vec<&&ChangedEntry> =
        made.iter().filter(|entry| entry.new_mode & 0o170_000 == 0o100_000).collect();
    let ids: Vec<Sha> = files.iter().filter_map(|entry| entry.new.clone()).collect();
    let texts = repo.read_blobs(&ids, SCAN_CAP).await?;
    let marked = files
        .iter()
        .zip(texts)
        .filter(|(_, blob)| blob.as_ref().is_some_and(|blob| has_markers(&blob.bytes)));
    Ok(marked.map(|(entry, _)| shown(entry)).collect())
}

/// All three of git's markers at the start of lines, in order. A lone row of equals signs is a heading in many formats.
fn has_markers(text: &[u8]) -> bool {
    let mut wanted = [&b"<<<<<<< "[..], &b"======="[..], &b">>>>>>> "[..]].into_iter().peekable();
    for line in text.split(|byte| *byte == b'\n') {
        if wanted.peek().is_some_and(|marker| line.starts_with(marker)) {
            wanted.next();
        }
    }
    wanted.peek().is_none()
}

async fn oversize(
    repo: &SealedRepo,
    changed: &[ChangedEntry],
    made: &[&ChangedEntry],
    bounds: Bounds,
) -> Result<Vec<String>, GitError> {
    let mut found: Vec<String> = changed
        .iter()
        .filter(|entry| entry.path.len() > bounds.path_bytes)
        .map(|entry| format!("path of {} bytes: {}", entry.path.len(), shown(entry)))
        .collect();
    if changed.len() > bounds.files {
        found.push(format!("{} files changed", changed.len()));
    }
    let blobs: Vec<&&ChangedEntry> =
        made.iter().filter(|entry| entry.new_mode != MODE_GITLINK).collect();
    let ids: Vec<Sha> = blobs.iter().filter_map(|entry| entry.new.clone()).collect();
    for (entry, size) in blobs.iter().zip(repo.blob_sizes(&ids).await?) {
        if size.is_some_and(|size| size > bounds.file_bytes) {
            found.push(format!("{} has {} bytes", shown(entry), size.unwrap_or_default()));
        }
    }
    Ok(found)
}

/// Lists commits with another author or, after that, another committer.
fn foreign(commits: &[CommitFacts], (name, email): (&str, &str)) -> Vec<String> {
    let is_foreign = |who: &&GitIdentity| who.name != name || who.email != email;
    let line = |commit: &CommitFacts| {
        let who = [&commit.author, &commit.committer].into_iter().find(is_foreign)?;
        let shown = format!("{} by {} <{}>", commit.sha.short(), who.name, who.email);
        Some(escape_line(&shown).into_owned())
    };
    commits.iter().filter_map(line).collect()
}

impl From<CommitFacts> for NewCommit {
    fn from(commit: CommitFacts) -> Self {
        Self { parents: commit.parents.len(), sha: commit.sha, subject: commit.subject }
    }
}

fn shown(entry: &ChangedEntry) -> String {
    escape_line(&String::from_utf8_lossy(&entry.path)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_wander_inside_the_tree_but_not_out_of_it() {
        let check = |path: &str, target: &str, expected| {
            assert_eq!(
                leaves_tree(path.as_bytes(), target.as_bytes()),
                expected,
                "{path} -> {target}"
            );
        };
        check("a", "b", false);
        check("dir/a", "../b", false);
        check("a", "../b", true);
        check("dir/a", "../../etc/passwd", true);
        check("a", "/etc/passwd", true);
        check("dir/a", "x/../../b", false);
        check("dir/a", "../x/../../b", true);
    }

    #[test]
    fn only_a_whole_set_of_markers_counts() {
        assert!(has_markers(b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> upstream/main\nd\n"));
        assert!(!has_markers(b"Title\n=======\ntext\n"));
        assert!(!has_markers(b"<<<<<<< HEAD\n=======\n"));
        assert!(!has_markers(b"  <<<<<<< a\n=======\n>>>>>>> b\n"));
    }
}
