//! The part of a run that differs between products.

use std::path::PathBuf;

use host::git::{SealedRepo, UserRepo};
use model::id::{BranchName, Sha};
use model::verdict::Ended;

use super::{Phase, ProductRecord, Run, RunError};
use crate::agent_run::AgentExit;
use crate::attribution::Attribution;
use crate::box_command::BoxCommandSummary;
use crate::evidence::Pins;
use crate::report::Reporter;

/// A product that runs agents. The engine drives the phases of the run; the product implements what differs.
#[expect(async_fn_in_trait, reason = "a run is driven by one thread, so no future has to be Send")]
pub trait Product: Sized {
    type Record: ProductRecord;
    type Status;
    type Failure;

    /// From this phase on the record waits for the disk. Before it, a power failure can take nothing away but a start.
    const DURABLE_FROM: Phase;

    fn run(&self) -> &Run<Self::Record>;

    fn run_mut(&mut self) -> &mut Run<Self::Record>;

    fn reporter(&self) -> &dyn Reporter;

    fn failure(error: RunError) -> Self::Failure;

    /// Makes or updates the workspace; may finish the work without an agent. Returns the phase that is reached.
    async fn prepare(&mut self) -> Result<Phase, Self::Failure>;

    fn setup_command(&self) -> Option<SetupCommand>;

    fn setup_failed(&self, setup: &BoxCommandSummary) -> <Self::Record as ProductRecord>::Verdict;

    /// Called when the set-up has passed, or there is none.
    async fn after_setup(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    /// True if a process that was killed logged the intent to launch and handed the log to another writer.
    fn launch_is_logged(&self) -> Result<bool, Self::Failure> {
        Ok(false)
    }

    /// Called after the intent to launch is logged and before the box is started.
    async fn before_launch(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    async fn attend(&mut self) -> Result<AgentExit, Self::Failure> {
        let terminal = self.run_mut().terminal.take();
        self.run().attend(terminal, self.reporter()).await.map_err(Self::failure)
    }

    /// Called when the exit of the agent's box is in the record.
    async fn after_box(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    /// Returns whether a box with this exit may have left commits to import.
    fn has_work(ended: &Ended) -> bool;

    fn import_source(&self) -> ImportSource<'_>;

    /// The user under whose name the agent's commits are published; `None` if they keep the box's own identity.
    fn attribution(&self) -> Option<&Attribution> {
        None
    }

    /// Inspects a commit whose evidence is in the record.
    async fn inspect(&mut self, repo: &SealedRepo, tip: &Sha) -> Result<(), Self::Failure>;

    async fn judge(&mut self) -> Result<<Self::Record as ProductRecord>::Verdict, Self::Failure>;

    /// Runs the repository's own check on a result that is to be published.
    async fn check(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    /// Publishes the result if the verdict allows it.
    async fn publish(&mut self) -> Result<(), Self::Failure>;

    /// Decides the exit status, before the record is final.
    async fn before_close(&mut self) -> Result<(Self::Status, u8), Self::Failure>;

    /// Shows the result, when the record is final.
    async fn after_close(&mut self);
}

/// The repository's own command to run before the agent.
#[derive(Debug, Clone)]
pub struct SetupCommand {
    pub line: String,
    pub timeout_secs: u64,
}

/// Source of the host's repository into which the agent's commits are imported.
#[derive(Debug)]
pub struct ImportSource<'a> {
    pub repo: &'a UserRepo,
    pub mirror: PathBuf,
    /// The agent's branch.
    pub branch: BranchName,
    pub pins: Pins,
    /// Further commits whose history the host's repository needs.
    pub others: Vec<Sha>,
}
