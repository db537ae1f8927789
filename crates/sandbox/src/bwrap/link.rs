//! The host's end of the link to the guest, see [`guest::link`].

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use guest::link::LinkMessage;

#[derive(Debug)]
pub(super) struct GuestLink {
    stream: UnixStream,
    state: Mutex<LinkState>,
}

#[derive(Debug, Default)]
struct LinkState {
    unread: Vec<u8>,
    kernel_memory: Option<u64>,
    is_asked: bool,
    has_ended: bool,
}

impl GuestLink {
    /// Makes a link and the guest's end of it.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        Ok((Self { stream, state: Mutex::default() }, theirs.into()))
    }

    /// Returns the guest's last answer and asks again; `None` as long as the guest has not started. It waits for nothing: a
    /// box that keeps its processors busy must not hold up the host.
    pub(super) fn kernel_memory(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut state);
        if !state.is_asked {
            state.is_asked = (&self.stream).write(b"?").is_ok();
        }
        state.kernel_memory
    }

    /// Returns whether the guest has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut state);
        state.has_ended
    }

    fn read(&self, state: &mut LinkState) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = (&self.stream).read(&mut buffer) {
            state.unread.extend_from_slice(&buffer[..count]);
        }
        while let Some(end) = state.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = state.unread.drain(..=end).collect();
            match LinkMessage::parse(String::from_utf8_lossy(&line).trim_end()) {
                Some(LinkMessage::KernelMemory(bytes)) => {
                    (state.kernel_memory, state.is_asked) = (Some(bytes), false);
                }
                Some(LinkMessage::Ended) => state.has_ended = true,
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_is_asked_once_and_its_last_answer_counts() {
        let (link, theirs) = GuestLink::pair().expect("a link");
        let mut guest = UnixStream::from(theirs);
        assert_eq!((link.kernel_memory(), link.kernel_memory()), (None, None));
        let mut asked = [0; 8];
        assert_eq!(guest.read(&mut asked).expect("a question"), 1, "one question at a time");
        guest.write_all(b"kernel-memory 5\nkernel-mem").expect("an answer");
        assert_eq!(link.kernel_memory(), Some(5));
        guest.write_all(b"ory 7\n").expect("an answer");
        assert_eq!(link.kernel_memory(), Some(7));
    }

    #[test]
    fn only_the_guests_word_is_its_end() {
        let (link, theirs) = GuestLink::pair().expect("a link");
        let mut guest = UnixStream::from(theirs);
        assert!(!link.has_ended());
        guest.write_all(b"ended\n").expect("a word");
        drop(guest);
        assert!(link.has_ended());
        let (killed, theirs) = GuestLink::pair().expect("a link");
        drop(theirs);
        assert!(!killed.has_ended());
    }
}
