//! One tunnel that moves many bytes: at least as fast as tinyproxy.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use testkit::measure::time;

use crate::outside::{self, Role};
use crate::proxy::NAME;
use crate::way::{Way, Ways};

const MOVED: u64 = 512 << 20;
const ROUNDS: usize = 7;

pub(crate) fn measure() {
    let outside = outside::start(Role::Flood(MOVED));
    let Some(ways) = Ways::start(outside) else { return };
    let hello = client_hello();
    let speed = |time: Duration| format!("{:.0} MiB/s", 512.0 / time.as_secs_f64());
    ways.compare("tunnel, 512 MiB", ROUNDS, |way| pull(way, &hello), speed);
}

/// Greets the server and takes all that it sends.
fn pull(way: &Way, hello: &[u8]) -> Duration {
    let mut connection = way.dial_through();
    let mut buffer = vec![0; 256 << 10];
    let mut left = MOVED;
    time(|| {
        connection.send(hello);
        while left > 0 {
            let read = connection.0.read(&mut buffer).expect("read");
            assert!(read > 0, "it ended {left} bytes early");
            left -= read as u64;
        }
    })
}

/// First bytes of a TLS client: our proxy opens no tunnel without it.
fn client_hello() -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = NAME.try_into().expect("a name");
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("a greeting");
    bytes
}
