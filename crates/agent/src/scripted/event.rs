//! Reads what the player told on stdout.
//!
//! The commands of a script write to the same stdout, so anything may stand between the events, and
//! a command may even print lines that look like them. A report is what the agent said, no more.

use serde::Deserialize;
use serde_json::Value;

use crate::draft::Draft;
use crate::field::snippet;
use crate::reader::Taken;
use crate::report::Outcome;

/// What a scripted agent said about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptReport {
    /// The steps that were begun, in order.
    pub steps: Vec<StepReport>,
    /// The status of the script, or of its last finished step when the script did not end by itself.
    pub last_status: Option<i32>,
    /// The last question to a person.
    pub question: Option<String>,
    /// All other lines, as text.
    pub unknown: Vec<String>,
}

/// One step that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// Its place in the script, from 0.
    pub index: u64,
    /// What kind of step it is.
    pub kind: String,
    /// What it is about.
    pub detail: String,
    /// How it ended; absent when it did not.
    pub status: Option<i32>,
}

/// Reads the lines of the player.
pub fn read_events<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> ScriptReport {
    let mut report = ScriptReport::default();
    for line in lines {
        let line = line.as_ref();
        match serde_json::from_str(line) {
            Ok(event) => report.take(event),
            Err(_text) => report.unknown.push(line.to_owned()),
        }
    }
    report
}

/// One line of the player.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Event {
    Step { index: u64, kind: String, detail: String },
    StepDone { index: u64, status: i32 },
    Clarification { question: String },
    Result { status: i32 },
}

impl ScriptReport {
    fn take(&mut self, event: Event) {
        match event {
            Event::Step { index, kind, detail } => {
                self.steps.push(StepReport { index, kind, detail, status: None });
            }
            Event::StepDone { index, status } => {
                self.last_status = Some(status);
                if let Some(step) = self.steps.iter_mut().rev().find(|step| step.index == index) {
                    step.status = Some(status);
                }
            }
            Event::Clarification { question } => self.question = Some(question),
            Event::Result { status } => self.last_status = Some(status),
        }
    }
}

/// What is known so far, for the reader of all agents.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    question: Option<String>,
    /// The status of the whole script.
    status: Option<i32>,
}

impl Reading {
    pub(crate) fn take(&mut self, event: Value, draft: &mut Draft) -> Taken {
        let Ok(event) = serde_json::from_value(event) else { return Taken::Unknown };
        match event {
            Event::Step { index, kind, detail } => {
                draft.open_call(&index.to_string(), &kind, snippet(&detail));
            }
            Event::StepDone { index, status } => {
                draft.close_call(&index.to_string(), status == 0);
            }
            Event::Clarification { question } => {
                draft.say(&question);
                self.question = Some(question);
            }
            Event::Result { status } => self.status = Some(status),
        }
        Taken::Known
    }

    /// The script tells its own status, so that of the process adds nothing.
    pub(crate) fn judge(&self) -> Outcome {
        match (self.status, &self.question) {
            (Some(0), Some(question)) => Outcome::NeedsClarification { question: question.clone() },
            (Some(0), None) => Outcome::Finished,
            (Some(status), _) => {
                Outcome::Failed { reason: format!("the script ended with status {status}") }
            }
            (None, _) => Outcome::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_played_script_is_told_step_by_step() {
        let report = read_events(
            r#"{"detail":"git status","index":0,"kind":"run","type":"step"}
On branch main
{"index":0,"ms":12,"status":0,"type":"step-done"}
{"detail":"red or blue?","index":1,"kind":"ask","type":"step"}
{"options":["red","blue"],"question":"red or blue?","type":"clarification"}
{"index":1,"ms":0,"status":0,"type":"step-done"}
{"detail":"3","index":2,"kind":"exit","type":"step"}
{"index":2,"ms":0,"status":3,"type":"step-done"}
{"status":3,"type":"result"}"#
                .lines(),
        );
        let steps: Vec<_> = report.steps.iter().map(|s| (s.kind.as_str(), s.status)).collect();
        assert_eq!(steps, [("run", Some(0)), ("ask", Some(0)), ("exit", Some(3))]);
        assert_eq!(report.steps[0].detail, "git status");
        assert_eq!(report.last_status, Some(3));
        assert_eq!(report.question.as_deref(), Some("red or blue?"));
        assert_eq!(report.unknown, ["On branch main"]);
    }

    #[test]
    fn an_agent_that_was_stopped_left_a_step_open() {
        let report = read_events([
            r#"{"type":"step","index":0,"kind":"run","detail":"false"}"#,
            r#"{"type":"step-done","index":0,"status":1,"ms":2}"#,
            r#"{"type":"step","index":1,"kind":"sleep","detail":"600 s"}"#,
        ]);
        assert_eq!(report.last_status, Some(1));
        assert_eq!(report.steps[1].status, None);
    }

    #[test]
    fn what_is_no_event_is_kept_as_text() {
        let lines = [
            "",
            "{",
            "[1]",
            "null",
            r#"{"type":"thought","text":"hm"}"#,
            r#"{"type":"step","index":-1,"kind":"run","detail":""}"#,
            r#"{"status":0}"#,
            r#"hi{"type":"result","status":0}"#,
        ];
        let report = read_events(lines);
        assert_eq!(
            report,
            ScriptReport { unknown: lines.map(str::to_owned).to_vec(), ..report.clone() }
        );
        assert_eq!((report.last_status, report.steps.len()), (None, 0));
    }

    #[test]
    fn an_end_without_a_beginning_invents_no_step() {
        let report = read_events([r#"{"type":"step-done","index":7,"status":0,"ms":1}"#]);
        assert_eq!((report.steps.len(), report.last_status), (0, Some(0)));
    }

    #[test]
    fn silence_says_nothing() {
        assert_eq!(read_events([] as [&str; 0]), ScriptReport::default());
    }
}
