//! Connection attempts to addresses that must be unreachable, all at once and within one short limit.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReachResult {
    /// The address responded: it accepted or refused, and a refusal is a response from outside too.
    Answered(Option<Errno>),
    /// The kernel has no route.
    NoWay(Errno),
    Silent,
}

impl ReachResult {
    pub(crate) fn is_blocked(self) -> bool {
        match self {
            Self::Answered(_) => false,
            Self::NoWay(_) | Self::Silent => true,
        }
    }

    pub(crate) fn render(self) -> String {
        match self {
            Self::Answered(None) => "connected".to_owned(),
            Self::Answered(Some(errno)) => format!("answered: {errno}"),
            Self::NoWay(errno) => errno.to_string(),
            Self::Silent => "no answer".to_owned(),
        }
    }

    fn from_result(result: Result<(), Errno>) -> Self {
        match result {
            Ok(()) => Self::Answered(None),
            Err(errno @ (Errno::CONNREFUSED | Errno::CONNRESET)) => Self::Answered(Some(errno)),
            Err(errno) => Self::NoWay(errno),
        }
    }
}

/// Tries every address. Without an interface each attempt fails at once, without waiting.
pub(crate) fn observe_reach(addresses: &[SocketAddr], limit: Duration) -> Vec<ReachResult> {
    let mut results = vec![ReachResult::Silent; addresses.len()];
    let mut pending = Vec::new();
    for (result, address) in results.iter_mut().zip(addresses) {
        match start(address) {
            Ok(socket) => pending.push((result, socket)),
            Err(ended) => *result = ended,
        }
    }
    let deadline = Instant::now() + limit;
    while !pending.is_empty()
        && let Some(left) = deadline.checked_duration_since(Instant::now())
        && let Ok(timeout) = Timespec::try_from(left)
    {
        let sockets = pending.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::OUT));
        let mut polled: Vec<PollFd<'_>> = sockets.collect();
        if poll(&mut polled, Some(&timeout)).is_err() {
            break;
        }
        let ended: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        pending.retain_mut(|(result, socket)| {
            let has_ended = ended.next() == Some(true);
            if has_ended {
                **result = ReachResult::from_result(socket_error(&*socket).and_then(|end| end));
            }
            !has_ended
        });
    }
    results
}

/// Returns the socket of an attempt that is under way, or the result of one that has ended at once.
fn start(address: &SocketAddr) -> Result<OwnedFd, ReachResult> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        socket_with(family, SocketType::STREAM, flags, None).map_err(ReachResult::NoWay)?;
    match connect(&socket, address) {
        Err(Errno::INPROGRESS) => Ok(socket),
        result => Err(ReachResult::from_result(result)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_open_port_is_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let reach = observe(listener.local_addr().unwrap());
        assert_eq!(reach, ReachResult::Answered(None));
        assert!(!reach.is_blocked());
    }

    #[test]
    fn a_refusal_is_an_answer_too() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let reach = observe(closed);
        assert_eq!(reach, ReachResult::Answered(Some(Errno::CONNREFUSED)));
        assert!(!reach.is_blocked());
    }

    #[test]
    fn no_way_and_silence_are_blocked() {
        assert!(ReachResult::from_result(Err(Errno::NETUNREACH)).is_blocked());
        assert!(ReachResult::from_result(Err(Errno::PERM)).is_blocked());
        assert!(ReachResult::Silent.is_blocked());
    }

    #[test]
    fn nothing_to_try_takes_no_time() {
        assert!(observe_reach(&[], Duration::from_secs(60)).is_empty());
    }

    fn observe(address: SocketAddr) -> ReachResult {
        observe_reach(&[address], Duration::from_secs(5))[0]
    }
}
