//! One agent in one box: a plan becomes a box, the box is started once, and its log is followed to the end.

mod harness;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use agent::{AgentReport, Progress, Provider, Usage};
use host::file::{FileError, write_transient};
use host::signal::{Cancel, CancelReason};
use model::id::{BoxName, RunId};
use model::verdict::Ended;
use sandbox::spec::{BoxLimits, BoxOutput, BoxSpec, BoxUser, MIB, MountAccess, Root};

use crate::agent_log::Listener;
use crate::agent_plan::{AgentPlan, PROXY, ResolveAgentError};
use crate::box_dir::BoxDir;
use crate::launch::{self, BoxStatus, LaunchError, Launcher};
use crate::record::ExitRecord;
use crate::terminal::AttachedTerminal;

pub use harness::{HARNESS, copy_program};

/// Output of an agent: a log of at most this size.
const OUTPUT: BoxOutput = BoxOutput::Log { cap: 16 * MIB };

/// Milliseconds between SIGTERM and SIGKILL.
const GRACE_MS: u64 = 5000;

/// Time limit for the last output at a terminal once the box has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// Folders, user and limits of one box of a run.
#[derive(Debug, Clone)]
pub struct BoxLayout {
    pub run: RunId,
    pub name: BoxName,
    /// Its host-owned folder.
    pub box_dir: PathBuf,
    pub root: Root,
    pub workspace: PathBuf,
    pub access: MountAccess,
    pub harness_state: PathBuf,
    pub user: BoxUser,
    pub limits: BoxLimits,
    pub deadline_secs: u64,
}

/// A planned agent and its box.
#[derive(Debug, Clone)]
pub struct AgentRun<'a> {
    pub layout: BoxLayout,
    pub plan: &'a AgentPlan,
}

/// Event while an agent is attended.
#[derive(Debug)]
pub enum AgentEvent {
    Progress(Progress),
    /// The command was cancelled, and the agent is being stopped.
    Stopping(CancelReason),
}

#[derive(Debug)]
pub struct AgentExit {
    /// Facts from the clock, the watchdogs and the backend.
    pub record: ExitRecord,
    pub report: AgentReport,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentRunError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Key(#[from] ResolveAgentError),
    #[error(transparent)]
    File(#[from] FileError),
    /// The plan names an agent that this version does not know.
    #[error(transparent)]
    Provider(#[from] agent::UnknownProvider),
}

impl AgentRun<'_> {
    pub fn spec(&self) -> BoxSpec {
        let plan = self.plan;
        let mut env = base_env();
        if plan.egress.is_some() {
            env.extend(egress::proxy_env(PROXY));
        }
        env.extend(plan.env.clone());
        let mut programs = plan.programs.clone();
        programs.extend(harness::mounts(&self.layout.box_dir, plan));
        BoxSpec {
            argv: vec![HARNESS.to_owned()],
            env,
            programs,
            relays: plan.relays(),
            silence_secs: plan.silence_secs,
            terminal: plan.terminal.as_ref().map(|terminal| terminal.size),
            ..self.layout.spec()
        }
    }

    /// Starts the box unless it was started before.
    pub fn start(&self, launcher: &Launcher) -> Result<(), AgentRunError> {
        let box_dir = self.box_dir();
        if launch::box_status(&box_dir)? != BoxStatus::NeverStarted {
            return Ok(());
        }
        harness::write(&self.layout.box_dir, self.plan)?;
        write_transient(&box_dir.provider(), self.plan.provider.as_bytes(), 0o600)?;
        let egress = self.plan.egress(&box_dir.egress_log())?;
        launcher.launch(&self.spec(), egress.as_ref())?;
        Ok(())
    }

    /// Waits for the box and follows the agent's log. Cancelling stops the box, and its exit is recorded as always.
    /// `earlier` is the usage of a resumed conversation before this run.
    pub async fn attend(
        &self,
        earlier: Usage,
        cancel: &Cancel,
        mut report: impl FnMut(AgentEvent),
    ) -> Result<AgentExit, AgentRunError> {
        if self.plan.terminal.is_some() {
            // The terminal is gone, and its output is not parsed.
            return self.attend_terminal(None, cancel, report).await;
        }
        let box_dir = self.box_dir();
        let provider = Provider::parse(&self.plan.provider)?;
        let mut listener = Listener::resuming(provider, &box_dir.stdout(OUTPUT), earlier);
        let record = tokio::select! {
            ended = launch::attach(&box_dir) => ended,
            never = listener.follow(|progress| report(AgentEvent::Progress(progress))) => match never {},
            reason = cancel.cancelled() => {
                report(AgentEvent::Stopping(reason));
                launch::end(&box_dir).await
            }
        }?;
        let progress = |progress| report(AgentEvent::Progress(progress));
        let report = listener.finish(exit_code(&record), progress);
        Ok(AgentExit { record, report })
    }

    /// Waits for the box while it is attached to the user's terminal. Its last output is still shown after its end.
    pub async fn attend_terminal(
        &self,
        terminal: Option<AttachedTerminal>,
        cancel: &Cancel,
        mut report: impl FnMut(AgentEvent),
    ) -> Result<AgentExit, AgentRunError> {
        let box_dir = self.box_dir();
        let mut serving = std::pin::pin!(async {
            match terminal {
                Some(terminal) => terminal.serve().await,
                None => std::future::pending().await,
            }
        });
        let mut waiting = std::pin::pin!(launch::attach(&box_dir));
        let mut attached = true;
        let record = loop {
            tokio::select! {
                ended = &mut waiting => break ended?,
                served = &mut serving, if attached => {
                    attached = false;
                    if let Err(error) = served {
                        launch::end(&box_dir).await?;
                        return Err(FileError::io("serve the terminal of", box_dir.path())(error).into());
                    }
                }
                reason = cancel.cancelled() => {
                    report(AgentEvent::Stopping(reason));
                    break launch::end(&box_dir).await?;
                }
            }
        };
        if attached {
            // Late output is no reason to fail: the exit of the box is known.
            tokio::time::timeout(LAST_OUTPUT, &mut serving).await.ok();
        }
        let report = AgentReport::of_status(exit_code(&record));
        Ok(AgentExit { record, report })
    }

    pub fn box_dir(&self) -> BoxDir {
        BoxDir::new(&self.layout.box_dir)
    }
}

fn exit_code(record: &ExitRecord) -> Option<i32> {
    match record.ended {
        Ended::Exited { code } => Some(code),
        _ => None,
    }
}

impl BoxLayout {
    /// A box without a command and without egress.
    pub fn spec(&self) -> BoxSpec {
        BoxSpec {
            run: self.run.clone(),
            name: self.name.clone(),
            root: self.root.clone(),
            workspace: self.workspace.clone(),
            workspace_access: self.access,
            harness_state: self.harness_state.clone(),
            box_dir: self.box_dir.clone(),
            programs: Vec::new(),
            argv: Vec::new(),
            env: base_env(),
            cwd: "/workspace".to_owned(),
            relays: Vec::new(),
            // The box must not be able to reach this host.
            probe_addresses: host::net::addresses()
                .into_iter()
                .map(|address| SocketAddr::new(address, 80))
                .collect(),
            user: self.user,
            limits: self.limits.clone(),
            output: OUTPUT,
            deadline_secs: self.deadline_secs,
            silence_secs: None,
            terminal: None,
            grace_ms: GRACE_MS,
        }
    }
}

/// Variables of every process in a box.
fn base_env() -> BTreeMap<String, String> {
    [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/harness-state/home"),
        ("USER", "forklift"),
        ("LOGNAME", "forklift"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
