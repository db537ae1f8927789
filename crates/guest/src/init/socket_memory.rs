//! Buffers of the sockets in the box, as the kernel reports them by its diagnostic sockets.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Upper bound for a socket that the kernel does not report: one of another family, or all of them on a kernel without
/// diagnostic sockets. It is what the buffers of a new socket may hold.
const UNSEEN_BYTES: u64 = 2 * 212_992;

/// Numbers of the kernel's interface.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
const HEADER_LEN: usize = 16;
const ALL_STATES: u32 = u32::MAX;
const ATTRIBUTE_HEADER_LEN: usize = 4;

const BUFFER_LEN: usize = 64 * 1024;

/// So few Internet sockets are not asked for one by one: the kernel walks through the tables of the whole machine for them,
/// and every sleeping box has one or two.
const FEW: u64 = 4;

/// One kind of sockets: the request for them, and where an answer has their memory.
struct SocketKind {
    request: Vec<u8>,
    /// Length of an answer before its attributes.
    fixed_len: usize,
    memory_attribute: u16,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct SocketCount {
    sockets: u64,
    bytes: u64,
}

/// Bytes in the buffers of all sockets of the box.
pub(crate) fn observe() -> u64 {
    let read = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let table = read("sockstat");
    let used = parse_used(&table);
    let internet = parse_internet(&table) + parse_internet(&read("sockstat6"));
    let mut seen = SocketCount::default();
    let netlink = Some(netlink::SOCK_DIAG);
    // This socket is one of those that the box uses, and was not there when they were counted.
    if let Ok(diag) =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, netlink)
    {
        for kind in kinds(internet) {
            let found = dump(&diag, &kind).unwrap_or_default();
            seen.sockets += found.sockets;
            seen.bytes = seen.bytes.saturating_add(found.bytes);
        }
    }
    seen.bytes.saturating_add(used.saturating_sub(seen.sockets).saturating_mul(UNSEEN_BYTES))
}

fn parse_used(table: &str) -> u64 {
    let used = table.lines().find_map(|line| line.strip_prefix("sockets: used "));
    used.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Sums the sockets of all protocols, each on a line like `TCP: inuse 3 orphan 0`.
fn parse_internet(table: &str) -> u64 {
    let count = |line: &str| {
        let (_, rest) = line.split_once(": inuse ")?;
        rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    table.lines().filter_map(count).sum()
}

fn kinds(internet: u64) -> Vec<SocketKind> {
    const UNIX: u8 = 1;
    const INET: [u8; 2] = [2, 10];
    const PROTOCOLS: [u8; 2] = [6, 17];
    let mut kinds = vec![unix_kind(UNIX)];
    let asked = if internet > FEW { &INET[..] } else { &[] };
    for &family in asked {
        kinds.extend(PROTOCOLS.map(|protocol| inet_kind(family, protocol)));
    }
    kinds
}

fn unix_kind(family: u8) -> SocketKind {
    const SHOW_MEMORY: u32 = 0x20;
    const NO_COOKIE: [u8; 8] = [0xff; 8];
    let mut body = vec![family, 0, 0, 0];
    body.extend(ALL_STATES.to_ne_bytes());
    body.extend(0_u32.to_ne_bytes());
    body.extend(SHOW_MEMORY.to_ne_bytes());
    body.extend(NO_COOKIE);
    SocketKind { request: request(&body), fixed_len: 16, memory_attribute: 5 }
}

fn inet_kind(family: u8, protocol: u8) -> SocketKind {
    const MEMORY: u8 = 7;
    const ANY_SOCKET: [u8; 48] = [0; 48];
    let mut body = vec![family, protocol, 1 << (MEMORY - 1), 0];
    body.extend(ALL_STATES.to_ne_bytes());
    body.extend(ANY_SOCKET);
    SocketKind { request: request(&body), fixed_len: 72, memory_attribute: MEMORY.into() }
}

fn request(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_LEN + body.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Asks for all sockets of one kind. An error means that the kernel cannot report them.
fn dump(diag: &OwnedFd, kind: &SocketKind) -> rustix::io::Result<SocketCount> {
    send(diag, &kind.request, SendFlags::empty())?;
    let mut count = SocketCount::default();
    let mut buffer = vec![0; BUFFER_LEN];
    loop {
        let (_, received) = recv(diag.as_fd(), buffer.as_mut_slice(), RecvFlags::empty())?;
        if received == 0 || !add_messages(&buffer[..received.min(BUFFER_LEN)], kind, &mut count) {
            return Ok(count);
        }
    }
}

/// Adds what a datagram reports; returns whether more will come.
fn add_messages(mut datagram: &[u8], kind: &SocketKind, count: &mut SocketCount) -> bool {
    while let Some((length, message_type)) = read_u32(datagram, 0).zip(read_u16(datagram, 4)) {
        let length = length as usize;
        if matches!(message_type, MESSAGE_DONE | MESSAGE_ERROR) || length < HEADER_LEN {
            return false;
        }
        let message = datagram.get(..length).unwrap_or(datagram);
        count.sockets += 1;
        let attributes = message.get(HEADER_LEN + kind.fixed_len..).unwrap_or_default();
        let memory = find_attribute(attributes, kind.memory_attribute);
        count.bytes = count.bytes.saturating_add(memory.map_or(UNSEEN_BYTES, buffered));
        datagram = datagram.get(align(length)..).unwrap_or_default();
    }
    true
}

fn find_attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(read_u16(attributes, 0)?);
        if length < ATTRIBUTE_HEADER_LEN {
            return None;
        }
        if read_u16(attributes, 2)? == wanted {
            return attributes.get(ATTRIBUTE_HEADER_LEN..length);
        }
        attributes = attributes.get(align(length)..)?;
    }
}

/// Received, sent or queued to be sent, reserved, and waiting for a busy socket.
fn buffered(memory: &[u8]) -> u64 {
    let field = |index: usize| u64::from(read_u32(memory, index * 4).unwrap_or(0));
    let [received, sent, reserved, queued, backlog] = [0, 2, 4, 5, 7].map(field);
    received + sent.max(queued) + reserved + backlog
}

fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_count_of_sockets_is_on_the_first_line() {
        assert_eq!(parse_used("sockets: used 17\nTCP: inuse 0 orphan 0 tw 0 alloc 1 mem 0\n"), 17);
        assert_eq!(parse_used(""), 0);
    }

    #[test]
    fn internet_sockets_are_asked_for_only_when_there_are_many() {
        let table =
            "sockets: used 9\nTCP: inuse 3 orphan 0 tw 5 alloc 7 mem 1\nUDP: inuse 2 mem 0\n";
        assert_eq!(parse_internet(table), 5);
        assert_eq!(parse_internet("TCP6: inuse 1\nFRAG6: inuse 0 memory 0\n"), 1);
        assert_eq!((kinds(FEW).len(), kinds(FEW + 1).len()), (1, 5));
    }

    #[test]
    fn bytes_that_were_sent_and_not_read_are_seen() {
        let before = observe();
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(count) = ours.write(&[0; 4096]) {
            sent += count as u64;
        }
        assert!(sent > 50_000 && observe() >= before + sent, "{sent} sent, {before} before");
    }

    #[test]
    fn an_answer_without_memory_counts_as_a_full_socket() {
        let kind = unix_kind(1);
        let mut message = 32_u32.to_ne_bytes().to_vec();
        message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message.extend([0; 26]);
        let mut count = SocketCount::default();
        assert!(add_messages(&message, &kind, &mut count));
        assert_eq!(count, SocketCount { sockets: 1, bytes: UNSEEN_BYTES });
    }

    #[test]
    fn a_torn_answer_ends_the_count() {
        let mut count = SocketCount::default();
        for torn in [&[][..], &[1, 0, 0][..]] {
            assert!(add_messages(torn, &unix_kind(1), &mut count));
        }
        assert!(!add_messages(&[0; 16], &unix_kind(1), &mut count));
        assert_eq!(count, SocketCount::default());
    }
}
