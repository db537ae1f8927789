//! Loopback ports relayed to sockets of the host: the only way out of the box.
//!
//! One thread serves all connections. Threads count as processes, so one per connection would consume the
//! limit that is meant for the agent, and a fork bomb would take down the network with it.

mod link;

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use guest::config::Relay;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::GuestError;
use link::RelayConnection;

/// Concurrent connections; more wait in the listener's queue.
const MAX_LINKS: usize = 256;

/// The thread does not recurse and keeps its buffers on the heap.
const STACK_BYTES: usize = 128 * 1024;

/// Pause after a failed accept (no descriptors left): the listener stays ready, so the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A bound port, and its target.
pub(crate) struct RelayListener {
    listener: TcpListener,
    socket: PathBuf,
}

/// Binds every port. Programs may connect from now on; they are served once [`serve`] runs.
pub(crate) fn open(relays: &[Relay]) -> Result<Vec<RelayListener>, GuestError> {
    // Sandboxes bring loopback up; without it nothing that the agent tests locally would work.
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .map_err(|error| GuestError(format!("there is no loopback in the box: {error}")))?;
    relays.iter().map(open_listener).collect()
}

fn open_listener(relay: &Relay) -> Result<RelayListener, GuestError> {
    let listener = TcpListener::bind(relay.listen)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(GuestError::could_not(format!("listen on {}", relay.listen)))?;
    Ok(RelayListener { listener, socket: relay.socket.clone() })
}

/// Serves the listeners on a separate thread until the box ends.
pub(crate) fn serve(listeners: Vec<RelayListener>) -> Result<(), GuestError> {
    if listeners.is_empty() {
        return Ok(());
    }
    let relay = thread::Builder::new().name("relay".to_owned()).stack_size(STACK_BYTES);
    relay
        .spawn(move || relay_for_ever(&listeners))
        .map(drop)
        .map_err(GuestError::could_not("start the relay"))
}

fn relay_for_ever(listeners: &[RelayListener]) {
    let mut links: Vec<RelayConnection> = Vec::new();
    loop {
        let ready_ends = wait_for_events(listeners, &links);
        let mut ready = ready_ends.links.into_iter();
        links.retain_mut(|link| ready.next() != Some(true) || link.pump());
        for (listener, _) in listeners.iter().zip(ready_ends.listeners).filter(|(_, ready)| *ready)
        {
            accept_all(listener, &mut links);
        }
    }
}

/// Ready ends, in the order of the listeners and of the connections.
struct ReadyEnds {
    listeners: Vec<bool>,
    links: Vec<bool>,
}

/// Sleeps until something can move. At the limit no connection is accepted.
fn wait_for_events(listeners: &[RelayListener], links: &[RelayConnection]) -> ReadyEnds {
    let listeners = if links.len() < MAX_LINKS { listeners } else { &[] };
    let mut fds: Vec<PollFd<'_>> =
        listeners.iter().map(|entry| PollFd::new(&entry.listener, PollFlags::IN)).collect();
    let ends: Vec<Vec<PollFd<'_>>> = links.iter().map(|link| link.interest().collect()).collect();
    let counts: Vec<usize> = ends.iter().map(Vec::len).collect();
    fds.extend(ends.into_iter().flatten());
    // An interrupted or failed poll costs one more iteration, in which nothing moves.
    poll(&mut fds, None).ok();
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    let mut any_of = |count| ready.by_ref().take(count).fold(false, |any, ready| any | ready);
    ReadyEnds {
        listeners: listeners.iter().map(|_| any_of(1)).collect(),
        links: counts.into_iter().map(any_of).collect(),
    }
}

fn accept_all(from: &RelayListener, links: &mut Vec<RelayConnection>) {
    while links.len() < MAX_LINKS {
        match from.listener.accept() {
            // If the host's socket cannot be reached the client is disconnected, as it would be without the relay.
            Ok((client, _)) => links.extend(join(client, &from.socket).ok()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => return thread::sleep(ACCEPT_PAUSE),
        }
    }
}

fn join(client: TcpStream, socket: &Path) -> io::Result<RelayConnection> {
    client.set_nonblocking(true)?;
    // Small messages of a request must not wait for one another.
    client.set_nodelay(true)?;
    Ok(RelayConnection::new(client, connect_without_waiting(socket)?))
}

/// Connects without blocking. The standard library would block on a full queue of the host, and every other
/// connection with it.
fn connect_without_waiting(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn bytes_go_both_ways_and_a_half_close_is_kept() {
        let relay = start(|mut host| {
            let mut asked = Vec::new();
            host.read_to_end(&mut asked).unwrap();
            asked.reverse();
            host.write_all(&asked).unwrap();
        });
        let question: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut answer = ask(relay.listen, &question);
        answer.reverse();
        assert!(answer == question);
    }

    #[test]
    fn an_early_answer_arrives_although_the_host_stopped_listening() {
        let relay = start(|mut host| {
            host.write_all(b"no").unwrap();
            host.shutdown(Shutdown::Both).unwrap();
        });
        // More than all the buffers on the way can hold.
        assert_eq!(ask(relay.listen, &vec![0; 20_000_000]), b"no");
    }

    #[test]
    fn many_connections_are_served_beyond_the_cap() {
        let relay = start(|mut host| {
            let mut asked = Vec::new();
            host.read_to_end(&mut asked).unwrap();
            host.write_all(&asked).unwrap();
        });
        let mut clients: Vec<TcpStream> =
            (0..MAX_LINKS + 50).map(|_| TcpStream::connect(relay.listen).unwrap()).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            client.write_all(&[index as u8]).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        }
        for (index, client) in clients.iter_mut().enumerate() {
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            assert_eq!(answer, [index as u8]);
        }
    }

    #[test]
    fn without_the_host_a_client_is_hung_up_on() {
        let dir = tempfile::tempdir().unwrap();
        let relay = start_listeners(dir.path().join("nobody.sock"));
        let mut client = TcpStream::connect(relay).unwrap();
        assert_eq!(client.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    }

    #[test]
    fn a_taken_port_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = taken.local_addr().unwrap();
        let Err(error) = open(&[Relay { listen, socket: "x".into() }]) else {
            panic!("the port was taken");
        };
        assert!(error.to_string().starts_with(&format!("could not listen on {listen}")));
    }

    struct Running {
        listen: SocketAddr,
        _dir: tempfile::TempDir,
    }

    fn start(answer: impl Fn(UnixStream) + Send + Copy + 'static) -> Running {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("host.sock");
        let host = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            for stream in host.incoming() {
                let stream = stream.unwrap();
                thread::spawn(move || answer(stream));
            }
        });
        Running { listen: start_listeners(socket), _dir: dir }
    }

    fn start_listeners(socket: PathBuf) -> SocketAddr {
        let listen = "127.0.0.1:0".parse().unwrap();
        let doors = open(&[Relay { listen, socket }]).unwrap();
        let listen = doors[0].listener.local_addr().unwrap();
        serve(doors).unwrap();
        listen
    }

    fn ask(listen: SocketAddr, question: &[u8]) -> Vec<u8> {
        let mut client = TcpStream::connect(listen).unwrap();
        client.write_all(question).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        answer
    }
}
