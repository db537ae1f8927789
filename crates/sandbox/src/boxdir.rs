//! The host-owned folder of a box: what the guest finds at `/harness-state/run`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use guest::config::{GuestConfig, Relay as GuestRelay, RlimitSpec, TerminalConfig};

use crate::backend::BackendKind;
use crate::error::SandboxError;
use crate::spec::BoxSpec;

/// The guest, built for this target as a static program.
const GUEST_PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bottle-guest"));

/// Seconds by which the guest's own timer trails the host's deadline: it only matters when the host is gone.
const BACKSTOP_SECS: u64 = 30;

/// The program of ours that every box starts with, for whoever wants to say which one it was.
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

/// Writes the guest and its configuration. Everything is readable by all and writable by this host's user alone;
/// nothing in it is secret.
pub(crate) fn prepare(spec: &BoxSpec, backend: BackendKind) -> Result<(), SandboxError> {
    let dir = spec.guest_dir();
    fs::create_dir_all(&dir).map_err(SandboxError::prepare(&dir))?;
    set_mode(&dir, 0o755)?;
    let program = dir.join(guest::BINARY_FILE);
    fs::write(&program, GUEST_PROGRAM).map_err(SandboxError::prepare(&program))?;
    set_mode(&program, 0o755)?;
    let config = dir.join(guest::CONFIG_FILE);
    let text = serde_json::to_vec_pretty(&guest_config(spec, backend))?;
    fs::write(&config, text).map_err(SandboxError::prepare(&config))?;
    set_mode(&config, 0o644)?;
    // The mount point inside the harness state. It is made here, by us, so that no engine makes it as root.
    let mount_point = spec.harness_state.join("run");
    if !mount_point.exists() {
        fs::create_dir(&mount_point).map_err(SandboxError::prepare(&mount_point))?;
    }
    Ok(())
}

fn set_mode(path: &std::path::Path, mode: u32) -> Result<(), SandboxError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(SandboxError::prepare(path))
}

fn guest_config(spec: &BoxSpec, backend: BackendKind) -> GuestConfig {
    let limits = &spec.limits;
    let mut config =
        GuestConfig::new(spec.argv.clone(), &spec.cwd, spec.deadline_secs + BACKSTOP_SECS);
    config.env = spec.env.clone();
    let nproc = match backend {
        // Counted inside the box's own user namespace.
        BackendKind::Bwrap => Some(limits.pids),
        // Would count every process of that user on the host; the control group does it right.
        BackendKind::Docker => None,
    };
    config.limits = RlimitSpec {
        nproc,
        nofile: Some(limits.open_files),
        fsize: Some(limits.file_bytes),
        ..RlimitSpec::default()
    };
    config.relays = spec
        .relays
        .iter()
        .map(|relay| GuestRelay {
            listen: relay.listen,
            socket: format!("{}/{}", guest::BOX_DIR, relay.socket).into(),
        })
        .collect();
    config.terminal = spec.terminal.map(|size| TerminalConfig {
        socket: format!("{}/{}", guest::BOX_DIR, guest::TERMINAL_SOCKET_FILE).into(),
        size,
    });
    config.probe_addresses = spec.probe_addresses.clone();
    // The guest's own patience is shorter than the host's, so that it can still tidy up.
    config.grace_ms = spec.grace_ms.saturating_sub(spec.grace_ms / 4);
    config
}
