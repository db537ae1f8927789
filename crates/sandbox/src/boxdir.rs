//! The host-owned folder of a box, which the guest finds at `/harness-state/run`.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use guest::config::{
    ControlGroupLimits, GuestConfig, Relay as GuestRelay, RlimitSpec, TerminalConfig,
};
use guest::link::LinkPlace;

use crate::backend::BackendKind;
use crate::error::SandboxError;
use crate::spec::MountAccess::ReadWrite;
use crate::spec::{BoxRelay, BoxSpec};

/// The guest, built for this target as a static program.
const GUEST_PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bottle-guest"));

/// Seconds by which the guest's own timer trails the host's deadline: it only matters when the host is gone.
const BACKSTOP_SECS: u64 = 30;

/// Bytes in POSIX message queues: the kernel's default, which a host may have raised.
const MESSAGE_QUEUE_BYTES: u64 = 819_200;

/// The program that every box starts with, for statements about it.
pub fn guest_program() -> &'static [u8] {
    GUEST_PROGRAM
}

/// The command that every backend starts as the first process of a box.
pub(crate) fn guest_command() -> Vec<String> {
    vec![
        format!("{}/{}", guest::BOX_DIR, guest::BINARY_FILE),
        "init".to_owned(),
        format!("{}/{}", guest::BOX_DIR, guest::CONFIG_FILE),
    ]
}

/// Writes the guest and its configuration, readable by all and writable by this host's user alone. Nothing in it is
/// secret.
pub(crate) fn prepare(spec: &BoxSpec, backend: BackendKind) -> Result<(), SandboxError> {
    let dir = spec.guest_dir();
    fs::create_dir_all(&dir).map_err(SandboxError::prepare(&dir))?;
    set_mode(&dir, 0o755)?;
    write(&dir.join(guest::BINARY_FILE), GUEST_PROGRAM, 0o755)?;
    let config = serde_json::to_vec_pretty(&guest_config(spec, backend))?;
    write(&dir.join(guest::CONFIG_FILE), &config, 0o644)?;
    // The mount point inside the harness state is made here, so that no engine makes it as root.
    let mount_point = spec.harness_state.join("run");
    if !mount_point.exists() {
        fs::create_dir(&mount_point).map_err(SandboxError::prepare(&mount_point))?;
    }
    Ok(())
}

/// Binds a socket in the folder that a box sees. The box's user must be able to connect, and no other box sees the folder.
pub fn bind_socket(folder: &Path, name: &str) -> io::Result<UnixListener> {
    fs::create_dir_all(folder)?;
    // The path of a run may be longer than a socket's address allows, so the folder is named by its descriptor.
    let held = File::open(folder)?;
    let listener = UnixListener::bind(format!("/proc/self/fd/{}/{name}", held.as_raw_fd()))?;
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
    fs::write(path, bytes).map_err(SandboxError::prepare(path))?;
    set_mode(path, mode)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), SandboxError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(SandboxError::prepare(path))
}

fn guest_config(spec: &BoxSpec, backend: BackendKind) -> GuestConfig {
    let limits = &spec.limits;
    let nproc = match backend {
        // Counted inside the box's own user namespace.
        BackendKind::Bwrap => Some(limits.pids),
        // Would count every process of that user on the host; the control group does it right.
        BackendKind::Docker => None,
    };
    let control_group = match backend {
        // The shim limits memory or counts it, and the guest limits processes.
        BackendKind::Bwrap => ControlGroupLimits::default(),
        BackendKind::Docker => {
            ControlGroupLimits { memory_bytes: Some(limits.memory_bytes), pids: Some(limits.pids) }
        }
    };
    let folders = [(guest::WORKSPACE, spec.workspace_access), (guest::HARNESS_STATE, ReadWrite)];
    let writable = folders.iter().filter(|(_, access)| *access == ReadWrite);
    let in_box = |file: &str| PathBuf::from(format!("{}/{file}", guest::BOX_DIR));
    let relay =
        |relay: &BoxRelay| GuestRelay { listen: relay.listen, socket: in_box(&relay.socket) };
    let terminal = |size| TerminalConfig { socket: in_box(guest::TERMINAL_SOCKET_FILE), size };
    GuestConfig {
        env: spec.env.clone(),
        limits: RlimitSpec {
            nproc,
            nofile: Some(limits.open_files),
            fsize: Some(limits.file_bytes),
            msgqueue: Some(MESSAGE_QUEUE_BYTES),
            ..RlimitSpec::default()
        },
        control_group,
        writable: writable.map(|(folder, _)| PathBuf::from(folder)).collect(),
        relays: spec.relays.iter().map(relay).collect(),
        terminal: spec.terminal.map(terminal),
        probe_addresses: spec.probe_addresses.clone(),
        link: Some(match backend {
            BackendKind::Bwrap => LinkPlace::Stdin,
            BackendKind::Docker => LinkPlace::Socket(in_box(guest::LINK_SOCKET_FILE)),
        }),
        // Shorter than the host's own grace, so that the guest can still tidy up.
        grace_ms: spec.grace_ms.saturating_sub(spec.grace_ms / 4),
        ..GuestConfig::new(spec.argv.clone(), &spec.cwd, spec.deadline_secs + BACKSTOP_SECS)
    }
}

#[cfg(test)]
mod tests {
    use guest::terminal::TerminalSize;
    use serde_json::json;

    use super::*;
    use crate::spec::tests::spec;

    fn config(spec: &BoxSpec, backend: BackendKind) -> serde_json::Value {
        serde_json::to_value(guest_config(spec, backend)).expect("JSON")
    }

    #[test]
    fn the_guest_gets_command_environment_and_sockets_as_the_box_sees_them() {
        let mut spec = spec();
        spec.env.insert("HOME".to_owned(), "/harness-state/home".to_owned());
        let listen = "127.0.0.1:3128".parse().expect("an address");
        spec.relays = vec![BoxRelay { listen, socket: "egress.sock".to_owned() }];
        spec.terminal = Some(TerminalSize { rows: 24, cols: 80 });
        let value = config(&spec, BackendKind::Bwrap);
        assert_eq!(value["argv"], json!(["true"]));
        assert_eq!(value["env"], json!({ "HOME": "/harness-state/home" }));
        assert_eq!(value["cwd"], "/workspace");
        assert_eq!(
            value["relays"],
            json!([{ "listen": "127.0.0.1:3128", "socket": "/harness-state/run/egress.sock" }])
        );
        assert_eq!(value["terminal"]["socket"], "/harness-state/run/terminal.sock");
    }

    /// The host ends the box at its deadline. The guest's own timer and grace must neither outrun nor outlast it by much.
    #[test]
    fn the_guests_timer_trails_the_deadline_and_its_grace_is_shorter() {
        let spec = spec();
        let config = guest_config(&spec, BackendKind::Bwrap);
        assert_eq!(config.backstop_secs, spec.deadline_secs + BACKSTOP_SECS);
        assert_eq!((spec.grace_ms, config.grace_ms), (5000, 3750));
    }

    #[test]
    fn processes_are_limited_by_the_guest_only_where_no_control_group_does_it() {
        let limits = |backend| guest_config(&spec(), backend).limits;
        assert_eq!(limits(BackendKind::Bwrap).nproc, Some(512));
        assert_eq!(limits(BackendKind::Docker).nproc, None);
        assert_eq!(limits(BackendKind::Docker).nofile, Some(4096));
        assert_eq!(limits(BackendKind::Docker).fsize, Some(1 << 30));
    }

    #[test]
    fn a_box_on_an_engine_must_find_its_limits_and_every_box_its_folders() {
        use crate::spec::MountAccess;
        let mut spec = spec();
        let on = |spec: &BoxSpec, backend| config(spec, backend);
        let bwrap = on(&spec, BackendKind::Bwrap);
        assert_eq!(bwrap["control_group"], json!({}));
        assert_eq!(bwrap["writable"], json!(["/workspace", "/harness-state"]));
        spec.workspace_access = MountAccess::ReadOnly;
        let engine = on(&spec, BackendKind::Docker);
        assert_eq!(
            engine["control_group"],
            json!({"memory_bytes": 4_294_967_296_u64, "pids": 512})
        );
        assert_eq!(engine["writable"], json!(["/harness-state"]));
    }

    #[test]
    fn the_guest_folder_is_written_readable_by_all_and_twice_over() {
        let root = tempfile::tempdir().expect("a folder");
        let mut spec = spec();
        spec.box_dir = root.path().join("boxes/agent");
        spec.harness_state = root.path().join("state");
        fs::create_dir(&spec.harness_state).expect("made");
        for _ in 0..2 {
            prepare(&spec, BackendKind::Docker).expect("prepared");
        }
        let mode = |name: &str| {
            let meta = fs::metadata(spec.guest_dir().join(name)).expect("written");
            meta.permissions().mode() & 0o777
        };
        assert_eq!(mode(guest::BINARY_FILE), 0o755);
        assert_eq!(mode(guest::CONFIG_FILE), 0o644);
        assert_eq!(mode("."), 0o755);
        assert!(spec.harness_state.join("run").is_dir(), "the mount point");
        let program = fs::read(spec.guest_dir().join(guest::BINARY_FILE)).expect("read");
        assert_eq!(program, guest_program());
    }
}
