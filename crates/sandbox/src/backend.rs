//! What every kind of box can do, and which kinds there are. The shim drives a box through [`Backend`] and
//! [`BoxControl`] alone; `bwrap` and `docker` implement them.

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::error::SandboxError;
use crate::spec::BoxSpec;

/// Builds boxes.
pub trait Backend {
    /// The handle of the boxes that it builds.
    type Control: BoxControl;

    /// Builds the box and starts the guest in it. Must be called on a thread that outlives the box: the kernel ties
    /// the box's life to the thread that made it.
    fn start(
        &self,
        spec: &BoxSpec,
    ) -> impl Future<Output = Result<Started<Self::Control>, SandboxError>>;
}

/// A box with its guest running.
pub struct Started<C> {
    /// The handle by which it can be ended.
    pub control: C,
    /// Completes when the box has ended.
    pub exit: Pin<Box<dyn Future<Output = BoxExit>>>,
    /// What it prints.
    pub output: OutputStream,
}

/// The handle of a running box.
pub trait BoxControl {
    /// Asks the guest to end the agent politely.
    fn terminate(&self) -> impl Future<Output = Result<(), SandboxError>>;

    /// Ends the whole box, at once and with certainty.
    fn kill(&self) -> impl Future<Output = Result<(), SandboxError>>;

    /// Resident memory of the box, where the watchdog has to look after it; `None` where the kernel does.
    fn memory_bytes(&self) -> Option<u64>;

    /// How long the processes in the box have computed; `None` where that cannot be seen from here.
    fn cpu_time(&self) -> impl Future<Output = Option<Duration>>;

    /// Removes what the backend keeps of an ended box.
    fn remove(&self) -> impl Future<Output = Result<(), SandboxError>>;
}

/// What came out of a box, in the order in which each stream produced it.
pub type OutputStream = mpsc::Receiver<OutputChunk>;

/// How many chunks may wait for the log before the box itself has to wait.
pub(crate) const OUTPUT_QUEUE: usize = 64;

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputChunk {
    /// From standard output.
    Out(Vec<u8>),
    /// From standard error.
    Err(Vec<u8>),
}

/// How a box ended, as its backend saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoxExit {
    /// The guest ended with this status, which is the agent's unless the guest reported otherwise.
    Exited(i32),
    /// The guest was killed.
    Signalled(i32),
    /// The kernel ended it for want of memory.
    OutOfMemory,
    /// The backend lost sight of it.
    Lost(String),
}

/// The kinds of box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// Bubblewrap: no daemon, an ordinary user suffices.
    Bwrap,
    /// Docker, or podman through the same API.
    Docker,
}

impl BackendKind {
    /// All of them, in the order in which help texts name them.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Bwrap];

    /// The name used in flags and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Docker => "docker",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A backend was asked for by a name that none has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown backend '{0}'; use docker or bwrap (podman is reached as docker)")]
pub struct UnknownBackend(String);

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        match text {
            "bwrap" | "bubblewrap" => Ok(Self::Bwrap),
            "docker" | "podman" => Ok(Self::Docker),
            other => Err(UnknownBackend(other.chars().take(40).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_strangers_are_refused_by_name() {
        for kind in BackendKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        let error = "lxc".parse::<BackendKind>().unwrap_err().to_string();
        assert!(error.contains("'lxc'") && error.contains("bwrap"), "{error}");
    }
}
