//! The interface of a backend. The shim drives a box through [`Backend`] and [`BoxControl`] alone; `bwrap` and
//! `docker` implement them.
//!
//! To add a backend: add a variant to [`BackendKind`], let the compiler list what to answer, and implement these two
//! traits in a module beside `bwrap`.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::error::SandboxError;
use crate::spec::BoxSpec;

pub use crate::kind::{BackendKind, UnknownBackend};

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
