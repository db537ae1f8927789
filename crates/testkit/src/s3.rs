//! A server of S3, on a folder and a port of its own. It ends with its owner.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::part::{Part, require};
use crate::program;
use crate::wait::wait_until;

/// A server that runs, with one bucket.
#[derive(Debug)]
pub struct S3Server {
    dir: TempDir,
    gateway: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl S3Server {
    /// The bucket that there is.
    pub const BUCKET: &str = "bottles";
    /// Access key and secret.
    pub const ACCOUNT: (&str, &str) = ("tester", "secret-of-a-test");

    /// Starts a server; `None` after saying that the part is missing.
    ///
    /// # Panics
    /// When the server cannot be started.
    pub fn start() -> Option<Self> {
        let gateway = require(Part::Versitygw)?;
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(dir.path().join("data").join(Self::BUCKET)).expect("a bucket");
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut server = Self { dir, gateway, port, server: None };
        server.start_again();
        Some(server)
    }

    /// Starts the server again after [`Self::kill`].
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_again(&mut self) {
        let log = File::options().create(true).append(true).open(self.dir.path().join("log"));
        let log = log.expect("a log");
        let address = format!("127.0.0.1:{}", self.port);
        let (access, secret) = Self::ACCOUNT;
        let mut command = program::command(&self.gateway);
        command
            .args(["--access", access, "--secret", secret, "--port", &address, "posix"])
            .arg(self.dir.path().join("data"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log);
        self.server = Some(command.spawn().expect("the server"));
        wait_until("the server of S3", || TcpStream::connect(&address).is_ok());
    }

    /// Kills the server, as a power failure does.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().expect("a kill");
            server.wait().expect("the end of the server");
        }
    }

    /// The address for clients.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The folder of the bucket's objects.
    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("data").join(Self::BUCKET)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            drop(server.kill());
            drop(server.wait());
        }
    }
}
