//! Cancellation: by a signal, or by another part of the program.
//!
//! A [`Cancel`] is passed to everything that waits. It kills nothing by itself: each waiting task ends its
//! own work in order (processes first, then the record, then the lock) and returns.

use std::fmt;
use std::io;
use std::sync::Arc;

use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// The user or the system sent a signal.
    Signal(StopSignal),
    /// Another part of the program cancelled, with this reason.
    Asked(Arc<str>),
}

/// The signals that request an orderly stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// Sent by service managers.
    Terminate,
    /// The terminal went away.
    HangUp,
}

impl StopSignal {
    /// The number of the signal.
    pub fn number(self) -> u8 {
        match self {
            Self::HangUp => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(StopSignal::Interrupt) => f.write_str("interrupted (SIGINT)"),
            Self::Signal(StopSignal::Terminate) => f.write_str("told to end (SIGTERM)"),
            Self::Signal(StopSignal::HangUp) => f.write_str("terminal closed (SIGHUP)"),
            Self::Asked(why) => f.write_str(why),
        }
    }
}

/// Cancellation shared by all tasks that observe it. Clones share the same state.
#[derive(Clone, Debug)]
pub struct Cancel {
    reason: Arc<watch::Sender<Option<CancelReason>>>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    pub fn new() -> Self {
        Self { reason: Arc::new(watch::Sender::new(None)) }
    }

    /// Cancels. The first reason stays: later ones are mostly its consequences.
    pub fn cancel(&self, reason: CancelReason) {
        self.reason.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(reason);
            is_first
        });
    }

    pub fn reason(&self) -> Option<CancelReason> {
        self.reason.borrow().clone()
    }

    /// Waits for cancellation; returns at once if it has already happened.
    pub async fn cancelled(&self) -> CancelReason {
        let mut reasons = self.reason.subscribe();
        loop {
            if let Some(reason) = reasons.borrow_and_update().clone() {
                return reason;
            }
            if reasons.changed().await.is_err() {
                // Cannot happen while `self` holds the sender; without a sender there is no cancellation, so
                // wait for ever.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[derive(Debug, Error)]
#[error("could not listen for signals")]
pub struct SignalError {
    source: io::Error,
}

/// Returns a [`Cancel`] that fires on SIGTERM, SIGINT or SIGHUP. From then on these signals no longer end the
/// process by themselves. Must be called inside a tokio runtime.
pub fn cancel_on_signals() -> Result<Cancel, SignalError> {
    let cancel = cancel_on_stop_signals()?;
    let (mut hang_ups, fired) = (HangUps::listen()?, cancel.clone());
    tokio::spawn(async move {
        hang_ups.next().await;
        fired.cancel(CancelReason::Signal(StopSignal::HangUp));
    });
    Ok(cancel)
}

/// Returns a [`Cancel`] that fires on SIGTERM or SIGINT, for a program to which SIGHUP means something else.
pub fn cancel_on_stop_signals() -> Result<Cancel, SignalError> {
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let cancel = Cancel::new();
    let fired = cancel.clone();
    tokio::spawn(async move {
        let which = tokio::select! {
            _ = interrupt.recv() => StopSignal::Interrupt,
            _ = terminate.recv() => StopSignal::Terminate,
        };
        fired.cancel(CancelReason::Signal(which));
    });
    Ok(cancel)
}

/// SIGHUP as a request, such as to read a configuration again. It no longer ends the process.
#[derive(Debug)]
pub struct HangUps(tokio::signal::unix::Signal);

impl HangUps {
    /// Must be called inside a tokio runtime.
    pub fn listen() -> Result<Self, SignalError> {
        listen(SignalKind::hangup()).map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

fn listen(kind: SignalKind) -> Result<tokio::signal::unix::Signal, SignalError> {
    signal(kind).map_err(|source| SignalError { source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(why: &str) -> CancelReason {
        CancelReason::Asked(why.into())
    }

    #[tokio::test]
    async fn a_clone_hears_the_wish() {
        let cancel = Cancel::new();
        let heard = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        assert_eq!(cancel.reason(), None);
        cancel.cancel(asked("enough"));
        assert_eq!(heard.await.unwrap(), asked("enough"));
    }

    #[tokio::test]
    async fn the_first_reason_stays() {
        let cancel = Cancel::new();
        cancel.cancel(asked("first"));
        cancel.cancel(asked("second"));
        assert_eq!(cancel.cancelled().await, asked("first"));
    }

    #[tokio::test]
    async fn a_signal_becomes_a_reason() {
        let cancel = cancel_on_signals().unwrap();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)
            .unwrap();
        assert_eq!(cancel.cancelled().await, CancelReason::Signal(StopSignal::HangUp));
    }
}
