//! The async runtime of a command, stopped by signals.

use host::signal::{Cancel, CancelReason, cancel_on_signals};
use model::exit::ExitStatus;

use crate::failure::{Failure, OrExit};

/// Stack of a thread that runs a command or a whole run: that of a program's first thread. Their futures do not always fit
/// into the two mebibytes that other threads have.
pub const COMMAND_STACK_BYTES: usize = 8 << 20;

/// Runs async work to its end. One thread is enough, and a bubblewrap box must not outlive the thread that made it.
pub fn block_on<T, S: ExitStatus>(
    work: impl Future<Output = Result<T, Failure<S>>>,
) -> Result<T, Failure<S>> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().thread_stack_size(COMMAND_STACK_BYTES).build();
    let runtime = runtime.or_exit(S::GENERAL)?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

/// Runs async work that leaves nothing behind when it is dropped: a signal drops it.
pub fn block_on_stoppable<T, S: ExitStatus>(
    work: impl Future<Output = Result<T, Failure<S>>>,
) -> Result<T, Failure<S>> {
    block_on(async {
        let cancel = cancel_on_signals().or_exit(S::GENERAL)?;
        unless_stopped(&cancel, work).await
    })
}

pub async fn unless_stopped<T, S: ExitStatus>(
    cancel: &Cancel,
    work: impl Future<Output = Result<T, Failure<S>>>,
) -> Result<T, Failure<S>> {
    tokio::select! {
        done = work => done,
        reason = cancel.cancelled() => {
            Err(Failure::new(stop_status(&reason), format!("stopped: {reason}")))
        }
    }
}

/// Status of a command that was stopped.
pub fn stop_status<S: ExitStatus>(reason: &CancelReason) -> S {
    match reason {
        CancelReason::Signal(signal) => S::of_signal(signal.number()),
        CancelReason::Asked(_) => S::GENERAL,
    }
}
