//! The runs of one host, linked: each line carries the digest of the line before it, and each run's signed
//! statement carries its position and that digest, so a deleted run or line is detected.
//!
//! The file is JSON lines. The first names the host. Lines that are dropped from the end leave a shorter
//! chain that is whole; the bottles' own records still name those runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::chain::{ChainFile, ChainFileError};
use host::random::RandomError;
use jiff::Timestamp;
use model::chain::{ChainHead, ChainLine, verify_chain, whole_lines};
use model::digest::hex;
use serde::{Deserialize, Serialize};

use crate::bottle_run::{EventLog, HostPlace};

const VERSION: u32 = 1;

/// Time to wait for the lock. A writer that holds it for longer is stuck, and the others report that.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The chain, open for writing. There is one writer at a time, in all processes; another one waits a while.
#[derive(Debug)]
pub struct HostChain {
    file: ChainFile,
    chain: RunChain,
}

/// A verified chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunChain {
    pub host: String,
    pub links: Vec<RunLink>,
    /// SHA-256 of the last line.
    pub head: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunLink {
    /// Its number, from 1.
    pub seq: u64,
    /// SHA-256 of the line before it.
    pub prev: String,
    pub ts: Timestamp,
    pub bottle: String,
    pub run: String,
    pub events: EventLog,
    /// SHA-256 of the payloads of its statements.
    pub statements: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainHeader {
    version: u32,
    host: String,
    made_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum HostChainError {
    #[error(transparent)]
    Log(#[from] ChainFileError),
    #[error("could not {doing} {path}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path}: line {line}: {what}", path = path.display())]
    Broken {
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        what: String,
    },
    /// The random name of the host could not be generated.
    #[error(transparent)]
    Random(#[from] RandomError),
    #[error("a line could not be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl HostChain {
    /// Opens the chain for writing, and creates it if there is none. Waits a while for another writer. A torn
    /// line at the end, which a crash leaves, is cut off before the next line.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, HostChainError> {
        let (mut file, bytes) = ChainFile::open_or_create(path, LOCK_WAIT)?;
        if let Some(chain) = parse(&bytes, path)? {
            return Ok(Self { file, chain });
        }
        let host = hex(&host::random::bytes::<16>()?);
        let header = ChainHeader { version: VERSION, host: host.clone(), made_at: now };
        let line = serde_json::to_string(&header)?;
        file.cut_torn_end()?;
        file.append(&line)?;
        // A new file is on disk only when its folder is.
        let folder = path.parent().unwrap_or(Path::new("."));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(io("bring to disk", folder))?;
        let head = ChainHead::genesis(line.as_bytes()).head;
        Ok(Self { file, chain: RunChain { host, links: Vec::new(), head } })
    }

    pub fn next_place(&self) -> HostPlace {
        let chain = &self.chain;
        let seq = chain.links.last().map_or(1, |link| link.seq + 1);
        HostPlace { host: chain.host.clone(), seq, prev: chain.head.clone() }
    }

    pub fn chain(&self) -> &RunChain {
        &self.chain
    }

    /// Links a run at the next place, and waits until the line is on disk.
    pub fn append(
        &mut self,
        now: Timestamp,
        (bottle, run): (&str, &str),
        events: EventLog,
        statements: Vec<String>,
    ) -> Result<(), HostChainError> {
        let place = self.next_place();
        let link = RunLink {
            seq: place.seq,
            prev: place.prev,
            ts: now,
            bottle: bottle.to_owned(),
            run: run.to_owned(),
            events,
            statements,
        };
        let line = serde_json::to_string(&link)?;
        self.file.cut_torn_end()?;
        self.file.append(&line)?;
        self.chain.head = ChainHead::genesis(line.as_bytes()).head;
        self.chain.links.push(link);
        Ok(())
    }
}

impl RunChain {
    /// Loads a chain and checks every link; `None` if there is none.
    pub fn load(path: &Path) -> Result<Option<Self>, HostChainError> {
        match fs::read(path) {
            Ok(bytes) => parse(&bytes, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io("read", path)(error)),
        }
    }

    pub fn find(&self, run: &str) -> Option<&RunLink> {
        self.links.iter().find(|link| link.run == run)
    }
}

impl ChainLine for RunLink {
    fn seq(&self) -> u64 {
        self.seq
    }

    fn prev(&self) -> &str {
        &self.prev
    }
}

/// Parses and verifies the complete lines of a chain: a header, then the runs, of which the first follows the header.
/// An empty file has no chain.
fn parse(bytes: &[u8], path: &Path) -> Result<Option<RunChain>, HostChainError> {
    let broken = |line, what| HostChainError::Broken { path: path.to_path_buf(), line, what };
    let whole = whole_lines(bytes);
    let Some(end) = whole.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
    let (first, rest) = (&whole[..end], &whole[end + 1..]);
    let header: ChainHeader = serde_json::from_slice(first)
        .map_err(|error| broken(1, format!("it does not name the host: {error}")))?;
    if header.version != VERSION {
        let what = format!("its version is {}; this program knows {VERSION}", header.version);
        return Err(broken(1, what));
    }
    let runs = verify_chain::<RunLink>(rest, ChainHead::genesis(first))
        .map_err(|fault| broken(fault.line + 1, fault.what.to_string()))?;
    Ok(Some(RunChain { host: header.host, links: runs.lines, head: runs.head.head }))
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> HostChainError {
    let path = path.to_path_buf();
    move |source| HostChainError::Io { doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> Timestamp {
        "2025-01-15T12:00:00Z".parse().unwrap()
    }

    fn events() -> EventLog {
        EventLog { file: "operations.jsonl".to_owned(), head: "00".to_owned(), count: 3 }
    }

    fn of_three(dir: &Path) -> PathBuf {
        let path = dir.join("runs.jsonl");
        for run in ["one", "two", "three"] {
            let mut chain = HostChain::open(&path, noon()).unwrap();
            chain.append(noon(), ("bottle", run), events(), vec!["ab".to_owned()]).unwrap();
        }
        path
    }

    #[test]
    fn runs_are_numbered_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let chain = RunChain::load(&of_three(dir.path())).unwrap().unwrap();
        assert_eq!(chain.links.len(), 3);
        assert_eq!(chain.find("two").map(|link| link.seq), Some(2));
        assert_eq!(chain.find("four"), None);
        let open = HostChain::open(&dir.path().join("runs.jsonl"), noon()).unwrap();
        let place = open.next_place();
        assert_eq!((place.seq, place.prev), (4, chain.head));
    }

    #[test]
    fn a_line_that_was_changed_moved_or_removed_is_noticed_by_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = of_three(dir.path());
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (changed, line) in [
            (vec![lines[0], lines[1], lines[3]], "line 3"),
            (vec![lines[0], lines[2], lines[1], lines[3]], "line 2"),
            (vec![lines[0], &lines[1].replace("one", "uno"), lines[2], lines[3]], "line 3"),
            (vec![lines[1], lines[2]], "line 1"),
        ] {
            fs::write(&path, changed.join("\n") + "\n").unwrap();
            let words = RunChain::load(&path).unwrap_err().to_string();
            assert!(words.contains(line), "{words}");
            assert!(HostChain::open(&path, noon()).is_err());
        }
    }

    #[test]
    fn half_a_line_of_a_crash_is_cut_off_by_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = of_three(dir.path());
        let torn = fs::read_to_string(&path).unwrap() + "{\"seq\":4,";
        fs::write(&path, torn).unwrap();
        let mut chain = HostChain::open(&path, noon()).unwrap();
        chain.append(noon(), ("bottle", "four"), events(), Vec::new()).unwrap();
        drop(chain);
        assert_eq!(RunChain::load(&path).unwrap().unwrap().links.len(), 4);
    }

    #[test]
    fn no_chain_is_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(RunChain::load(&dir.path().join("none")).unwrap(), None);
    }
}
