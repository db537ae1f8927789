//! Evidence about the commits that came out of a box: facts from the host's own repository, for the product's verdict.
//! Nothing here trusts a ref or a file of the workspace.

use std::collections::BTreeSet;

use host::git::{ChangedEntry, CommitFacts, GitError, GitIdentity, SealedRepo};
use model::escape::escape_line;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::result_tree::link::observe_links;
use crate::result_tree::marker::find_marked;
use crate::result_tree::sensitive::{find_sensitive, find_taken};
use crate::result_tree::{
    MODE_GITLINK, MadeEntry, ResultTreeWalk, compare_trees, show_path, submodule,
};

pub use crate::result_tree::sensitive::SensitiveChange;

/// New commits that are looked at one by one; a result with more is refused.
const MOST_COMMITS: usize = 100_000;

/// Commits with another identity that are listed; all are counted.
const FOREIGN_LISTED: usize = 20;

/// Commits of both sides that are searched for the authors of commits that were made again.
const MOST_KNOWN: usize = 50_000;

/// Bytes of one name in a path. Most file systems accept no more.
const NAME_BYTES: usize = 255;

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
    /// The first commits with another identity than the box's own. Commits that were made again keep their authors.
    pub foreign_identities: Vec<String>,
    /// Number of commits with another identity.
    #[serde(default)]
    pub foreign_count: usize,
    /// Symbolic links that cannot be followed.
    #[serde(default)]
    pub links_broken: Vec<String>,
    /// Files with a mode that git itself would not write.
    #[serde(default)]
    pub odd_modes: Vec<String>,
    /// Submodules with an address that neither side has.
    #[serde(default)]
    pub submodules_changed: Vec<String>,
    /// Files that act by themselves, as neither side nor git's own merge has them.
    #[serde(default)]
    pub sensitive: Vec<SensitiveChange>,
    /// Files that act by themselves, otherwise than in the base, and as the other side or git's own merge has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive_taken: Vec<SensitiveChange>,
    /// The result is too large to examine: of its files nothing else is known.
    #[serde(default)]
    pub too_large: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewCommit {
    pub sha: Sha,
    pub subject: String,
    pub parents: usize,
}

/// Fault of a result that must not be published. What a fork or project allows by a rule is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceFault {
    LinkLeaving,
    LinkBroken,
    GitlinkMade,
    SubmoduleChanged,
    MarkersLeft,
    OddMode,
    Oversize,
    ForeignIdentity,
}

impl Evidence {
    /// The faults, each with what it was found at; none of a kind that was not found. Every product refuses all of them, in
    /// words of its own.
    pub fn faults(&self) -> Vec<(EvidenceFault, &[String])> {
        // A new field has to be named here, as a fault or as none.
        let Self {
            tip: _,
            upstream_reachable: _,
            base_reachable: _,
            new_commits: _,
            files_changed: _,
            files_made: _,
            links_leaving,
            gitlinks_made,
            markers_left,
            oversize,
            foreign_identities,
            foreign_count: _,
            links_broken,
            odd_modes,
            submodules_changed,
            // A person may allow some of them.
            sensitive: _,
            sensitive_taken: _,
            // It is oversize, too.
            too_large: _,
        } = self;
        let found: [(EvidenceFault, &[String]); 8] = [
            (EvidenceFault::LinkLeaving, links_leaving),
            (EvidenceFault::LinkBroken, links_broken),
            (EvidenceFault::GitlinkMade, gitlinks_made),
            (EvidenceFault::SubmoduleChanged, submodules_changed),
            (EvidenceFault::MarkersLeft, markers_left),
            (EvidenceFault::OddMode, odd_modes),
            (EvidenceFault::Oversize, oversize),
            (EvidenceFault::ForeignIdentity, foreign_identities),
        ];
        found.into_iter().filter(|(_, items)| !items.is_empty()).collect()
    }

    /// Notes commits with another identity than the box's own.
    pub fn note_strangers(&mut self, strangers: Vec<String>) {
        self.foreign_count = strangers.len();
        self.foreign_identities = strangers.into_iter().take(FOREIGN_LISTED).collect();
    }
}

/// Lists the new commits that another identity made.
pub(crate) async fn find_strangers(
    repo: &SealedRepo,
    pins: &Pins,
    tip: &Sha,
    identity: (&str, &str),
) -> Result<Vec<String>, GitError> {
    let known = [pins.base.clone(), pins.upstream.clone()];
    let commits = repo.new_commits(tip, &known, MOST_COMMITS + 1).await?;
    foreign(repo, pins, &commits, &[identity]).await
}

/// Gathers the evidence about `tip`, a commit that only the given identities may have made. A result that is too large to
/// examine is evidence too, because only the agent can have made it so.
pub async fn gather(
    repo: &SealedRepo,
    pins: &Pins,
    tip: &Sha,
    identities: &[(&str, &str)],
    bounds: Bounds,
) -> Result<Evidence, GitError> {
    let history = Evidence {
        tip: Some(tip.clone()),
        upstream_reachable: repo.is_ancestor(&pins.upstream, tip).await?,
        base_reachable: repo.is_ancestor(&pins.base, tip).await?,
        ..Evidence::default()
    };
    let too_large =
        |what: String| Evidence { oversize: vec![what], too_large: true, ..history.clone() };
    match examine(repo, pins, tip, identities, bounds).await {
        Ok(Examined::Whole(found)) => Ok(Evidence {
            tip: history.tip,
            upstream_reachable: history.upstream_reachable,
            base_reachable: history.base_reachable,
            ..*found
        }),
        Ok(Examined::TooLarge(what)) => Ok(too_large(what)),
        Err(GitError::TooMuch { .. } | GitError::TimedOut { .. }) => {
            Ok(too_large("more than can be examined".to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// Evidence about commits and files, without the history.
enum Examined {
    Whole(Box<Evidence>),
    TooLarge(String),
}

async fn examine(
    repo: &SealedRepo,
    pins: &Pins,
    tip: &Sha,
    identities: &[(&str, &str)],
    bounds: Bounds,
) -> Result<Examined, GitError> {
    let known = [pins.base.clone(), pins.upstream.clone()];
    let commits = repo.new_commits(tip, &known, MOST_COMMITS + 1).await?;
    if commits.len() > MOST_COMMITS {
        return Ok(Examined::TooLarge(format!("more than {MOST_COMMITS} new commits")));
    }
    let tree = match compare_trees(repo, pins, tip).await? {
        ResultTreeWalk::Whole(tree) => tree,
        ResultTreeWalk::TooLarge(what) => return Ok(Examined::TooLarge(what)),
    };
    let from_base = repo.changed_entries(&pins.base, tip).await?;
    let from_upstream = repo.changed_entries(&pins.upstream, tip).await?;
    let foreign = foreign(repo, pins, &commits, identities).await?;
    let links = observe_links(repo, tip, &[&pins.base, &pins.upstream]).await?;
    let made = &tree.made;
    let conflicts = find_conflicts(repo, pins).await?;
    let sensitive = find_sensitive(repo, pins, &tree, &links.aliases).await?;
    let mut oversize = oversize(repo, &from_base, made, bounds).await?;
    oversize.extend(links.long);
    let odd = |entry: &MadeEntry| Some(format!("{} {}", entry.odd_mode.as_ref()?, entry.shown()));
    Ok(Examined::Whole(Box::new(Evidence {
        files_changed: from_base.len(),
        files_made: made.iter().map(MadeEntry::shown).collect(),
        links_leaving: links.leaving,
        links_broken: links.broken,
        gitlinks_made: with_mode(made, MODE_GITLINK).map(MadeEntry::shown).collect(),
        markers_left: find_marked(repo, made, &[&from_base, &from_upstream], &conflicts).await?,
        odd_modes: made.iter().filter_map(odd).collect(),
        submodules_changed: submodule::find_changed(repo, made).await?,
        sensitive_taken: find_taken(repo, &from_base, &links.aliases, &sensitive).await?,
        sensitive,
        oversize,
        foreign_count: foreign.len(),
        foreign_identities: foreign.into_iter().take(FOREIGN_LISTED).collect(),
        new_commits: commits.into_iter().map(NewCommit::from).collect(),
        ..Evidence::default()
    })))
}

/// Paths that git could not merge.
async fn find_conflicts(repo: &SealedRepo, pins: &Pins) -> Result<BTreeSet<Vec<u8>>, GitError> {
    if pins.base == pins.upstream {
        return Ok(BTreeSet::new());
    }
    let merged = repo.merge_tree(&pins.base, &pins.upstream).await?;
    Ok(merged.stages.into_iter().map(|stage| stage.path).collect())
}

fn with_mode(entries: &[MadeEntry], mode: u32) -> impl Iterator<Item = &MadeEntry> {
    entries.iter().filter(move |entry| entry.mode == mode)
}

async fn oversize(
    repo: &SealedRepo,
    changed: &[ChangedEntry],
    made: &[MadeEntry],
    bounds: Bounds,
) -> Result<Vec<String>, GitError> {
    let mut found: Vec<String> = changed
        .iter()
        .filter(|entry| entry.path.len() > bounds.path_bytes)
        .map(|entry| format!("path of {} bytes: {}", entry.path.len(), show_path(&entry.path)))
        .collect();
    let longest = |entry: &MadeEntry| entry.path.split(|byte| *byte == b'/').map(<[u8]>::len).max();
    let named = made.iter().filter_map(|entry| Some((longest(entry)?, entry)));
    let named = named.filter(|(bytes, _)| *bytes > NAME_BYTES);
    found.extend(named.map(|(bytes, entry)| format!("name of {bytes} bytes: {}", entry.shown())));
    if changed.len() > bounds.files {
        found.push(format!("{} files changed", changed.len()));
    }
    let blobs: Vec<&MadeEntry> = made.iter().filter(|entry| entry.is_blob()).collect();
    let ids: Vec<Sha> = blobs.iter().map(|entry| entry.id.clone()).collect();
    for (entry, size) in blobs.iter().zip(repo.blob_sizes(&ids).await?) {
        if size.is_some_and(|size| size > bounds.file_bytes) {
            found.push(format!("{} has {} bytes", entry.shown(), size.unwrap_or_default()));
        }
    }
    Ok(found)
}

/// Lists commits with another committer or author. A commit of one of the sides that was made again, by a rebase or a
/// cherry-pick, keeps its author.
async fn foreign(
    repo: &SealedRepo,
    pins: &Pins,
    commits: &[CommitFacts],
    identities: &[(&str, &str)],
) -> Result<Vec<String>, GitError> {
    let is_foreign = |who: &GitIdentity| {
        !identities.iter().any(|(name, email)| who.name == *name && who.email == *email)
    };
    let mut known = BTreeSet::new();
    if commits.iter().any(|commit| is_foreign(&commit.author)) {
        for (side, other) in [(&pins.base, &pins.upstream), (&pins.upstream, &pins.base)] {
            let theirs = repo.new_commits(side, std::slice::from_ref(other), MOST_KNOWN).await?;
            known
                .extend(theirs.into_iter().map(|it| (it.author.name, it.author.email, it.subject)));
        }
    }
    let is_carried = |commit: &CommitFacts| {
        let GitIdentity { name, email } = commit.author.clone();
        known.contains(&(name, email, commit.subject.clone()))
    };
    let line = |commit: &CommitFacts| {
        let author = Some(&commit.author).filter(|_| !is_carried(commit));
        let who = author.into_iter().chain([&commit.committer]).find(|who| is_foreign(who))?;
        let shown = format!("{} by {} <{}>", commit.sha.short(), who.name, who.email);
        Some(escape_line(&shown).into_owned())
    };
    Ok(commits.iter().filter_map(line).collect())
}

impl From<CommitFacts> for NewCommit {
    fn from(commit: CommitFacts) -> Self {
        Self { parents: commit.parents.len(), sha: commit.sha, subject: commit.subject }
    }
}
