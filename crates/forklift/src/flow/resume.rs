//! Earlier runs that `resume` and `retry` start from: their arguments and their results.

use engine::evidence::Pins;
use engine::run::Product;
use host::git::UserRepo;
use model::exit::ForkliftExit;
use run_store::run_dir::RunDir;

use super::fetched::ForkHeads;
use super::observe::{Observation, project_of};
use super::record::ForkRunRecord;
use super::run::{ForkRun, final_status};
use super::train::repo_of_run;
use crate::commands::run_args::RunArgs;
use crate::exit::{Failure, OrExit};
use crate::rules::fork_file::ForkFile;
use crate::rules::judge::Verdict;
use crate::rules::prompt;

/// File with the arguments of the run. It names files and variables with keys and contains no key.
const ARGS_FILE: &str = "request.json";

pub(crate) fn save_args(args: &RunArgs, dir: &RunDir) -> Result<(), Failure> {
    let bytes = serde_json::to_vec_pretty(args).or_exit(ForkliftExit::Internal)?;
    host::file::write_transient(&dir.path().join(ARGS_FILE), &bytes, 0o600).or_machine()
}

pub(crate) fn load_args(dir: &RunDir) -> Result<RunArgs, Failure> {
    let bytes = std::fs::read(dir.path().join(ARGS_FILE)).map_err(|error| {
        Failure::usage(format!("{} has no record of what was asked: {error}", dir.id()))
    })?;
    serde_json::from_slice(&bytes).or_machine()
}

/// A run that ended without reaching its target.
pub(crate) struct EarlierRun {
    pub(crate) meta: ForkRunRecord,
    verdict: Verdict,
    ended: String,
    answer: Option<String>,
    context: Option<String>,
}

impl EarlierRun {
    pub(crate) fn load(dir: &RunDir, answer: Option<String>) -> Result<Self, Failure> {
        let meta = ForkRunRecord::load(dir).or_machine()?;
        let id = dir.id();
        if !dir.is_closed() {
            return Err(Failure::usage(format!(
                "{id} is not over; follow it with: forklift attach {id}"
            )));
        }
        let verdict = meta.verdict.clone().unwrap_or(Verdict::UpToDate);
        let is_held_back = meta.publication.as_ref().is_some_and(|sent| !sent.is_published());
        if final_status(&meta) == ForkliftExit::PublishFailed || is_held_back {
            return Err(Failure::usage(format!(
                "{id} reached its target and was not published; publish it with: forklift publish {id}"
            )));
        }
        if matches!(
            verdict,
            Verdict::UpToDate
                | Verdict::Publish
                | Verdict::AwaitingReview { .. }
                | Verdict::Withdrawn { .. }
        ) {
            return Err(Failure::usage(format!(
                "{id} reached its target; there is nothing to resume"
            )));
        }
        if !dir.workspace().is_dir() || meta.agent_box.is_none() {
            return Err(Failure::usage(format!(
                "{id} has no workspace to resume; start over with: forklift retry {id}"
            )));
        }
        let context = engine::run::load_plan(dir).map_err(ForkRun::failure)?.context;
        Ok(Self { ended: verdict.message(), verdict, meta, answer, context })
    }

    /// Observation with the commits of the earlier run, because its workspace has no others.
    pub(crate) async fn observe(&self, repo: UserRepo) -> Result<Observation, Failure> {
        let Pins { base, upstream } = self.meta.pins.clone();
        let repo = repo_of_run(&self.meta, repo).await?;
        for commit in [&base, &upstream] {
            if repo.resolve_commit(commit.as_str()).await.or_machine()?.is_none() {
                return Err(Failure::usage(format!(
                    "the commit {commit} of {} is no longer in the repository; start over with: forklift retry {}",
                    self.meta.run, self.meta.run
                )));
            }
        }
        let settings = &self.meta.settings;
        let text = self.context.clone().unwrap_or_default();
        Ok(Observation {
            heads: ForkHeads::default(),
            project: project_of(&self.meta.fork.path),
            fork: self.meta.fork.clone(),
            pins: Pins { base, upstream },
            repo,
            target: settings.target.clone(),
            target_name: settings.target_name.clone(),
            fork_file: Some(ForkFile { rules: settings.rules.clone(), text }),
            up_to_date: false,
            fix: self.meta.fix.clone(),
        })
    }

    pub(crate) fn attempt(&self) -> prompt::EarlierAttempt<'_> {
        prompt::EarlierAttempt {
            ended: &self.ended,
            note: self.meta.stuck.as_deref().filter(|_| self.verdict == Verdict::Stuck),
            answer: self.answer.as_deref(),
        }
    }

    /// Session to resume, if the same agent had one.
    pub(crate) fn session(&self, provider: &str) -> Option<String> {
        let resumable = agent::Provider::parse(provider).is_ok_and(agent::Provider::can_resume);
        let same = self.meta.settings.provider == provider && resumable;
        self.meta.agent_result.as_ref().and_then(|agent| agent.session.clone()).filter(|_| same)
    }
}
