//! The end of a lease as a file: its holder moves it forward, and the shim and the sidecar of a run end by themselves when
//! it has passed, also if the holder hangs or was stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::clock::{BootTimer, boottime};
use host::file::{FileError, write_transient};
use serde::{Deserialize, Serialize};

/// A file with a time on the boot-time clock of this machine, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseFile(PathBuf);

/// Name of the file in a run directory.
const FILE: &str = "lease";

impl LeaseFile {
    pub fn of_run(run_dir: &Path) -> Self {
        Self(run_dir.join(FILE))
    }

    /// The file of a run whose lease its boxes end with.
    pub fn find(run_dir: &Path) -> Option<Self> {
        Some(Self::of_run(run_dir)).filter(|file| file.0.exists())
    }

    /// Writes a new end. Not durable: no process that reads it outlives the machine.
    pub fn write(&self, end: Duration) -> Result<(), FileError> {
        write_transient(&self.0, end.as_millis().to_string().as_bytes(), 0o600)
    }

    /// The end; `None` if it cannot be read. A lease without a known end is over.
    fn read(&self) -> Option<Duration> {
        fs::read_to_string(&self.0).ok()?.parse().ok().map(Duration::from_millis)
    }

    /// Waits until the end has passed, however often it is moved.
    pub async fn ended(&self) {
        loop {
            let Some(end) = self.read() else { return };
            if end <= boottime() {
                return;
            }
            match BootTimer::at(end) {
                // A timer that fails would let the lease run on.
                Err(_) => return,
                Ok(timer) => match timer.wait().await {
                    Ok(()) => {}
                    Err(_) => return,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, LeaseFile) {
        let dir = tempfile::tempdir().expect("a folder");
        let file = LeaseFile::of_run(dir.path());
        (dir, file)
    }

    #[tokio::test]
    async fn a_lease_that_is_moved_forward_goes_on_and_one_that_is_not_ends() {
        let (_dir, file) = place();
        let (first, second) = (Duration::from_millis(300), Duration::from_millis(900));
        let begun = boottime();
        file.write(begun + first).expect("written");
        let mut ended = std::pin::pin!(file.ended());
        tokio::select! {
            () = &mut ended => panic!("it ended before its end"),
            () = tokio::time::sleep(first / 3) => file.write(begun + second).expect("moved"),
        }
        ended.await;
        // The file has whole milliseconds.
        assert!(boottime().as_millis() >= (begun + second).as_millis());
    }

    #[tokio::test]
    async fn a_lease_without_a_known_end_is_over() {
        let (dir, file) = place();
        file.ended().await;
        fs::write(dir.path().join(FILE), "soon").expect("written");
        file.ended().await;
        file.write(Duration::ZERO).expect("written");
        file.ended().await;
    }
}
