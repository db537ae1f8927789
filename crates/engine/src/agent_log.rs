//! Log of an agent while it works: followed line by line, each line parsed by its provider's rules.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::{AgentReport, EventReader, Progress, Provider, Usage};

/// Time between two reads.
const PAUSE: Duration = Duration::from_millis(200);

/// A line longer than this is parsed before its end; the reader cuts it anyway.
const LINE_CAP: usize = 4 << 20;

/// Follows the log of one agent.
pub struct Listener {
    path: PathBuf,
    file: Option<File>,
    rest: Vec<u8>,
    reader: EventReader,
}

impl Listener {
    /// Begins at the start of the log, whether it is there yet or not.
    pub fn new(provider: Provider, log: &Path) -> Self {
        Self::resuming(provider, log, Usage::default())
    }

    /// As [`Listener::new`], for a resumed conversation. `earlier` is its last [`AgentReport::thread_usage`], which some
    /// agents count again.
    pub fn resuming(provider: Provider, log: &Path, earlier: Usage) -> Self {
        Self {
            path: log.to_path_buf(),
            file: None,
            rest: Vec::new(),
            reader: EventReader::resuming(provider, earlier),
        }
    }

    /// Reports progress for ever. To be dropped when the box has ended.
    pub async fn follow(&mut self, mut report: impl FnMut(Progress)) -> Infallible {
        loop {
            // A log that cannot be read now may be readable in a moment; in the end `finish` reads it again.
            if let Ok(progress) = self.catch_up() {
                progress.into_iter().for_each(&mut report);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads the rest of the log and returns the agent's report.
    pub fn finish(mut self, exit: Option<i32>, mut report: impl FnMut(Progress)) -> AgentReport {
        if let Ok(progress) = self.catch_up() {
            progress.into_iter().for_each(&mut report);
        }
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.reader
                .push_line(&String::from_utf8_lossy(&rest))
                .into_iter()
                .for_each(&mut report);
        }
        self.reader.finish(exit)
    }

    fn catch_up(&mut self) -> io::Result<Vec<Progress>> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::open(&self.path)?),
        };
        file.read_to_end(&mut self.rest)?;
        let mut progress = Vec::new();
        let mut start = 0;
        while let Some(end) = self.rest[start..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[start..start + end]);
            progress.extend(self.reader.push_line(&line));
            start += end + 1;
        }
        self.rest.drain(..start);
        if self.rest.len() > LINE_CAP {
            let line = std::mem::take(&mut self.rest);
            progress.extend(self.reader.push_line(&String::from_utf8_lossy(&line)));
        }
        Ok(progress)
    }
}
