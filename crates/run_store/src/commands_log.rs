//! Record of every command that was run, for people: time, directory, command, exit and output.
//!
//! Output is redacted before it is shortened, because no redactor knows half a secret. Each record is one write at
//! the end of the file, so records of many threads never mix.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use host::file::FileError;
use model::command::{CommandRecord, render_record};
use model::redact::Redactor;

use crate::error::StoreError;
use crate::run_dir::RunDir;

/// File name of the commands log in a run directory.
pub const COMMANDS_LOG: &str = "commands.log";

/// Most bytes that are kept of one output of one command.
const BLOCK_CAP: usize = 64 * 1024;

const MODE: u32 = 0o600;

/// The commands log of one run, open for writing. Threads may share it.
#[derive(Debug)]
pub struct CommandsLog {
    run: Option<RunDir>,
    path: PathBuf,
    redactor: Arc<Redactor>,
    file: Mutex<File>,
    first_failure: Mutex<Option<StoreError>>,
}

impl CommandsLog {
    /// Opens the log of a run that is not closed, or starts it.
    pub fn open(run: &RunDir, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        run.ensure_open()?;
        Ok(Self { run: Some(run.clone()), ..Self::open_in(run.path(), redactor)? })
    }

    /// Opens the log in a directory that is closed by other means. The directory may be renamed meanwhile: the open
    /// file goes with it.
    pub fn open_in(dir: &Path, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        let path = dir.join(COMMANDS_LOG);
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(MODE)
            .open(&path)
            .map_err(FileError::io("open", &path))?;
        let first_failure = Mutex::new(None);
        Ok(Self { run: None, path, redactor, file: Mutex::new(file), first_failure })
    }

    pub fn append(&self, record: &CommandRecord) -> Result<(), StoreError> {
        if let Some(run) = &self.run {
            run.ensure_open()?;
        }
        let text = render_record(&redact(record, &self.redactor), BLOCK_CAP);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes()).map_err(FileError::io("append to", &self.path))?;
        Ok(())
    }

    /// Returns the log as a function to call after each command. A failed record does not undo its command: call
    /// [`take_failure`](Self::take_failure) before the run is judged.
    pub fn callback(self: &Arc<Self>) -> Arc<dyn Fn(CommandRecord) + Send + Sync> {
        let log = Arc::clone(self);
        Arc::new(move |record| {
            if let Err(error) = log.append(&record) {
                let mut first = log.first_failure.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(error);
            }
        })
    }

    /// Returns the first failure to write a record through a [`callback`](Self::callback), if any.
    pub fn take_failure(&self) -> Option<StoreError> {
        self.first_failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn redact(record: &CommandRecord, redactor: &Redactor) -> CommandRecord {
    let cwd = redactor.redact_bytes(record.cwd.as_os_str().as_bytes());
    CommandRecord {
        cwd: PathBuf::from(OsString::from_vec(cwd)),
        command: redactor.redact(&record.command).into_owned(),
        stdout: redactor.redact_bytes(&record.stdout),
        stderr: redactor.redact_bytes(&record.stderr),
        ..record.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::command::CommandExit;
    use model::id::ProjectName;
    use model::secret::Secret;

    use super::*;

    const SECRET: &str = "hunter2-hunter2";

    fn check(log_records: impl FnOnce(&RunDir, Arc<CommandsLog>)) -> String {
        let root = tempfile::tempdir().unwrap();
        let project = ProjectName::parse("app").unwrap();
        let run = RunDir::create(root.path(), &project, "2025-01-15T12:00:00Z".parse().unwrap());
        let run = run.unwrap();
        let redactor = Arc::new(Redactor::new([Secret::new(SECRET)]));
        log_records(&run, Arc::new(CommandsLog::open(&run, redactor).unwrap()));
        fs::read_to_string(run.commands_log()).unwrap()
    }

    fn record(stdout: &[u8]) -> CommandRecord {
        CommandRecord {
            started_at: "2025-01-15T12:00:01Z".parse().unwrap(),
            cwd: PathBuf::from("/tree"),
            command: "make test".to_owned(),
            exit: CommandExit::Exited(0),
            duration_ms: 5,
            stdout: stdout.to_vec(),
            stderr: Vec::new(),
            dropped_bytes: 0,
        }
    }

    #[test]
    fn records_follow_one_another_also_after_the_log_was_opened_again() {
        let text = check(|run, log| {
            log.append(&record(b"")).unwrap();
            let again = CommandsLog::open(run, Arc::new(Redactor::new([]))).unwrap();
            again.append(&record(b"all passed\n")).unwrap();
        });
        insta::assert_snapshot!(text, @"
        [2025-01-15T12:00:01Z] [CWD:/tree] [CMD:make test] [EXIT:0]
        [2025-01-15T12:00:01Z] [CWD:/tree] [CMD:make test] [EXIT:0]
        --- STDOUT ---
        all passed
        --- END STDOUT ---
        ");
    }

    #[test]
    fn a_secret_is_in_no_part_of_a_record() {
        let text = check(|_, log| {
            let output = format!("got {SECRET}\n").into_bytes();
            let record = CommandRecord {
                command: format!("curl {SECRET}"),
                cwd: PathBuf::from(format!("/tree/{SECRET}")),
                stderr: output.clone(),
                ..record(&output)
            };
            log.append(&record).unwrap();
        });
        assert!(!text.contains(SECRET), "{text}");
        assert_eq!(text.matches("***").count(), 4, "{text}");
    }

    #[test]
    fn a_secret_on_the_edge_of_what_is_left_out_is_not_kept_by_half() {
        let text = check(|_, log| {
            let mut output = vec![b'.'; BLOCK_CAP / 2 - 7];
            output.extend_from_slice(SECRET.as_bytes());
            output.resize(3 * BLOCK_CAP, b'.');
            log.append(&record(&output)).unwrap();
        });
        assert!(!text.contains("hunter2"), "half a secret was kept");
        assert!(text.len() < BLOCK_CAP + 500, "{}", text.len());
        assert!(text.contains("BYTES LEFT OUT ---"));
    }

    #[test]
    fn records_of_many_threads_never_mix() {
        const THREADS: usize = 8;
        const EACH: usize = 25;
        let text = check(|_, log| {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let note = log.callback();
                    let output = format!("{thread}\n").repeat(500).into_bytes();
                    scope.spawn(move || (0..EACH).for_each(|_| note(record(&output))));
                }
            });
            assert!(log.take_failure().is_none());
        });
        let blocks: Vec<&str> = text.split("--- STDOUT ---\n").skip(1).collect();
        assert_eq!(blocks.len(), THREADS * EACH);
        for block in blocks {
            let (output, _) = block.split_once("--- END STDOUT ---\n").unwrap();
            assert_eq!(output, format!("{}\n", &output[..1]).repeat(500));
        }
    }

    #[test]
    fn a_closed_run_gets_no_more_records_and_the_failure_is_kept() {
        let text = check(|run, log| {
            let note = log.callback();
            run.close(&Redactor::new([]), &"the end").unwrap();
            note(record(b"late"));
            assert!(matches!(log.take_failure(), Some(StoreError::Closed { .. })));
            assert!(log.take_failure().is_none());
            let reopened = CommandsLog::open(run, Arc::new(Redactor::new([])));
            assert!(matches!(reopened, Err(StoreError::Closed { .. })));
        });
        assert_eq!(text, "");
    }
}
