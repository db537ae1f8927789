//! Resolves the conflicts of a run's merge without a model, at the fork's trust threshold, and hands the open ones to the
//! agent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::workspace::MergeBegun;
use host::git::{CommitDraft, ConflictStage, GitIdentity, LineageRange, SealedRepo, UserRepo};
use merge::path::TreePath;
use merge::resolver::history::{Learned, MergesRead, learn, load_learned, save_learned};
use merge::resolver::knowledge::Knowledge;
use merge::resolver::receipt::Receipt;
use merge::resolver::touch::add_touches;
use merge::resolver::{Brief, MergeHeads, ResolveOptions, ResolvedMerge, resolve_conflicts};
use model::id::Sha;
use serde::{Deserialize, Serialize};
use shell::Ui;

use super::observe::fork_key;
use super::past::ForkPast;
use super::progress::Counter;
use super::run::ForkRun;
use super::structure::Mergiraf;
use crate::exit::{Failure, OrExit};
use crate::rules::brief::render_briefs;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResolverSummary {
    /// One receipt for each resolved conflict.
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) rest: Vec<TreePath>,
    /// Resolved files as the resolver left them, to see whether the agent changed them.
    #[serde(alias = "settled")]
    pub(crate) resolved: Vec<ResolvedPath>,
    /// Resolved files that the agent changed.
    pub(crate) changed_after: Vec<TreePath>,
    /// Files that were not in conflict and match neither side.
    pub(crate) outside: Vec<TreePath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolvedPath {
    pub(crate) path: TreePath,
    /// Object of its content; `None` if the file was deleted.
    pub(crate) id: Option<Sha>,
}

/// A merge that the agent has to finish.
pub(super) struct Handover {
    pub(super) begun: Option<MergeBegun>,
    /// Name of the page for the agent, in the harness state.
    pub(super) file: &'static str,
    pub(super) text: String,
}

/// Page with the briefs of the open conflicts.
const CONFLICTS_FILE: &str = "conflicts.md";

impl ForkRun<'_> {
    /// Resolves conflicts and records the result in the metadata.
    pub(super) async fn resolve_conflicts(
        &mut self,
        repo: &SealedRepo,
    ) -> Result<ResolvedMerge, Failure> {
        let pins = self.run.record.pins.clone();
        let past =
            ForkPast::open(&self.repo, &self.run.record.fork.remotes.origin, &self.cache).await?;
        let range = past.range(&pins.base, &pins.upstream);
        let file = learned_file(&self.cache, &self.repo);
        let learned = learn_kept(self.ui, &past.sealed, range, &file).await?;
        let heads = MergeHeads { ours: pins.base, theirs: pins.upstream };
        let mut done = self.resolve_with_programs(repo, &heads, &learned.knowledge).await?;
        if !done.rest.is_empty() {
            add_touches(repo, &heads, &mut done.rest).await.or_machine()?;
        }
        self.run.record.resolver = Some(ResolverSummary {
            resolved: resolved_paths(repo, &done).await?,
            receipts: done.receipts.clone(),
            rest: left(&done).into_iter().collect(),
            ..ResolverSummary::default()
        });
        let message = format!(
            "{} of {} conflicts resolved without a model",
            done.receipts.len(),
            done.receipts.len() + done.rest.len()
        );
        self.ui.note(&message);
        Ok(done)
    }

    /// Resolves without programs first. Programs run only if conflicts are open or files have to be regenerated, and their
    /// results go into a second resolution, so that gate and receipts are the same for all answers.
    async fn resolve_with_programs(
        &mut self,
        repo: &SealedRepo,
        heads: &MergeHeads,
        knowledge: &Knowledge,
    ) -> Result<ResolvedMerge, Failure> {
        let rules = self.run.record.settings.rules.resolve_rules();
        let trust = self.run.record.settings.trust();
        let options = ResolveOptions { rules: &rules, knowledge, ..ResolveOptions::at(trust) };
        let first = resolve_conflicts(repo, heads, options).await.or_machine()?;
        let regenerated = self.regenerate(repo, &first).await?;
        let run = &*self;
        let mergiraf = if first.rest.is_empty() { None } else { Mergiraf::find(run).await };
        let record = match &mergiraf {
            Some(mergiraf) => Some(mergiraf.record(repo).await?),
            None => None,
        };
        if regenerated.is_empty() && mergiraf.is_none() {
            return Ok(first);
        }
        let structure = mergiraf.as_ref().zip(record.as_ref());
        let structure = structure.map(|(mergiraf, record)| mergiraf.with(record));
        let options = ResolveOptions { structure, regenerated: &regenerated, ..options };
        resolve_conflicts(repo, heads, options).await.or_machine()
    }

    /// The briefs of the open conflicts and, if any conflict was resolved, the merge so far, for the agent.
    pub(super) async fn hand_over(
        &self,
        repo: &SealedRepo,
        resolved: &ResolvedMerge,
        identity: &GitIdentity,
        message: &str,
    ) -> Result<Handover, Failure> {
        let (file, text) = (CONFLICTS_FILE, render_briefs(&resolved.rest, &resolved.receipts));
        if resolved.receipts.is_empty() {
            return Ok(Handover { begun: None, file, text });
        }
        let pins = &self.run.record.pins;
        let parents = [pins.base.clone(), pins.upstream.clone()];
        let when = self.run.record.started_at;
        let commit =
            CommitDraft { tree: &resolved.tree, parents: &parents, identity, when, message };
        let prepared = repo.commit_tree(commit).await.or_machine()?;
        let stages = repo.merge_tree(&pins.base, &pins.upstream).await.or_machine()?.stages;
        let open: BTreeSet<&[u8]> = resolved.rest.iter().flat_map(paths_of).collect();
        let left = |stage: &ConflictStage| open.contains(stage.path.as_slice());
        Ok(Handover {
            begun: Some(MergeBegun {
                repo: self.run.dir.repo(),
                prepared,
                theirs: pins.upstream.clone(),
                stages: stages.into_iter().filter(left).collect(),
                message: message.to_owned(),
            }),
            file,
            text,
        })
    }

    /// Records which resolved files the agent changed, and which other files it touched.
    pub(super) async fn compare_with_resolver(
        &mut self,
        repo: &SealedRepo,
        tip: &Sha,
    ) -> Result<(), Failure> {
        let Some(summary) = &self.run.record.resolver else { return Ok(()) };
        let paths: Vec<&[u8]> = summary.resolved.iter().map(|it| it.path.as_bytes()).collect();
        let now = repo.entries_at(tip, &paths).await.or_machine()?;
        let id_now = |path: &TreePath| now.get(path.as_bytes()).map(|entry| entry.id.clone());
        let changed = summary.resolved.iter().filter(|it| id_now(&it.path) != it.id);
        let changed_after: Vec<TreePath> = changed.map(|it| it.path.clone()).collect();
        let known: BTreeSet<String> = summary
            .resolved
            .iter()
            .map(|it| it.path.to_string())
            .chain(summary.rest.iter().map(ToString::to_string))
            .collect();
        let made = self.run.record.evidence.iter().flat_map(|evidence| &evidence.files_made);
        let by_git = self.made_by_git(repo).await?;
        let outside: Vec<TreePath> = made
            .filter(|path| !known.contains(*path) && !by_git.contains(path.as_bytes()))
            .map(|path| TreePath::new(path.as_bytes()))
            .collect();
        if let Some(summary) = &mut self.run.record.resolver {
            summary.changed_after = changed_after;
            summary.outside = outside;
        }
        Ok(())
    }

    /// Files that match neither side because git merged changes of both sides.
    async fn made_by_git(&self, repo: &SealedRepo) -> Result<BTreeSet<Vec<u8>>, Failure> {
        let Some(evidence) = &self.run.record.evidence else { return Ok(BTreeSet::new()) };
        let Some(tip) = &evidence.tip else { return Ok(BTreeSet::new()) };
        let pins = &self.run.record.pins;
        let merged = repo.merge_tree(&pins.base, &pins.upstream).await.or_machine()?.tree;
        let paths: Vec<&[u8]> = evidence.files_made.iter().map(String::as_bytes).collect();
        let by_git = repo.entries_at(&merged, &paths).await.or_machine()?;
        let mut made = repo.entries_at(tip, &paths).await.or_machine()?;
        made.retain(|path, entry| by_git.get(path).is_some_and(|other| other.id == entry.id));
        Ok(made.into_keys().collect())
    }
}

/// File with what was learned from the merges of a fork.
pub(crate) fn learned_file(cache: &Path, repo: &UserRepo) -> PathBuf {
    cache.join("forks").join(format!("{}.learned.json", fork_key(repo)))
}

/// Time after which half of the lesson is saved, for the case that it is interrupted.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// Learns from new merges, starting from a saved file, and updates the file now and then and at the end.
pub(crate) async fn learn_kept(
    ui: &Ui,
    repo: &SealedRepo,
    range: LineageRange<'_>,
    file: &Path,
) -> Result<Learned, Failure> {
    let mut learned = load_learned(file).unwrap_or_default();
    let before = learned.source();
    let counter = Counter::new(ui, "learning, once for this fork");
    let mut saved = Instant::now();
    let watch = |merges: MergesRead, learned: &Learned| {
        counter.show(merges.read, merges.of, "merges");
        if saved.elapsed() >= SAVE_EVERY && save_learned(file, learned).is_ok() {
            saved = Instant::now();
        }
    };
    let done = learn(repo, range, &mut learned, watch).await;
    if before != learned.source() {
        save_learned(file, &learned).or_machine()?;
    }
    done.or_machine()?;
    Ok(learned)
}

async fn resolved_paths(
    repo: &SealedRepo,
    resolved: &ResolvedMerge,
) -> Result<Vec<ResolvedPath>, Failure> {
    let open = left(resolved);
    let paths: Vec<&TreePath> =
        resolved.receipts.iter().map(|it| &it.path).filter(|path| !open.contains(*path)).collect();
    let bytes: Vec<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
    let entries = repo.entries_at(&resolved.tree, &bytes).await.or_machine()?;
    let id = |path: &TreePath| entries.get(path.as_bytes()).map(|entry| entry.id.clone());
    Ok(paths.into_iter().map(|path| ResolvedPath { path: path.clone(), id: id(path) }).collect())
}

fn left(resolved: &ResolvedMerge) -> BTreeSet<TreePath> {
    resolved.rest.iter().flat_map(|brief| paths_of(brief).map(TreePath::new)).collect()
}

fn paths_of(brief: &Brief) -> impl Iterator<Item = &[u8]> {
    std::iter::once(&brief.path).chain(&brief.also).map(TreePath::as_bytes)
}
