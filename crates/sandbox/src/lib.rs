//! Boxes: a [`BoxSpec`](spec::BoxSpec) in, a running sealed box out.
//!
//! Two backends behind one trait: bubblewrap, which needs no daemon, and container engines (Docker, podman). Both
//! run the same static guest as first process, give the box no network interface and mount the same three folders.
//! Deadlines, logs and records belong to the engine.
//!
//! Differences between backends are in [`backend::BackendKind`] (`kind.rs`); `backend.rs` says how to add one.
//! Default limits of a box are in [`spec::BoxLimits`].

pub mod backend;
mod boxdir;
pub mod bwrap;
pub mod choice;
pub mod docker;
pub mod error;
mod kind;
pub mod remedy;
pub mod seccomp;
pub mod spec;

pub use boxdir::{bind_socket, guest_program};

/// The lock in a box's folder, which its shim holds as long as it supervises the box.
pub const LOCK_FILE: &str = "lock";
