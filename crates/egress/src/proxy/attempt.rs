//! One connection or request from its start to its line in the log.
//!
//! The line is written when the attempt is dropped, so that every attempt has one, even if the client
//! disconnects or the supervisor stops.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use host::clock;
use jiff::Timestamp;

use super::shared::ProxyState;
use super::upstream::RequestError;
use crate::model_route::route::ModelCall;
use crate::policy::{DenyReason, EgressLimits};
use crate::record::{EgressEntry, EgressVerdict, TrafficKind};

/// Longest host name in DNS; longer input from a box is cut.
const HOST_MAX: usize = 255;

#[derive(Debug)]
pub(crate) struct EgressAttempt {
    shared: Arc<ProxyState>,
    started: Instant,
    kind: TrafficKind,
    host: String,
    port: u16,
    address: Option<SocketAddr>,
    verdict: EgressVerdict,
    reason: Option<&'static str>,
    pub(crate) status: Option<u16>,
    pub(crate) call: Option<ModelCall>,
    pub(crate) meter: Arc<Meter>,
}

impl EgressAttempt {
    pub(super) fn new(shared: &Arc<ProxyState>, kind: TrafficKind, host: &str, port: u16) -> Self {
        Self {
            shared: Arc::clone(shared),
            started: clock::monotonic(),
            kind,
            host: host.chars().take(HOST_MAX).collect(),
            port,
            address: None,
            verdict: EgressVerdict::Failed,
            reason: Some("cut_off"),
            status: None,
            call: None,
            meter: Arc::new(Meter::new(shared, kind)),
        }
    }

    /// Records that the server was reached; later bytes are traffic.
    pub(crate) fn reached(&mut self, address: Option<SocketAddr>) {
        self.address = address;
        self.verdict = EgressVerdict::Allowed;
        self.reason = None;
    }

    pub(crate) fn stopped_by(&mut self, error: &RequestError) {
        if let RequestError::Refused(DenyReason::NotPublic { address }) = error {
            self.address = Some(*address);
        }
        self.verdict = match error {
            RequestError::Refused(_) => EgressVerdict::Denied,
            RequestError::Failed(_) => EgressVerdict::Failed,
        };
        self.reason = Some(error.code());
    }

    /// Returns the requested target, as shown to the client.
    pub(crate) fn target(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

impl Drop for EgressAttempt {
    fn drop(&mut self) {
        if let Some(refusal) = self.meter.refusal() {
            self.stopped_by(&refusal.into());
        }
        let call = self.call.take();
        let spend = call.and_then(|call| call.finish(self.meter.up(), &self.shared));
        self.shared.log.add(EgressEntry {
            // The log fills in the first three and the last.
            run: String::new(),
            seq: 0,
            ts: Timestamp::UNIX_EPOCH,
            kind: self.kind,
            host: std::mem::take(&mut self.host),
            port: self.port,
            address: self.address,
            verdict: self.verdict,
            reason: self.reason.map(str::to_owned),
            bytes_up: self.meter.up(),
            bytes_down: self.meter.down(),
            ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            status: self.status,
            spend,
            prev: String::new(),
        });
    }
}

/// Counts the bytes of one attempt and of the run, and stops the traffic at the run's limits.
#[derive(Debug)]
pub(crate) struct Meter {
    shared: Arc<ProxyState>,
    kind: TrafficKind,
    up: AtomicU64,
    down: AtomicU64,
    refused: OnceLock<DenyReason>,
}

impl Meter {
    fn new(shared: &Arc<ProxyState>, kind: TrafficKind) -> Self {
        Self {
            shared: Arc::clone(shared),
            kind,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            refused: OnceLock::new(),
        }
    }

    pub(super) fn limits(&self) -> &EgressLimits {
        &self.shared.policy.limits
    }

    /// Counts bytes before they are sent; refused ones are neither sent nor counted.
    pub(crate) fn count_up(&self, bytes: u64) -> Result<(), DenyReason> {
        self.shared.state.touch();
        let limit = self.limits().bytes_up;
        if self.kind != TrafficKind::Model && self.shared.state.count_up(bytes) > limit {
            return Err(self.refuse(DenyReason::UploadCap { limit }));
        }
        self.up.fetch_add(bytes, Relaxed);
        Ok(())
    }

    pub(crate) fn count_down(&self, bytes: u64) -> Result<(), DenyReason> {
        self.shared.state.touch();
        let limit = self.limits().bytes_down;
        if self.kind != TrafficKind::Model && self.shared.state.count_down(bytes) > limit {
            return Err(self.refuse(DenyReason::DownloadCap { limit }));
        }
        self.down.fetch_add(bytes, Relaxed);
        Ok(())
    }

    /// Stores the reason why the traffic stopped, for the line in the log and the response.
    pub(crate) fn refuse(&self, refusal: DenyReason) -> DenyReason {
        self.refused.get_or_init(|| refusal).clone()
    }

    pub(crate) fn refusal(&self) -> Option<DenyReason> {
        self.refused.get().cloned()
    }

    pub(crate) fn up(&self) -> u64 {
        self.up.load(Relaxed)
    }

    pub(crate) fn down(&self) -> u64 {
        self.down.load(Relaxed)
    }

    /// Returns the bytes in both directions; unchanged while nothing moves.
    pub(crate) fn moved(&self) -> u64 {
        self.up() + self.down()
    }
}
