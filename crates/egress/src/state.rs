//! The counters of a run's egress, read by watchdogs and progress lines while it is served.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host::clock;

use crate::model_route::ModelUsage;
use crate::record::{EgressEntry, TrafficKind};

#[derive(Debug)]
pub struct EgressState {
    started: Instant,
    /// Milliseconds after `started`.
    active_ms: AtomicU64,
    requests: AtomicU64,
    open: AtomicUsize,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
    /// Bytes of calls that are buffered for a replay.
    held: AtomicUsize,
    usage: Mutex<ModelUsage>,
}

impl EgressState {
    pub(crate) fn new() -> Self {
        Self {
            started: clock::monotonic(),
            active_ms: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            usage: Mutex::default(),
        }
    }

    #[must_use]
    pub fn last_activity(&self) -> Instant {
        self.started + Duration::from_millis(self.active_ms.load(Relaxed))
    }

    /// Returns the number of connections and requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Returns the bytes sent so far, the model route excluded.
    #[must_use]
    pub fn bytes_up(&self) -> u64 {
        self.bytes_up.load(Relaxed)
    }

    /// Returns the bytes received so far, the model route excluded.
    #[must_use]
    pub fn bytes_down(&self) -> u64 {
        self.bytes_down.load(Relaxed)
    }

    /// Returns the usage of the model so far: tokens, cost, caps, and the time until which its server refuses calls.
    #[must_use]
    pub fn usage(&self) -> ModelUsage {
        self.usage_mut().clone()
    }

    pub(crate) fn usage_mut(&self) -> MutexGuard<'_, ModelUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn touch(&self) {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.active_ms.store(ms, Relaxed);
    }

    /// Counts a request and returns its number.
    pub(crate) fn count_request(&self) -> u64 {
        self.touch();
        self.requests.fetch_add(1, Relaxed) + 1
    }

    /// Counts sent bytes and returns the total.
    pub(crate) fn count_up(&self, bytes: u64) -> u64 {
        self.bytes_up.fetch_add(bytes, Relaxed) + bytes
    }

    /// Counts received bytes and returns the total.
    pub(crate) fn count_down(&self, bytes: u64) -> u64 {
        self.bytes_down.fetch_add(bytes, Relaxed) + bytes
    }

    pub(crate) fn connection_opened(&self) -> usize {
        self.open.fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn connection_closed(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// Counts bytes kept in memory and returns the total.
    pub(crate) fn hold(&self, bytes: usize) -> usize {
        self.held.fetch_add(bytes, Relaxed) + bytes
    }

    pub(crate) fn let_go(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Relaxed);
    }

    /// Restores the counters from the log of an earlier supervisor of the same run.
    pub(crate) fn restore(&self, entries: &[EgressEntry]) {
        self.requests.fetch_add(entries.len() as u64, Relaxed);
        for entry in entries {
            if entry.kind == TrafficKind::Model {
                let mut usage = self.usage_mut();
                if let Some(spend) = &entry.spend {
                    usage.add(spend);
                }
                if let Some(status) = entry.status {
                    usage.requests += 1;
                    *usage.by_status.entry(status).or_default() += 1;
                }
            } else {
                self.count_up(entry.bytes_up);
                self.count_down(entry.bytes_down);
            }
        }
    }
}
