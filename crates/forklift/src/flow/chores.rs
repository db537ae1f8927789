//! The fork's own commands: its set-up before the agent, its check on the result. Both were read from the fork's main
//! branch before the agent started, and neither runs anywhere but in a box.

use engine::box_command::BoxCommand;
use engine::workspace::{make_checkout, make_harness_state};
use host::git::SealedRepo;
use model::exit::ForkliftExit;
use model::id::Sha;
use sandbox::spec::BoxUser;
use serde_json::json;

use super::metadata::{ChoreSummary, Phase};
use super::run::Run;
use crate::exit::{Failure, OrExit};
use crate::rules::fork_file::TimedCommand;
use crate::rules::judge::Verdict;

/// Where a result is tried, beside the agent's workspace. Both are removed afterwards.
const CHECK_WORKSPACE: &str = "check-workspace";
const CHECK_STATE: &str = "check-state";

impl Run<'_> {
    /// Runs the fork's set-up in the workspace, before the agent.
    pub(super) async fn set_up(&mut self) -> Result<Phase, Failure> {
        let Some(command) = self.meta.settings.rules.setup.clone() else { return Ok(Phase::SetUp) };
        self.ui.phase("setup", "running the fork's set-up in a box");
        let site = self.site("setup", command.timeout_secs)?;
        let summary = self.run_chore(site, &command).await?;
        let failed = (!summary.passed()).then(|| summary.how());
        self.meta.setup = Some(summary);
        match failed {
            None => Ok(Phase::SetUp),
            Some(how) => {
                self.meta.verdict = Some(Verdict::SetupFailed { how });
                Ok(Phase::Checked)
            }
        }
    }

    /// Runs the fork's check on a result that is otherwise good, in a fresh copy of it where no agent has been.
    pub(super) async fn check(&mut self) -> Result<Phase, Failure> {
        let tip = self.meta.evidence.as_ref().and_then(|evidence| evidence.tip.clone());
        let rule = self.meta.settings.rules.check.clone();
        let (Some(Verdict::Publish), Some(tip), Some(command)) = (&self.meta.verdict, tip, rule)
        else {
            return Ok(Phase::Checked);
        };
        self.ui.phase("check", "running the fork's check on the result in a box");
        self.lay_out_result(&tip).await?;
        let summary = match self.set_up_again().await? {
            Some(failed) => failed,
            None => self.run_chore(self.check_site("check", &command)?, &command).await?,
        };
        if !summary.passed() {
            self.meta.verdict = Some(Verdict::CheckFailed { how: summary.how() });
        }
        self.meta.check = Some(summary);
        self.remove_folders(&[CHECK_WORKSPACE, CHECK_STATE])?;
        Ok(Phase::Checked)
    }

    /// What the set-up made in the agent's workspace may have been tampered with, so the fresh copy gets its own.
    async fn set_up_again(&self) -> Result<Option<ChoreSummary>, Failure> {
        let Some(command) = &self.meta.settings.rules.setup else { return Ok(None) };
        let site = self.check_site("check-setup", command)?;
        let summary = self.run_chore(site, command).await?;
        Ok((!summary.passed()).then_some(summary))
    }

    /// A box of an earlier forklift that was killed may be at work in the folders; then they stay.
    async fn lay_out_result(&self, tip: &Sha) -> Result<(), Failure> {
        if self.dir.path().join("boxes/check").exists()
            || self.dir.path().join("boxes/check-setup").exists()
        {
            return Ok(());
        }
        let (workspace, state) =
            (self.dir.path().join(CHECK_WORKSPACE), self.dir.path().join(CHECK_STATE));
        self.remove_folders(&[CHECK_WORKSPACE, CHECK_STATE])?;
        let repo = SealedRepo::open(&self.dir.repo(), self.repo.object_format());
        let owner = BoxUser::of_caller();
        make_checkout(&repo, &self.meta.fork.branch, tip, &workspace, owner)
            .await
            .or_exit(ForkliftExit::Machine)?;
        make_harness_state(&state, owner).or_exit(ForkliftExit::Machine)
    }

    fn check_site(
        &self,
        name: &str,
        command: &TimedCommand,
    ) -> Result<engine::agent_run::BoxLayout, Failure> {
        let mut site = self.site(name, command.timeout_secs)?;
        site.workspace = self.dir.path().join(CHECK_WORKSPACE);
        site.harness_state = self.dir.path().join(CHECK_STATE);
        Ok(site)
    }

    pub(super) async fn run_chore(
        &self,
        site: engine::agent_run::BoxLayout,
        command: &TimedCommand,
    ) -> Result<ChoreSummary, Failure> {
        let name = site.name.clone();
        let mut chore = BoxCommand::shell(site, &command.line);
        chore.policy = self.plan.egress.as_ref().map(|egress| egress.policy.clone());
        let end = chore.run(&self.launcher()?, &self.cancel).await;
        let end = end.or_exit(ForkliftExit::Machine)?;
        let summary = ChoreSummary {
            command: command.line.clone(),
            ended: end.record.ended.clone(),
            wall_ms: end.record.wall_ms,
            tail: end.tail(),
        };
        self.ui.event("chore", &json!({"name": name.as_str(), "ended": summary.ended}));
        Ok(summary)
    }
}
