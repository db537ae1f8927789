//! The first bytes of TLS: the server name in the ClientHello.
//!
//! Parsed by hand, because `rustls::server::Acceptor` answers another question. It takes the first name of a list and
//! skips what follows, where another server may read a second name; it refuses clients without signature algorithms;
//! and an address in place of the name is the same to it as no name. With encrypted client hello the name is the outer
//! one, which the server sees too.

use crate::policy::{DenyReason, HostName};

/// Size limit of a ClientHello, post-quantum key shares included.
pub(super) const HELLO_MAX: usize = 64 << 10;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: usize = 0;
const HOST_NAME: usize = 0;
const RECORD_MAX: usize = 1 << 14;

/// Content of the first bytes of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// Too few bytes to decide.
    Incomplete,
    /// A ClientHello, with the server name as sent.
    Greets(Option<String>),
    NotTls,
}

/// Compares a server name with the host of the tunnel.
pub(super) fn judge_hello(sni: Option<&str>, host: &HostName) -> Result<(), DenyReason> {
    match sni.map(HostName::parse) {
        None => Err(DenyReason::NoSni),
        Some(Ok(name)) if name == *host => Ok(()),
        Some(_) => Err(DenyReason::SniMismatch),
    }
}

pub(super) fn parse_hello(bytes: &[u8]) -> Hello {
    match gather_handshake(bytes) {
        Ok(message) => read_message(&message).map_or(Hello::NotTls, Hello::Greets),
        Err(Hello::Incomplete) if bytes.len() >= HELLO_MAX => Hello::NotTls,
        Err(hello) => hello,
    }
}

/// Joins the records that carry the ClientHello; a client may split it anywhere.
fn gather_handshake(bytes: &[u8]) -> Result<Vec<u8>, Hello> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(whole) = whole_message(&message) {
            return whole;
        }
        // Even the first byte may decide; the missing ones may still arrive.
        let is_plausible = rest.first().is_none_or(|kind| *kind == HANDSHAKE)
            && rest.get(1).is_none_or(|major| *major == 3);
        if !is_plausible {
            return Err(Hello::NotTls);
        }
        let (header, after) = rest.split_at_checked(5).ok_or(Hello::Incomplete)?;
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if length == 0 || length > RECORD_MAX {
            return Err(Hello::NotTls);
        }
        let piece = &after[..length.min(after.len())];
        message.extend_from_slice(piece);
        if piece.len() < length {
            // The message may end in this record although the record continues.
            return whole_message(&message).unwrap_or(Err(Hello::Incomplete));
        }
        rest = &after[length..];
    }
}

/// Returns the message without its header; `None` as long as bytes are missing.
fn whole_message(message: &[u8]) -> Option<Result<Vec<u8>, Hello>> {
    let (kind, mut rest) = message.split_first()?;
    if *kind != CLIENT_HELLO {
        return Some(Err(Hello::NotTls));
    }
    let length = take_number(&mut rest, 3)?;
    if length > HELLO_MAX {
        return Some(Err(Hello::NotTls));
    }
    Some(Ok(rest.get(..length)?.to_vec()))
}

/// Reads the server name of a ClientHello; the outer `None` means that the message is malformed.
fn read_message(mut message: &[u8]) -> Option<Option<String>> {
    // Version and random bytes, then session, cipher suites and compression.
    message.split_off(..2 + 32)?;
    for length_bytes in [1, 2, 1] {
        take_field(&mut message, length_bytes)?;
    }
    if message.is_empty() {
        return Some(None);
    }
    let mut extensions = take_field(&mut message, 2)?;
    let mut found = None;
    while !extensions.is_empty() {
        let kind = take_number(&mut extensions, 2)?;
        let body = take_field(&mut extensions, 2)?;
        if kind == SERVER_NAME {
            let name = read_server_name(body)?;
            // Two names would let the two sides read different ones.
            if found.replace(name).is_some() {
                return None;
            }
        }
    }
    Some(found)
}

fn read_server_name(mut body: &[u8]) -> Option<String> {
    let mut list = take_field(&mut body, 2)?;
    let kind = take_number(&mut list, 1)?;
    let name = take_field(&mut list, 2)?;
    let is_alone = list.is_empty() && kind == HOST_NAME;
    let text = std::str::from_utf8(name).ok()?;
    is_alone.then(|| text.to_owned())
}

/// Takes a number in this many bytes.
fn take_number(rest: &mut &[u8], bytes: usize) -> Option<usize> {
    let digits = rest.split_off(..bytes)?;
    Some(digits.iter().fold(0, |number, digit| number << 8 | usize::from(*digit)))
}

/// Takes a field that has its length before it, in this many bytes.
fn take_field<'a>(rest: &mut &'a [u8], length_bytes: usize) -> Option<&'a [u8]> {
    let length = take_number(rest, length_bytes)?;
    rest.split_off(..length)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Produces the first bytes of a real client.
    fn greeting(host: &str, with_name: bool) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        config.enable_sni = with_name;
        let name = host.to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// Splits the same ClientHello into records of at most `size` bytes.
    fn fragmented(greeting: &[u8], size: usize) -> Vec<u8> {
        let record = |piece: &[u8]| {
            let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
            [&[HANDSHAKE, 3, 1], &length[..], piece].concat()
        };
        greeting[5..].chunks(size).flat_map(record).collect()
    }

    #[test]
    fn the_name_in_a_real_greeting_is_found() {
        let hello = parse_hello(&greeting("registry.example.org", true));
        assert_eq!(hello, Hello::Greets(Some("registry.example.org".to_owned())));
        assert_eq!(parse_hello(&greeting("registry.example.org", false)), Hello::Greets(None));
    }

    #[test]
    fn fragments_of_any_size_make_no_difference() {
        let whole = greeting("a.example.org", true);
        for size in [1, 2, 3, 5, 40, 100, 4000] {
            let hello = parse_hello(&fragmented(&whole, size));
            assert_eq!(hello, Hello::Greets(Some("a.example.org".to_owned())), "{size}");
        }
    }

    #[test]
    fn every_beginning_of_a_greeting_is_incomplete() {
        let whole = greeting("a.example.org", true);
        for end in 0..whole.len() {
            assert_eq!(parse_hello(&whole[..end]), Hello::Incomplete, "{end}");
        }
        let fragments = fragmented(&whole, 7);
        for end in 0..fragments.len() - 7 {
            assert_eq!(parse_hello(&fragments[..end]), Hello::Incomplete, "{end}");
        }
    }

    #[test]
    fn what_is_no_greeting_is_told_at_once() {
        let others: [&[u8]; 6] = [
            b"GET / HTTP/1.1\r\n",
            b"SSH-2.0-x\r\n",
            b"\x16\x02",
            b"\x17\x03\x03\x00\x05hello",
            b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
            b"\x16\x03\x01\x00\x00",
        ];
        for bytes in others {
            assert_eq!(parse_hello(bytes), Hello::NotTls, "{bytes:?}");
        }
    }

    #[test]
    fn no_damage_to_a_greeting_makes_the_reader_fall() {
        let whole = greeting("a.example.org", true);
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                parse_hello(&bytes);
            }
        }
    }

    #[test]
    fn two_server_names_are_one_too_many() {
        let name = |host: &str| {
            let n = u8::try_from(host.len()).unwrap();
            [&[0, 0, 0, n + 5, 0, n + 3, 0, 0, n], host.as_bytes()].concat()
        };
        let extensions = [name("a.example"), name("b.example")].concat();
        let length = u16::try_from(extensions.len()).unwrap().to_be_bytes();
        let front = [&[3, 3][..], &[0; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
        assert_eq!(read_message(&[&front, &length[..], &extensions].concat()), None);
        let one = name("a.example");
        let length = u16::try_from(one.len()).unwrap().to_be_bytes();
        let message = [&front, &length[..], &one].concat();
        assert_eq!(read_message(&message), Some(Some("a.example".to_owned())));
        assert_eq!(read_message(&front), Some(None));
    }

    #[test]
    fn names_are_compared_in_their_one_spelling() {
        let host = HostName::parse("bücher.example").unwrap();
        assert_eq!(judge_hello(Some("XN--bcher-KVA.example."), &host), Ok(()));
        assert_eq!(judge_hello(Some("other.example"), &host), Err(DenyReason::SniMismatch));
        assert_eq!(judge_hello(Some("10.0.0.1"), &host), Err(DenyReason::SniMismatch));
        assert_eq!(judge_hello(None, &host), Err(DenyReason::NoSni));
    }
}
