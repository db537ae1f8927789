//! The host-owned folder of one box: which files stand in it, and how they are read and written.
//!
//! ```text
//! boxes/<name>/
//!   order.json    what to build, written by whoever launches
//!   lock          held by the launcher, then by the shim, until the box is gone
//!   shim.json     who watches over it
//!   guest/        what the box sees, read-only, at /harness-state/run
//!   stdout.log    (or stdout.bin) and stderr.log
//!   egress.jsonl  every connection that the box made or tried to make
//!   shim.log      what the shim itself had to say
//!   exit.json     how it ended; written once, last
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use egress::EgressConfig;
use host::file::{FileError, write_atomic, write_transient};
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxOutput, BoxSpec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::{ExitRecord, ShimRecord};

const ORDER_FILE: &str = "order.json";
const SHIM_FILE: &str = "shim.json";
const EXIT_FILE: &str = "exit.json";

/// The folder of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxDir(PathBuf);

/// What the shim is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShimConfig {
    pub spec: BoxSpec,
    pub backend: BackendKind,
    /// Its way out, if it has one. Names where keys are found and holds none.
    pub egress: Option<EgressConfig>,
}

/// A file of a box's folder could not be used.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} {path}", path = path.display())]
pub struct BoxDirError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl BoxDir {
    /// The folder at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The lock that says whether somebody watches over the box.
    pub fn lock(&self) -> PathBuf {
        self.0.join(sandbox::LOCK_FILE)
    }

    /// What the shim itself writes.
    pub fn shim_log(&self) -> PathBuf {
        self.0.join("shim.log")
    }

    /// The box's standard output.
    pub fn stdout(&self, output: BoxOutput) -> PathBuf {
        match output {
            BoxOutput::Log { .. } => self.0.join("stdout.log"),
            BoxOutput::Exact { .. } => self.0.join("stdout.bin"),
        }
    }

    /// The box's standard error.
    pub fn stderr(&self) -> PathBuf {
        self.0.join("stderr.log")
    }

    /// Every connection of the box, if it may have any.
    pub fn egress_log(&self) -> PathBuf {
        self.0.join("egress.jsonl")
    }

    /// Touched while the box computes.
    pub fn pulse(&self) -> PathBuf {
        self.0.join("pulse")
    }

    /// When the box last gave a sign of life: output, traffic, or computing.
    pub fn last_sign(&self, output: BoxOutput) -> Option<SystemTime> {
        let files = [self.stdout(output), self.stderr(), self.egress_log(), self.pulse()];
        let touched = |path: &PathBuf| std::fs::metadata(path).ok()?.modified().ok();
        files.iter().filter_map(touched).max()
    }

    /// Writes the order. No power failure leaves a box that needs it.
    pub fn save_config(&self, order: &ShimConfig) -> Result<(), BoxDirError> {
        self.save(ORDER_FILE, order, write_transient)
    }

    /// Reads the order.
    pub fn load_config(&self) -> Result<ShimConfig, BoxDirError> {
        let path = self.0.join(ORDER_FILE);
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        self.load(ORDER_FILE)?.ok_or_else(|| BoxDirError { doing: "read", path, source: absent() })
    }

    /// Writes who watches over the box.
    pub fn save_shim(&self, record: &ShimRecord) -> Result<(), BoxDirError> {
        self.save(SHIM_FILE, record, write_transient)
    }

    /// Who watches over the box, if anybody ever did.
    pub fn load_shim(&self) -> Result<Option<ShimRecord>, BoxDirError> {
        self.load(SHIM_FILE)
    }

    /// Writes how the box ended.
    pub fn save_exit(&self, record: &ExitRecord) -> Result<(), BoxDirError> {
        self.save(EXIT_FILE, record, write_atomic)
    }

    /// How the box ended, if it has. A record that breaks off says nothing: whoever wrote it did not get to its end.
    pub fn load_exit(&self) -> Result<Option<ExitRecord>, BoxDirError> {
        match self.load(EXIT_FILE) {
            Err(error) if error.doing == "understand" => Ok(None),
            read => read,
        }
    }

    /// Removes the copy of the guest program from a box that has ended: it is the same in every box, and records are
    /// kept for long.
    pub fn slim(&self) -> Result<(), BoxDirError> {
        if self.load_exit()?.is_none() {
            return Ok(());
        }
        let path = self.0.join("guest").join(guest::BINARY_FILE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(BoxDirError { doing: "remove", path, source: error })
            }
            _ => Ok(()),
        }
    }

    fn save(
        &self,
        name: &str,
        value: &impl Serialize,
        write: fn(&Path, &[u8], u32) -> Result<(), FileError>,
    ) -> Result<(), BoxDirError> {
        let path = self.0.join(name);
        let written = serde_json::to_vec_pretty(value)
            .map_err(io::Error::from)
            .and_then(|bytes| write(&path, &bytes, 0o600).map_err(io::Error::other));
        written.map_err(|source| BoxDirError { doing: "write", path, source })
    }

    fn load<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, BoxDirError> {
        let path = self.0.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| BoxDirError {
                doing: "understand",
                path,
                source: error.into(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(BoxDirError { doing: "read", path, source }),
        }
    }
}
