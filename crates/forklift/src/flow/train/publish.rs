//! Pull request of a step: with the steps before it, as the train's branch has them.

use forge::NewPull;
use host::git::SealedRepo;
use model::exit::ForkliftExit;
use model::id::BranchName;

use super::steps::done_steps;
use crate::exit::{Failure, OrExit};
use crate::flow::run::{ForkRun, shown_path};
use crate::rules::train::pull::{TrainPullFacts, render_train_pull};
use crate::rules::train::{TrainStep, base_of_name};

impl ForkRun<'_> {
    /// Renders the pull request of a train with this step on top.
    pub(crate) async fn train_pull(
        &self,
        step: &TrainStep,
        head: &BranchName,
    ) -> Result<NewPull, Failure> {
        let record = &self.run.record;
        let unknown = || {
            let text = format!("the commit that the train {} starts from is gone", step.train);
            Failure::new(ForkliftExit::Machine, text)
        };
        let base = self.repo.resolve_commit(base_of_name(&step.train)).await.or_machine()?;
        let base = base.ok_or_else(unknown)?;
        let repo = SealedRepo::open(&step.repo, self.repo.object_format());
        let ends = (&base, &record.pins.base);
        let done = done_steps(&repo, ends, (self.runs(), &step.train)).await?;
        let run_path = shown_path(self.run.dir.path());
        let run_path = run_path.as_str();
        Ok(render_train_pull(&TrainPullFacts { step, record, done: &done, head, run_path }))
    }
}
