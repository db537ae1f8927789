//! The HTTP proxy of a company, on loopback: it takes `CONNECT` alone and leads every name to one server.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Proxy that serves as long as the process lives.
#[derive(Debug)]
pub struct ConnectProxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl ConnectProxy {
    /// Starts a proxy that leads every request to `server`, or refuses them all without one.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn start(server: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("a socket that listens");
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let record = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let record = Arc::clone(&record);
                thread::spawn(move || carry(stream, server, &record).unwrap_or_default());
            }
        });
        Self { address, heads }
    }

    /// Its address, as `HTTPS_PROXY` names it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Heads of the requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn carry(
    mut client: TcpStream,
    server: Option<SocketAddr>,
    record: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    record.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
    let Some(server) = server.filter(|_| head.starts_with("CONNECT ")) else {
        return client.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    };
    let mut outside = TcpStream::connect(server)?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut from_outside, mut to_client) = (outside.try_clone()?, client.try_clone()?);
    let back = thread::spawn(move || {
        io::copy(&mut from_outside, &mut to_client).unwrap_or_default();
        to_client.shutdown(Shutdown::Write).unwrap_or_default();
    });
    io::copy(&mut client, &mut outside)?;
    outside.shutdown(Shutdown::Write)?;
    back.join().unwrap_or_default();
    Ok(())
}
