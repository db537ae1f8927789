//! Outcome of a command, as recorded in `commands.log`.
//!
//! ```text
//! [2025-01-15T12:00:01Z] [CWD:/path/to/worktree] [CMD:make test-unit] [EXIT:0]
//! --- STDOUT ---
//! All tests passed.
//! --- END STDOUT ---
//! ```
//! Output of the program must stay between the markers: a line of it that looks like one of ours gets a `\` before it, and
//! characters that act on a terminal are escaped.

use super::quote::quote;
use crate::escape::{escape_line, escape_terminal};
use jiff::Timestamp;
use std::path::PathBuf;

/// A command that was run, or that could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRecord {
    pub started_at: Timestamp,
    pub cwd: PathBuf,
    /// The command as [`render_command`](super::render_command) shows it.
    pub command: String,
    pub exit: CommandExit,
    pub duration_ms: u64,
    /// Kept part of standard output.
    pub stdout: Vec<u8>,
    /// Kept part of standard error.
    pub stderr: Vec<u8>,
    /// Bytes of both that were not kept.
    pub dropped_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandExit {
    Exited(i32),
    Signalled(i32),
    /// Ended by this program at the time limit.
    TimedOut,
    NotStarted,
}

/// Renders the record for the log, with at most `cap` bytes of each output. It must be redacted before: no redactor knows
/// half a secret.
pub fn render_record(record: &CommandRecord, cap: usize) -> String {
    let mut text = format!(
        "[{at}] [CWD:{cwd}] [CMD:{command}] [EXIT:{exit}]\n",
        at = record.started_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        cwd = quote(&record.cwd.to_string_lossy()),
        command = escape_line(&record.command),
        exit = render_exit(record.exit),
    );
    push_block(&mut text, "STDOUT", &record.stdout, cap);
    push_block(&mut text, "STDERR", &record.stderr, cap);
    if record.dropped_bytes > 0 {
        text.push_str(&format!("--- {} BYTES NOT KEPT ---\n", record.dropped_bytes));
    }
    text
}

fn render_exit(exit: CommandExit) -> String {
    match exit {
        CommandExit::Exited(code) => code.to_string(),
        CommandExit::Signalled(signal) => format!("signal-{signal}"),
        CommandExit::TimedOut => "timeout".to_owned(),
        CommandExit::NotStarted => "not-started".to_owned(),
    }
}

/// Adds an output unless it is empty. Bytes beyond the cap are cut from the middle, since programs print the task at the
/// start and the result at the end.
fn push_block(text: &mut String, name: &str, output: &[u8], cap: usize) {
    if output.is_empty() {
        return;
    }
    text.push_str(&format!("--- {name} ---\n"));
    if output.len() <= cap {
        push_lines(text, output);
    } else {
        let head = cap / 2;
        let tail = output.len() - (cap - head);
        push_lines(text, &output[..head]);
        text.push_str(&format!("--- {} BYTES LEFT OUT ---\n", tail - head));
        push_lines(text, &output[tail..]);
    }
    text.push_str(&format!("--- END {name} ---\n"));
}

fn push_lines(text: &mut String, output: &[u8]) {
    let output = String::from_utf8_lossy(output);
    for line in escape_terminal(&output).split_terminator('\n') {
        if looks_like_ours(line) {
            text.push('\\');
        }
        text.push_str(line);
        text.push('\n');
    }
}

/// Returns whether a reader of the log, also one that trims lines, could take this for a marker or a header.
fn looks_like_ours(line: &str) -> bool {
    let line = line.trim();
    let is_marker = line.starts_with("--- ") && line.ends_with(" ---");
    let is_header = line.starts_with('[') && line.contains("] [CMD:");
    is_marker || is_header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(stdout: &[u8], stderr: &[u8]) -> CommandRecord {
        CommandRecord {
            started_at: "2025-01-15T12:00:01.25Z".parse().unwrap(),
            cwd: PathBuf::from("/path/to/worktree"),
            command: "make test-unit".to_owned(),
            exit: CommandExit::Exited(0),
            duration_ms: 12,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            dropped_bytes: 0,
        }
    }

    #[test]
    fn a_silent_command_is_one_line() {
        insta::assert_snapshot!(render_record(&record(b"", b""), 100), @"[2025-01-15T12:00:01Z] [CWD:/path/to/worktree] [CMD:make test-unit] [EXIT:0]");
    }

    #[test]
    fn both_outputs_have_their_block() {
        insta::assert_snapshot!(render_record(&record(b"one\ntwo", b"oh\xff\r\n\n"), 100), @r"
        [2025-01-15T12:00:01Z] [CWD:/path/to/worktree] [CMD:make test-unit] [EXIT:0]
        --- STDOUT ---
        one
        two
        --- END STDOUT ---
        --- STDERR ---
        oh�\r

        --- END STDERR ---
        ");
    }

    #[test]
    fn the_middle_of_a_long_output_is_left_out_and_counted() {
        let record = CommandRecord { dropped_bytes: 77, ..record(b"0123456789abcdef", b"") };
        insta::assert_snapshot!(render_record(&record, 6), @"
        [2025-01-15T12:00:01Z] [CWD:/path/to/worktree] [CMD:make test-unit] [EXIT:0]
        --- STDOUT ---
        012
        --- 10 BYTES LEFT OUT ---
        def
        --- END STDOUT ---
        --- 77 BYTES NOT KEPT ---
        ");
    }

    #[test]
    fn a_program_cannot_forge_a_marker_or_a_header() {
        let forged = b"--- END STDOUT ---\n  --- STDERR ---\t\n--- 3 BYTES NOT KEPT ---\r\n[x] [CWD:/] [CMD:y] [EXIT:0]\n--- a/file\n";
        insta::assert_snapshot!(render_record(&record(forged, b""), 1000), @r"
        [2025-01-15T12:00:01Z] [CWD:/path/to/worktree] [CMD:make test-unit] [EXIT:0]
        --- STDOUT ---
        \--- END STDOUT ---
        \  --- STDERR ---	
        --- 3 BYTES NOT KEPT ---\r
        \[x] [CWD:/] [CMD:y] [EXIT:0]
        --- a/file
        --- END STDOUT ---
        ");
    }

    #[test]
    fn the_header_is_one_line_whatever_the_command_and_the_directory_hold() {
        let record = CommandRecord {
            command: "a\n[EXIT:0]\x1b".to_owned(),
            cwd: PathBuf::from("/a] [CMD:x\n"),
            ..record(b"", b"")
        };
        assert_eq!(
            render_record(&record, 0),
            "[2025-01-15T12:00:01Z] [CWD:$'/a] [CMD:x\\n'] [CMD:a\\n[EXIT:0]\\x1b] [EXIT:0]\n"
        );
    }

    #[test]
    fn every_end_has_its_word() {
        let ends = [
            CommandExit::Exited(-1),
            CommandExit::Signalled(9),
            CommandExit::TimedOut,
            CommandExit::NotStarted,
        ];
        assert_eq!(ends.map(render_exit), ["-1", "signal-9", "timeout", "not-started"]);
    }

    proptest! {
        #[test]
        fn each_marker_stands_once_whatever_a_program_prints(
            parts in prop::collection::vec(prop::sample::select(vec![
                "--- END STDOUT ---", "--- STDOUT ---", "\n", "\r", " ", "x", "\u{2028}", "-",
            ]), 0..20),
            cap in 0..80_usize,
        ) {
            let text = render_record(&record(format!("{}x", parts.concat()).as_bytes(), b""), cap);
            for marker in ["--- STDOUT ---", "--- END STDOUT ---"] {
                prop_assert_eq!(text.lines().filter(|line| line.trim() == marker).count(), 1);
            }
        }
    }
}
