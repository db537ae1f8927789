//! A train on its way: what is done, the next step, and where it stops.

use std::collections::BTreeSet;

use engine::run::Product;
use host::git::{SealedRepo, UserRepo};
use host::signal::Cancel;
use model::exit::ForkliftExit;
use model::id::Sha;
use sandbox::choice::BackendChoice;
use shell::Ui;

use super::ForkliftDirs;
use super::request::RunRequest;
use super::run::{StartRequest, advance_stoppable, create_run};
use crate::commands::run_args::{AcceptArgs, AgentWhen, RunArgs};
use crate::exit::{Failure, OrExit};
use crate::flow::attempt::SyncNotes;
use crate::flow::observe::Observation;
use crate::flow::past::ForkPast;
use crate::flow::record::ForkRunRecord;
use crate::flow::run::ForkRun;
use crate::flow::train::plan::Planner;
use crate::flow::train::steps::done_steps;
use crate::flow::train::store::{TrainRecord, TrainStore, find_done, find_open, runs_of_train};
use crate::rules::judge::Verdict;
use crate::rules::strategy::Strategy;
use crate::rules::target::Target;
use crate::rules::train::brief::{UpstreamCommit, render_commit};
use crate::rules::train::{
    CommitLabel, PlannedStep, PullLayout, StepKind, TRAIN_BRANCHES, TrainPlan, TrainStep,
    published_branch,
};
use crate::rules::words::counted;

/// A train's record, and the number of steps that are done.
pub(super) struct TrainState {
    pub(super) record: TrainRecord,
    pub(super) done: usize,
}

/// Everything that the steps of a train are made with.
pub(super) struct TrainRun<'a> {
    pub(super) ui: &'a Ui,
    pub(super) args: RunArgs,
    pub(super) places: &'a ForkliftDirs,
    pub(super) request: RunRequest,
    pub(super) choice: BackendChoice,
    pub(super) store: TrainStore,
    /// The fork and upstream as they are now.
    pub(super) seen: Observation,
    pub(super) batch: usize,
    pub(super) prove_check: bool,
    /// The user's repository; results of checks are kept under its key.
    pub(super) user: UserRepo,
    pub(super) cancel: Cancel,
    pub(super) notes: &'a SyncNotes,
}

impl TrainRun<'_> {
    /// Finds the train that is on its way, or starts one; `None` if the fork has the target. A plan alone is not kept.
    pub(super) async fn find_state(
        &mut self,
        layout: PullLayout,
        is_plan: bool,
    ) -> Result<Option<TrainState>, Failure> {
        for mut record in self.store.records(&self.seen.fork.branch)? {
            if record.is_over {
                continue;
            }
            let tip = self.store.tip(&record).await?;
            let has_steps = tip != record.base;
            let has_landed = has_steps && self.is_in_fork(&tip).await?;
            if has_landed || self.args.again || (!has_steps && self.is_stale(&record)?) {
                record.is_over = true;
                if !is_plan {
                    self.store.save(&record)?;
                }
                if has_landed {
                    self.ui.note(&format!("the train {} is in the fork", record.name));
                }
                continue;
            }
            self.note_other_target(&record, layout)?;
            return Ok(Some(self.with_done(record).await?));
        }
        if self.seen.up_to_date {
            return Ok(None);
        }
        let record = match self.find_on_origin(layout).await? {
            Some(record) if !self.args.again => record,
            _ => self.store.new_record(&self.seen, self.batch, layout)?,
        };
        if !is_plan {
            self.store.save(&record)?;
            host::failpoint::hit("train-planned");
        }
        Ok(Some(self.with_done(record).await?))
    }

    /// A train without a step, from other commits than those of now, is begun again.
    fn is_stale(&self, record: &TrainRecord) -> Result<bool, Failure> {
        let is_other = record.base != self.seen.pins.base
            || (record.target != self.seen.pins.upstream && self.args.target.is_some());
        let has_runs = runs_of_train(&self.places.runs, &record.name)?.next().is_some();
        Ok(is_other && !has_runs)
    }

    fn note_other_target(&self, record: &TrainRecord, layout: PullLayout) -> Result<(), Failure> {
        if self.args.target.is_some() && record.target != self.seen.pins.upstream {
            let text = format!("a train to {} is on its way", record.target_name);
            return Err(Failure::usage(text).with_remedy(
                "finish it without --target, or give it up and begin another with --again",
            ));
        }
        if layout == PullLayout::Stack && record.layout == PullLayout::Single {
            return Err(Failure::usage("the train that is on its way has one pull request")
                .with_remedy("finish it without --stack, or begin another with --again"));
        }
        if record.target != self.seen.pins.upstream {
            self.ui
                .note("upstream has moved on since the train began; the next train takes the rest");
        }
        if record.base != self.seen.pins.base {
            let branch = &record.fork.branch;
            self.ui.note(&format!(
                "{branch} has moved on since the train began, which keeps its commits"
            ));
        }
        Ok(())
    }

    /// Counts the steps by the train's commits: people make steps as well, and another machine may have made some.
    async fn with_done(&self, record: TrainRecord) -> Result<TrainState, Failure> {
        let tip = self.store.tip(&record).await?;
        let runs = (self.places.runs.as_path(), record.name.as_str());
        let done = done_steps(&self.store.sealed(), (&record.base, &tip), runs).await?.len();
        Ok(TrainState { record, done })
    }

    /// A train from the same commit that another machine began: its branch on origin says what is done.
    async fn find_on_origin(&self, layout: PullLayout) -> Result<Option<TrainRecord>, Failure> {
        if layout == PullLayout::Stack {
            return Ok(None);
        }
        for (branch, tip) in self.seen.origin_branches().await? {
            let Some(name) = branch.as_str().strip_prefix(TRAIN_BRANCHES) else { continue };
            let mut parts = name.split('-');
            let (base, target) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            let is_plain = parts.next().is_none_or(|part| part.parse::<usize>().is_ok());
            if !is_plain || base != self.seen.pins.base.short() || target.len() < 7 {
                continue;
            }
            let Some(target) = self.store.repo.resolve_commit(target).await.or_machine()? else {
                continue;
            };
            let continues = self.store.repo.is_ancestor(&self.seen.pins.base, &tip).await;
            if !continues.or_machine()? || self.is_in_fork(&tip).await? {
                continue;
            }
            self.ui.note(&format!("going on with {branch} on origin"));
            let mut record = self.store.new_record(&self.seen, self.batch, layout)?;
            name.clone_into(&mut record.name);
            if target != record.target {
                record.target_name = format!("commit {}", target.short());
                record.target = target;
            }
            return Ok(Some(record));
        }
        Ok(None)
    }

    async fn is_in_fork(&self, tip: &Sha) -> Result<bool, Failure> {
        self.store.repo.is_ancestor(tip, &self.seen.pins.base).await.or_machine()
    }

    /// Takes over what others pushed to the train's branch: a step that was decided by hand.
    pub(super) async fn meet_origin(&self, state: &TrainState) -> Result<(), Failure> {
        let record = &state.record;
        let tip = self.settle_tip(record).await?;
        let Some((branch, theirs)) = self.newest_on_origin(state).await? else {
            return self.refuse_deleted(record, record.branch()?.as_str());
        };
        if theirs == tip || self.store.repo.is_ancestor(&theirs, &tip).await.or_machine()? {
            return Ok(());
        }
        if !self.store.repo.is_ancestor(&tip, &theirs).await.or_machine()? {
            let text = format!("{branch} on origin does not continue the train's branch");
            return Err(Failure::new(ForkliftExit::NotIntegrated, text)
                .with_remedy("look at what was pushed to it, or begin another with --again"));
        }
        self.ui.note(&format!("taking over {} of {branch} on origin", theirs.short()));
        self.store.move_to(record, &theirs).await
    }

    /// The branch of the train on origin, or of a stack that of its last step, with its commit.
    async fn newest_on_origin(&self, state: &TrainState) -> Result<Option<(String, Sha)>, Failure> {
        let TrainState { record, done } = state;
        let origin = &record.fork.remotes.origin;
        let (branch, mut found) = (record.branch()?, None);
        let first = (*done).max(1);
        let last = if record.layout == PullLayout::Stack { usize::MAX } else { first };
        for number in first..=last {
            let branch = published_branch(&branch, record.layout, number);
            let name = format!("refs/remotes/{origin}/{branch}");
            // The ref of a branch that was deleted on origin stays.
            let is_there = self.seen.heads.origin.branches.keys().any(|it| it.as_str() == branch);
            let known = self.store.repo.resolve_commit(&name).await.or_machine()?;
            match known.filter(|_| is_there) {
                Some(theirs) => found = Some((branch, theirs)),
                // The last step of a stack may not be pushed yet, and one by hand may be beyond it.
                None if number > first => break,
                None => {}
            }
        }
        Ok(found)
    }

    fn refuse_deleted(&self, record: &TrainRecord, branch: &str) -> Result<(), Failure> {
        let was_pushed = runs_of_train(&self.places.runs, &record.name)?.any(|run| {
            let sent = run.meta.publication.as_ref();
            sent.is_some_and(|sent| sent.pushed && sent.branch.as_str() == branch)
        });
        if !was_pushed || record.layout == PullLayout::Stack {
            return Ok(());
        }
        Err(Failure::new(ForkliftExit::NotIntegrated, format!("{branch} was deleted on origin"))
            .with_remedy("begin another train with: forklift train --again"))
    }

    /// Takes the commits of verified runs, and returns the train's commit.
    pub(super) async fn settle(&self, state: &mut TrainState) -> Result<Sha, Failure> {
        let tip = self.settle_tip(&state.record).await?;
        state.done = self.with_done(state.record.clone()).await?.done;
        Ok(tip)
    }

    async fn settle_tip(&self, record: &TrainRecord) -> Result<Sha, Failure> {
        let mut tip = self.store.tip(record).await?;
        while let Some(run) = find_done(&self.places.runs, &record.name, &tip)? {
            tip = self.store.take(record, &run).await?;
        }
        Ok(tip)
    }

    /// The train's commit with what verified runs and origin have, for a plan that changes nothing.
    pub(super) async fn known_tip(&self, state: &TrainState) -> Result<Sha, Failure> {
        let tip = self.store.tip(&state.record).await?;
        match self.newest_on_origin(state).await?.map(|(_, theirs)| theirs) {
            Some(theirs) if self.store.repo.is_ancestor(&tip, &theirs).await.or_machine()? => {
                Ok(theirs)
            }
            Some(_) | None => Ok(tip),
        }
    }

    pub(super) async fn is_complete(&self, state: &TrainState, tip: &Sha) -> Result<bool, Failure> {
        self.store.repo.is_ancestor(&state.record.target, tip).await.or_machine()
    }

    pub(super) async fn plan(&self, state: &TrainState, tip: &Sha) -> Result<TrainPlan, Failure> {
        let scratch = self.scratch().await?;
        let line = self.line(&scratch.sealed, state, tip).await?;
        let before = self.before(&scratch.sealed, &line, tip).await?;
        let (breaks, suspects): (Vec<_>, Vec<_>) =
            state.record.breaks.iter().partition(|found| found.is_certain());
        let [breaks, suspects] = [breaks, suspects].map(|found| -> BTreeSet<Sha> {
            found.into_iter().map(|found| found.commit.sha.clone()).collect()
        });
        let planner = Planner {
            repo: &scratch.sealed,
            line: &line,
            batch: self.batch,
            breaks: &breaks,
            suspects: &suspects,
        };
        planner.plan(self.ui, tip, &before).await
    }

    /// A scratch repository that sees the objects of the user's repository and of the train's, for merges in memory.
    pub(super) async fn scratch(&self) -> Result<ForkPast, Failure> {
        let origin = &self.seen.fork.remotes.origin;
        let past = ForkPast::open(&self.user, origin, &self.places.cache).await?;
        past.sealed.add_alternate(&self.store.repo.objects_dir()).or_machine()?;
        Ok(past)
    }

    /// Upstream's main line that the train lacks, oldest first.
    async fn line(
        &self,
        repo: &SealedRepo,
        state: &TrainState,
        tip: &Sha,
    ) -> Result<Vec<Sha>, Failure> {
        repo.first_parents(&state.record.target, tip).await.or_machine()
    }

    /// Upstream's commit before the first of a line: what the fork has of upstream.
    async fn before(&self, repo: &SealedRepo, line: &[Sha], tip: &Sha) -> Result<Sha, Failure> {
        let base = match line.first() {
            Some(first) => repo.merge_base(first, tip).await.or_machine()?,
            None => None,
        };
        Ok(base.unwrap_or_else(|| tip.clone()))
    }

    /// Makes the first step of a plan. Returns success if the train can go on.
    pub(super) async fn make_step(
        &mut self,
        state: &mut TrainState,
        tip: &Sha,
        plan: &TrainPlan,
    ) -> Result<ForkliftExit, Failure> {
        let Some((step, rest)) = plan.steps.split_first() else { return Ok(ForkliftExit::Success) };
        let train = self.train_step(state, step, rest)?;
        let text = format!(
            "step {} of {}: {} up to {}",
            train.number,
            train.count(),
            counted(step.commits, "commit"),
            step.last.words()
        );
        self.ui.phase("train", &text);
        let commit = match step.kind.may_ask() {
            true => Some(self.commit_text(step).await?),
            false => None,
        };
        let args = self.step_args(step);
        let start = StartRequest {
            args: &args,
            request: &self.request,
            choice: self.choice.clone(),
            seen: self.observation(tip, &step.last),
            earlier: None,
            train: Some(train),
            commit,
            notes: self.notes,
        };
        let made = create_run(self.ui, self.places, start, self.cancel.clone()).await?;
        self.advance(state, made).await
    }

    /// Finishes a run of the train that was killed. `None` if there is none.
    pub(super) async fn finish_open_run(
        &mut self,
        state: &mut TrainState,
    ) -> Result<Option<ForkliftExit>, Failure> {
        let Some(dir) = find_open(&self.places.runs, &state.record.name)? else { return Ok(None) };
        self.ui.phase("attach", &format!("finishing {}, a step of the train", dir.id()));
        let repo = self.store.repo.clone();
        let mut run = ForkRun::open(self.ui, self.places, dir, repo, self.cancel.clone())?;
        run.accept(&AcceptArgs::of(&self.args));
        run.run.record.settings.publish_mode = self.args.publishing.mode();
        let dir = run.run.dir.clone();
        let status = self.advance(state, run).await?;
        let meta = ForkRunRecord::load(&dir).or_machine()?;
        if matches!(meta.verdict, Some(Verdict::Infra { .. })) {
            self.ui.note(&format!("the box of {} was lost: the step is made again", dir.id()));
            return Ok(Some(ForkliftExit::Success));
        }
        Ok(Some(status))
    }

    /// Runs a step to its end, and decides whether the train can go on.
    async fn advance(
        &mut self,
        state: &mut TrainState,
        run: ForkRun<'_>,
    ) -> Result<ForkliftExit, Failure> {
        let (dir, step) = (run.run.dir.clone(), run.run().record.train.clone());
        self.notes.note_run(&dir);
        let outcome = advance_stoppable(run).await;
        if !dir.path().join("metadata.json").exists() {
            // No agent can be started, so nothing is left of the run.
            self.show_by_hand(state, step.as_ref()).await?;
            return outcome;
        }
        let status = outcome?;
        let meta = ForkRunRecord::load(&dir).or_machine()?;
        let kind = step.as_ref().map(|step| step.step.kind);
        if meta.verdict == Some(Verdict::Publish) {
            return Ok(status);
        }
        let has_failed = matches!(meta.verdict, Some(Verdict::CheckFailed { .. }));
        let is_searched = has_failed && kind == Some(StepKind::Batch);
        if is_searched && self.search_break(state, &meta, &dir).await? {
            return Ok(ForkliftExit::Success);
        }
        self.show_by_hand(state, step.as_ref()).await?;
        Ok(if status == ForkliftExit::Success { ForkliftExit::NotIntegrated } else { status })
    }

    fn train_step(
        &self,
        state: &TrainState,
        step: &PlannedStep,
        rest: &[PlannedStep],
    ) -> Result<TrainStep, Failure> {
        Ok(TrainStep {
            train: state.record.name.clone(),
            branch: state.record.branch()?,
            repo: self.store.repo_path(),
            layout: state.record.layout,
            number: state.done + 1,
            step: step.clone(),
            rest: rest.to_vec(),
            target: state.record.target_name.clone(),
        })
    }

    /// Options of the run of a step. A clean batch asks nobody.
    fn step_args(&self, step: &PlannedStep) -> RunArgs {
        let asks = step.kind.may_ask();
        RunArgs {
            again: false,
            target: Some(Target::Named(step.last.sha.to_string())),
            strategy: Some(Strategy::Merge),
            agent_when: if asks { self.args.agent_when } else { AgentWhen::Conflict },
            ..self.args.clone()
        }
    }

    /// The fork as a run of the step sees it: the train's commit instead of the fork's branch.
    fn observation(&self, tip: &Sha, commit: &CommitLabel) -> Observation {
        Observation {
            repo: self.store.repo.clone(),
            heads: self.seen.heads.clone(),
            project: self.seen.project.clone(),
            fork: self.seen.fork.clone(),
            pins: engine::evidence::Pins { base: tip.clone(), upstream: commit.sha.clone() },
            target: Target::Named(commit.sha.to_string()),
            target_name: format!("commit {}", commit.sha.short()),
            fork_file: self.seen.fork_file.clone(),
            up_to_date: false,
            fix: None,
        }
    }

    /// Text about a single commit for the agent.
    async fn commit_text(&self, step: &PlannedStep) -> Result<String, Failure> {
        let scratch = self.scratch().await?;
        let sha = &step.last.sha;
        let facts = scratch.sealed.new_commits(sha, &[], 1).await.or_machine()?;
        let messages = scratch.sealed.new_messages(sha, &[], 1).await.or_machine()?;
        let message = messages.into_iter().next().map(|(_, text)| text).unwrap_or_default();
        let (author, parent) = match facts.into_iter().next() {
            Some(facts) => (facts.author.name, facts.parents.into_iter().next()),
            None => (String::new(), None),
        };
        let files = match parent {
            Some(parent) => scratch.sealed.changed_entries(&parent, sha).await.or_machine()?,
            None => Vec::new(),
        };
        let files: Vec<String> =
            files.iter().map(|file| String::from_utf8_lossy(&file.path).into_owned()).collect();
        let commit =
            UpstreamCommit { sha: sha.as_str(), author: &author, message: &message, files: &files };
        Ok(render_commit(step.kind, &commit))
    }
}
