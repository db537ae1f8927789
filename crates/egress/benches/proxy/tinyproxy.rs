//! The yardstick: tinyproxy as Debian has it, on a loopback port of its own, writing nothing to disk.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use testkit::measure::row;

/// A tinyproxy that is ended with its handle.
pub(crate) struct Tinyproxy {
    pub(crate) address: SocketAddr,
    child: Child,
    _dir: TempDir,
}

impl Tinyproxy {
    /// Starts one that may open tunnels to `outside`; none after saying that the program is missing.
    pub(crate) fn start(outside: SocketAddr) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let config = dir.path().join("tinyproxy.conf");
        fs::write(&config, render_config(address.port(), outside.port())).expect("written");
        #[expect(
            clippy::disallowed_methods,
            reason = "a yardstick is run as a person would run it"
        )]
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            row("missing part: tinyproxy (install tinyproxy-bin)");
            return None;
        };
        let tinyproxy = Self { address, child, _dir: dir };
        tinyproxy.wait_until_it_listens();
        Some(tinyproxy)
    }

    fn wait_until_it_listens(&self) {
        for _ in 0..500 {
            if TcpStream::connect(self.address).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("tinyproxy does not listen on {}", self.address);
    }
}

fn render_config(port: u16, outside: u16) -> String {
    format!(
        "Port {port}\nListen 127.0.0.1\nTimeout 600\nAllow 127.0.0.1\nMaxClients 100\n\
         ConnectPort {outside}\nLogLevel Critical\n"
    )
}

impl Drop for Tinyproxy {
    fn drop(&mut self) {
        self.child.kill().expect("ended");
        self.child.wait().expect("gone");
    }
}
