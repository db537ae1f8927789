//! Bodies in transit: counted, observed, and delayed by no more than the start of a key.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use model::redact::{MaskingStream, SecretMask};
use tokio::time::{Instant, Sleep};

use super::attempt::{EgressAttempt, Meter};
use super::pool::Lease;
use super::shared::ProxyState;
use super::upstream::UpstreamFailure;
use crate::model_route::dialect::FrameReader;
use crate::policy::{DenyReason, EgressLimits};
use crate::state::EgressState;

type Polled = Poll<Option<Result<Frame<Bytes>, io::Error>>>;

/// The body of a request to the server.
#[derive(Debug)]
pub(crate) enum Upload {
    /// Streamed from the box.
    Live(Box<LiveUpload>),
    /// Sent from the buffer. The meter counts it the first time.
    Held { pieces: VecDeque<Bytes>, meter: Option<Arc<Meter>> },
}

/// The body of a call that may have to be sent once more.
#[derive(Debug)]
pub(crate) struct CallBody {
    pub(crate) upload: Upload,
    pub(crate) kept: Arc<ReplayBuffer>,
    /// The whole body, if it was read before it is sent.
    pub(crate) read: Option<Bytes>,
}

#[derive(Debug)]
pub(crate) struct LiveUpload {
    inner: Incoming,
    meter: Arc<Meter>,
    idle: Idle,
    limit: u64,
    sent: u64,
    kept: Option<Arc<ReplayBuffer>>,
}

/// Buffer of a body that may have to be sent once more. The chunks are shared with the connection and not copied.
#[derive(Debug)]
pub(crate) struct ReplayBuffer {
    state: Arc<EgressState>,
    pieces: Mutex<ReplayPieces>,
}

#[derive(Debug, Default)]
struct ReplayPieces {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    is_whole: bool,
    is_lost: bool,
}

/// Largest body that is buffered. The bodies of all calls together are limited as well, since buffering them
/// all could fill this host's memory.
const KEPT_MAX: usize = 8 << 20;
const ALL_KEPT_MAX: usize = 64 << 20;

impl ReplayBuffer {
    fn new(state: Arc<EgressState>) -> Self {
        Self { state, pieces: Mutex::default() }
    }

    /// Takes room for a body of `bytes`; `None` if all bodies together would be too large.
    fn with_room(state: &Arc<EgressState>, bytes: usize) -> Option<Self> {
        let buffer = Self::new(Arc::clone(state));
        buffer.pieces().bytes = bytes;
        let all = state.hold(bytes);
        (bytes <= KEPT_MAX && all <= ALL_KEPT_MAX).then_some(buffer)
    }

    fn fill(&self, body: &Bytes) {
        let mut kept = self.pieces();
        kept.pieces.push_back(body.clone());
        kept.is_whole = true;
    }

    fn push(&self, piece: &Bytes) {
        let mut kept = self.pieces();
        if kept.is_lost {
            return;
        }
        kept.bytes += piece.len();
        kept.pieces.push_back(piece.clone());
        let all = self.state.hold(piece.len());
        if kept.bytes > KEPT_MAX || all > ALL_KEPT_MAX {
            kept.is_lost = true;
            self.release(&mut kept);
        }
    }

    fn end(&self) {
        self.pieces().is_whole = true;
    }

    /// Returns the body, if all of it was seen and buffered.
    pub(crate) fn take(&self) -> Option<Upload> {
        let mut kept = self.pieces();
        let is_usable = kept.is_whole && !kept.is_lost;
        let pieces = self.release(&mut kept);
        is_usable.then_some(Upload::Held { pieces, meter: None })
    }

    fn release(&self, kept: &mut ReplayPieces) -> VecDeque<Bytes> {
        self.state.let_go(std::mem::take(&mut kept.bytes));
        std::mem::take(&mut kept.pieces)
    }

    fn pieces(&self) -> MutexGuard<'_, ReplayPieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReplayBuffer {
    fn drop(&mut self) {
        let mut kept = self.pieces();
        drop(self.release(&mut kept));
    }
}

impl Upload {
    pub(crate) fn new(inner: Incoming, meter: &Arc<Meter>, limit: u64) -> Self {
        let meter = Arc::clone(meter);
        let idle = Idle::new(meter.limits());
        Self::Live(Box::new(LiveUpload { inner, meter, idle, limit, sent: 0, kept: None }))
    }

    /// Buffers the body for a replay while it is sent.
    pub(crate) fn keep(mut self, state: &Arc<EgressState>) -> CallBody {
        let kept = Arc::new(ReplayBuffer::new(Arc::clone(state)));
        if let Self::Live(live) = &mut self {
            if live.inner.is_end_stream() {
                kept.end();
            }
            live.kept = Some(Arc::clone(&kept));
        }
        CallBody { upload: self, kept, read: None }
    }

    /// Reads the body before it is sent. One of unknown length, or too large for the buffer, is streamed instead.
    pub(crate) async fn read_ahead(self, state: &Arc<EgressState>) -> io::Result<CallBody> {
        let length = self.size_hint().exact().and_then(|length| usize::try_from(length).ok());
        let kept = length.and_then(|length| ReplayBuffer::with_room(state, length));
        let (mut live, kept) = match (self, kept) {
            (Self::Live(live), Some(kept)) => (live, Arc::new(kept)),
            (upload, _) => return Ok(upload.keep(state)),
        };
        let mut body = BytesMut::with_capacity(length.unwrap_or_default());
        while let Some(frame) = poll_fn(|cx| live.poll_inner(cx)).await {
            if let Some(piece) = frame?.data_ref() {
                live.check_size(piece).map_err(|refusal| io::Error::other(refusal.code()))?;
                body.extend_from_slice(piece);
            }
        }
        let body = body.freeze();
        kept.fill(&body);
        let (pieces, meter) = ([body.clone()].into(), Some(live.meter));
        Ok(CallBody { upload: Self::Held { pieces, meter }, kept, read: Some(body) })
    }
}

impl CallBody {
    /// Sends other bytes in the place of a body that was read.
    pub(crate) fn replaced(self, body: Bytes) -> Self {
        let Upload::Held { meter, .. } = self.upload else { return self };
        self.kept.pieces().pieces = [body.clone()].into();
        let upload = Upload::Held { pieces: [body.clone()].into(), meter };
        Self { upload, kept: self.kept, read: Some(body) }
    }
}

impl LiveUpload {
    fn check_size(&mut self, piece: &Bytes) -> Result<(), DenyReason> {
        self.sent += piece.len() as u64;
        if self.sent > self.limit {
            return Err(self.meter.refuse(DenyReason::ModelBody { limit: self.limit }));
        }
        Ok(())
    }

    fn pass(&mut self, piece: &Bytes) -> Result<(), DenyReason> {
        self.check_size(piece)?;
        self.meter.count_up(piece.len() as u64)?;
        if let Some(kept) = &self.kept {
            kept.push(piece);
        }
        Ok(())
    }

    /// Takes the next frame from the box.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Polled {
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Pending => self.idle.poll(cx),
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.reset();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(io::Error::other(error)))),
            Poll::Ready(None) => Poll::Ready(None),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Polled {
        let frame = match ready!(self.poll_inner(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => {
                if let Some(kept) = &self.kept {
                    kept.end();
                }
                return Poll::Ready(None);
            }
        };
        if let Some(piece) = frame.data_ref()
            && let Err(refusal) = self.pass(piece)
        {
            return Poll::Ready(Some(Err(io::Error::other(refusal.code()))));
        }
        if let Some(kept) = self.kept.as_ref().filter(|_| self.inner.is_end_stream()) {
            kept.end();
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::Live(live) => live.poll(cx),
            Self::Held { pieces, meter } => {
                let Some(piece) = pieces.pop_front() else { return Poll::Ready(None) };
                let counted =
                    meter.as_ref().map_or(Ok(()), |meter| meter.count_up(piece.len() as u64));
                let counted = counted.map_err(|refusal| io::Error::other(refusal.code()));
                Poll::Ready(Some(counted.map(|()| Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Live(live) => live.inner.is_end_stream(),
            Self::Held { pieces, .. } => pieces.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Live(live) => live.inner.size_hint(),
            Self::Held { pieces, .. } => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
        }
    }
}

/// The body of a response to the box. It holds the attempt, whose line is written after the last byte, and
/// the connection, which then may carry another request.
#[derive(Debug)]
pub(crate) struct Download {
    inner: Incoming,
    idle: Idle,
    attempt: EgressAttempt,
    home: Option<(Arc<ProxyState>, Lease)>,
    mask: Option<MaskingStream>,
    /// Turns frames of bytes into events.
    frames: Option<FrameReader>,
}

impl Download {
    pub(crate) fn new(
        inner: Incoming,
        attempt: EgressAttempt,
        shared: &Arc<ProxyState>,
        lease: Lease,
    ) -> Self {
        let idle = Idle::new(&shared.policy.limits);
        Self {
            inner,
            idle,
            attempt,
            home: Some((Arc::clone(shared), lease)),
            mask: None,
            frames: None,
        }
    }

    /// Masks secrets in the body.
    pub(crate) fn masked(mut self, mask: &Arc<SecretMask>) -> Self {
        self.mask = Some(MaskingStream::new(Arc::clone(mask)));
        self
    }

    /// Turns a stream of frames into events.
    pub(crate) fn unframed(mut self) -> Self {
        self.frames = Some(FrameReader::default());
        self
    }

    fn held_len(&self) -> usize {
        self.mask.as_ref().map_or(0, MaskingStream::held_len)
    }

    /// Returns what the box may see of a frame now: `None` if all of it may be the start of a secret.
    fn shown(&mut self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        let Some(mask) = &mut self.mask else { return Some(frame) };
        // Trailers are rare and carry nothing that a client of a model reads.
        let piece = frame.data_ref()?;
        let Some(mut ready) = mask.push(piece) else { return Some(frame) };
        if self.inner.is_end_stream() {
            ready.extend(mask.finish());
        }
        (!ready.is_empty()).then(|| Frame::data(ready.into()))
    }

    fn unframe(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, UpstreamFailure> {
        let (Some(frames), Some(piece)) = (&mut self.frames, frame.data_ref()) else {
            return Ok(frame);
        };
        let events = frames.push(piece).ok_or(UpstreamFailure::Encoded)?;
        Ok(Frame::data(events.into()))
    }

    fn rest(&mut self) -> Option<Frame<Bytes>> {
        let rest = self.mask.as_mut()?.finish();
        (!rest.is_empty()).then(|| Frame::data(rest.into()))
    }

    /// Notes the end of the response: the connection may carry another request.
    fn end(&mut self) {
        if let Some(call) = &mut self.attempt.call {
            call.end();
        }
        if let Some((shared, lease)) = self.home.take() {
            shared.pool.put(lease);
        }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        loop {
            let frame = match Pin::new(&mut this.inner).poll_frame(cx) {
                Poll::Pending => return this.idle.poll(cx),
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => {
                    this.attempt.stopped_by(&UpstreamFailure::BrokenOff.into());
                    if let Some(call) = &mut this.attempt.call {
                        call.end();
                    }
                    return Poll::Ready(Some(Err(io::Error::other(error))));
                }
                Poll::Ready(None) => {
                    this.end();
                    return Poll::Ready(this.rest().map(Ok));
                }
            };
            this.idle.reset();
            let frame = match this.unframe(frame) {
                Ok(frame) => frame,
                Err(failure) => {
                    this.attempt.stopped_by(&failure.into());
                    return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
                }
            };
            if let Some(piece) = frame.data_ref() {
                if let Err(refusal) = this.attempt.meter.count_down(piece.len() as u64) {
                    return Poll::Ready(Some(Err(io::Error::other(refusal.code()))));
                }
                if let Some(call) = &mut this.attempt.call {
                    call.push(piece);
                }
            }
            if let Some(frame) = this.shown(frame) {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream() && self.held_len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        if self.frames.is_some() {
            return SizeHint::default();
        }
        let (inner, held) = (self.inner.size_hint(), self.held_len() as u64);
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + held);
        }
        hint.set_lower(inner.lower() + held);
        hint
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        // The last frame is often not polled when the length was known.
        if self.inner.is_end_stream() {
            self.end();
        }
    }
}

/// A timer that restarts whenever a byte moves.
#[derive(Debug)]
struct Idle {
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Idle {
    fn new(limits: &EgressLimits) -> Self {
        let limit = Duration::from_secs(limits.idle_secs);
        Self { limit, sleep: Box::pin(tokio::time::sleep(limit)) }
    }

    fn reset(&mut self) {
        let next = Instant::now() + self.limit;
        self.sleep.as_mut().reset(next);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Polled {
        ready!(self.sleep.as_mut().poll(cx));
        Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(sizes: &[usize], state: &Arc<EgressState>) -> ReplayBuffer {
        let kept = ReplayBuffer::new(Arc::clone(state));
        sizes.iter().for_each(|size| kept.push(&Bytes::from(vec![0; *size])));
        kept
    }

    #[test]
    fn a_body_is_sent_again_only_if_all_of_it_was_kept() {
        let state = Arc::new(EgressState::new());
        let kept = pushed(&[10, 20], &state);
        assert!(kept.take().is_none(), "its end was not seen");
        let kept = pushed(&[10, 20], &state);
        kept.end();
        let again = kept.take().unwrap();
        assert_eq!(again.size_hint().exact(), Some(30));
        let kept = pushed(&[KEPT_MAX, 1, 5], &state);
        kept.end();
        assert!(kept.take().is_none(), "it was too large");
    }

    #[test]
    fn all_bodies_together_have_a_limit_and_give_back_what_they_held() {
        let state = Arc::new(EgressState::new());
        let many: Vec<ReplayBuffer> = (0..8).map(|_| pushed(&[KEPT_MAX], &state)).collect();
        let late = pushed(&[1], &state);
        late.end();
        assert!(late.take().is_none());
        drop((many, late));
        assert_eq!(state.hold(0), 0);
    }
}
