//! The fork's own check, run on the result in a box. The command was read from the fork's main branch before the agent
//! started.

use engine::agent_run::BoxLayout;
use engine::box_command::BoxCommandSummary;
use engine::run::Product;
use engine::workspace::{make_checkout, make_harness_state};
use model::exit::ForkliftExit;
use model::id::Sha;
use sandbox::spec::BoxUser;
use serde_json::json;

use super::run::ForkRun;
use crate::exit::{Failure, OrExit};
use crate::rules::fork_file::TimedCommand;
use crate::rules::judge::Verdict;

/// Where a result is tried, beside the agent's workspace. Both are removed afterwards.
const CHECK_WORKSPACE: &str = "check-workspace";
const CHECK_STATE: &str = "check-state";

impl ForkRun<'_> {
    /// Runs the fork's check on a result that is otherwise good, in a fresh copy of it where no agent has been.
    pub(super) async fn run_check(&mut self) -> Result<(), Failure> {
        let tip = self.run.record.tip();
        let rule = self.run.record.settings.rules.check.clone();
        let (Some(Verdict::Publish), Some(tip), Some(command)) =
            (&self.run.record.verdict, tip, rule)
        else {
            return Ok(());
        };
        self.ui.phase("check", "running the fork's check on the result in a box");
        self.lay_out_result(&tip).await?;
        let summary = match self.set_up_again().await? {
            Some(failed) => failed,
            None => self.run_line(self.check_layout("check", &command)?, &command.line).await?,
        };
        if !summary.passed() {
            self.run.record.verdict = Some(Verdict::CheckFailed { how: summary.how() });
        }
        self.run.record.check = Some(summary);
        self.remove_folders(&[CHECK_WORKSPACE, CHECK_STATE])?;
        Ok(())
    }

    /// What the set-up made in the agent's workspace may have been tampered with, so the fresh copy gets its own.
    async fn set_up_again(&self) -> Result<Option<BoxCommandSummary>, Failure> {
        let Some(command) = &self.run.record.settings.rules.setup else { return Ok(None) };
        let layout = self.check_layout("check-setup", command)?;
        let summary = self.run_line(layout, &command.line).await?;
        Ok((!summary.passed()).then_some(summary))
    }

    /// A box of an earlier forklift that was killed may be at work in the folders; then they stay.
    async fn lay_out_result(&self, tip: &Sha) -> Result<(), Failure> {
        if self.run.dir.path().join("boxes/check").exists()
            || self.run.dir.path().join("boxes/check-setup").exists()
        {
            return Ok(());
        }
        let (workspace, state) =
            (self.run.dir.path().join(CHECK_WORKSPACE), self.run.dir.path().join(CHECK_STATE));
        self.remove_folders(&[CHECK_WORKSPACE, CHECK_STATE])?;
        let repo = self.run.import_repo(&self.repo);
        let owner = BoxUser::of_caller();
        make_checkout(&repo, &self.run.record.fork.branch, tip, &workspace, owner)
            .await
            .or_exit(ForkliftExit::Machine)?;
        make_harness_state(&state, owner).or_exit(ForkliftExit::Machine)
    }

    fn check_layout(&self, name: &str, command: &TimedCommand) -> Result<BoxLayout, Failure> {
        let mut layout = self.run.layout(name, command.timeout_secs).map_err(Self::failure)?;
        layout.workspace = self.run.dir.path().join(CHECK_WORKSPACE);
        layout.harness_state = self.run.dir.path().join(CHECK_STATE);
        Ok(layout)
    }

    /// Runs a command of the fork's in a box.
    pub(super) async fn run_line(
        &self,
        layout: BoxLayout,
        line: &str,
    ) -> Result<BoxCommandSummary, Failure> {
        let name = layout.name.clone();
        let summary = self.run.run_line(layout, line).await.map_err(Self::failure)?;
        self.ui.event("box_command", &json!({"name": name.as_str(), "ended": summary.ended}));
        Ok(summary)
    }
}
