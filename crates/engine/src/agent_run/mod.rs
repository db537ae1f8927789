//! One agent on one errand: a plan becomes a box, the box is started once, and somebody waits for it and listens.

mod harness;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use agent::{AgentReport, Progress, Provider, Usage};
use host::file::FileError;
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

pub use harness::HARNESS;

/// The agent's log is cut after this much.
const LOG_CAP: u64 = 16 * MIB;

/// Between the polite signal and the final one.
const GRACE_MS: u64 = 5000;

/// How long the last words at a terminal may take once the box has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the box of a run is made of, whoever works in it.
#[derive(Debug, Clone)]
pub struct BoxLayout {
    /// The run that it belongs to.
    pub run: RunId,
    /// Which box of the run it is.
    pub name: BoxName,
    /// Its host-owned folder.
    pub box_dir: PathBuf,
    /// The file system that it sees.
    pub root: Root,
    /// The copy of the repository.
    pub workspace: PathBuf,
    /// Whether the copy may be changed.
    pub access: MountAccess,
    /// The agent's own files.
    pub harness_state: PathBuf,
    /// Who is behind it.
    pub user: BoxUser,
    pub limits: BoxLimits,
    /// Seconds that it has.
    pub deadline_secs: u64,
}

/// An errand that was planned.
#[derive(Debug, Clone)]
pub struct AgentRun<'a> {
    pub layout: BoxLayout,
    pub plan: &'a AgentPlan,
}

/// What the one who waits hears.
#[derive(Debug)]
pub enum AgentEvent {
    /// The agent did something.
    Progress(Progress),
    /// Somebody wants to stop, and the agent is being stopped.
    Stopping(CancelReason),
}

/// How the errand ended.
#[derive(Debug)]
pub struct AgentExit {
    /// What the clock, the watchdogs and the backend say.
    pub record: ExitRecord,
    pub report: AgentReport,
}

/// The errand could not be run.
#[derive(Debug, thiserror::Error)]
pub enum AgentRunError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Hire(#[from] ResolveAgentError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("could not {doing} {path}", path = path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The plan names an agent that this version does not know.
    #[error(transparent)]
    Provider(#[from] agent::UnknownProvider),
}

impl AgentRun<'_> {
    /// The box as data.
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

    /// Starts the box, unless it was started before.
    pub fn start(&self, launcher: &Launcher) -> Result<(), AgentRunError> {
        let box_dir = self.box_dir();
        if launch::box_status(&box_dir)? != BoxStatus::NeverStarted {
            return Ok(());
        }
        harness::write(&self.layout.box_dir, self.plan)?;
        let spec = self.spec();
        match self.plan.egress(&box_dir.egress_log())? {
            Some(egress) => launcher.launch_with_egress(&spec, &egress)?,
            None => launcher.launch(&spec)?,
        };
        Ok(())
    }

    /// Waits for the box and listens to the agent; one that wants to stop gets it stopped, recorded and all. `earlier` is
    /// what a resumed conversation had used before.
    pub async fn attend(
        &self,
        earlier: Usage,
        cancel: &Cancel,
        mut told: impl FnMut(AgentEvent),
    ) -> Result<AgentExit, AgentRunError> {
        if self.plan.terminal.is_some() {
            // Whoever sat there is gone, and what was printed was for their eyes.
            return self.attend_terminal(None, cancel, told).await;
        }
        let box_dir = self.box_dir();
        let provider = Provider::parse(&self.plan.provider)?;
        let mut listener = Listener::resuming(provider, &box_dir.stdout(OUTPUT), earlier);
        let record = {
            let mut waiting = std::pin::pin!(launch::attach(&box_dir));
            tokio::select! {
                ended = &mut waiting => ended,
                () = listener.follow(|progress| told(AgentEvent::Progress(progress))) => waiting.await,
                reason = cancel.cancelled() => {
                    told(AgentEvent::Stopping(reason));
                    launch::end(&box_dir).await
                }
            }?
        };
        let report =
            listener.finish(exit_code(&record), |progress| told(AgentEvent::Progress(progress)));
        Ok(AgentExit { record, report })
    }

    /// Waits for the box while somebody sits at its terminal. When it has ended, what it printed last is still shown.
    pub async fn attend_terminal(
        &self,
        seat: Option<AttachedTerminal>,
        cancel: &Cancel,
        mut told: impl FnMut(AgentEvent),
    ) -> Result<AgentExit, AgentRunError> {
        let box_dir = self.box_dir();
        let mut seated = std::pin::pin!(async {
            match seat {
                Some(seat) => seat.serve().await,
                None => std::future::pending().await,
            }
        });
        let mut waiting = std::pin::pin!(launch::attach(&box_dir));
        let mut sits = true;
        let record = loop {
            tokio::select! {
                ended = &mut waiting => break ended?,
                left = &mut seated, if sits => {
                    sits = false;
                    if let Err(source) = left {
                        launch::end(&box_dir).await?;
                        let path = box_dir.path().to_path_buf();
                        return Err(AgentRunError::Io { doing: "serve the terminal of", path, source });
                    }
                }
                reason = cancel.cancelled() => {
                    told(AgentEvent::Stopping(reason));
                    break launch::end(&box_dir).await?;
                }
            }
        };
        if sits {
            // Late words are no reason to fail: how the box ended is known.
            tokio::time::timeout(LAST_WORDS, &mut seated).await.ok();
        }
        let report = AgentReport::of_status(exit_code(&record));
        Ok(AgentExit { record, report })
    }

    /// The box's folder.
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

/// Agents talk into a log.
const OUTPUT: BoxOutput = BoxOutput::Log { cap: LOG_CAP };

impl BoxLayout {
    /// A box here that has no command yet and no way out.
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
            probe_addresses: probe_addresses(),
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

/// What every process in a box has.
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

/// This host, as the box must not be able to reach it.
fn probe_addresses() -> Vec<SocketAddr> {
    host::net::addresses().into_iter().map(|address| SocketAddr::new(address, 80)).collect()
}
