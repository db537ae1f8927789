//! Time of one request and one tunnel, on a new connection each: at least as fast as tinyproxy.

use std::time::Duration;

use crate::outside::{self, Role};
use crate::way::{Connection, Way, Ways, time_after_pause};

const ROUNDS: usize = 1000;
const BODY: &str = "a small page\n";

pub(crate) fn measure() {
    let Some(ways) = Ways::start(outside::start(Role::Answer(vec![render_page()]))) else { return };
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    ways.compare("small GET", ROUNDS, |way| time_after_pause(|| get(way)).0, micros);
    let tunnel = |way: &Way| time_after_pause(|| way.dial_through()).0;
    ways.compare("CONNECT granted", ROUNDS, tunnel, micros);
}

fn get(way: &Way) -> Connection {
    let mut connection = way.dial();
    let ask = format!("GET {} HTTP/1.1\r\nhost: outside.example\r\n\r\n", way.page);
    connection.send(ask.as_bytes());
    connection.read_until(&mut Vec::new(), |seen| seen.ends_with(BODY.as_bytes()));
    connection
}

fn render_page() -> String {
    let length = BODY.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n{BODY}")
}
