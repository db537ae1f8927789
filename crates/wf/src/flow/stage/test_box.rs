//! TEST in a box: the commit, in a fresh copy that no agent has changed.

use std::time::Duration;

use engine::box_command::{BoxCommand, BoxCommandResult};
use model::verdict::Ended;
use sandbox::spec::MountAccess;

use super::resolve_agent::test_policy;
use super::runner::{BoxOptions, StageRunner, TEST_WORKSPACE};
use super::{StageRunError, SuiteExit, SuiteRequest};
use crate::flow::artifact::{ArtifactCopy, SameTick, append_log, fs_now};
use crate::flow::suite::OUT_OF_TIME;

/// Exit status of a suite whose box used up its memory or disk.
const KILLED: i32 = 137;

impl StageRunner {
    /// Runs a test suite. Suites of one run share a copy, as they would share a checkout.
    pub(crate) async fn suite(
        &self,
        request: SuiteRequest<'_>,
    ) -> Result<SuiteExit, StageRunError> {
        let context = request.context;
        if !context.profile.secrets_test.is_empty() {
            return Err(StageRunError::Config(
                "SECRETS_TEST is for TEST_IN=host: nothing secret goes into a box".to_owned(),
            ));
        }
        let workspace = context.run_dir.join(TEST_WORKSPACE);
        if !workspace.exists() {
            self.checkout(context, request.head, TEST_WORKSPACE).await?;
        }
        let name = format!("test-{}", request.name);
        let options = BoxOptions {
            name: &name,
            workspace: workspace.clone(),
            access: MountAccess::ReadWrite,
            state: self.blank_state(context)?,
            deadline_secs: request.timeout.as_secs(),
        };
        let mut command =
            BoxCommand::new(self.box_layout(context, options).await?, request.argv.to_vec());
        command.env = [("LC_ALL", "C.UTF-8"), ("CI", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        command.policy = test_policy(context.profile)?;
        let launcher = self.launcher(context, Vec::new()).await?;
        // Starting a box takes longer than a tick of the file system's clock, so the checkout is older.
        let started = fs_now(request.results);
        host::failpoint::hit("wf-test-box");
        let end = command.run(&launcher, context.cancel).await.map_err(StageRunError::failed)?;
        // Standard error last. The shim has redacted both streams.
        let printed =
            [&end.stdout, &end.stderr].map(|path| std::fs::read(path).unwrap_or_default()).concat();
        append_log(request.log, &printed).map_err(StageRunError::failed)?;
        context.record(request.argv, &end.record, &printed);
        let exit_code = code_of(&end, request)?;
        let artifacts = ArtifactCopy {
            workspace: &workspace,
            from: request.left,
            to: request.results,
            started,
            same_tick: SameTick::Skip,
            redactor: request.redactor,
        };
        artifacts.run().map_err(StageRunError::failed)?;
        Ok(SuiteExit { exit_code, duration: Duration::from_millis(end.record.wall_ms) })
    }
}

fn code_of(end: &BoxCommandResult, request: SuiteRequest<'_>) -> Result<i32, StageRunError> {
    match &end.record.ended {
        Ended::Exited { code } => Ok(*code),
        Ended::Signalled { signal } => Ok(128 + signal),
        Ended::OutOfTime => Ok(OUT_OF_TIME),
        Ended::OutOfMemory | Ended::OutOfSpace => Ok(KILLED),
        Ended::Stopped | Ended::Frozen => {
            let reason = request.context.cancel.reason().map(|reason| reason.to_string());
            Err(StageRunError::Stopped(reason.unwrap_or_else(|| "the box was stopped".to_owned())))
        }
        Ended::Infra { reason } => Err(StageRunError::Failed(format!(
            "the box of the {} tests failed: {reason}",
            request.name
        ))),
    }
}
