//! A log as a person reads it: the agent's messages and tool calls in place of its JSON events.

use agent::{EventReader, Progress, Provider};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogStyle {
    /// Events of this provider are rendered as text.
    Text(Provider),
    /// As printed.
    Raw,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogView {
    /// Readable text, where the agent prints events.
    #[default]
    #[serde(alias = "words")]
    Text,
    /// As printed.
    Raw,
}

impl LogStyle {
    /// The style of a provider's log in the requested view.
    pub(crate) fn of(provider: &str, view: LogView) -> Self {
        match Provider::parse(provider) {
            Ok(known) if view == LogView::Text && known.prints_events() => Self::Text(known),
            _ => Self::Raw,
        }
    }

    /// Renders a slice of a log. Lines that are not events stay unchanged.
    pub(crate) fn render(self, text: &str) -> String {
        match self {
            Self::Raw => text.to_owned(),
            Self::Text(provider) => {
                let mut reader = EventReader::new(provider);
                text.split_inclusive('\n').map(|line| render_line(&mut reader, line)).collect()
            }
        }
    }
}

fn render_line(reader: &mut EventReader, line: &str) -> String {
    let is_event = serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object());
    if !is_event {
        return line.to_owned();
    }
    reader.push_line(line.trim_end()).into_iter().filter_map(render_progress).collect()
}

fn render_progress(progress: Progress) -> Option<String> {
    match progress {
        Progress::Text(text) => Some(format!("{}\n", text.trim_end())),
        Progress::ToolCall { name, summary } => Some(format!("  \u{2192} {name} {summary}\n")),
        Progress::Retrying { reason } => Some(format!("  retrying the model: {reason}\n")),
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
    fn events_are_rendered_as_text_and_other_lines_stay() {
        let text = LogStyle::of("claude", LogView::Text).render(LINES);
        assert!(!text.contains('{'), "{text}");
        for words in ["plain words\n", "I look at the code.", "\u{2192} Bash", "cargo test"] {
            assert!(text.contains(words), "{words:?} is not in {text:?}");
        }
    }

    #[test]
    fn the_raw_view_shows_the_events() {
        assert_eq!(LogStyle::of("claude", LogView::Raw).render(LINES), LINES);
        assert_eq!(LogStyle::of("scripted", LogView::Text), LogStyle::Raw);
        assert_eq!(LogStyle::of("unheard-of", LogView::Text), LogStyle::Raw);
    }
}
