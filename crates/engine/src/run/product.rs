//! What a product adds to a run.

use std::path::PathBuf;

use host::git::{SealedRepo, UserRepo};
use model::id::{BranchName, Sha};
use model::verdict::Ended;

use super::{Phase, ProductRecord, Run, RunError};
use crate::agent_run::AgentExit;
use crate::box_command::BoxCommandSummary;
use crate::evidence::Pins;
use crate::report::Reporter;

/// A product that runs agents. The engine drives the phases of the run; the product gives what differs.
#[expect(async_fn_in_trait, reason = "a run is driven by one thread, so no future has to be Send")]
pub trait Product: Sized {
    /// The product's own part of the record.
    type Record: ProductRecord;
    /// How the command ends.
    type Status;
    /// Why the command fails.
    type Failure;

    /// From this phase on the record waits for the disk. Before it, a power failure can take nothing away but a start.
    const DURABLE_FROM: Phase;

    fn run(&self) -> &Run<Self::Record>;

    /// The run, to be changed.
    fn run_mut(&mut self) -> &mut Run<Self::Record>;

    /// Where progress is reported.
    fn reporter(&self) -> &dyn Reporter;

    /// The failure that an error of the engine means.
    fn failure(error: RunError) -> Self::Failure;

    /// Makes or updates the workspace; may finish the work without an agent. Returns the phase that is reached.
    async fn prepare(&mut self) -> Result<Phase, Self::Failure>;

    /// The repository's own command to run in a box before the agent.
    fn setup_command(&self) -> Option<SetupCommand>;

    /// The verdict on a run whose set-up failed.
    fn setup_failed(&self, setup: &BoxCommandSummary) -> <Self::Record as ProductRecord>::Verdict;

    /// The set-up has passed, or there is none.
    async fn after_setup(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    /// True if a process that was killed logged the intent to launch and handed the log to another writer.
    fn launch_is_logged(&self) -> Result<bool, Self::Failure> {
        Ok(false)
    }

    /// Runs after the intent to launch is logged and before the box is started.
    async fn before_launch(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    /// Waits for the agent's box.
    async fn attend(&mut self) -> Result<AgentExit, Self::Failure> {
        let terminal = self.run_mut().terminal.take();
        self.run().attend(terminal, self.reporter()).await.map_err(Self::failure)
    }

    /// The agent's box has ended, and how is in the record.
    async fn after_box(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    /// Whether a box that ended like this may have left commits worth importing.
    fn has_work(ended: &Ended) -> bool;

    /// The commits that the agent's work is imported beside.
    fn import_source(&self) -> ImportSource<'_>;

    /// Looks further at a commit whose evidence is in the record.
    async fn inspect(&mut self, repo: &SealedRepo, tip: &Sha) -> Result<(), Self::Failure>;

    /// Decides how the run ends.
    async fn judge(&mut self) -> Result<<Self::Record as ProductRecord>::Verdict, Self::Failure>;

    /// Runs the repository's own check on a result that is to be published.
    async fn check(&mut self) -> Result<(), Self::Failure> {
        Ok(())
    }

    /// Publishes a result that holds.
    async fn publish(&mut self) -> Result<(), Self::Failure>;

    /// Decides the status of the command, and does what has to be done before the record is final.
    async fn before_close(&mut self) -> Result<(Self::Status, u8), Self::Failure>;

    /// The record is final: shows the result.
    async fn after_close(&mut self);
}

/// The repository's own command to run before the agent.
#[derive(Debug, Clone)]
pub struct SetupCommand {
    /// The line for the shell.
    pub line: String,
    /// Its time limit.
    pub timeout_secs: u64,
}

/// The commits that an agent's work is imported beside.
#[derive(Debug)]
pub struct ImportSource<'a> {
    /// The person's repository.
    pub repo: &'a UserRepo,
    /// The host's mirror of it.
    pub mirror: PathBuf,
    /// The agent's branch.
    pub branch: BranchName,
    /// The commits that the evidence is gathered against; the first is where the branch stood before.
    pub pins: Pins,
    /// Further commits whose history the host's repository needs.
    pub others: Vec<Sha>,
}
