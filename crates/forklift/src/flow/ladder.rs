//! Conflicts that need nobody: the ladder, let loose on a merge as far as it is trusted in this fork, and what it leaves for
//! the agent.

use std::collections::BTreeSet;
use std::path::Path;

use engine::workspace::MergeBegun;
use host::git::{CommitDraft, ConflictStage, GitIdentity, SealedRepo};
use merge::ladder::history::{Learned, PastEnds, learn};
use merge::ladder::knowledge::Knowledge;
use merge::ladder::receipt::Receipt;
use merge::ladder::table::Table;
use merge::ladder::touch::add_touches;
use merge::ladder::{Brief, Climb, ClimbOptions, Ends, Remade, climb};
use merge::path::TreePath;
use model::exit::ForkliftExit;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::observe::fork_key;
use super::run::ForkRun;
use super::structure::Mergiraf;
use crate::exit::{Failure, OrExit};
use crate::rules::brief::render_briefs;

/// What the ladder did in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ladder {
    /// What was settled, and by what.
    pub(crate) receipts: Vec<Receipt>,
    /// What was left to the agent.
    pub(crate) rest: Vec<TreePath>,
    /// What the settled files came to, so that it can be seen whether the agent left them alone.
    pub(crate) settled: Vec<Settled>,
    /// Settled files that are not as they were settled any more.
    pub(crate) changed_after: Vec<TreePath>,
    /// Files that were in no conflict and are as neither side has them.
    pub(crate) outside: Vec<TreePath>,
}

/// A file that was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) path: TreePath,
    /// Its content; nothing if it was settled that the file goes.
    pub(crate) id: Option<Sha>,
}

/// A merge that the agent has to finish.
pub(super) struct Handover {
    pub(super) begun: Option<MergeBegun>,
    /// What is left, for people and agents to read.
    pub(super) briefs: String,
}

impl ForkRun<'_> {
    /// Climbs. What was settled is in the metadata afterwards; a merge that is all settled is the tree of its commit.
    pub(super) async fn climb(&mut self, repo: &SealedRepo) -> Result<Climb, Failure> {
        let pins = self.run.record.pins.clone();
        let past = PastEnds { tip: &pins.base, upstream: &pins.upstream };
        let file = self.cache.join("forks").join(format!("{}.learned.json", fork_key(&self.repo)));
        let learned = learn_kept(repo, past, &file).await?;
        let ends = Ends { ours: pins.base, theirs: pins.upstream };
        let mut done = self.climb_with_programs(repo, &ends, &learned.knowledge).await?;
        if !done.rest.is_empty() {
            let touched = add_touches(repo, &ends, &mut done.rest).await;
            touched.or_exit(ForkliftExit::Machine)?;
        }
        self.run.record.ladder = Some(Ladder {
            settled: settled(repo, &done).await?,
            receipts: done.receipts.clone(),
            rest: left(&done).into_iter().collect(),
            ..Ladder::default()
        });
        let words = format!(
            "{} of {} conflicts settled without a model",
            done.receipts.len(),
            done.receipts.len() + done.rest.len()
        );
        self.ui.note(&words);
        Ok(done)
    }

    /// Climbs without programs first. Only if something is left, or has to be made anew, are they started, and what
    /// they say goes into a second climb: the gates and the receipts are the same for all answers.
    async fn climb_with_programs(
        &mut self,
        repo: &SealedRepo,
        ends: &Ends,
        knowledge: &Knowledge,
    ) -> Result<Climb, Failure> {
        let rules = self.run.record.settings.rules.ladder_rules();
        let nothing = Remade::new();
        let options = ClimbOptions {
            trust: self.run.record.settings.trust(),
            rules: &rules,
            table: Table::shipped(),
            knowledge,
            structure: None,
            remade: &nothing,
        };
        let first = climb(repo, ends, options).await.or_exit(ForkliftExit::Machine)?;
        let remade = self.regenerate(repo, &first).await?;
        let run = &*self;
        let mergiraf = if first.rest.is_empty() { None } else { Mergiraf::find(run).await };
        let record = match &mergiraf {
            Some(mergiraf) => Some(mergiraf.record(repo).await?),
            None => None,
        };
        if remade.is_empty() && mergiraf.is_none() {
            return Ok(first);
        }
        let structure = mergiraf.as_ref().zip(record.as_ref());
        let structure = structure.map(|(mergiraf, record)| mergiraf.with(record));
        let options = ClimbOptions { structure, remade: &remade, ..options };
        climb(repo, ends, options).await.or_exit(ForkliftExit::Machine)
    }

    /// What the agent gets: briefs for what is left, and, where something was settled, the merge as far as it is.
    pub(super) async fn hand_over(
        &self,
        repo: &SealedRepo,
        climb: &Climb,
        identity: &GitIdentity,
        message: &str,
    ) -> Result<Handover, Failure> {
        let briefs = render_briefs(&climb.rest, &climb.receipts);
        if climb.receipts.is_empty() {
            return Ok(Handover { begun: None, briefs });
        }
        let pins = &self.run.record.pins;
        let parents = [pins.base.clone(), pins.upstream.clone()];
        let when = self.run.record.started_at;
        let commit = CommitDraft { tree: &climb.tree, parents: &parents, identity, when, message };
        let prepared = repo.commit_tree(commit).await.or_exit(ForkliftExit::Machine)?;
        let merged = repo.merge_tree(&pins.base, &pins.upstream).await;
        let stages = merged.or_exit(ForkliftExit::Machine)?.stages;
        let open: BTreeSet<&[u8]> = climb.rest.iter().flat_map(paths_of).collect();
        let left = |stage: &ConflictStage| open.contains(stage.path.as_slice());
        Ok(Handover {
            begun: Some(MergeBegun {
                repo: self.run.dir.repo(),
                prepared,
                theirs: pins.upstream.clone(),
                stages: stages.into_iter().filter(left).collect(),
                message: message.to_owned(),
            }),
            briefs,
        })
    }

    /// Looks at what became of the settled files, and at what else was touched.
    pub(super) async fn compare_with_ladder(
        &mut self,
        repo: &SealedRepo,
        tip: &Sha,
    ) -> Result<(), Failure> {
        let Some(ladder) = &self.run.record.ladder else { return Ok(()) };
        let paths: Vec<&[u8]> = ladder.settled.iter().map(|it| it.path.as_bytes()).collect();
        let now = repo.entries_at(tip, &paths).await.or_exit(ForkliftExit::Machine)?;
        let id_now = |path: &TreePath| now.get(path.as_bytes()).map(|entry| entry.id.clone());
        let changed = ladder.settled.iter().filter(|it| id_now(&it.path) != it.id);
        let changed_after: Vec<TreePath> = changed.map(|it| it.path.clone()).collect();
        let known: BTreeSet<String> = ladder
            .settled
            .iter()
            .map(|it| it.path.to_string())
            .chain(ladder.rest.iter().map(ToString::to_string))
            .collect();
        let made = self.run.record.evidence.iter().flat_map(|evidence| &evidence.files_made);
        let by_git = self.made_by_git(repo).await?;
        let outside: Vec<TreePath> = made
            .filter(|path| !known.contains(*path) && !by_git.contains(path.as_bytes()))
            .map(|path| TreePath::new(path.as_bytes()))
            .collect();
        if let Some(ladder) = &mut self.run.record.ladder {
            ladder.changed_after = changed_after;
            ladder.outside = outside;
        }
        Ok(())
    }

    /// The files that are as neither side has them and as git alone makes them: what both sides changed in different
    /// places is nobody's doing.
    async fn made_by_git(&self, repo: &SealedRepo) -> Result<BTreeSet<Vec<u8>>, Failure> {
        let Some(evidence) = &self.run.record.evidence else { return Ok(BTreeSet::new()) };
        let Some(tip) = &evidence.tip else { return Ok(BTreeSet::new()) };
        let pins = &self.run.record.pins;
        let merged = repo.merge_tree(&pins.base, &pins.upstream).await;
        let merged = merged.or_exit(ForkliftExit::Machine)?.tree;
        let paths: Vec<&[u8]> = evidence.files_made.iter().map(String::as_bytes).collect();
        let by_git = repo.entries_at(&merged, &paths).await.or_exit(ForkliftExit::Machine)?;
        let mut made = repo.entries_at(tip, &paths).await.or_exit(ForkliftExit::Machine)?;
        made.retain(|path, entry| by_git.get(path).is_some_and(|other| other.id == entry.id));
        Ok(made.into_keys().collect())
    }
}

/// Learns, starting from what a file keeps, and writes the file anew if there was anything to learn.
pub(crate) async fn learn_kept(
    repo: &SealedRepo,
    ends: PastEnds<'_>,
    file: &Path,
) -> Result<Learned, Failure> {
    // What cannot be read is learned again.
    let kept: Option<Learned> =
        std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let before = kept.as_ref().map(Learned::source);
    let learned = learn(repo, ends, kept).await.or_exit(ForkliftExit::Machine)?;
    if before != Some(learned.source()) {
        save_learned(file, &learned)?;
    }
    Ok(learned)
}

/// Keeps what was learned.
pub(crate) fn save_learned(file: &Path, learned: &Learned) -> Result<(), Failure> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).or_exit(ForkliftExit::Machine)?;
    }
    let text = serde_json::to_vec(learned).or_exit(ForkliftExit::Internal)?;
    host::file::write_atomic(file, &text, 0o600).or_exit(ForkliftExit::Machine)
}

async fn settled(repo: &SealedRepo, climb: &Climb) -> Result<Vec<Settled>, Failure> {
    let open = left(climb);
    let paths: Vec<&TreePath> =
        climb.receipts.iter().map(|it| &it.path).filter(|path| !open.contains(*path)).collect();
    let bytes: Vec<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
    let entries = repo.entries_at(&climb.tree, &bytes).await.or_exit(ForkliftExit::Machine)?;
    let id = |path: &TreePath| entries.get(path.as_bytes()).map(|entry| entry.id.clone());
    Ok(paths.into_iter().map(|path| Settled { path: path.clone(), id: id(path) }).collect())
}

/// Every path that somebody still has to look at.
fn left(climb: &Climb) -> BTreeSet<TreePath> {
    climb.rest.iter().flat_map(|brief| paths_of(brief).map(TreePath::new)).collect()
}

fn paths_of(brief: &Brief) -> impl Iterator<Item = &[u8]> {
    std::iter::once(&brief.path).chain(&brief.also).map(TreePath::as_bytes)
}
