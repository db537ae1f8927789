//! Access to the machine for all other crates.
//!
//! Everything that touches the world outside the process goes through one of these modules: programs
//! ([`process`]), git ([`git`]), files ([`mod@file`], [`safe_read`]), locks ([`lock`]), the environment
//! ([`mod@env`], [`dirs`]), time ([`clock`]), randomness ([`random`]) and signals ([`signal`]). The lints in
//! `clippy.toml` forbid other ways, so a reader who wants to know what the product can do to a machine reads
//! this one crate.

mod async_fd;
pub mod cgroup;
pub mod chain;
pub mod clock;
pub mod cpu;
pub mod digest;
pub mod dirs;
pub mod env;
pub mod failpoint;
pub mod file;
pub mod git;
pub mod lock;
pub mod mount;
pub mod net;
pub mod proc;
pub mod process;
pub mod random;
pub mod safe_read;
pub mod signal;
pub mod terminal;
#[cfg(feature = "tls")]
pub mod tls;
pub mod tool;
pub mod trace;
pub mod web_proxy;
