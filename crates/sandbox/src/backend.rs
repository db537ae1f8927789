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

pub trait Backend {
    type Control: BoxControl;

    /// Builds the box and starts the guest in it. Must be called on a thread that outlives the box: the kernel ties
    /// the box's life to the thread that made it.
    fn start(
        &self,
        spec: &BoxSpec,
    ) -> impl Future<Output = Result<Started<Self::Control>, SandboxError>>;
}

pub struct Started<C> {
    pub control: C,
    /// Completes when the box has ended.
    pub exit: Pin<Box<dyn Future<Output = BoxExit>>>,
    pub output: OutputStream,
}

pub trait BoxControl {
    /// Asks the guest to end the agent politely.
    fn terminate(&self) -> impl Future<Output = Result<(), SandboxError>>;

    /// Ends the whole box, at once and with certainty.
    fn kill(&self) -> impl Future<Output = Result<(), SandboxError>>;

    /// Memory of the box; `None` where the engine limits it and says so at the end.
    fn memory(&self) -> impl Future<Output = Option<MemoryUse>>;

    /// First process of the box, by its id on this host; `None` where it cannot be observed.
    fn init_pid(&self) -> impl Future<Output = Option<i32>>;

    /// Processor time of all processes in the box; `None` where it cannot be observed.
    fn cpu_time(&self) -> impl Future<Output = Option<Duration>>;

    /// Removes the backend's own remains of an ended box.
    fn remove(&self) -> impl Future<Output = Result<(), SandboxError>>;
}

/// Memory of a box at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryUse {
    Bytes(u64),
    /// Over the limit: the kernel has killed a process for it, or a process keeps what it holds from being counted.
    Exceeded,
}

/// Output of a box, each stream in its own order.
pub type OutputStream = mpsc::Receiver<OutputChunk>;

/// Chunks that may wait for the log before the box itself has to wait.
pub(crate) const OUTPUT_QUEUE: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputChunk {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// Exit of a box, as its backend observed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoxExit {
    /// The guest ended with this status, which is the agent's unless the guest reported otherwise.
    Exited(i32),
    /// The kernel killed it.
    OutOfMemory,
    /// The guest was killed, and neither the agent nor this program can have done it.
    KilledOutside(String),
    /// The backend lost sight of it.
    Lost(String),
}
