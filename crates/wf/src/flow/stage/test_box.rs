//! TEST in a box: the commit as it is, in a copy where no agent has been.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use engine::box_command::{BoxCommand, BoxCommandResult};
use host::safe_read::read_beneath;
use model::redact::Redactor;
use model::verdict::Ended;
use sandbox::spec::MountAccess;

use super::resolve_agent::test_policy;
use super::runner::{BoxOptions, StageRunner, TEST_WORKSPACE};
use super::{StageRunError, SuiteExit, SuiteRequest};
use crate::disk::{DiskError, make_dir, names_in};
use crate::flow::suite::fs_now;

const OUT_OF_TIME: i32 = 124;
const KILLED: i32 = 137;
/// The most files of one suite that are kept, and of each so much.
const MAX_FILES: usize = 500;
const FILE_CAP: usize = 16 << 20;

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
        let mut chore =
            BoxCommand::new(self.box_layout(context, options).await?, request.argv.to_vec());
        chore.env = [("LC_ALL", "C.UTF-8"), ("CI", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        chore.policy = test_policy(context.profile)?;
        let launcher = self.launcher(context, Vec::new()).await?;
        // The box takes longer to start than any clock of a file system ticks: what was laid out is older.
        let started = fs_now(request.results);
        host::failpoint::hit("wf-test-box");
        let end = chore.run(&launcher, context.cancel).await.map_err(StageRunError::failed)?;
        let printed = keep_output(&end, request.log).map_err(StageRunError::failed)?;
        context.record(request.argv, &end.record, &printed);
        let exit_code = code_of(&end, request)?;
        copy_out(&workspace, request, started).map_err(StageRunError::failed)?;
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

/// Both streams, standard error last. The shim has struck secrets out of them.
fn keep_output(end: &BoxCommandResult, log: &Path) -> Result<Vec<u8>, DiskError> {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log)
        .map_err(DiskError::io("write", log))?;
    let printed =
        [&end.stdout, &end.stderr].map(|path| fs::read(path).unwrap_or_default()).concat();
    file.write_all(&printed).map_err(DiskError::io("write", log))?;
    Ok(printed)
}

/// Copies what the suite left and nothing older, with secrets struck out. The workspace is data of somebody who may have wanted to fool us:
/// links are neither followed nor copied, and nobody is at work in it any more.
fn copy_out(
    workspace: &Path,
    request: SuiteRequest<'_>,
    started: Option<SystemTime>,
) -> Result<(), DiskError> {
    if !is_plain_folder(workspace, request.left) {
        return Ok(());
    }
    let mut waiting = vec![(request.left.to_owned(), request.results.to_path_buf())];
    let mut count = 0;
    while let Some((folder, target)) = waiting.pop() {
        for name in names_in(&workspace.join(&folder))? {
            let relative = format!("{folder}/{name}");
            let path = workspace.join(&relative);
            let facts = path.symlink_metadata().map_err(DiskError::io("look at", &path))?;
            let is_fresh =
                facts.modified().ok().zip(started).is_none_or(|(then, start)| then > start);
            if facts.is_dir() {
                waiting.push((relative, target.join(&name)));
            } else if facts.is_file() && is_fresh && count < MAX_FILES {
                copy_one(workspace, &relative, &target.join(&name), request.redactor)?;
                count += 1;
            }
        }
    }
    Ok(())
}

/// Whether every part of the way is a folder and none is a link.
fn is_plain_folder(workspace: &Path, left: &str) -> bool {
    let mut path = PathBuf::from(workspace);
    left.split('/').all(|part| {
        path.push(part);
        path.symlink_metadata().is_ok_and(|facts| facts.is_dir())
    })
}

/// A file that is too long or cannot be read is no evidence.
fn copy_one(workspace: &Path, from: &str, to: &Path, redactor: &Redactor) -> Result<(), DiskError> {
    let Ok(Some(file)) = read_beneath(workspace, from, FILE_CAP) else { return Ok(()) };
    if file.truncated {
        return Ok(());
    }
    make_dir(to.parent().unwrap_or(to))?;
    fs::write(to, redactor.redact_bytes(&file.bytes)).map_err(DiskError::io("write", to))
}
