//! Pull request of a step: with the steps before it, as their runs recorded them.

use forge::NewPull;
use model::id::BranchName;

use super::store::runs_of_train;
use crate::exit::Failure;
use crate::flow::record::ForkRunRecord;
use crate::flow::run::{ForkRun, shown_path};
use crate::rules::judge::Verdict;
use crate::rules::train::TrainStep;
use crate::rules::train::pull::{TrainPullFacts, render_train_pull};

impl ForkRun<'_> {
    /// Renders the pull request of a train with this step on top.
    pub(crate) fn train_pull(
        &self,
        step: &TrainStep,
        head: &BranchName,
    ) -> Result<NewPull, Failure> {
        let mut done: Vec<ForkRunRecord> = Vec::new();
        // Newest first: of a step that was made again, the last one counts.
        for run in runs_of_train(self.runs(), &step.train)? {
            let number = |record: &ForkRunRecord| record.train.as_ref().map(|train| train.number);
            let is_earlier = number(&run.meta).is_some_and(|number| number < step.number);
            let is_new = done.iter().all(|known| number(known) != number(&run.meta));
            if is_earlier && is_new && run.meta.verdict == Some(Verdict::Publish) {
                done.push(run.meta);
            }
        }
        done.sort_by_key(|record| record.train.as_ref().map(|train| train.number));
        let run_path = shown_path(self.run.dir.path());
        let (record, run_path) = (&self.run.record, run_path.as_str());
        Ok(render_train_pull(&TrainPullFacts { step, record, done: &done, head, run_path }))
    }
}
