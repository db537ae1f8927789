//! The inventory of a fork, observed: the fork as fetched, its declared changes, and its delta.

mod sizes;
mod stack;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use host::git::Git;
use jiff::Timestamp;
use merge::delta::change::{DeclaredChange, LineAssignment, assign};
use merge::delta::heat::Heat;
use merge::delta::revert::find_reverts;
use merge::delta::state::{StateEnds, judge_change, observe_states};
use merge::delta::{Delta, DeltaEnds, TracedContents, observe_delta};
use merge::resolver::history::MERGES_CAP;
use model::id::Sha;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shell::Ui;

use super::observe::{
    FETCH_LIMIT, Observation, ObserveOptions, find_repo, fork_directory, fork_key, observe,
};
use super::past::ForkPast;
use super::security::survey::upstream_tips;
use crate::commands::ForkliftDirs;
use crate::commands::history::short_address;
use crate::commands::run_args::LookArgs;
use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::rules::delta::check::is_droppable;
use crate::rules::delta::fork_toml::{FORK_TOML, parse_fork_toml};
use crate::rules::delta::report::{DeltaReport, make_report};
use crate::rules::words::counted;

/// Most bytes of FORK.toml.
const FORK_TOML_CAP: usize = 256 * 1024;

/// A fork with its delta.
pub(crate) struct ForkDelta {
    pub(crate) seen: Observation,
    /// Sees the objects of the user's checkout, and takes new ones. Deleted on drop.
    pub(crate) past: ForkPast,
    pub(crate) delta: Delta,
    pub(crate) assignment: LineAssignment,
    /// Conflicts of the newest merges of upstream.
    heat: Heat,
    /// Commits that declared changes name, by the numbers of the changes, and that upstream's history has.
    merged: Vec<(usize, Sha)>,
}

impl ForkDelta {
    /// Fetches as a run does, and takes the inventory. Changes nothing.
    pub(crate) async fn observe(
        ui: &Ui,
        look: &LookArgs,
        directory: Option<&Path>,
        places: &ForkliftDirs,
    ) -> Result<Self, Failure> {
        let repo = find_repo(&fork_directory(directory)?).await?;
        let remotes = look.names.remotes(&places.shared);
        let options = ObserveOptions {
            remotes: &remotes,
            main_branch: look.names.main_branch.as_ref(),
            target: look.target.as_ref(),
            forge: None,
            cache: &places.cache,
            checkout: None,
        };
        let seen = observe(ui, repo, options).await?;
        let declared = read_declared(&seen.repo, &seen.pins.base).await?;
        let past = ForkPast::open(&seen.repo, &remotes.origin, &places.cache).await?;
        ui.phase("delta", "tracing the fork's own lines to their commits");
        let ends = DeltaEnds {
            tip: seen.pins.base.clone(),
            target: seen.pins.upstream.clone(),
            upstream: known_upstream(ui, &seen, &past).await?,
        };
        let file = kept_file(&places.cache, &seen, "delta");
        let kept: Option<TracedContents> = load_kept(&file);
        let mut traced_now = kept.clone();
        let traced = observe_delta(&past.sealed, &ends, &mut traced_now, |done, all| {
            ui.progress("delta", &format!("traced {done} of {all} files"));
        });
        let delta = traced.await.or_machine()?.ok_or_else(|| {
            Failure::usage(format!(
                "{} and {} have no commit in common, so there is no place where they parted",
                seen.fork.origin, seen.fork.upstream
            ))
        })?;
        if kept != traced_now {
            save_kept(&file, &traced_now);
        }
        let merged = find_merged(ui, (&seen, &past), &delta, &declared).await?;
        let assignment = assign(&delta, &declared);
        let heat = read_heat(ui, &seen, &past, &places.cache).await?;
        Ok(Self { seen, past, delta, assignment, heat, merged })
    }

    /// Names for people: the fork and its upstream, as in their addresses.
    pub(crate) fn names(&self) -> [String; 2] {
        let fork = &self.seen.fork;
        [(&fork.origin, &fork.remotes.origin), (&fork.upstream, &fork.remotes.upstream)]
            .map(|(url, remote)| short_address(url).unwrap_or_else(|| remote.to_string()))
    }

    /// The inventory as data.
    pub(crate) fn report(&self, now: Timestamp) -> DeltaReport {
        make_report(&self.delta, &self.assignment, &self.heat, now.as_second())
    }

    /// The inventory with the state of each change.
    pub(crate) async fn checked(&self, ui: &Ui, now: Timestamp) -> Result<DeltaReport, Failure> {
        ui.phase("check", "comparing the changes with what upstream has");
        let since = self.delta.history.began().unwrap_or(&self.delta.parted);
        let ends = StateEnds { target: &self.seen.pins.upstream, since, merged: &self.merged };
        let facts = observe_states(&self.past.sealed, &self.delta, &self.assignment, ends);
        let mut report = self.report(now);
        for (row, facts) in report.changes.iter_mut().zip(facts.await.or_machine()?) {
            row.judged = Some(judge_change(&facts));
            row.twins = facts.twins;
            row.effect = Some(facts.effect);
        }
        Ok(report)
    }

    /// The reverts that drop what upstream has, tried in memory, by the numbers of the changes.
    pub(crate) async fn reverts(
        &self,
        ui: &Ui,
        report: &DeltaReport,
    ) -> Result<BTreeMap<usize, Vec<Sha>>, Failure> {
        let changes = report.changes.iter().enumerate().filter(|(_, change)| is_droppable(change));
        let changes: Vec<usize> = changes.map(|(number, _)| number).collect();
        if changes.is_empty() {
            return Ok(BTreeMap::new());
        }
        ui.phase("check", &format!("trying the reverts of {}", counted(changes.len(), "change")));
        let delta = (&self.delta, &self.assignment);
        let identity = host_identity();
        let by = (&identity, Timestamp::UNIX_EPOCH);
        find_reverts(&self.past.sealed, delta, &changes, by).await.or_machine()
    }
}

/// Makes the newest merges of upstream again, as far as that was not done before: results are kept by merge.
async fn read_heat(
    ui: &Ui,
    seen: &Observation,
    past: &ForkPast,
    cache: &Path,
) -> Result<Heat, Failure> {
    let range = past.range(&seen.pins.base, &seen.pins.upstream);
    let merges = past.sealed.past_merges(range, MERGES_CAP).await.or_machine()?;
    let file = kept_file(cache, seen, "heat");
    let kept: Heat = load_kept(&file).unwrap_or_default();
    let mut heat = kept.clone();
    let added = heat.add(&past.sealed, &merges, |done, all| {
        ui.progress("delta", &format!("made {done} of {all} past merges again"));
    });
    added.await.or_machine()?;
    if heat != kept {
        save_kept(&file, &heat);
    }
    Ok(heat)
}

/// A file of the cache, of this fork alone.
fn kept_file(cache: &Path, seen: &Observation, kind: &str) -> PathBuf {
    cache.join("forks").join(format!("{}.{kind}.json", fork_key(&seen.repo)))
}

fn load_kept<T: DeserializeOwned>(file: &Path) -> Option<T> {
    std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

/// Keeps what only saves time: where it cannot be written, it is made again.
fn save_kept(file: &Path, kept: &impl Serialize) {
    if let Ok(bytes) = serde_json::to_vec(kept) {
        drop(host::file::write_atomic(file, &bytes, 0o600));
    }
}

/// The changes that FORK.toml on the fork's main branch declares; the checkout does not count.
async fn read_declared(repo: &Git, base: &Sha) -> Result<Vec<DeclaredChange>, Failure> {
    let read = repo.read_first_blob(base, &FORK_TOML, FORK_TOML_CAP).await;
    let Some((name, blob)) = read.or_machine()? else { return Ok(Vec::new()) };
    if blob.truncated {
        return Err(Failure::usage(format!("{name} on the fork's main branch is too large")));
    }
    parse_fork_toml(&String::from_utf8_lossy(&blob.bytes))
        .map_err(|fault| Failure::usage(format!("{name} on the fork's main branch: {fault}")))
}

/// Sorts the commits that declared changes name and that are not the fork's own: those that upstream has, and unknown ones, which
/// are warned about.
async fn find_merged(
    ui: &Ui,
    (seen, past): (&Observation, &ForkPast),
    delta: &Delta,
    declared: &[DeclaredChange],
) -> Result<Vec<(usize, Sha)>, Failure> {
    let mut merged = Vec::new();
    for (number, change) in declared.iter().enumerate() {
        for id in change.commits.iter().filter(|id| delta.history.find(id).is_none()) {
            let commit = past.sealed.resolve_commit(id).await.or_machine()?;
            let is_upstreams = match &commit {
                Some(commit) => {
                    past.sealed.is_ancestor(commit, &seen.pins.upstream).await.or_machine()?
                }
                None => false,
            };
            match commit.filter(|_| is_upstreams) {
                Some(commit) => merged.push((number, commit)),
                None => ui.warn(&format!(
                    "FORK.toml: change '{}' names {id}, which is no commit of the fork's own, nor of upstream's",
                    change.name
                )),
            }
        }
    }
    Ok(merged)
}

/// All that is upstream's: its branches as fetched, and those of its tags that the fork has taken, since a release may be on a
/// branch that is gone.
async fn known_upstream(ui: &Ui, seen: &Observation, past: &ForkPast) -> Result<Vec<Sha>, Failure> {
    let remote = &seen.fork.remotes.upstream;
    let mut tips = upstream_tips(seen).await?;
    let tags: Vec<Sha> = match seen.repo.remote_refs(remote, "refs/tags/*", FETCH_LIMIT).await {
        Ok(tags) => tags.into_iter().map(|tag| tag.id).collect(),
        Err(error) => {
            let text = format!("upstream's tags could not be listed: {}", error.reason());
            ui.warn(&format!("{text}; releases on branches that are gone count as the fork's own"));
            Vec::new()
        }
    };
    let base = std::slice::from_ref(&seen.pins.base);
    let own = past.sealed.commits_between(base, &tips).await.or_machine()?;
    let own: BTreeSet<Sha> = own.into_iter().collect();
    // A tag that is not among them is on a branch of upstream, or not in the fork's history.
    let tags: BTreeSet<Sha> = tags.into_iter().filter(|tag| own.contains(tag)).collect();
    tips.extend(tags);
    Ok(tips)
}
