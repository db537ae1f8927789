//! One relayed connection: bytes in both directions, each direction closed on its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{Shutdown, shutdown};

use crate::init::is_for_later;

const BUFFER_BYTES: usize = 32 * 1024;

/// Number of buffers that one connection may move before the others are served.
const ROUNDS: usize = 16;

/// A client in the box joined with the host. Both ends must be non-blocking.
pub(crate) struct RelayConnection {
    client: TcpStream,
    host: UnixStream,
    up: Lane,
    down: Lane,
}

impl RelayConnection {
    pub(crate) fn new(client: TcpStream, host: UnixStream) -> Self {
        Self { client, host, up: Lane::default(), down: Lane::default() }
    }

    /// Returns the events to poll for. An end without any is left out: a closed one would always be ready.
    pub(crate) fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let client = interest(&self.up, &self.down).map(|flags| PollFd::new(&self.client, flags));
        let host = interest(&self.down, &self.up).map(|flags| PollFd::new(&self.host, flags));
        client.into_iter().chain(host)
    }

    /// Moves the available bytes; returns false when the connection is finished.
    pub(crate) fn pump(&mut self) -> bool {
        self.up.pump(&self.client, &self.host);
        self.down.pump(&self.host, &self.client);
        match (self.up.state, self.down.state) {
            // The client no longer reads the response.
            (_, LaneState::Refused) => false,
            // Each side may still send after the other has ended.
            (up, down) => up != LaneState::Done || down != LaneState::Done,
        }
    }
}

/// Returns the events of one end: reading for the lane that leaves it, writing for the lane that leads to it.
fn interest(leaving: &Lane, leading: &Lane) -> Option<PollFlags> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, leaving.wants_bytes());
    flags.set(PollFlags::OUT, leading.has_bytes());
    (!flags.is_empty()).then_some(flags)
}

#[derive(Default)]
struct Lane {
    buffer: Vec<u8>,
    written: usize,
    state: LaneState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LaneState {
    #[default]
    Open,
    /// The source has ended; the buffer is still to be written.
    Draining,
    /// Everything was written, and the target has seen the end.
    Done,
    /// The target accepts no more. Further input is discarded: left unread, it would turn our close into a
    /// reset, and the client could lose the response that explains the refusal.
    Refused,
}

impl Lane {
    fn has_bytes(&self) -> bool {
        self.written < self.buffer.len()
    }

    fn wants_bytes(&self) -> bool {
        match self.state {
            LaneState::Open => !self.has_bytes(),
            LaneState::Refused => true,
            LaneState::Draining | LaneState::Done => false,
        }
    }

    fn pump(&mut self, source: impl Read, target: impl Write + AsFd) {
        let (mut source, mut target) = (source, target);
        for _ in 0..ROUNDS {
            if self.wants_bytes() && !self.fill(&mut source) {
                return;
            }
            if self.has_bytes() && !self.empty(&mut target) {
                return;
            }
            if self.state == LaneState::Draining {
                // The target may already be gone.
                shutdown(&target, Shutdown::Write).ok();
                self.state = LaneState::Done;
            }
            if self.state == LaneState::Done {
                return;
            }
        }
    }

    /// Reads once; returns false when there is nothing to read for now.
    fn fill(&mut self, source: &mut impl Read) -> bool {
        self.buffer.resize(BUFFER_BYTES, 0);
        self.written = 0;
        let result = source.read(&mut self.buffer);
        self.buffer.truncate(*result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => self.state = LaneState::Draining,
            Ok(_) => {}
            Err(error) if is_for_later(&error) => return false,
            // A broken source counts as ended.
            Err(_) => self.state = LaneState::Draining,
        }
        true
    }

    /// Writes as much as possible; returns false when some of it has to wait.
    fn empty(&mut self, target: &mut impl Write) -> bool {
        let result = match self.state {
            LaneState::Refused => Ok(self.buffer.len() - self.written),
            LaneState::Open | LaneState::Draining | LaneState::Done => {
                target.write(&self.buffer[self.written..])
            }
        };
        match result {
            Ok(count) => self.written += count,
            Err(error) if is_for_later(&error) => return false,
            Err(_) => {
                self.state = LaneState::Refused;
                self.buffer.clear();
                self.written = 0;
            }
        }
        !self.has_bytes()
    }
}
