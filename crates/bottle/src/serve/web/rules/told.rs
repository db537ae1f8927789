//! A log as a person reads it: what an agent says and does, in the place of the events that it prints.

use agent::{EventReader, Progress, Provider};
use serde::Deserialize;
use serde_json::Value;

/// How a log is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Events are told in words.
    Told(Provider),
    /// As it was printed.
    Raw,
}

/// What somebody wants to see of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    /// Words, where there are any.
    #[default]
    Words,
    /// What was printed.
    Raw,
}

impl Style {
    /// Agents that print events are told in words, unless somebody wants to see the events.
    pub(crate) fn of(provider: &str, view: View) -> Self {
        match Provider::parse(provider) {
            Ok(known) if view == View::Words && known.prints_events() => Self::Told(known),
            _ => Self::Raw,
        }
    }

    /// A piece of a log, in this style. Lines that are no events stay as they are.
    pub(crate) fn render(self, text: &str) -> String {
        match self {
            Self::Raw => text.to_owned(),
            Self::Told(provider) => {
                let mut reader = EventReader::new(provider);
                text.split_inclusive('\n').map(|line| tell(&mut reader, line)).collect()
            }
        }
    }
}

fn tell(reader: &mut EventReader, line: &str) -> String {
    let is_event = serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object());
    if !is_event {
        return line.to_owned();
    }
    reader.push_line(line.trim_end()).into_iter().filter_map(words).collect()
}

fn words(news: Progress) -> Option<String> {
    match news {
        Progress::Text(text) => Some(format!("{}\n", text.trim_end())),
        Progress::ToolCall { name, summary } => Some(format!("  \u{2192} {name} {summary}\n")),
        Progress::Retrying { reason } => Some(format!("  asked the model again: {reason}\n")),
        Progress::SessionStarted { .. } | Progress::Tokens(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s1"}"#,
        "\nplain words\n",
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look at the code."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#,
        "\n"
    );

    #[test]
    fn events_are_told_in_words_and_other_lines_stay() {
        let told = Style::of("claude", View::Words).render(LINES);
        assert!(!told.contains('{'), "{told}");
        for words in ["plain words\n", "I look at the code.", "\u{2192} Bash", "cargo test"] {
            assert!(told.contains(words), "{words:?} is not in {told:?}");
        }
    }

    #[test]
    fn whoever_wants_the_events_gets_them() {
        assert_eq!(Style::of("claude", View::Raw).render(LINES), LINES);
        assert_eq!(Style::of("scripted", View::Words), Style::Raw);
        assert_eq!(Style::of("unheard-of", View::Words), Style::Raw);
    }
}
