//! Servers on loopback that stand for the world outside, on a thread of their own.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::serving::{listen, serve_on_a_thread};

/// Behaviour of a server on every connection.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// Sends this many bytes once it was greeted.
    Flood(u64),
    /// Answers every request with these pieces, each in a write of its own.
    Answer(Vec<String>),
}

const PIECE: usize = 256 << 10;

/// Starts a server and gives its address.
pub(crate) fn start(role: Role) -> SocketAddr {
    let (listener, address) = listen();
    serve_on_a_thread(move || accept(listener, role));
    address
}

async fn accept(listener: std::net::TcpListener, role: Role) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, role.clone()));
    }
}

/// A client that goes away is nobody's failure: some of them only want to be connected.
async fn serve(mut stream: TcpStream, role: Role) {
    let served = match role {
        Role::Flood(bytes) => flood(&mut stream, bytes).await,
        Role::Answer(pieces) => answer_all(&mut stream, &pieces).await,
    };
    served.unwrap_or_default();
}

async fn flood(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    if stream.read(&mut piece).await? == 0 {
        return Ok(());
    }
    for _ in 0..bytes / PIECE as u64 {
        stream.write_all(&piece).await?;
    }
    Ok(())
}

async fn answer_all(stream: &mut TcpStream, pieces: &[String]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    while read_request(stream).await? {
        for piece in pieces {
            stream.write_all(piece.as_bytes()).await?;
        }
    }
    Ok(())
}

/// Reads one request with its body; false when there is none.
async fn read_request(stream: &mut TcpStream) -> io::Result<bool> {
    let mut seen = Vec::with_capacity(PIECE);
    while !is_whole(&seen) {
        if stream.read_buf(&mut seen).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_whole(request: &[u8]) -> bool {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| request.len() >= end + 4 + body_length(&request[..end]))
}

fn body_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.map_or(0, |length| length.trim().parse().expect("a number"))
}
