//! The fork's own check, run on the result in a box. The command was read from the fork's main branch before the agent
//! started.

use engine::agent_run::BoxLayout;
use engine::box_command::BoxCommandSummary;
use engine::run::Product;
use serde_json::json;

use super::run::ForkRun;
use super::scratch::Scratch;
use crate::exit::Failure;
use crate::rules::judge::Verdict;

impl ForkRun<'_> {
    /// Runs the fork's check on a result that is otherwise good, in a fresh copy of it where no agent has been.
    pub(super) async fn run_check(&mut self) -> Result<(), Failure> {
        let tip = self.run.record.tip();
        let rules = &self.run.record.settings.rules;
        let (Some(Verdict::Publish), Some(tip), Some(command)) =
            (&self.run.record.verdict, tip, &rules.check)
        else {
            return Ok(());
        };
        self.ui.phase("check", "running the fork's check on the result in a box");
        let scratch = Scratch { run: self, prefix: "check" };
        // A box of an earlier forklift that was killed may work in the folders; then they stay.
        if !["check", "check-setup"]
            .iter()
            .any(|name| self.run.dir.path().join("boxes").join(name).exists())
        {
            scratch.check_out(&self.run.import_repo(&self.repo), &tip).await?;
        }
        // The agent may have changed what the set-up made in its workspace, so the fresh copy gets its own.
        let setup = match &rules.setup {
            Some(setup) => {
                let layout = scratch.layout("check-setup", setup.timeout_secs)?;
                Some(self.run_line(layout, &setup.line).await?)
            }
            None => None,
        };
        let summary = match setup.filter(|setup| !setup.passed()) {
            Some(failed) => failed,
            None => {
                let layout = scratch.layout("check", command.timeout_secs)?;
                self.run_line(layout, &command.line).await?
            }
        };
        scratch.remove()?;
        if !summary.passed() {
            self.run.record.verdict = Some(Verdict::CheckFailed { how: summary.how() });
        }
        self.run.record.check = Some(summary);
        Ok(())
    }

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
