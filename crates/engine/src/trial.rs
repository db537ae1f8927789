//! Trial of a backend: an empty box, started as a run would start it. Its end says whether runs can work on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use egress::{EgressPolicy, EgressProfile};
use guest::config::{GuestReport, PreflightCheck};
use host::file::{FileError, remove_tree_safely};
use host::signal::Cancel;
use model::id::{BoxName, IdError, RunId};
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use sandbox::choice::{self, BackendChoice, BackendFacts, NoBackend};
use sandbox::spec::{BoxLimits, BoxUser, MIB, MountAccess, Root};

use crate::agent_plan::PROXY;
use crate::agent_run::BoxLayout;
use crate::box_command::{BoxCommand, BoxCommandResult};
use crate::install::Installed;
use crate::launch::{LaunchError, Launcher};
use crate::workspace::{give, make_harness_state};

/// Time limit of a trial. A box is ready in a tenth of a second; an engine under load takes longer.
const TRIAL_SECS: u64 = 60;

/// The answer of the proxy to a host that no policy allows.
const REFUSED: &str = " 403 ";

/// A box that ended as it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialReport {
    /// Milliseconds until the box was ready.
    pub ready_ms: u64,
    /// Limits that hold in the box, for display.
    pub limits: String,
    /// The proxy's answer to a request that it must refuse; the error is what was seen instead.
    pub egress: Result<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Id(#[from] IdError),
    /// The end of the box, with the remedy.
    #[error("{0}")]
    Box(String),
}

/// The folders and the launcher of a trial. The folders are removed with it.
#[derive(Debug)]
pub struct BoxTrial {
    folder: PathBuf,
    launcher: Launcher,
    root: Root,
}

impl Drop for BoxTrial {
    fn drop(&mut self) {
        // A folder that stays is small, and a trial has no better place for the error.
        remove_tree_safely(&self.folder).ok();
    }
}

impl BoxTrial {
    /// Makes the folders of a trial on the file system that will have the runs: in the nearest folder that exists, from
    /// `runs` upwards.
    pub fn prepare(launcher: Launcher, root: Root, runs: &Path) -> Result<Self, TrialError> {
        let parent = runs.ancestors().find(|path| path.is_dir()).unwrap_or(runs);
        let number = host::clock::boottime().as_nanos();
        let folder = parent.join(format!(".bottleworks-trial-{}-{number}", std::process::id()));
        fs::create_dir(&folder).map_err(FileError::io("create", &folder))?;
        let trial = Self { folder, launcher, root };
        let (workspace, user) = (trial.workspace(), BoxUser::of_caller());
        fs::create_dir(&workspace).map_err(FileError::io("create", &workspace))?;
        give(&workspace, user)?;
        make_harness_state(&trial.harness_state(), user)?;
        Ok(trial)
    }

    /// Starts an empty box that makes one request through its proxy.
    pub async fn run(&self) -> Result<TrialReport, TrialError> {
        let mut command = BoxCommand::shell(self.layout("trial")?, &request_line());
        command.policy = Some(EgressPolicy::new(EgressProfile::ModelOnly));
        let ran = command.run(&self.launcher, &Cancel::new()).await?;
        let Some(report) = ran.record.report.as_ref().filter(|report| report.ready) else {
            return Err(TrialError::Box(describe(&ran)));
        };
        Ok(TrialReport {
            ready_ms: ran.record.ready_ms.unwrap_or_default(),
            limits: render_limits(report),
            egress: judge_answer(&ran),
        })
    }

    /// Starts an installed agent in a box and returns the version that it prints.
    pub async fn agent_version(
        &self,
        name: &str,
        installed: &Installed,
    ) -> Result<String, TrialError> {
        let argv = installed.launcher.iter().cloned().chain(["--version".to_owned()]).collect();
        let mut command = BoxCommand::new(self.layout(name)?, argv);
        command.programs = vec![installed.mount.clone()];
        let ran = command.run(&self.launcher, &Cancel::new()).await?;
        let text = fs::read_to_string(&ran.stdout).unwrap_or_default();
        match text.lines().map(str::trim).find(|line| !line.is_empty()) {
            Some(line) if ran.passed() => Ok(line.to_owned()),
            _ => Err(TrialError::Box(describe(&ran))),
        }
    }

    fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }

    fn harness_state(&self) -> PathBuf {
        self.folder.join("harness-state")
    }

    fn layout(&self, name: &str) -> Result<BoxLayout, TrialError> {
        let number = host::clock::boottime().as_nanos();
        Ok(BoxLayout {
            run: RunId::parse(&format!("trial-{}-{number}", std::process::id()))?,
            name: BoxName::parse(name)?,
            box_dir: self.folder.join("boxes").join(name),
            root: self.root.clone(),
            workspace: self.workspace(),
            access: MountAccess::ReadWrite,
            harness_state: self.harness_state(),
            user: BoxUser::of_caller(),
            limits: BoxLimits::default(),
            deadline_secs: TRIAL_SECS,
        })
    }
}

/// Tries a backend; `image` is the root of a box on an engine.
pub async fn try_backend(
    kind: BackendKind,
    image: &str,
    runs: &Path,
) -> Result<(BoxTrial, TrialReport), TrialError> {
    let launcher = Launcher::of_this_program(kind, Vec::new())?;
    let trial = BoxTrial::prepare(launcher, kind.root(image, None), runs)?;
    let report = trial.run().await?;
    Ok((trial, report))
}

/// Chooses the backend of a run. Where there are two, the engine must pass a trial before it is preferred. A backend
/// without an alternative is not tried: the run's own box says the same, and a run without an agent needs no box.
pub async fn choose_backend(
    wanted: Option<BackendKind>,
    image: &str,
    runs: &Path,
) -> Result<BackendChoice, NoBackend> {
    let mut found = choice::observe(wanted, image).await;
    if wanted.is_none() && found.has_image && found.bwrap.is_some() {
        found.engine_fault = fault(BackendKind::Docker, image, runs).await;
        if found.engine_fault.is_some() {
            found.bwrap_fault = fault(BackendKind::Bwrap, image, runs).await;
        }
    }
    choice::choose(wanted, &found, image)
}

async fn fault(kind: BackendKind, image: &str, runs: &Path) -> Option<String> {
    try_backend(kind, image, runs).await.err().map(|error| model::error_chain(&error))
}

/// The kinds of backend that are here and complete.
pub fn present_backends(found: &BackendFacts) -> Vec<BackendKind> {
    let engine = found.has_image.then_some(BackendKind::Docker);
    let bwrap = found.bwrap.as_ref().map(|_| BackendKind::Bwrap);
    engine.into_iter().chain(bwrap).collect()
}

/// One request for a host that no policy allows, by the shell that every box has.
fn request_line() -> String {
    format!(
        "exec 3<>/dev/tcp/{}/{} && \
         printf 'CONNECT trial.invalid:443 HTTP/1.1\\r\\nHost: trial.invalid:443\\r\\n\\r\\n' >&3 && \
         IFS= read -r -t 20 -u 3 line && printf '%s\\n' \"$line\"",
        PROXY.ip(),
        PROXY.port()
    )
}

fn judge_answer(ran: &BoxCommandResult) -> Result<String, String> {
    let answer = fs::read_to_string(&ran.stdout).unwrap_or_default();
    let answer = answer.trim();
    match answer.contains(REFUSED) {
        true => Ok(answer.to_owned()),
        false if answer.is_empty() => Err(describe(ran)),
        false => Err(format!("a host that is not allowed was answered with '{answer}'")),
    }
}

fn render_limits(report: &GuestReport) -> String {
    let limits = &report.limits;
    let number = |name: &str, value: Option<u64>| value.map(|value| format!("{value} {name}"));
    let files = limits.fsize.map(|bytes| format!("files of {} MiB", bytes / MIB));
    let control_group = report.preflight.iter().filter(|item| {
        matches!(item.name, PreflightCheck::UnlimitedMemory | PreflightCheck::UnlimitedProcesses)
    });
    let known = [number("processes", limits.nproc), number("open files", limits.nofile), files];
    let seen = control_group.filter(|item| item.detail.contains(" of ")).map(|item| &item.detail);
    known.into_iter().flatten().chain(seen.cloned()).collect::<Vec<_>>().join(", ")
}

/// The end of a box, and the last line that it printed if it got so far.
fn describe(ran: &BoxCommandResult) -> String {
    let summary = ran.summary(String::new());
    match &summary.ended {
        Ended::Infra { reason } => reason.clone(),
        _ => format!("{}: {}", summary.how(), summary.last_line()),
    }
}
