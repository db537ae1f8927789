//! Specification of a box, as data. The engine writes a [`BoxSpec`] beside the run, and the shim reads it and passes it
//! to a backend. Nothing here touches the machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use guest::terminal::TerminalSize;
use model::id::{BoxName, RunId};
use serde::{Deserialize, Serialize};

/// Specification of one box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxSpec {
    /// The run that the box belongs to; also a label on container engines, so that orphans can be swept.
    pub run: RunId,
    /// Name within the run (`agent`, `export`, ...).
    pub name: BoxName,
    /// The file system that the box sees as `/`, always read-only.
    pub root: Root,
    /// The copy of the repository, at `/workspace`.
    pub workspace: PathBuf,
    pub workspace_access: MountAccess,
    /// The agent's own files (home, logs, answers), at `/harness-state`.
    pub harness_state: PathBuf,
    /// Host-owned folder of this box. Its part [`BoxSpec::guest_dir`] is what the box sees, read-only, at
    /// `/harness-state/run`; the rest (logs, records, filters) it never sees.
    #[serde(rename = "place")]
    pub box_dir: PathBuf,
    /// Folders with programs that the agent needs and the root lacks, each read-only.
    pub programs: Vec<ProgramMount>,
    /// The command that the guest starts once its checks have passed.
    pub argv: Vec<String>,
    /// The whole environment of the command.
    pub env: BTreeMap<String, String>,
    /// Working directory inside the box.
    pub cwd: String,
    /// Loopback ports in the box that lead to sockets in the guest folder.
    pub relays: Vec<BoxRelay>,
    /// Addresses of this host that must not answer from inside.
    pub probe_addresses: Vec<SocketAddr>,
    /// Host identity of the box.
    pub user: BoxUser,
    pub limits: BoxLimits,
    pub output: BoxOutput,
    /// The terminal of the command, if one is attached at the socket in the guest folder.
    #[serde(default)]
    pub terminal: Option<TerminalSize>,
    /// Seconds of boot time after which the whole box is ended.
    pub deadline_secs: u64,
    /// Seconds without a byte of output or of traffic after which the box is ended; `None` for no such limit.
    #[serde(default)]
    pub silence_secs: Option<u64>,
    /// Milliseconds between the polite signal and the final one.
    pub grace_ms: u64,
}

impl BoxSpec {
    /// Folder that is mounted read-only at `/harness-state/run`: guest program, configuration, sockets.
    pub fn guest_dir(&self) -> PathBuf {
        self.box_dir.join("guest")
    }

    /// The made-up `/etc` of a box without an image.
    pub(crate) fn etc_dir(&self) -> PathBuf {
        self.box_dir.join("etc")
    }

    /// The three folders of every box, then its programs, in the order of mounting.
    pub(crate) fn binds(&self) -> Vec<BindMount> {
        let bind = |source: &Path, inside: &str, access| {
            let (source, inside) = (source.to_path_buf(), inside.to_owned());
            BindMount { source, inside, access }
        };
        let mut binds = vec![
            bind(&self.workspace, guest::WORKSPACE, self.workspace_access),
            bind(&self.harness_state, guest::HARNESS_STATE, MountAccess::ReadWrite),
            bind(&self.guest_dir(), guest::BOX_DIR, MountAccess::ReadOnly),
        ];
        let programs = self.programs.iter();
        binds.extend(programs.map(|it| bind(&it.host, &it.inside, MountAccess::ReadOnly)));
        binds
    }
}

/// A host folder at its path in the box.
#[derive(Debug, Clone)]
pub(crate) struct BindMount {
    pub(crate) source: PathBuf,
    pub(crate) inside: String,
    pub(crate) access: MountAccess,
}

/// Source of the read-only root of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// This host's `/usr` and its relatives with a made-up `/etc`. Bubblewrap only.
    HostUsr,
    /// An unpacked root file system. Bubblewrap only.
    Folder(PathBuf),
    /// An image that a container engine holds.
    Image(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountAccess {
    ReadWrite,
    ReadOnly,
}

/// A host folder bound read-only into the box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramMount {
    pub host: PathBuf,
    /// Absolute path inside the box.
    pub inside: String,
}

/// A TCP address inside the box and the socket in the guest folder that it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxRelay {
    pub listen: SocketAddr,
    /// The file name of the socket in the guest folder.
    pub socket: String,
}

/// The host identity behind the box. Never root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxUser {
    pub uid: u32,
    pub gid: u32,
}

impl BoxUser {
    /// User that images and specifications agree on.
    pub const DEFAULT: Self = Self { uid: 1000, gid: 1000 };

    /// Identity behind the boxes of this process: its own user, or 1000:1000 if that is root.
    pub fn of_caller() -> Self {
        Self::for_caller(host::env::uid(), host::env::gid())
    }

    fn for_caller(uid: u32, gid: u32) -> Self {
        if uid == 0 { Self::DEFAULT } else { Self { uid, gid } }
    }
}

/// Upper bounds of a box. All are enforced from outside or set by the guest before the agent starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxLimits {
    /// Processes and threads.
    pub pids: u64,
    /// Resident memory of the whole box.
    pub memory_bytes: u64,
    /// Hundredths of a processor: 150 is one and a half.
    pub cpu_percent: u32,
    /// Largest single file.
    pub file_bytes: u64,
    /// Growth of workspace and harness state together.
    pub workspace_bytes: u64,
    /// Files, folders and links by which both may grow: empty ones take no bytes, but the host has only so many.
    pub workspace_entries: u64,
    /// Free space that must stay on the host's file system.
    pub free_floor_bytes: u64,
    /// Open files per process.
    pub open_files: u64,
    /// Size of `/tmp`, and of `/dev/shm`.
    pub tmp_bytes: u64,
}

pub const MIB: u64 = 1 << 20;

impl Default for BoxLimits {
    fn default() -> Self {
        Self {
            pids: 512,
            memory_bytes: 4096 * MIB,
            cpu_percent: 200,
            file_bytes: 1024 * MIB,
            workspace_bytes: 8192 * MIB,
            workspace_entries: 2_000_000,
            free_floor_bytes: 512 * MIB,
            open_files: 4096,
            tmp_bytes: 256 * MIB,
        }
    }
}

/// Destination of standard output, with a cap in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoxOutput {
    /// A redacted log; output beyond the cap is counted and dropped, and the box continues.
    Log { cap: u64 },
    /// A file, byte for byte; exceeding the cap ends the box.
    Exact { cap: u64 },
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_spec_is_read_back_and_one_of_the_version_before_too() {
        let spec = spec();
        let mut value = serde_json::to_value(&spec).expect("JSON");
        assert_eq!(serde_json::from_value::<BoxSpec>(value.clone()).expect("a spec"), spec);
        assert_eq!(value["place"], "/runs/r/boxes/agent");
        let fields = value.as_object_mut().expect("an object");
        fields.remove("terminal");
        fields.remove("silence_secs");
        assert_eq!(serde_json::from_value::<BoxSpec>(value).expect("a spec"), spec);
    }

    #[test]
    fn root_never_backs_a_box() {
        assert_eq!(BoxUser::for_caller(0, 0), BoxUser { uid: 1000, gid: 1000 });
        assert_eq!(BoxUser::for_caller(1001, 100), BoxUser { uid: 1001, gid: 100 });
    }

    /// A plain box, for the tests of this crate.
    pub(crate) fn spec() -> BoxSpec {
        BoxSpec {
            run: RunId::parse("fork_20260102_030405").expect("legal"),
            name: BoxName::parse("agent").expect("legal"),
            root: Root::HostUsr,
            workspace: "/runs/r/workspace".into(),
            workspace_access: MountAccess::ReadWrite,
            harness_state: "/runs/r/harness-state".into(),
            box_dir: "/runs/r/boxes/agent".into(),
            programs: vec![],
            argv: vec!["true".to_owned()],
            env: BTreeMap::new(),
            cwd: "/workspace".to_owned(),
            relays: vec![],
            probe_addresses: vec![],
            user: BoxUser::DEFAULT,
            limits: BoxLimits::default(),
            output: BoxOutput::Log { cap: 1 << 20 },
            deadline_secs: 480,
            silence_secs: None,
            terminal: None,
            grace_ms: 5000,
        }
    }
}
