//! Steps of a run: what its agent said and did, in the order of its log.

use engine::agent_log::{LogCall, LogEntry, LogText};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogStep {
    /// Place of its end in the log, by which a page finds it again.
    pub(crate) place: u64,
    pub(crate) kind: LogStepKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogStepKind {
    Message(String),
    Call(LogCall),
    Retry(String),
    /// Lines that are no events, as they were printed.
    Lines(String),
}

impl LogStep {
    pub(crate) fn is_failed(&self) -> bool {
        matches!(&self.kind, LogStepKind::Call(LogCall { is_failed: true, .. }))
    }

    /// True if it has these words, whatever their case.
    pub(crate) fn has(&self, words: &str) -> bool {
        let words = words.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&words);
        match &self.kind {
            LogStepKind::Message(text) | LogStepKind::Retry(text) | LogStepKind::Lines(text) => {
                has(text)
            }
            LogStepKind::Call(call) => {
                has(&call.action) || has(&call.output) || call.result.as_deref().is_some_and(has)
            }
        }
    }
}

/// Reads the steps of a log slice by slice: a call may begin in one and end in another.
#[derive(Debug)]
pub(crate) struct StepReader {
    log: LogText,
    place: u64,
}

impl StepReader {
    /// A reader of the part of a log from `offset` on.
    pub(crate) fn new(log: LogText, offset: u64) -> Self {
        Self { log: log.starting_at(offset), place: offset }
    }

    pub(crate) fn log_mut(&mut self) -> &mut LogText {
        &mut self.log
    }

    pub(crate) fn push(&mut self, text: &str) -> Vec<LogStep> {
        let mut steps: Vec<LogStep> = Vec::new();
        for line in text.split_inclusive('\n') {
            self.place += line.len() as u64;
            for entry in self.log.read_line(line) {
                let kind = match (entry, steps.last_mut()) {
                    (
                        LogEntry::Line(line),
                        Some(LogStep { kind: LogStepKind::Lines(lines), .. }),
                    ) => {
                        lines.push_str(&line);
                        continue;
                    }
                    (LogEntry::Line(line), _) => LogStepKind::Lines(line),
                    (LogEntry::Message(text), _) => LogStepKind::Message(text),
                    (LogEntry::Call(call), _) => LogStepKind::Call(call),
                    (LogEntry::Retry(reason), _) => LogStepKind::Retry(reason),
                };
                steps.push(LogStep { place: self.place, kind });
            }
        }
        steps
    }

    /// Work that has begun and not ended, in one line; empty if nothing has.
    pub(crate) fn open(&self) -> String {
        // An action is a sentence in the past, and a command that runs is not over.
        let now = |action: &str| match action.strip_prefix("ran ") {
            Some(command) => format!("running {command}"),
            None => action.to_owned(),
        };
        self.log.open_actions().map(now).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use agent::Provider;

    use super::*;

    const BEGIN: &str = "{\"type\":\"item.started\",\"item\":{\"id\":\"1\",\"type\":\"command_execution\",\"command\":\"make\"}}\n";
    const END: &str = "{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"command_execution\",\"command\":\"make\",\"aggregated_output\":\"No rule\\n\",\"exit_code\":2,\"status\":\"failed\"}}\n";

    #[test]
    fn a_call_may_begin_in_one_slice_and_end_in_another_and_lines_are_put_together() {
        let mut reader = StepReader::new(LogText::new(Provider::Codex), 100);
        let first = reader.push(&format!("one\ntwo\n{BEGIN}"));
        assert_eq!(first.len(), 1, "{first:?}");
        assert_eq!(first[0].kind, LogStepKind::Lines("one\ntwo\n".to_owned()));
        assert!(!first[0].is_failed() && first[0].has("TWO") && !first[0].has("make"));
        assert_eq!(reader.open(), "running `make`");
        let second = reader.push(END);
        assert_eq!((second.len(), reader.open().as_str()), (1, ""), "{second:?}");
        assert!(second[0].is_failed() && second[0].has("no rule"), "{second:?}");
        assert_eq!(second[0].place, 100 + 8 + (BEGIN.len() + END.len()) as u64);
    }
}
