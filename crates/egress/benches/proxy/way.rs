//! A way from a client to the server outside, walked with plain blocking calls.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use testkit::measure::{Comparison, in_turns, median, row};

use crate::proxy::{NAME, Proxy};
use crate::relay;
use crate::tinyproxy::Tinyproxy;

/// Whom to dial first, and what the server outside is called there.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    door: Door,
    /// Target of a tunnel; `None` without a proxy.
    tunnel: Option<String>,
    /// Target of a plain request.
    pub(crate) page: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Door {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// All ways to one server, and the proxies on them.
pub(crate) struct Ways {
    direct: Way,
    tinyproxy: Way,
    ours: Way,
    _proxies: (Tinyproxy, Proxy),
}

impl Ways {
    /// Starts both proxies; none after saying that there is nothing to compare with.
    pub(crate) fn start(outside: SocketAddr) -> Option<Self> {
        let tinyproxy = Tinyproxy::start(outside)?;
        let proxy = Proxy::start(outside, None);
        Some(Self {
            direct: Way::to(Door::Tcp(outside)),
            tinyproxy: Way {
                door: Door::Tcp(tinyproxy.address),
                tunnel: Some(outside.to_string()),
                page: format!("http://{outside}/"),
            },
            ours: Way {
                door: Door::Unix(proxy.socket.clone()),
                tunnel: Some(format!("{NAME}:443")),
                page: format!("http://{NAME}/"),
            },
            _proxies: (tinyproxy, proxy),
        })
    }

    /// Walks all of them in turns, the proxies also from behind a relay, and prints how they compare.
    pub(crate) fn compare(
        &self,
        name: &str,
        rounds: usize,
        walk: impl Fn(&Way) -> Duration,
        show: impl Fn(Duration) -> String,
    ) {
        let (tinyproxy_relayed, ours_relayed) = (self.tinyproxy.relayed(), self.ours.relayed());
        let times = in_turns(
            rounds,
            [
                &mut || walk(&self.direct),
                &mut || walk(&self.tinyproxy),
                &mut || walk(&self.ours),
                &mut || walk(&tinyproxy_relayed),
                &mut || walk(&ours_relayed),
            ],
        );
        let [direct, tinyproxy, ours, tinyproxy_relayed, ours_relayed] = times.map(median);
        row(&format!(
            "{name}: direct {}, tinyproxy {}, ours {}; behind a relay tinyproxy {}, ours {}",
            show(direct),
            show(tinyproxy),
            show(ours),
            show(tinyproxy_relayed),
            show(ours_relayed),
        ));
        Comparison { ours, yardstick: tinyproxy }.print(name, "tinyproxy", 1.0, Duration::ZERO);
        Comparison { ours: ours_relayed, yardstick: tinyproxy_relayed }.print(
            &format!("{name}, behind a relay"),
            "tinyproxy, behind a relay",
            1.0,
            Duration::ZERO,
        );
    }
}

impl Way {
    /// To whoever is behind the door, in its own words.
    pub(crate) fn to(door: Door) -> Self {
        Self { door, tunnel: None, page: "/".to_owned() }
    }

    /// The same way from behind a relay.
    pub(crate) fn relayed(&self) -> Self {
        Self { door: relay::start(&self.door), ..self.clone() }
    }

    /// A new connection to the door.
    pub(crate) fn dial(&self) -> Connection {
        let stream: Box<dyn Stream> = match &self.door {
            Door::Unix(path) => Box::new(UnixStream::connect(path).expect("connected")),
            Door::Tcp(address) => {
                let stream = TcpStream::connect(address).expect("connected");
                stream.set_nodelay(true).expect("no delay");
                Box::new(stream)
            }
        };
        Connection(stream)
    }

    /// A connection that leads to the server, through a tunnel if there is a proxy.
    pub(crate) fn dial_through(&self) -> Connection {
        let mut connection = self.dial();
        if let Some(target) = &self.tunnel {
            let ask = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n");
            connection.send(ask.as_bytes());
            let mut head = Vec::new();
            connection.read_until(&mut head, |head| head.ends_with(b"\r\n\r\n"));
            let is_granted = head.starts_with(b"HTTP/1.") && head[8..].starts_with(b" 200 ");
            assert!(is_granted, "{}", String::from_utf8_lossy(&head));
        }
        connection
    }
}

pub(crate) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

pub(crate) struct Connection(pub(crate) Box<dyn Stream>);

impl Connection {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("sent");
    }

    pub(crate) fn read_until(&mut self, seen: &mut Vec<u8>, is_enough: impl Fn(&[u8]) -> bool) {
        let mut buffer = [0; 16 << 10];
        while !is_enough(seen) {
            let read = self.0.read(&mut buffer).expect("read");
            assert!(read > 0, "it ended early: {}", String::from_utf8_lossy(seen));
            seen.extend_from_slice(&buffer[..read]);
        }
    }
}

/// Times one act after a moment in which everybody else can finish with the one before. What it leaves open is given
/// back, because hanging up is not part of it.
pub(crate) fn time_after_pause<T>(act: impl FnOnce() -> T) -> (Duration, T) {
    thread::sleep(Duration::from_millis(1));
    let begun = Instant::now();
    let kept = act();
    (begun.elapsed(), kept)
}
