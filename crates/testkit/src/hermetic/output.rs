//! Output of a finished command.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process;

use super::redact::redact_below;

/// Status, stdout and stderr of a finished command.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output, invalid UTF-8 replaced.
    pub stdout: String,
    /// Standard error, invalid UTF-8 replaced.
    pub stderr: String,
    root: PathBuf,
}

impl Output {
    pub(super) fn new(output: &process::Output, root: &Path) -> Self {
        Self {
            status: output.status.code(),
            signal: output.status.signal(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            root: root.to_owned(),
        }
    }

    /// The command ended with status 0.
    pub fn success(&self) -> bool {
        self.status == Some(0)
    }

    /// All of it as one redacted text.
    pub fn snapshot(&self) -> String {
        let end = match (self.status, self.signal) {
            (Some(status), _) => format!("status: {status}"),
            (None, Some(signal)) => format!("signal: {signal}"),
            (None, None) => "status: unknown".to_owned(),
        };
        let stdout = ended(&self.stdout);
        let stderr = ended(&self.stderr);
        redact_below(&self.root, &format!("{end}\n--- stdout\n{stdout}--- stderr\n{stderr}"))
    }
}

/// A text that lacks its last line break gets one, said so that the snapshot still tells the difference.
fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}[no line break]\n")
    }
}
