//! The init's end of its link to the host.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use guest::link::{LinkMessage, LinkPlace};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::kernel_memory;

/// The link to the host; none where the backend gives none.
pub(crate) struct HostLink(Option<OwnedFd>);

impl HostLink {
    /// Takes the link at its place. Standard input is the init's alone: the command gets another one. A socket at which nobody
    /// listens is no link: the host then knows the box by its status alone.
    pub(crate) fn open(place: &LinkPlace) -> io::Result<Self> {
        match place {
            LinkPlace::Stdin => Ok(Self(Some(io::stdin().as_fd().try_clone_to_owned()?))),
            LinkPlace::Socket(path) => Ok(Self(UnixStream::connect(path).ok().map(OwnedFd::from))),
        }
    }

    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }

    /// Answers the host if it has asked, however often. Without a host there is nothing to answer, and the link closes:
    /// a closed one would be readable for ever.
    pub(crate) fn answer(&mut self) {
        let Some(fd) = &self.0 else { return };
        let mut asked = [0; 64];
        match recv(fd, &mut asked, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => self.0 = None,
            Ok(_) => self.say(LinkMessage::KernelMemory(kernel_memory::observe())),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.0 = None,
        }
    }

    /// Sends one message. A host that does not listen any more needs none.
    pub(crate) fn say(&self, message: LinkMessage) {
        if let Some(fd) = &self.0 {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            send(fd, message.render().as_bytes(), flags).ok();
        }
    }
}
