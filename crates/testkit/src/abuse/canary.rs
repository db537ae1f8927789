//! Things on the host that a box must not reach: a file, a process, a port, an abstract socket.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{self, Child};
use std::sync::atomic::{AtomicU32, Ordering};

use super::variable;
use crate::program::{self, SYSTEM_PATH};

/// Secrets that a test gives to the host side start with this, and the attempts look for it everywhere.
pub const SECRET_MARK: &str = "canary-";

/// Seconds that the process sleeps; odd enough to know it by.
const NAP: &str = "8639917";

/// A process with a secret that the attempts look for; it lives as long as this value.
#[derive(Debug)]
pub struct Canaries {
    file: PathBuf,
    process: Child,
    port: TcpListener,
    _socket: UnixListener,
    socket_name: String,
}

impl Canaries {
    /// Sets everything up; the file is made in `dir`.
    pub fn start(dir: &Path) -> Self {
        let file = dir.join("file-of-the-host");
        fs::write(&file, format!("{SECRET_MARK}in-a-file\n")).expect("the file");
        let process = program::command("sleep")
            .env("PATH", SYSTEM_PATH)
            .arg(NAP)
            .spawn()
            .expect("the process");
        let port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("the port");
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let socket_name = format!("bottleworks-test-{}-{number}", process::id());
        let address = SocketAddr::from_abstract_name(&socket_name).expect("a name");
        let socket = UnixListener::bind_addr(&address).expect("the abstract socket");
        Self { file, process, port, _socket: socket, socket_name }
    }

    /// The variables that tell the attempts where to look.
    pub fn env(&self) -> BTreeMap<String, String> {
        let port = self.port.local_addr().expect("a bound port").port();
        let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let values = [
            (variable::CANARY_PATH, self.file.display().to_string()),
            (variable::CANARY_PID, self.process.id().to_string()),
            (variable::CANARY_COMMAND, format!("sleep {NAP}")),
            (variable::CANARY_HOST_ADDRS, observe_host_addresses().join(" ")),
            (variable::CANARY_PORT, port.to_string()),
            (variable::CANARY_ABSTRACT, self.socket_name.clone()),
            (variable::CANARY_HOSTNAME, hostname.trim().to_owned()),
        ];
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns whether the process still lives.
    pub fn process_lives(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        // It may have been killed already, which is then what the test is about.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The address that this host would send from, and the gateways that it would send to.
fn observe_host_addresses() -> Vec<String> {
    // Connecting a datagram socket sends nothing; it only asks the routing table.
    let own = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).map(|()| socket))
        .and_then(|socket| socket.local_addr())
        .map(|address| address.ip().to_string());
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    own.into_iter().chain(parse_gateways(&routes)).collect()
}

/// The third column, in hexadecimal and in the byte order of the machine.
fn parse_gateways(routes: &str) -> Vec<String> {
    let gateway = |line: &str| u32::from_str_radix(line.split_whitespace().nth(2)?, 16).ok();
    let addresses = routes.lines().skip(1).filter_map(gateway).filter(|address| *address != 0);
    addresses.map(|address| Ipv4Addr::from(address.to_ne_bytes()).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn gateways_are_read_from_the_routing_table() {
        let routes = "Iface\tDestination\tGateway\tFlags\neth0\t00000000\t0101A8C0\t0003\neth0\t0001A8C0\t00000000\t0001\n";
        assert_eq!(parse_gateways(routes), ["192.168.1.1"]);
    }

    #[test]
    fn no_variable_holds_the_mark_of_a_secret() {
        let temp = tempfile::tempdir().unwrap();
        let mut canaries = Canaries::start(temp.path());
        assert!(canaries.env().values().all(|value| !value.contains(SECRET_MARK)));
        assert!(canaries.process_lives());
    }
}
