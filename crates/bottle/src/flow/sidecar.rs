//! The sidecar of a run, from outside: a process of its own beside the shim. It is started before the box, ends
//! after it, and its death is noticed by the lock that it holds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use guest::{BOX_DIR, FORGE_COMMAND, FORGE_PORT, FORGE_SOCKET_FILE};
use host::file::write_transient;
use host::lock::{FileLock, LockKind};
use host::process::{ProcessHandle, Signal, send_signal, spawn_detached};
use model::command::CommandSpec;
use model::exit::BottleExit;
use run_store::run_dir::RunDir;
use sandbox::spec::{BoxRelay, ProgramMount};
use sidecar::{DoneEvent, load_events};

use super::access::ForgeAccess;
use super::bottle::agent_box;
use crate::exit::{Failure, OrGeneral};
use crate::rules::forge_env::TOKEN_VARIABLE;

/// First argument that starts this program as a sidecar.
pub(crate) const SIDECAR_WORD: &str = "__sidecar";

/// Folder of the `forge` command in the box.
const COMMAND_DIR: &str = "/opt/bottleworks/forge";

/// `PATH` of a box whose plan sets none.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Time limits for becoming ready and for ending.
const READY_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// Variables that the sidecar inherits: to find programs and certificates, and nothing else.
const INHERITED: [&str; 5] = ["PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The sidecar's files in a run directory.
#[derive(Debug, Clone)]
pub(crate) struct SidecarPlace {
    folder: PathBuf,
    /// Held while the sidecar lives.
    pub(super) lock: PathBuf,
    /// Written when it serves: its process.
    pub(super) ready: PathBuf,
    /// Written when it ends in good order.
    pub(super) stopped: PathBuf,
    log: PathBuf,
    command: PathBuf,
    pub(super) queue: PathBuf,
    /// The folder that the box sees, with the socket in it.
    pub(super) guest: PathBuf,
}

impl SidecarPlace {
    pub(crate) fn of(dir: &RunDir) -> Result<Self, Failure> {
        let folder = dir.path().join("sidecar");
        Ok(Self {
            lock: folder.join("lock"),
            ready: folder.join("ready.json"),
            stopped: folder.join("stopped"),
            log: folder.join("sidecar.log"),
            command: folder.join("command"),
            folder,
            queue: dir.path().join("queue"),
            guest: agent_box(dir)?.path().join("guest"),
        })
    }

    /// Adds to a plan what the box needs to reach the sidecar: the relay for HTTP, and the command on its path.
    pub(crate) fn fit(&self, plan: &mut engine::agent_plan::AgentPlan) {
        let listen = ([127, 0, 0, 1], FORGE_PORT).into();
        plan.sidecars.push(BoxRelay { listen, socket: FORGE_SOCKET_FILE.to_owned() });
        plan.programs
            .push(ProgramMount { host: self.command.clone(), inside: COMMAND_DIR.to_owned() });
        let path = plan.env.get("PATH").map_or(SYSTEM_PATH, String::as_str);
        plan.env.insert("PATH".to_owned(), format!("{COMMAND_DIR}:{path}"));
    }

    /// Starts it and waits until it serves. The variables and the token are in its environment and nowhere else.
    pub(crate) async fn start(&self, dir: &RunDir, access: &ForgeAccess) -> Result<(), Failure> {
        self.lay_out()?;
        let lock = FileLock::try_acquire(&self.lock, LockKind::Exclusive { note: "sidecar" });
        let lock = lock.or_general()?;
        let log = fs::File::create(&self.log).or_general()?;
        spawn_detached(&command(dir, access)?, lock.into_file(), log).or_general()?;
        self.wait_ready().await
    }

    /// Waits until it serves: a box that starts before that finds no socket.
    pub(crate) async fn wait_ready(&self) -> Result<(), Failure> {
        let started = host::clock::monotonic();
        while !self.ready.exists() {
            let is_gone = !self.is_alive()?;
            if is_gone || started.elapsed() > READY_LIMIT {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let last = log.lines().last().unwrap_or("it said nothing");
                let message = format!("the forge sidecar does not serve: {last}");
                return Err(Failure::new(BottleExit::General, message));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    fn lay_out(&self) -> Result<(), Failure> {
        for (folder, mode) in [
            (&self.folder, 0o700),
            (&self.queue, 0o700),
            (&self.guest, 0o755),
            (&self.command, 0o755),
        ] {
            host::file::create_dirs(folder).or_general()?;
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).or_general()?;
        }
        let script =
            format!("#!/bin/sh\nexec {BOX_DIR}/{} {FORGE_COMMAND} \"$@\"\n", guest::BINARY_FILE);
        write_transient(&self.command.join(FORGE_COMMAND), script.as_bytes(), 0o755).or_general()
    }

    pub(crate) fn is_alive(&self) -> Result<bool, Failure> {
        match self.lock.exists() {
            true => host::lock::is_held(&self.lock).or_general(),
            false => Ok(false),
        }
    }

    /// True if it ended without a signal to do so.
    pub(crate) fn has_died(&self) -> Result<bool, Failure> {
        Ok(self.ready.exists() && !self.is_alive()? && !self.stopped.exists())
    }

    /// Ends it, and waits until it has finished the calls that are in flight.
    pub(crate) async fn stop(&self) -> Result<(), Failure> {
        if let Ok(bytes) = fs::read(&self.ready)
            && let Ok(process) = serde_json::from_slice::<ProcessHandle>(&bytes)
        {
            send_signal(&process, Signal::TERM).or_general()?;
        }
        if self.is_alive()? {
            let released = host::lock::wait_released(&self.lock);
            let ended = tokio::time::timeout(STOP_LIMIT, released).await;
            let late = |_| Failure::transient("the forge sidecar does not end");
            ended.map_err(late)?.or_general()?;
        }
        Ok(())
    }

    /// The agent's completion signal, if it gave one.
    pub(crate) fn done(&self) -> Result<Option<DoneEvent>, Failure> {
        if !self.queue.exists() {
            return Ok(None);
        }
        let mut events = load_events(&self.queue).or_general()?;
        Ok(events.pop().map(|(_, event)| event))
    }
}

fn command(dir: &RunDir, access: &ForgeAccess) -> Result<CommandSpec, Failure> {
    let program = host::env::current_exe().or_general()?;
    let mut command = CommandSpec::new(program).arg(SIDECAR_WORD).arg(dir.path()).cwd("/");
    for name in INHERITED {
        if let Some(value) = host::env::var(name) {
            command = command.env(name, value);
        }
    }
    for (name, value) in access.env.variables() {
        command = command.env(name, value);
    }
    Ok(command.env(TOKEN_VARIABLE, access.token.expose()))
}
