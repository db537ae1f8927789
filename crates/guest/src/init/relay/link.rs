//! One connection through the wall: bytes in both directions, each direction closed on its own.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{Shutdown, shutdown};

const BUFFER_BYTES: usize = 32 * 1024;

/// How many buffers one link may move before the others have their turn.
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

    /// What to wait for. An end that we want nothing from is left out: a closed one would always be ready.
    pub(crate) fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let client = interest(&self.up, &self.down).map(|flags| PollFd::new(&self.client, flags));
        let host = interest(&self.down, &self.up).map(|flags| PollFd::new(&self.host, flags));
        client.into_iter().chain(host)
    }

    /// Moves what can be moved; false when the link has served its purpose.
    pub(crate) fn pump(&mut self) -> bool {
        self.up.pump(&self.client, &self.host);
        self.down.pump(&self.host, &self.client);
        match (self.up.state, self.down.state) {
            // Nobody is there to read the answer.
            (_, LaneState::Refused) => false,
            // Each side may still have something to say after the other has ended.
            (up, down) => up != LaneState::Done || down != LaneState::Done,
        }
    }
}

/// An end is read for the lane that leaves it, and written for the lane that leads to it.
fn interest(leaving: &Lane, leading: &Lane) -> Option<PollFlags> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, leaving.wants_bytes());
    flags.set(PollFlags::OUT, leading.has_bytes());
    (!flags.is_empty()).then_some(flags)
}

/// One direction.
#[derive(Default)]
struct Lane {
    buffer: Vec<u8>,
    written: usize,
    state: LaneState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LaneState {
    /// More may come.
    #[default]
    Open,
    /// The source has ended; what is in the buffer is still to be written.
    Draining,
    /// All was written, and the target knows that no more comes.
    Done,
    /// The target takes no more. What still comes is thrown away: left unread, it would turn our close into a reset,
    /// and the client could lose the answer that explains the refusal.
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
                // The target may be gone already; then it needs no telling.
                shutdown(&target, Shutdown::Write).ok();
                self.state = LaneState::Done;
            }
            if self.state == LaneState::Done {
                return;
            }
        }
    }

    /// Reads once; false when there is nothing to read for now.
    fn fill(&mut self, source: &mut impl Read) -> bool {
        self.buffer.resize(BUFFER_BYTES, 0);
        self.written = 0;
        let result = source.read(&mut self.buffer);
        self.buffer.truncate(*result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => self.state = LaneState::Draining,
            Ok(_) => {}
            Err(error) if is_for_later(&error) => return false,
            // A source that broke off has ended too.
            Err(_) => self.state = LaneState::Draining,
        }
        true
    }

    /// Writes what it can; false when some of it has to wait.
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

fn is_for_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
