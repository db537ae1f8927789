//! The protocol between the host and the program inside the box.
//!
//! The program is `bottle-guest`: pid 1 of every box, and the player of scripted agents. This library holds only the
//! types of the files and lines that cross the boundary, so that host crates can link it without the program.

pub mod config;
pub mod link;
pub mod script;
pub mod terminal;

/// The init's configuration, in [`BOX_DIR`].
pub const CONFIG_FILE: &str = "config.json";

/// The program, in [`BOX_DIR`].
pub const BINARY_FILE: &str = "bottle-guest";

/// The forge sidecar's socket, in [`BOX_DIR`].
pub const FORGE_SOCKET_FILE: &str = "forge.sock";

/// The socket of the box's attached terminal, in [`BOX_DIR`].
pub const TERMINAL_SOCKET_FILE: &str = "terminal.sock";

/// The socket of the init's link to the host, in [`BOX_DIR`], on a container engine.
pub const LINK_SOCKET_FILE: &str = "link.sock";

/// The loopback port that is relayed to the forge sidecar, for agents that speak MCP over HTTP.
pub const FORGE_PORT: u16 = 3129;

/// The name under which [`BINARY_FILE`] is the `forge` command for shells.
pub const FORGE_COMMAND: &str = "forge";

/// Exit status: the box could not be trusted or the guest itself failed; the command was never started.
pub const EXIT_GUEST_FAILED: i32 = 125;

/// Exit status: the backstop timer ended the box because the host did not; the same number as `timeout(1)`.
pub const EXIT_BACKSTOP: i32 = 124;

/// Exit status: the init was asked to stop. 128 + SIGTERM, whatever the command's own status.
pub const EXIT_STOPPED: i32 = 143;

/// Exit status: the kernel killed a process of the box at the limit of its control group. Engines do not all report that.
pub const EXIT_OUT_OF_MEMORY: i32 = 120;

/// The repository copy the agent works in.
pub const WORKSPACE: &str = "/workspace";

/// State of the agent between runs; its HOME.
pub const HARNESS_STATE: &str = "/harness-state";

/// Read-only in the box: the program, its configuration and the sockets.
pub const BOX_DIR: &str = "/harness-state/run";

/// Returns the path of the forge sidecar's socket in the box.
pub fn forge_socket() -> std::path::PathBuf {
    std::path::Path::new(BOX_DIR).join(FORGE_SOCKET_FILE)
}
