//! Planning a train: merges in memory, from the fork to the target, batch by batch.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{CommitDraft, GitIdentity, LinePath, MergedTree, SealedRepo};
use jiff::Timestamp;
use merge::clean::conflicts_of;
use model::id::Sha;
use shell::Ui;

use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::flow::progress::Counter;
use crate::rules::train::window::{SearchExtent, Window, WindowSearch};
use crate::rules::train::{CommitLabel, FirstConflict, PlannedStep, StepKind, TrainPlan};

/// Facts of a plan, and the repository in which it is made.
pub(crate) struct Planner<'a> {
    pub(crate) repo: &'a SealedRepo,
    /// Upstream's main line that the fork lacks, oldest first.
    pub(crate) line: &'a [Sha],
    /// Most commits of a batch.
    pub(crate) batch: usize,
    /// Commits that are known to break the check.
    pub(crate) breaks: &'a BTreeSet<Sha>,
    /// Commits of which it is known that they or one soon after them breaks the check.
    pub(crate) suspects: &'a BTreeSet<Sha>,
}

/// A plan in the making.
struct Draft<'a> {
    planner: &'a Planner<'a>,
    labels: BTreeMap<Sha, String>,
    /// Paths that each commit changed.
    paths: Vec<Vec<LinePath>>,
    /// The fork with what was merged so far.
    tip: Sha,
    /// Upstream's commit that the tip has.
    merged: Sha,
    identity: GitIdentity,
    plan: TrainPlan,
}

impl Planner<'_> {
    /// Plans from a commit of the fork to the end of the line; `before` is upstream's commit that both have.
    pub(crate) async fn plan(
        &self,
        ui: &Ui,
        tip: &Sha,
        before: &Sha,
    ) -> Result<TrainPlan, Failure> {
        let lines = self.repo.commit_lines(self.line).await.or_machine()?;
        let labels = lines.into_iter().map(|line| (line.sha, line.subject)).collect();
        let paths = self.repo.line_paths(before, self.line).await.or_machine()?;
        let plan = TrainPlan {
            commits: self.line.len(),
            batch: self.batch,
            first_conflict: None,
            steps: Vec::new(),
            merges: 0,
        };
        let (tip, merged) = (tip.clone(), before.clone());
        let mut draft =
            Draft { planner: self, labels, paths, tip, merged, identity: host_identity(), plan };
        let counter = Counter::new(ui, "planning");
        let mut at = 0;
        while at < self.line.len() {
            counter.show(at, self.line.len(), "commits");
            at = draft.add_step(at).await?;
        }
        Ok(draft.plan)
    }
}

impl Draft<'_> {
    /// Adds the step that begins with the commit at `start`, and returns the position after it.
    async fn add_step(&mut self, start: usize) -> Result<usize, Failure> {
        let line = self.planner.line;
        let Planner { breaks, suspects, .. } = self.planner;
        let is_alone = |at: &usize| breaks.contains(&line[*at]) || suspects.contains(&line[*at]);
        let limit = line.len().min(start + self.planner.batch);
        let end = (start..limit).find(is_alone).unwrap_or(limit);
        if end == start {
            let merged = self.merge(start).await?;
            let kind = match (merged.is_clean, breaks.contains(&line[start])) {
                (false, _) => StepKind::Conflict,
                (true, true) => StepKind::Break,
                (true, false) => StepKind::Batch,
            };
            return self.add(start, start, kind, &merged, Vec::new()).await;
        }
        let candidates = self.candidates(start, end).await?;
        let extent = match self.has_conflict() {
            true => SearchExtent::FirstConflict,
            false => SearchExtent::Whole,
        };
        let search = WindowSearch::new((start, end), candidates, extent);
        let mut window = self.search(search).await?;
        let mut merged = self.merge(window.batch_end.unwrap_or(start)).await?;
        if merged.is_clean != window.batch_end.is_some() {
            // The paths alone did not tell, as after a rename of a folder: every commit is tried.
            window = self
                .search(WindowSearch::new((start, end), (start..end).collect(), extent))
                .await?;
            merged = self.merge(window.batch_end.unwrap_or(start)).await?;
        }
        if !merged.is_clean && window.batch_end.is_some() {
            merged = self.merge(start).await?;
        }
        let first = window.first_conflict.or((!merged.is_clean).then_some(start));
        if let Some(first) = first.filter(|_| self.plan.first_conflict.is_none()) {
            let commit = self.label(first);
            self.plan.first_conflict = Some(FirstConflict { commit, position: first + 1 });
        }
        let last = window.batch_end.filter(|_| merged.is_clean).unwrap_or(start);
        let kind = if merged.is_clean { StepKind::Batch } else { StepKind::Conflict };
        let passes = window.passes.iter().filter(|at| **at <= last && merged.is_clean);
        let passes = passes.map(|at| self.label(*at)).collect();
        self.add(start, last, kind, &merged, passes).await
    }

    /// Adds a step, and commits its merge in memory. Where it conflicts, files have markers: a later change at the same place
    /// is expected to conflict as well.
    async fn add(
        &mut self,
        start: usize,
        last: usize,
        kind: StepKind,
        merged: &MergedTree,
        passes: Vec<CommitLabel>,
    ) -> Result<usize, Failure> {
        let is_estimate = self.has_conflict();
        let shown = conflicts_of(merged);
        let conflicts =
            shown.iter().map(|it| format!("{} ({})", it.path, it.kind.as_str())).collect();
        let (first, end) = (self.label(start), self.label(last));
        self.plan.steps.push(PlannedStep {
            kind,
            commits: last + 1 - start,
            position: last + 1,
            first,
            last: end,
            conflicts,
            passes,
            is_estimate,
        });
        let upstream = self.planner.line[last].clone();
        let parents = [self.tip.clone(), upstream.clone()];
        let draft = CommitDraft {
            tree: &merged.tree,
            parents: &parents,
            identity: &self.identity,
            when: Timestamp::UNIX_EPOCH,
            message: "a planned step\n",
        };
        self.tip = self.planner.repo.commit_tree(draft).await.or_machine()?;
        self.merged = upstream;
        Ok(last + 1)
    }

    /// Returns whether a step conflicts: what follows is an estimate.
    fn has_conflict(&self) -> bool {
        self.plan.steps.iter().any(|step| step.kind == StepKind::Conflict)
    }

    async fn merge(&mut self, at: usize) -> Result<MergedTree, Failure> {
        self.plan.merges += 1;
        self.planner.repo.merge_tree(&self.tip, &self.planner.line[at]).await.or_machine()
    }

    async fn search(&mut self, mut search: WindowSearch) -> Result<Window, Failure> {
        loop {
            let trials = search.next_trials();
            if trials.is_empty() {
                return Ok(search.found());
            }
            let pairs: Vec<(Sha, Sha)> = trials
                .iter()
                .map(|at| (self.tip.clone(), self.planner.line[*at].clone()))
                .collect();
            let clean = self.planner.repo.merge_cleanly(&pairs).await.or_machine()?;
            self.plan.merges += pairs.len();
            trials.into_iter().zip(clean).for_each(|(at, is_clean)| search.learn(at, is_clean));
        }
    }

    /// Positions at which the result of a merge can change: commits that touch what the fork changed, or that delete from a
    /// folder in which the fork added something, as the rename of a folder does.
    async fn candidates(&self, start: usize, end: usize) -> Result<Vec<usize>, Failure> {
        let delta =
            self.planner.repo.changed_entries(&self.merged, &self.tip).await.or_machine()?;
        let changed: BTreeSet<&[u8]> = delta.iter().map(|entry| entry.path.as_slice()).collect();
        let added = delta.iter().filter(|entry| entry.old.is_none());
        let folders: BTreeSet<&[u8]> = added.flat_map(|entry| parents(&entry.path)).collect();
        let is_touching = |path: &LinePath| {
            let name = path.path.as_slice();
            changed.contains(name)
                || parents(name).any(|folder| changed.contains(folder))
                || folders.contains(name)
                || (path.is_deleted && parents(name).any(|folder| folders.contains(folder)))
        };
        Ok((start..end).filter(|at| self.paths[*at].iter().any(is_touching)).collect())
    }

    fn label(&self, at: usize) -> CommitLabel {
        let sha = self.planner.line[at].clone();
        let subject = self.labels.get(&sha).cloned().unwrap_or_default();
        CommitLabel { sha, subject }
    }
}

/// Folders above a path, without the root.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}
