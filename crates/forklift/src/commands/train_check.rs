//! The check of a train: the proof that it can fail, and the search for the commit that breaks it; publishing what was kept
//! back; and how a person can decide a step.

use engine::check::check_words;
use host::git::RefName;
use model::exit::ForkliftExit;
use model::id::Sha;
use run_store::run_dir::RunDir;
use serde_json::json;

use super::run::advance_stoppable;
use super::train_run::{TrainRun, TrainState};
use crate::commands::run_args::AcceptArgs;
use crate::exit::{Failure, OrExit};
use crate::flow::earlier::StoredRun;
use crate::flow::observe::fork_key;
use crate::flow::publish_run::{Acceptance, create_publish_run};
use crate::flow::record::ForkRunRecord;
use crate::flow::run::ForkRun;
use crate::flow::train::break_search::{BreakFound, BreakSearch, GREEN_AGAIN, flaky_words};
use crate::flow::train::check_bench::{BenchOptions, CheckBench};
use crate::flow::train::prove::prove_check;
use crate::flow::train::store::{FoundBreak, runs_of_train};
use crate::rules::fork_file::ForkRules;
use crate::rules::judge::Verdict;
use crate::rules::train::{CommitLabel, PullLayout, TrainStep, published_branch};
use crate::rules::words::counted;

impl TrainRun<'_> {
    /// Proves that the check can fail, if that was asked for.
    pub(super) async fn prove(&self, state: &TrainState) -> Result<(), Failure> {
        if !self.prove_check {
            return Ok(());
        }
        let rules = self.rules();
        let bench = self.bench(&rules).await?;
        let scratch = self.scratch().await?;
        let (tip, target) = (self.store.tip(&state.record).await?, &state.record.target);
        let before = scratch.sealed.merge_base(&tip, target).await.or_machine()?;
        let before = before.unwrap_or_else(|| tip.clone());
        let line = rules.check.as_ref().map_or("", |check| check.line.as_str());
        prove_check(self.ui, &bench, &scratch.sealed, &tip, (&before, target), line).await
    }

    fn rules(&self) -> ForkRules {
        self.seen.fork_file.as_ref().map(|file| file.rules.clone()).unwrap_or_default()
    }

    async fn bench(&self, rules: &ForkRules) -> Result<CheckBench<'_>, Failure> {
        let kind = self.choice.kind;
        let options = BenchOptions {
            backend: kind,
            image: kind.uses_image().then(|| self.args.image.clone()),
            policy: self.request.agent.command_policy(&self.args)?,
            branch: self.seen.fork.branch.clone(),
        };
        let cancel = self.cancel.clone();
        CheckBench::open(self.ui, self.places, &fork_key(&self.user), rules, options, cancel).await
    }

    /// Searches a batch, after which the check fails, for the commit that breaks it. Returns whether the train can go on: the
    /// batch then ends before that commit, which is a step of its own.
    pub(super) async fn search_break(
        &self,
        state: &mut TrainState,
        meta: &ForkRunRecord,
        dir: &RunDir,
    ) -> Result<bool, Failure> {
        let rules = self.rules();
        let line = rules.check.as_ref().map(|check| check.line.as_str());
        if meta.check.as_ref().map(|check| check.command.as_str()) != line {
            // The set-up failed, and no commit can be blamed for what never ran.
            return Ok(false);
        }
        let bench = self.bench(&rules).await?;
        let scratch = self.scratch().await?;
        let commits = scratch.sealed.first_parents(&meta.pins.upstream, &meta.pins.base).await;
        let commits = commits.or_machine()?;
        let search = BreakSearch {
            ui: self.ui,
            bench: &bench,
            repo: &scratch.sealed,
            base: &meta.pins.base,
            line: &commits,
        };
        let found = match search.run().await? {
            BreakFound::Commit(report) => {
                report.show(self.ui, commits.len());
                let name = format!("{}-{}", state.record.name, report.found.commit.sha.short());
                let path = self.store.write_report(&name, &report.render())?;
                self.ui.result("report", &path.display().to_string());
                report.found
            }
            BreakFound::OneOf(labels) => {
                let words: Vec<String> = labels.iter().map(CommitLabel::words).collect();
                self.ui.event("break", &json!({"one_of": labels}));
                self.ui.result("breaks", &format!("one of {}", words.join(", ")));
                let Some(commit) = labels.first().cloned() else { return Ok(false) };
                let how = meta.check.as_ref().map_or_else(String::new, check_words);
                let (author, checks) = (String::new(), bench.ran());
                FoundBreak { commit, author, how, checks, one_of: labels }
            }
            BreakFound::GreenAgain { how } => {
                self.ui.event("break", &json!({"commit": null, "again": how}));
                self.ui.result("breaks", GREEN_AGAIN);
                self.ui.note(&format!("the check of {} {how} when it ran again", dir.id()));
                return Ok(false);
            }
            BreakFound::Flaky { what } => {
                self.ui.event("break", &json!({"commit": null, "flaky": what}));
                self.ui.result("breaks", &flaky_words(&what));
                return Ok(false);
            }
            BreakFound::RedBefore { how } => {
                self.ui.event("break", &json!({"commit": null, "before": how}));
                let text = format!("the check {how} before {} as well", dir.id());
                self.ui.result("breaks", &format!("{text}: no commit of upstream is to blame"));
                return Ok(false);
            }
        };
        let mut breaks = state.record.breaks.iter_mut();
        match breaks.find(|it| it.commit.sha == found.commit.sha) {
            Some(known) if known.is_certain() || !found.is_certain() => return Ok(false),
            Some(known) => *known = found,
            None => state.record.breaks.push(found),
        }
        self.store.save(&state.record)?;
        host::failpoint::hit("train-break");
        Ok(true)
    }

    /// Publishes steps that are verified and not published: by an earlier call that kept them back or could not reach origin.
    pub(super) async fn publish_pending(
        &self,
        state: &TrainState,
        tip: &Sha,
    ) -> Result<Option<ForkliftExit>, Failure> {
        let mode = self.args.publishing.mode();
        if !mode.pushes() {
            return Ok(None);
        }
        for run in self.unpublished(state, tip).await? {
            self.ui
                .phase("publish", &format!("publishing the verified commit of {}", run.dir.id()));
            let repo = &self.store.repo;
            let accept = AcceptArgs::default();
            let accept = Acceptance::Also(&accept);
            let dir = create_publish_run(self.places, &run, repo, accept, mode).await?;
            let cancel = self.cancel.clone();
            let made = ForkRun::open(self.ui, self.places, dir, repo.clone(), cancel)?;
            let status = advance_stoppable(made).await?;
            if status != ForkliftExit::Success {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// Verified runs whose commit is on the train's branch and not on origin: of one pull request the last, else all.
    async fn unpublished(&self, state: &TrainState, tip: &Sha) -> Result<Vec<StoredRun>, Failure> {
        let mode = self.args.publishing.mode();
        let mut newest: Vec<StoredRun> = Vec::new();
        for run in runs_of_train(&self.places.runs, &state.record.name)? {
            let Some(commit) = run.meta.tip().filter(|_| run.dir.is_closed()) else { continue };
            let is_known = newest.iter().any(|it| it.meta.tip().as_ref() == Some(&commit));
            let is_verified = run.meta.verdict == Some(Verdict::Publish);
            if is_known || !is_verified || !run.dir.repo().is_dir() {
                continue;
            }
            let counts = match state.record.layout {
                PullLayout::Single => commit == *tip,
                PullLayout::Stack => {
                    commit == *tip
                        || self.store.repo.is_ancestor(&commit, tip).await.or_machine()?
                }
            };
            if counts {
                newest.push(run);
            }
        }
        newest.reverse();
        newest.retain(|run| match &run.meta.publication {
            None => true,
            Some(sent) => {
                let is_held = run.meta.settings.publish_mode > mode;
                !sent.pushed || sent.problem.is_some() || is_held
            }
        });
        Ok(newest)
    }

    /// Tells a person how to decide a step without an agent.
    pub(super) async fn show_by_hand(
        &self,
        state: &TrainState,
        step: Option<&TrainStep>,
    ) -> Result<(), Failure> {
        let Some(step) = step.filter(|step| step.step.kind.may_ask()) else { return Ok(()) };
        let record = &state.record;
        let (origin, upstream) = (&record.fork.remotes.origin, &record.fork.remotes.upstream);
        let tip = self.store.tip(record).await?;
        let ours = record.branch()?;
        let before = published_branch(&ours, record.layout, state.done);
        let name = format!("refs/remotes/{origin}/{before}");
        let known = self.store.repo.resolve_commit(&name).await.or_machine()?;
        let is_pushed = runs_of_train(&self.places.runs, &record.name)?
            .filter_map(|run| run.meta.publication)
            .any(|sent| sent.pushed && sent.commit == tip && sent.branch.as_str() == before);
        let start = if tip == record.base {
            format!("git switch --detach {}", tip.short())
        } else if is_pushed || known.as_ref() == Some(&tip) {
            format!("git fetch {origin} && git switch --detach {origin}/{before}")
        } else {
            let (path, name) = (self.store.repo_path(), RefName::of_branch(&ours));
            format!("git fetch {} {name} && git switch --detach FETCH_HEAD", path.display())
        };
        let (commit, branch) = (step.step.last.sha.short(), step.published_branch());
        let command = format!(
            "git fetch {upstream}; {start}; git merge {commit}; git push {origin} HEAD:refs/heads/{branch}; forklift train"
        );
        self.ui.event("by_hand", &json!({"command": command, "commit": step.step.last.sha}));
        self.ui.result("by hand", &command);
        Ok(())
    }

    /// Shows how far the train is.
    pub(super) async fn show_end(&self, state: &TrainState) -> Result<(), Failure> {
        let record = &state.record;
        let tip = self.store.tip(record).await?;
        let is_complete = self.is_complete(state, &tip).await?;
        let sent = runs_of_train(&self.places.runs, &record.name)?
            .filter_map(|run| run.meta.publication)
            .find(|sent| sent.commit == tip);
        let pull = sent.as_ref().and_then(|sent| sent.pull.as_ref());
        let branch = record.branch()?;
        self.ui.event(
            "train",
            &json!({
                "name": record.name, "branch": branch, "commit": tip, "target": record.target,
                "steps_done": state.done, "is_complete": is_complete, "breaks": record.breaks, "pull": pull,
                "is_pushed": sent.as_ref().is_some_and(|sent| sent.pushed),
            }),
        );
        let how = if is_complete { "complete" } else { "on its way" };
        let steps = counted(state.done, "step");
        self.ui.result("train", &format!("{how}: {steps}, {branch} at {}", tip.short()));
        for found in &record.breaks {
            self.ui.item(&format!("{} broke the check", found.words()));
        }
        if let Some(pull) = pull {
            self.ui.result("pull", &format!("#{} {}", pull.number, pull.url));
        }
        Ok(())
    }
}
