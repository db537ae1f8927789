//! Set-up of a worktree for tests on the host: once for each content of the lock files.

use std::fs;

use host::process::{Leftovers, RunLimits, run};
use model::command::{CommandExit, CommandRecord};
use model::id::WorkstreamId;
use serde::{Deserialize, Serialize};

use super::include::find_beneath;
use super::stage::{StageContext, StageResult, StageRunError};
use super::suite::host_command;
use crate::disk::StateFile;
use crate::rules::workspace_setup::digest_setup;

const LOG_CAP: usize = 4 << 20;
/// Lines of a failed set-up's output that are shown.
const TAIL_LINES: usize = 20;

/// The set-up that a worktree has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorktreeSetup {
    pub(crate) digest: String,
}

impl StateFile for WorktreeSetup {
    const SUFFIX: &'static str = "setup.json";
}

impl StageContext<'_> {
    /// Runs `SETUP_CMD` in the worktree, unless it ran there before with the same lock files and left its folders.
    pub(crate) async fn set_up_on_host(&self) -> StageResult<()> {
        let (setup, meta) = (&self.profile.setup, &self.workstream.meta);
        if setup.command.is_empty() {
            return Ok(());
        }
        let read = |path: String| {
            let content = fs::read(meta.worktree.join(&path)).ok();
            (path, content)
        };
        let inputs: Vec<_> = setup.inputs().into_iter().map(read).collect();
        let digest = digest_setup(setup, "host", &inputs);
        let inside = setup.keep.iter().filter(|path| !path.starts_with('~'));
        let is_there = inside
            .filter_map(|path| find_beneath(&meta.worktree, path))
            .all(|path| path.symlink_metadata().is_ok());
        let before = WorktreeSetup::load(&self.runner.dirs, &meta.id)?;
        if is_there && before.is_some_and(|before| before.digest == digest) {
            return Ok(());
        }
        self.run_setup_on_host(&meta.id).await?;
        Ok(WorktreeSetup { digest }.save(&self.runner.dirs, &meta.id)?)
    }

    async fn run_setup_on_host(&self, id: &WorkstreamId) -> StageResult<()> {
        let (setup, worktree) = (&self.profile.setup, &self.workstream.meta.worktree);
        let line = setup.command.join(" ");
        self.runner.ui.status(&format!("Setting up {id}: {line}"));
        let spec = host_command(*self, &setup.command)?;
        let limits = RunLimits {
            timeout: Some(setup.timeout),
            stdout_cap: LOG_CAP,
            stderr_cap: LOG_CAP,
            leftovers: Leftovers::Kill,
            ..RunLimits::default()
        };
        let started_at = host::clock::now();
        let output = run(&spec, &limits, self.cancel).await?;
        let text = self.redactor.redact_bytes(&[output.stdout.as_slice(), &output.stderr].concat());
        host::file::write_atomic(&self.run_dir.join("setup.log"), &text, 0o600)?;
        (self.log)(CommandRecord {
            started_at,
            cwd: worktree.clone(),
            command: line.clone(),
            exit: output.exit,
            duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
            stdout: output.stdout,
            stderr: output.stderr,
            dropped_bytes: 0,
        });
        if let Some(reason) = output.cancelled {
            return Err(StageRunError::Stopped(reason.to_string()));
        }
        let how = match output.exit {
            CommandExit::Exited(0) => return Ok(()),
            CommandExit::Exited(code) => format!("ended with status {code}"),
            CommandExit::TimedOut => format!("was out of time after {} s", setup.timeout.as_secs()),
            CommandExit::Signalled(signal) => format!("was ended by signal {signal}"),
            CommandExit::NotStarted => "could not be started".to_owned(),
        };
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        Err(StageRunError::Failed(format!("the set-up {how}: {line}: {tail}")))
    }
}
