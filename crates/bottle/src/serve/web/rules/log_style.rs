//! A log as a person reads it: the agent's messages and tool calls in place of its JSON events.

use agent::Provider;
use engine::agent_log::LogText;
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogStyle {
    /// Events of this provider are rendered as steps that fold.
    Steps(Provider),
    /// Events of this provider are rendered as text.
    Text(Provider),
    /// As printed.
    Raw,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogView {
    /// Steps that fold, where the agent prints events.
    #[default]
    Steps,
    /// Readable text, where the agent prints events.
    #[serde(alias = "words")]
    Text,
    /// As printed.
    Raw,
}

impl LogStyle {
    /// The style of a provider's log in the requested view.
    pub(crate) fn of(provider: &str, view: LogView) -> Self {
        match (Provider::parse(provider), view) {
            (Ok(known), LogView::Steps) if known.has_events() => Self::Steps(known),
            (Ok(known), LogView::Text) if known.has_events() => Self::Text(known),
            _ => Self::Raw,
        }
    }

    /// Its name in addresses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Steps(_) => "steps",
            Self::Text(_) => "text",
            Self::Raw => "raw",
        }
    }

    /// Renders a slice of a log. Lines that are not events stay unchanged.
    pub(crate) fn render(self, text: &str) -> String {
        let mut renderer = LogRenderer::new(self);
        renderer.push(text)
    }
}

/// Renders a log slice by slice: a tool call may begin in one and end in another.
pub(crate) struct LogRenderer(Option<LogText>);

impl LogRenderer {
    pub(crate) fn new(style: LogStyle) -> Self {
        match style {
            LogStyle::Raw => Self(None),
            LogStyle::Steps(provider) | LogStyle::Text(provider) => {
                Self(Some(LogText::new(provider)))
            }
        }
    }

    pub(crate) fn push(&mut self, text: &str) -> String {
        match &mut self.0 {
            None => text.to_owned(),
            Some(log) => text.split_inclusive('\n').map(|line| log.push_line(line)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s1"}"#,
        "\nplain words\n",
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look at the code."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#,
        "\n",
        r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"Exit code 101\ntest result: FAILED. 1 passed; 2 failed; 0 ignored","is_error":true,"tool_use_id":"t1"}]}}"#,
        "\n"
    );

    #[test]
    fn events_are_rendered_as_text_and_other_lines_stay() {
        let text = LogStyle::of("claude", LogView::Text).render(LINES);
        let expected =
            "plain words\nI look at the code.\n  ran `cargo test` → 2 failed, 1 passed\n";
        assert_eq!(text, expected);
        let (first, second) = LINES.split_at(LINES.rfind("{\"type\":\"user\"").expect("a result"));
        let mut renderer = LogRenderer::new(LogStyle::of("claude", LogView::Text));
        assert_eq!(renderer.push(first) + &renderer.push(second), expected, "in two slices");
    }

    #[test]
    fn the_raw_view_shows_the_events() {
        assert_eq!(LogStyle::of("claude", LogView::Raw).render(LINES), LINES);
        assert_eq!(LogStyle::of("command", LogView::Text), LogStyle::Raw);
        assert_eq!(LogStyle::of("command", LogView::Steps), LogStyle::Raw);
        assert_eq!(LogStyle::of("unheard-of", LogView::Text), LogStyle::Raw);
    }
}
