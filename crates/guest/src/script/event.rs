//! Events that the player prints: one line of JSON each, between the output of the commands.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum PlayerEvent {
    Step {
        /// Position in the script, from 0.
        index: usize,
        /// The key that names its kind.
        kind: String,
        detail: String,
    },
    StepDone {
        /// Position in the script, from 0.
        index: usize,
        status: i32,
        /// Duration in milliseconds.
        ms: u64,
    },
    Clarification {
        question: String,
        /// Answers to choose from, if any.
        #[serde(default)]
        options: Vec<String>,
    },
    /// The script has ended. Always the last line.
    Result { status: i32 },
}

impl PlayerEvent {
    /// Parses a line; `None` if it is output of a command.
    pub fn parse_line(line: &str) -> Option<Self> {
        serde_json::from_str(line.trim_end()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_starts_with_its_type() {
        check(
            r#"{"type":"step","index":0,"kind":"run","detail":"ls"}"#,
            PlayerEvent::Step { index: 0, kind: "run".to_owned(), detail: "ls".to_owned() },
        );
        check(
            r#"{"type":"step-done","index":0,"status":2,"ms":7}"#,
            PlayerEvent::StepDone { index: 0, status: 2, ms: 7 },
        );
        check(
            r#"{"type":"clarification","question":"red?","options":["yes"]}"#,
            PlayerEvent::Clarification {
                question: "red?".to_owned(),
                options: vec!["yes".to_owned()],
            },
        );
        check(r#"{"type":"result","status":0}"#, PlayerEvent::Result { status: 0 });
    }

    #[test]
    fn what_a_command_prints_is_no_event() {
        assert_eq!(PlayerEvent::parse_line("hello"), None);
        assert_eq!(PlayerEvent::parse_line(r#"{"type":"other"}"#), None);
    }

    fn check(line: &str, event: PlayerEvent) {
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        assert_eq!(PlayerEvent::parse_line(&format!("{line}\n")), Some(event));
    }
}
