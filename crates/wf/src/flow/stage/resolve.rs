//! An agent that concludes a merge: its workspace has the merge in progress, resolved as far as the resolver goes.

use agent::Provider;
use engine::workspace::MergeBegun;
use model::id::Sha;

use super::agent::StageJob;
use super::runner::WORKSPACE;
use super::{CollectedWork, StageContext, StageResult};
use crate::disk::run_dir::IMPLEMENT_LOG;
use crate::rules::profile::Profile;

impl StageContext<'_> {
    /// Runs the implementer on a merge that was begun. It starts in a new session: what it remembers of the micro-commits is
    /// not about this merge. Returns its answer and its name.
    pub(crate) async fn resolve(
        &self,
        prompt: &str,
        begun: MergeBegun,
    ) -> StageResult<(String, Provider)> {
        let Profile { implement, implement_timeout, .. } = self.profile;
        let agent = self.runner.resolve_agent(self.profile, implement).await?;
        self.checkout_merge(WORKSPACE, Some(begun)).await?;
        let job = StageJob {
            name: "resolve",
            log: IMPLEMENT_LOG,
            agent: &agent,
            prompt,
            timeout: *implement_timeout,
            file: None,
        };
        Ok((self.run_writer(&job).await?, agent.0))
    }

    /// Collects the concluded merge. `theirs` is the commit that was merged.
    pub(crate) async fn collect_merge(&self, theirs: &Sha) -> StageResult<CollectedWork> {
        self.collect_from("Conclude the merge", &[self.head, theirs]).await
    }
}
