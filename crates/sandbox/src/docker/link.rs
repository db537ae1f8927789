//! The host's end of the link to a guest in a container: the first connection to a socket in the folder of the box.

use std::io::{self, Read};
use std::os::unix::net::UnixListener;

use guest::link::LinkMessage;

use crate::boxdir::bind_socket;
use crate::spec::BoxSpec;

/// Bytes of the first connection that are read: a guest says one line.
const MOST_BYTES: u64 = 4096;

/// Knowledge about the end of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuestEnd {
    /// It said that it ends.
    Said,
    /// It was there and ended without a word.
    Silent,
    /// It never took the link.
    Unknown,
}

/// A socket at which the guest connects before any code of the agent runs. Later connections are the agent's and are not read.
#[derive(Debug)]
pub(super) struct GuestSocket(UnixListener);

impl GuestSocket {
    pub(super) fn bind(spec: &BoxSpec) -> io::Result<Self> {
        let listener = bind_socket(&spec.guest_dir(), guest::LINK_SOCKET_FILE)?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// Reads what the guest said. To be asked once, after the end of the box.
    pub(super) fn observe_end(&self) -> GuestEnd {
        let Ok((stream, _)) = self.0.accept() else { return GuestEnd::Unknown };
        let mut said = Vec::new();
        // Nobody holds the other end any more, so this does not wait; a broken end keeps what was read before.
        let read =
            stream.set_nonblocking(true).map(|()| stream.take(MOST_BYTES).read_to_end(&mut said));
        drop(read);
        let text = String::from_utf8_lossy(&said);
        let has_ended =
            text.lines().any(|line| LinkMessage::parse(line) == Some(LinkMessage::Ended));
        if has_ended { GuestEnd::Said } else { GuestEnd::Silent }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn socket() -> (tempfile::TempDir, GuestSocket, BoxSpec) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spec = crate::spec::tests::spec();
        spec.box_dir = folder.path().to_path_buf();
        let socket = GuestSocket::bind(&spec).expect("bound");
        (folder, socket, spec)
    }

    fn connect(spec: &BoxSpec) -> UnixStream {
        UnixStream::connect(spec.guest_dir().join(guest::LINK_SOCKET_FILE)).expect("connected")
    }

    #[test]
    fn only_the_first_connection_is_the_guests() {
        let (_folder, socket, spec) = socket();
        let guest = connect(&spec);
        let mut agent = connect(&spec);
        agent.write_all(b"ended\n").expect("a word");
        drop((guest, agent));
        assert_eq!(socket.observe_end(), GuestEnd::Silent);
    }

    #[test]
    fn a_guest_that_ends_by_itself_says_so() {
        let (_folder, socket, spec) = socket();
        connect(&spec).write_all(b"ended\n").expect("a word");
        assert_eq!(socket.observe_end(), GuestEnd::Said);
    }

    #[test]
    fn a_guest_that_never_came_tells_nothing() {
        let (_folder, socket, _spec) = socket();
        assert_eq!(socket.observe_end(), GuestEnd::Unknown);
    }
}
