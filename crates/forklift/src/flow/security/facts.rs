//! Facts that git knows about the commits of fixes: whether the fork's history has them, whether it makes the same change, whether
//! its files have their lines, and whether they apply alone.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use host::git::{CommitParts, GitError, GitIdentity, SealedRepo};
use jiff::Timestamp;
use merge::likeness::Likeness;
use merge::pick::{PickAttempt, try_pick};
use merge::provenance::read_provenance;
use model::id::Sha;
use shell::Ui;

use super::compare::{CodeComparison, FixChange};
use super::land::join_commits_of;
use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::rules::security::code_path::is_code;
use crate::rules::security::finding::FixCommit;
use crate::rules::security::message::{FORK_PATTERNS, REVERT_PATTERNS};
use crate::rules::security::presence::{Applies, FixFacts, Presence, judge_commit};

/// Commits of the fork whose changes are compared.
const MOST_OWN: usize = 20_000;

/// Commits whose patches are read at once, and bytes of them.
const PATCHES_AT_ONCE: usize = 400;
const PATCH_BYTES: usize = 128 << 20;

/// Commits of the fork whose messages are read.
const MOST_MESSAGES: usize = 50_000;

/// Files of a fix that are named, and files above which a commit is no fix of one thing.
const PATHS_NAMED: usize = 20;
const MOST_FILES: usize = 400;

/// The fork and upstream, as far as every fix needs them.
pub(crate) struct ForkFacts {
    pub(crate) repo: SealedRepo,
    pub(crate) base: Sha,
    /// Tips of upstream's branches, that of the target first.
    pub(crate) upstream: Vec<Sha>,
    /// The state of upstream's target that the fork has taken.
    common: Option<Sha>,
    /// Commits of upstream that the fork's history lacks.
    lacking: HashSet<Sha>,
    /// Beginnings of ids that messages of the fork's own commits name, with those commits.
    brings: Vec<(String, Sha)>,
    /// The same for commits of the fork's history that undo others and were not undone themselves.
    reverts: Vec<(String, Sha)>,
    identity: GitIdentity,
}

/// Where a commit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitPlace {
    /// In the fork's history.
    Fork,
    /// In upstream's history alone.
    Upstream,
    /// In neither, or not in the repository at all.
    Elsewhere,
}

impl ForkFacts {
    pub(crate) async fn observe(
        ui: &Ui,
        repo: SealedRepo,
        base: Sha,
        upstream: Vec<Sha>,
    ) -> Result<Self, Failure> {
        ui.phase("history", "comparing the histories of fork and upstream");
        let known = std::slice::from_ref(&base);
        let own = std::slice::from_ref(&base);
        let (lacking, messages, reverting) = tokio::try_join!(
            repo.commits_between(&upstream, known),
            repo.search_messages(own, &upstream, FORK_PATTERNS, MOST_MESSAGES),
            // Upstream's reverts undo a fix in the fork as well.
            repo.search_messages(own, &[], REVERT_PATTERNS, MOST_MESSAGES),
        )
        .or_machine()?;
        let brings = messages.into_iter().flat_map(|found| {
            let ids = read_provenance(&found.message).brings.into_iter();
            ids.map(move |id| (id, found.sha.clone())).collect::<Vec<_>>()
        });
        let brings = brings.collect();
        // Newest first: a revert that was itself reverted later undoes nothing.
        let mut reverts: Vec<(String, Sha)> = Vec::new();
        for found in reverting {
            if named(&reverts, &found.sha).is_none() {
                let ids = read_provenance(&found.message).reverts.into_iter();
                reverts.extend(ids.map(|id| (id, found.sha.clone())));
            }
        }
        let lacking = lacking.into_iter().collect();
        let common = match upstream.first() {
            Some(target) => repo.merge_base(target, &base).await.or_machine()?,
            None => None,
        };
        let identity = host_identity();
        Ok(Self { repo, base, upstream, common, lacking, brings, reverts, identity })
    }

    /// Returns whether upstream has a commit and the fork's history does not.
    pub(crate) fn lacks(&self, commit: &Sha) -> bool {
        self.lacking.contains(commit)
    }

    /// Finds where commits stand.
    pub(crate) async fn places(
        &self,
        commits: &BTreeSet<Sha>,
    ) -> Result<BTreeMap<Sha, CommitPlace>, Failure> {
        let ids: Vec<Sha> = commits.iter().cloned().collect();
        let trees = self.repo.trees_of(&ids).await.or_machine()?;
        let mut places = BTreeMap::new();
        for (commit, tree) in ids.into_iter().zip(trees) {
            let place = match (tree, self.lacking.contains(&commit)) {
                (_, true) => CommitPlace::Upstream,
                (Some(_), false)
                    if self.repo.is_ancestor(&commit, &self.base).await.or_machine()? =>
                {
                    CommitPlace::Fork
                }
                (Some(_) | None, false) => CommitPlace::Elsewhere,
            };
            places.insert(commit, place);
        }
        Ok(places)
    }

    /// Looks at every commit: facts, and the decision about it.
    pub(crate) async fn look_at(
        &self,
        ui: &Ui,
        commits: &BTreeMap<Sha, CommitPlace>,
    ) -> Result<BTreeMap<Sha, FixCommit>, Failure> {
        let ids: Vec<Sha> = commits.keys().cloned().collect();
        let lines = self.repo.commit_lines(&ids).await.or_machine()?;
        let mut by_id: BTreeMap<Sha, FixChange> = BTreeMap::new();
        for commit in commits.keys() {
            let change = self.change_of(commit).await.or_machine()?;
            by_id.insert(commit.clone(), change);
        }
        let is_open = |change: &&FixChange| {
            let place = commits.get(&change.commit);
            place == Some(&CommitPlace::Upstream) || self.reverted_by(&change.commit).is_some()
        };
        let open: Vec<&FixChange> = by_id.values().filter(is_open).collect();
        let patches = self.same_patches(ui, &open).await.or_machine()?;
        let mut found = BTreeMap::new();
        for (number, line) in lines.into_iter().enumerate() {
            ui.progress("fixes", &format!("looked at {number} of {} commits", ids.len()));
            let change = by_id.remove(&line.sha);
            let same = patches.get(&line.sha).cloned();
            let (facts, presence) = match self.facts_of(&line.sha, change.as_ref(), same).await {
                Ok(facts) => {
                    let presence = judge_commit(&facts);
                    (facts, presence)
                }
                // One commit that git cannot read must not hide the others.
                Err(error) => {
                    let why = format!("git could not compare it: {}", error.reason());
                    (FixFacts::unknown(&line.sha), Presence::unclear(why))
                }
            };
            let paths = change.iter().flat_map(|change| &change.entries);
            let named = paths.filter(|entry| is_code(&entry.path)).take(PATHS_NAMED);
            let fix = FixCommit {
                subject: line.subject,
                seconds: line.seconds,
                state: presence.state,
                sureness: presence.sureness,
                why: presence.why,
                likeness: facts.files.likeness,
                has_code: facts.files.code_files > 0
                    || change.as_ref().is_none_or(|it| !is_comparable(it)),
                applies: facts.applies,
                paths: named.map(|it| String::from_utf8_lossy(&it.path).into_owned()).collect(),
                commit: line.sha.clone(),
                files: facts.files,
            };
            found.insert(line.sha, fix);
        }
        Ok(found)
    }

    /// Looks at commits that build on one another as one change: alone, only the first of them applies. `None` if they do not
    /// apply to one another.
    pub(crate) async fn look_at_chain(
        &self,
        commits: &[FixCommit],
    ) -> Result<Option<(Presence, Option<Applies>)>, Failure> {
        let shas: Vec<Sha> = commits.iter().map(|fix| fix.commit.clone()).collect();
        let Ok(Some((before, tip))) = join_commits_of(&self.repo, &shas).await else {
            return Ok(None);
        };
        let parts = self.repo.commit_parts(&tip).await.or_machine()?;
        let parts = CommitParts { parents: vec![before], ..parts };
        let written = self.repo.write_commit(&parts, &self.identity, Timestamp::UNIX_EPOCH).await;
        let change = self.change_of(&written.or_machine()?).await.or_machine()?;
        let change = FixChange { is_made: true, ..change };
        let facts = self.facts_of(&change.commit, Some(&change), None).await.or_machine()?;
        Ok(Some((judge_commit(&facts), facts.applies)))
    }

    pub(super) fn reverted_by(&self, commit: &Sha) -> Option<&Sha> {
        named(&self.reverts, commit)
    }

    async fn change_of(&self, commit: &Sha) -> Result<FixChange, GitError> {
        let parent = self.repo.commit_parts(commit).await?.parents.into_iter().next();
        let entries = match &parent {
            Some(parent) => self.repo.changed_entries(parent, commit).await?,
            None => Vec::new(),
        };
        Ok(FixChange { commit: commit.clone(), parent, entries, is_made: false })
    }

    /// Finds commits of the fork that make the same change, by patch id. Only those that touch the same files can.
    async fn same_patches(
        &self,
        ui: &Ui,
        changes: &[&FixChange],
    ) -> Result<BTreeMap<Sha, Sha>, GitError> {
        let small = changes.iter().copied().filter(|change| change.entries.len() <= MOST_FILES);
        let paths: BTreeSet<&[u8]> =
            small.clone().flat_map(|it| &it.entries).map(|entry| entry.path.as_slice()).collect();
        if paths.is_empty() {
            return Ok(BTreeMap::new());
        }
        let paths: Vec<&[u8]> = paths.into_iter().collect();
        let mut own: BTreeSet<Sha> = BTreeSet::new();
        for some in paths.chunks(1000) {
            let found = self.repo.plain_commits_at(&self.base, &self.upstream, some, MOST_OWN);
            own.extend(found.await?);
        }
        let own: Vec<Sha> = own.into_iter().take(MOST_OWN).collect();
        let ids: Vec<Sha> = small.map(|change| change.commit.clone()).collect();
        let (mut known, count) = (BTreeMap::new(), own.len());
        for (number, some) in own.chunks(PATCHES_AT_ONCE).enumerate() {
            let done = number * PATCHES_AT_ONCE;
            ui.progress("fixes", &format!("compared {done} of {count} commits of the fork"));
            let ours = self.patch_ids(some).await;
            known.extend(ours.into_iter().map(|(sha, patch_id)| (patch_id, sha)));
        }
        let theirs = self.patch_ids(&ids).await;
        let same = theirs.into_iter();
        Ok(same.filter_map(|(sha, id)| Some((sha, known.get(&id)?.clone()))).collect())
    }

    /// The patch ids of commits. One whose objects git cannot read is left out, and keeps no other from being compared.
    async fn patch_ids(&self, commits: &[Sha]) -> Vec<(Sha, Sha)> {
        let mut found = Vec::new();
        let mut open = vec![commits];
        while let Some(some) = open.pop() {
            match self.repo.commit_patches(some, PATCH_BYTES).await {
                Ok(patches) => {
                    let ids = patches.into_iter().filter_map(|it| Some((it.sha, it.patch_id?)));
                    found.extend(ids);
                }
                Err(_) if some.len() > 1 => {
                    let (one, other) = some.split_at(some.len() / 2);
                    open.extend([one, other]);
                }
                Err(_) => {}
            }
        }
        found
    }

    async fn facts_of(
        &self,
        commit: &Sha,
        change: Option<&FixChange>,
        same_patch: Option<Sha>,
    ) -> Result<FixFacts, GitError> {
        let reverted_by = self.reverted_by(commit).cloned();
        let is_made = change.is_some_and(|change| change.is_made);
        let mut facts = FixFacts {
            reachable: !is_made && !self.lacking.contains(commit) && reverted_by.is_none(),
            reverted_by,
            same_patch,
            said_by: named(&self.brings, commit).cloned(),
            ..FixFacts::unknown(commit)
        };
        let Some(change) = change else { return Ok(facts) };
        facts.changes_nothing = change.parent.is_some() && change.entries.is_empty();
        if !is_comparable(change) {
            return Ok(facts);
        }
        let common = self.common.as_ref();
        let comparison = CodeComparison { repo: &self.repo, other: &self.base, common };
        facts.files = comparison.compare(change).await?;
        if facts.reachable {
            facts.upstream_likeness = self.upstream_likeness(change, &facts).await?;
            return Ok(facts);
        }
        let when = Timestamp::UNIX_EPOCH;
        let picked = try_pick(&self.repo, commit, &self.base, &self.identity, when).await?;
        facts.applies = Some(match picked {
            PickAttempt::Clean { .. } => Applies::Cleanly,
            PickAttempt::Empty => Applies::Nothing,
            PickAttempt::Conflicts(conflicts) => {
                let paths = conflicts.iter().take(PATHS_NAMED).map(|one| one.path.to_string());
                Applies::Conflicts { paths: paths.collect() }
            }
        });
        Ok(facts)
    }

    /// Compares the code that a commit changes with the state of upstream that the fork has taken, if that has the commit and
    /// the fork seems to have lost it.
    async fn upstream_likeness(
        &self,
        change: &FixChange,
        facts: &FixFacts,
    ) -> Result<Option<Likeness>, GitError> {
        let Some(common) = self.common.as_ref() else { return Ok(None) };
        if !self.repo.is_ancestor(&change.commit, common).await? {
            return Ok(None);
        }
        if !facts.seems_lost() {
            return Ok(Some(facts.files.likeness));
        }
        let comparison = CodeComparison { repo: &self.repo, other: common, common: None };
        Ok(Some(comparison.compare(change).await?.likeness))
    }
}

/// Returns whether a commit changes little enough to be compared.
fn is_comparable(change: &FixChange) -> bool {
    change.entries.len() <= MOST_FILES && change.parent.is_some()
}

/// The commit whose message names this one.
fn named<'a>(list: &'a [(String, Sha)], commit: &Sha) -> Option<&'a Sha> {
    list.iter().find(|(id, _)| commit.as_str().starts_with(id.as_str())).map(|(_, by)| by)
}
