//! The host-owned folder of one box, and its files.
//!
//! ```text
//! boxes/<name>/
//!   order.json    configuration of the shim, written by the launcher
//!   lock          held by the launcher, then by the shim, until the box is gone
//!   shim.json     process of the shim
//!   guest/        read-only in the box, at /harness-state/run
//!   stdout.log    (or stdout.bin) and stderr.log
//!   stdout.times  the time at which each part of stdout.log came
//!   provider      the agent whose events stdout.log has, in the box of an agent
//!   egress.jsonl  every connection that the box made or tried to make
//!   shim.log      standard error of the shim
//!   exit.json     exit of the box; written once, last
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use egress::EgressConfig;
use host::file::{FileError, write_atomic, write_transient};
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxOutput, BoxSpec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;

use crate::lease_file::LeaseFile;
use crate::record::{ExitRecord, ShimRecord};

const ORDER_FILE: &str = "order.json";
const SHIM_FILE: &str = "shim.json";
const EXIT_FILE: &str = "exit.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxDir(PathBuf);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShimConfig {
    pub spec: BoxSpec,
    pub backend: BackendKind,
    /// Names the locations of keys and contains none.
    pub egress: Option<EgressConfig>,
    /// The box ends with this lease. Shims of earlier versions know of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseFile>,
}

impl BoxDir {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The lock that the shim holds.
    pub fn lock(&self) -> PathBuf {
        self.0.join(sandbox::LOCK_FILE)
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.0.join(ORDER_FILE)
    }

    pub fn shim_log(&self) -> PathBuf {
        self.0.join("shim.log")
    }

    pub fn stdout(&self, output: BoxOutput) -> PathBuf {
        match output {
            BoxOutput::Log { .. } => self.0.join("stdout.log"),
            BoxOutput::Exact { .. } => self.0.join("stdout.bin"),
        }
    }

    pub fn stderr(&self) -> PathBuf {
        self.0.join("stderr.log")
    }

    /// Times of the log, see [`LogTimes`](host::process::LogTimes).
    pub fn times(&self) -> PathBuf {
        self.0.join("stdout.times")
    }

    /// The name of the agent whose events are in the log.
    pub fn provider(&self) -> PathBuf {
        self.0.join("provider")
    }

    pub fn egress_log(&self) -> PathBuf {
        self.0.join("egress.jsonl")
    }

    /// Touched while the box computes.
    pub fn pulse(&self) -> PathBuf {
        self.0.join("pulse")
    }

    /// The time of the box's last output, traffic, or computing.
    pub fn last_sign(&self, output: BoxOutput) -> Option<SystemTime> {
        let files = [self.stdout(output), self.stderr(), self.egress_log(), self.pulse()];
        let touched = |path: &PathBuf| fs::metadata(path).ok()?.modified().ok();
        files.iter().filter_map(touched).max()
    }

    /// The folder that the box sees.
    pub(crate) fn guest_dir(&self) -> PathBuf {
        self.0.join("guest")
    }

    /// Binds a socket in the folder that the box sees.
    pub(crate) fn bind_guest_socket(&self, name: &str) -> io::Result<UnixListener> {
        let listener = sandbox::bind_socket(&self.guest_dir(), name)?;
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    }

    /// Not durable: no power failure leaves a box that needs it.
    pub fn save_config(&self, config: &ShimConfig) -> Result<(), FileError> {
        self.save(ORDER_FILE, config, write_transient)
    }

    pub fn load_config(&self) -> Result<ShimConfig, FileError> {
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        self.load(ORDER_FILE)?.ok_or_else(|| FileError::io("read", &self.config_file())(absent()))
    }

    pub fn save_shim(&self, record: &ShimRecord) -> Result<(), FileError> {
        self.save(SHIM_FILE, record, write_transient)
    }

    pub fn load_shim(&self) -> Result<Option<ShimRecord>, FileError> {
        self.load(SHIM_FILE)
    }

    pub fn save_exit(&self, record: &ExitRecord) -> Result<(), FileError> {
        self.save(EXIT_FILE, record, write_atomic)
    }

    /// The exit of the box, if it has ended. A record that breaks off counts as none: its writer was killed.
    pub fn load_exit(&self) -> Result<Option<ExitRecord>, FileError> {
        match self.load(EXIT_FILE) {
            Err(FileError::Io { action: "understand", .. }) => Ok(None),
            read => read,
        }
    }

    /// Removes the copy of the guest program from a box that has ended: it is the same in every box, and records are
    /// kept for long.
    pub fn slim(&self) -> Result<(), FileError> {
        if self.load_exit()?.is_none() {
            return Ok(());
        }
        let path = self.guest_dir().join(guest::BINARY_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FileError::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn save(
        &self,
        name: &str,
        value: &impl Serialize,
        write: fn(&Path, &[u8], u32) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let path = self.0.join(name);
        let bytes = serde_json::to_vec_pretty(value)
            .map_err(|error| FileError::io("write", &path)(error.into()))?;
        write(&path, &bytes, 0o600)
    }

    fn load<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, FileError> {
        let path = self.0.join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| FileError::io("understand", &path)(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::io("read", &path)(error)),
        }
    }
}
