//! TEST in a box: the commit, in a fresh copy that no agent has changed.

use std::time::Duration;

use engine::box_command::BoxCommand;
use model::verdict::Ended;

use super::resolve_agent::test_policy;
use super::runner::TEST_WORKSPACE;
use super::{StageContext, StageResult, StageRunError};
use crate::flow::artifact::{ArtifactCopy, SameTick, append_log, fs_now};
use crate::flow::suite::{OUT_OF_TIME, SuiteExit, SuiteJob};

/// Exit status of a suite whose box used up its memory or disk.
const KILLED: i32 = 137;

impl StageContext<'_> {
    /// Runs a test suite. Suites of one run share a copy, as they would share a checkout.
    pub(crate) async fn run_in_box(&self, job: &SuiteJob<'_>) -> StageResult<SuiteExit> {
        if !self.profile.secrets_test.is_empty() {
            return Err(StageRunError::Config(
                "SECRETS_TEST is for TEST_IN=host: nothing secret goes into a box".to_owned(),
            ));
        }
        let state = self.blank_state("test")?;
        let workspace = self.run_dir.join(TEST_WORKSPACE);
        if !workspace.exists() {
            self.checkout_ready(TEST_WORKSPACE, &state).await?;
        }
        let (name, secs) = (format!("test-{}", job.name), job.timeout.as_secs());
        let layout = self.box_layout(&name, TEST_WORKSPACE, state, secs).await?;
        let mut command = BoxCommand::new(layout, job.argv.clone());
        command.env = [("LC_ALL", "C.UTF-8"), ("CI", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        command.programs = self.linked_mounts();
        command.policy = test_policy(self.profile)?;
        let launcher = self.launcher(Vec::new()).await?;
        // Starting a box takes longer than a tick of the file system's clock, so the checkout is older.
        let started = fs_now(&job.results);
        host::failpoint::hit("wf-test-box");
        let end = command.run(&launcher, self.cancel).await?;
        // Standard error last. The shim has redacted both streams.
        let printed =
            [&end.stdout, &end.stderr].map(|path| std::fs::read(path).unwrap_or_default()).concat();
        append_log(&job.log(), &printed)?;
        self.record(&job.argv, &end.record, &printed);
        let exit_code = self.exit_code(&end.record.ended, job.name)?;
        let artifacts = ArtifactCopy {
            workspace: &workspace,
            from: &job.left,
            to: &job.results,
            started,
            same_tick: SameTick::Skip,
            redactor: self.redactor,
        };
        artifacts.run()?;
        Ok(SuiteExit { exit_code, duration: Duration::from_millis(end.record.wall_ms) })
    }

    fn exit_code(&self, ended: &Ended, suite: &str) -> StageResult<i32> {
        if let Ended::OutOfSpace | Ended::Infra { .. } = ended
            && let Some(error) = self.disk_full()
        {
            return Err(error);
        }
        match ended {
            Ended::Exited { code } => Ok(*code),
            Ended::Signalled { signal } => Ok(128 + signal),
            Ended::OutOfTime => Ok(OUT_OF_TIME),
            Ended::OutOfMemory | Ended::OutOfSpace => Ok(KILLED),
            Ended::Stopped | Ended::Frozen => Err(self.stopped("the box was stopped")),
            Ended::Infra { reason } => {
                let message = format!("the box of the {suite} tests failed: {reason}");
                Err(StageRunError::Failed(message))
            }
        }
    }
}
