//! The log of an agent as a person reads it: its messages, and its tool calls with their results, in place of its events.

use std::time::Duration;

use agent::{EventReader, Progress, Provider, ToolEnd, ToolKind, snippet};
use host::process::{LogTimes, parse_left_out};

use crate::box_dir::BoxDir;
use crate::test_count::{TestCount, parse_test_output};

/// Shorter calls are shown without their duration.
const SHORT_MS: u64 = 100;

/// One entry of an agent's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// Words of the agent.
    Message(String),
    /// A tool call that has ended.
    Call(LogCall),
    /// The model returned an error, and the agent asks again.
    Retry(String),
    /// A line that is no event, as it was printed.
    Line(String),
}

/// A tool call that has ended. All of it is a claim of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCall {
    /// As a sentence in the past.
    pub action: String,
    /// Its result, where that is worth a word.
    pub result: Option<String>,
    pub took_ms: Option<u64>,
    /// The end of its output.
    pub output: String,
    pub is_failed: bool,
}

/// Renders the log of one agent, line by line from its start.
#[derive(Debug)]
pub struct LogText {
    reader: EventReader,
    times: LogTimes,
    /// Place in the whole output.
    offset: u64,
}

impl LogText {
    pub fn new(provider: Provider) -> Self {
        Self { reader: EventReader::new(provider), times: LogTimes::default(), offset: 0 }
    }

    /// For the log of a box; `None` if no agent is known to have run in it, or one without events.
    pub fn of_box(box_dir: &BoxDir) -> Option<Self> {
        let name = std::fs::read_to_string(box_dir.provider()).ok()?;
        let provider = Provider::parse(name.trim()).ok()?;
        let text = Self::new(provider);
        provider.has_events().then(|| Self { times: LogTimes::read(&box_dir.times()), ..text })
    }

    /// Takes up times that were added since.
    pub fn read_times(&mut self, box_dir: &BoxDir) {
        self.times = LogTimes::read(&box_dir.times());
    }

    /// For a log of which only the part from `offset` on is read.
    #[must_use]
    pub fn starting_at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// Renders one line, with its line break if it has one. A line that is no event stays as it is.
    pub fn push_line(&mut self, line: &str) -> String {
        self.read_line(line).iter().map(render_entry).collect()
    }

    /// Reads the entries of one line, with its line break if it has one.
    pub fn read_line(&mut self, line: &str) -> Vec<LogEntry> {
        let at = self.times.at(self.offset + line.len().saturating_sub(1) as u64);
        self.advance(line);
        let unknown = self.reader.unknown_count();
        let progress = self.reader.push_line_at(line.trim_end(), at);
        // The reader skips blank lines; output of commands may be anything, objects too.
        if line.trim().is_empty() || self.reader.unknown_count() > unknown {
            return vec![LogEntry::Line(line.to_owned())];
        }
        progress.into_iter().filter_map(read_progress).collect()
    }

    /// Calls that have begun and not ended.
    pub fn open_actions(&self) -> impl Iterator<Item = &str> {
        self.reader.open_actions()
    }

    /// Renders what has begun and not ended when the log ends.
    pub fn finish(&self) -> String {
        self.reader.open_actions().map(|action| format!("  {action} → did not end\n")).collect()
    }

    fn advance(&mut self, line: &str) {
        match parse_left_out(format!("\n{line}").as_bytes()) {
            // The line stands for the dropped bytes, and the break before it is not the program's either.
            Some((left_out, _)) => self.offset = (self.offset + left_out).saturating_sub(1),
            None => self.offset += line.len() as u64,
        }
    }
}

fn read_progress(progress: Progress) -> Option<LogEntry> {
    match progress {
        Progress::Text(text) => Some(LogEntry::Message(text)),
        Progress::ToolEnd(end) => {
            let result = render_result(&end);
            let ToolEnd { action, output, took_ms, ok, .. } = end;
            Some(LogEntry::Call(LogCall { action, result, took_ms, output, is_failed: !ok }))
        }
        Progress::Retrying { reason } => Some(LogEntry::Retry(reason)),
        Progress::SessionStarted { .. } | Progress::ToolCall { .. } | Progress::Tokens(_) => None,
    }
}

fn render_entry(entry: &LogEntry) -> String {
    match entry {
        LogEntry::Message(text) => format!("{text}\n"),
        LogEntry::Call(call) => format!("  {}\n", render_call(call)),
        LogEntry::Retry(reason) => format!("  asking the model again: {reason}\n"),
        LogEntry::Line(line) => line.clone(),
    }
}

fn render_call(call: &LogCall) -> String {
    let mut text = call.action.clone();
    if let Some(result) = &call.result {
        text.push_str(" → ");
        text.push_str(result);
    }
    if let Some(took) = call.took() {
        text.push_str(&format!(" ({took})"));
    }
    text
}

impl LogCall {
    /// Its duration, where that is worth a word.
    pub fn took(&self) -> Option<String> {
        self.took_ms.filter(|ms| *ms >= SHORT_MS).map(render_duration)
    }
}

/// The result of a call that failed, or of a command that ran tests.
fn render_result(end: &ToolEnd) -> Option<String> {
    if let Some(tests) = tests_of(end) {
        return Some(render_tests(tests));
    }
    if end.ok {
        return None;
    }
    let status = end.status.map(|status| format!("status {status}"));
    let last = end.output.lines().map(str::trim).rfind(|line| !is_noise(line)).map(snippet);
    Some(match (status, last) {
        (Some(status), Some(last)) => format!("{status}: {last}"),
        (Some(status), None) => status,
        (None, Some(last)) => format!("failed: {last}"),
        (None, None) => "failed".to_owned(),
    })
}

/// Tests that a command ran, where their count fits its outcome.
fn tests_of(end: &ToolEnd) -> Option<TestCount> {
    let is_command = end.kind == ToolKind::Command;
    let tests = is_command.then(|| parse_test_output(&end.output)).flatten();
    tests.filter(|tests| tests.ran() > 0 && (tests.failed > 0) != end.ok)
}

/// Lines that agents add to the output of a command, which only repeat its status.
fn is_noise(line: &str) -> bool {
    line.is_empty()
        || line == "(no output)"
        || line.starts_with("Exit code ")
        || line.starts_with("Command exited with code ")
}

fn render_tests(tests: TestCount) -> String {
    let parts = [(tests.failed, "failed"), (tests.passed, "passed"), (tests.skipped, "skipped")];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

fn render_duration(ms: u64) -> String {
    let secs = Duration::from_millis(ms).as_secs();
    match secs {
        0..10 => format!("{}.{} s", secs, ms % 1000 / 100),
        10..120 => format!("{secs} s"),
        _ => format!("{} min {} s", secs / 60, secs % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../agent/tests/samples");

    fn render(provider: Provider, text: &str) -> String {
        let mut log = LogText::new(provider);
        let mut shown: String =
            text.split_inclusive('\n').map(|line| log.push_line(line)).collect();
        shown.push_str(&log.finish());
        shown
    }

    fn sample(provider: Provider, name: &str) -> String {
        let text = std::fs::read_to_string(format!("{SAMPLES}/{name}.jsonl")).expect("a sample");
        render(provider, &text)
    }

    #[test]
    fn a_command_that_fails_reads_the_same_from_every_agent() {
        for (provider, name) in [
            (Provider::Claude, "claude-tool-exit3"),
            (Provider::Codex, "codex-tool-exit3"),
            (Provider::Pi, "pi-tool-exit3"),
        ] {
            let expected = "  ran `exit 3` → status 3\nthe command failed\n";
            assert_eq!(sample(provider, name), expected, "{name}");
        }
        let expected = "  ran `exit 3` → status 3 (0.8 s)\nthe command failed\n";
        assert_eq!(sample(Provider::OpenCode, "opencode-tool-exit3"), expected);
    }

    #[test]
    fn tests_are_counted_only_where_the_count_fits_the_outcome() {
        let claude = |output: &str, is_error: bool| {
            let call = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"npm test"}}]}}"#;
            let output = serde_json::json!(output);
            let result = format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","content":{output},"is_error":{is_error},"tool_use_id":"t1"}}]}}}}"#
            );
            render(Provider::Claude, &format!("{call}\n{result}\n"))
        };
        let failed = "Exit code 1\nTests:       3 failed, 10 passed, 13 total";
        assert_eq!(claude(failed, true), "  ran `npm test` → 3 failed, 10 passed\n");
        let passed = "Tests:       10 passed, 10 total";
        assert_eq!(claude(passed, false), "  ran `npm test` → 10 passed\n");
        // A command that ends with 0 after a failed test, or with 1 after none, is not what its count says.
        assert_eq!(claude(failed, false), "  ran `npm test`\n");
        let odd =
            "Exit code 2\nTests:       10 passed, 10 total\nnpm error Lifecycle script failed";
        assert_eq!(
            claude(odd, true),
            "  ran `npm test` → status 2: npm error Lifecycle script failed\n"
        );
    }

    #[test]
    fn a_duration_comes_from_the_times_of_the_log_and_a_call_may_never_end() {
        let dir = tempfile::tempdir().expect("a folder");
        let box_dir = BoxDir::new(dir.path());
        let begin = "{\"type\":\"item.started\",\"item\":{\"id\":\"1\",\"type\":\"command_execution\",\"command\":\"make\"}}\n";
        let end = "{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"command_execution\",\"command\":\"make\",\"exit_code\":0,\"status\":\"completed\"}}\n";
        let times = format!("0 1000\n{} 13500\n", begin.len());
        std::fs::write(box_dir.times(), times).expect("written");
        std::fs::write(box_dir.provider(), "codex").expect("written");
        let mut log = LogText::of_box(&box_dir).expect("an agent");
        assert_eq!(log.push_line(begin), "");
        assert_eq!(log.finish(), "  ran `make` → did not end\n");
        assert_eq!(log.push_line(end), "  ran `make` (12 s)\n");
        for line in ["plain\n", "\n", "5\n", "{\"status\": \"success\"}\n"] {
            assert_eq!(log.push_line(line), line);
        }
        std::fs::write(box_dir.provider(), "command").expect("written");
        assert!(LogText::of_box(&box_dir).is_none());
    }

    #[test]
    fn durations_are_short() {
        assert_eq!([900, 12_400, 754_000].map(render_duration), ["0.9 s", "12 s", "12 min 34 s"]);
    }
}
