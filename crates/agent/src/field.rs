//! Access to fields of event lines: a missing or malformed field is absent, never an error.

use serde_json::Value;

/// Length limit of a text in a progress event, in characters.
const SNIPPET_LENGTH: usize = 200;

pub(crate) fn text<'a>(event: &'a Value, path: &str) -> Option<&'a str> {
    event.pointer(path)?.as_str()
}

/// Returns a count by its path; 0 if there is none.
pub(crate) fn count(event: &Value, path: &str) -> u64 {
    event.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

pub(crate) fn number(event: &Value, path: &str) -> Option<f64> {
    event.pointer(path)?.as_f64().filter(|number| number.is_finite())
}

/// Returns a boolean by its path; false if there is none.
pub(crate) fn flag(event: &Value, path: &str) -> bool {
    event.pointer(path).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns a list by its path; empty if there is none.
pub(crate) fn list<'a>(event: &'a Value, path: &str) -> &'a [Value] {
    event.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn status(event: &Value, path: &str) -> Option<u16> {
    event.pointer(path)?.as_u64()?.try_into().ok()
}

/// Joins the texts of a message's content blocks; `None` if there are none.
pub(crate) fn block_texts(message: &Value) -> Option<String> {
    let blocks = list(message, "/content").iter();
    let texts: Vec<_> = blocks
        .filter(|block| text(block, "/type") == Some("text"))
        .filter_map(|block| text(block, "/text"))
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Summarises the input of a tool: the command line if there is one, else all of it.
pub(crate) fn input_summary(input: Option<&Value>) -> String {
    let Some(input) = input else { return String::new() };
    match text(input, "/command") {
        Some(command) => snippet(command),
        None => snippet(&input.to_string()),
    }
}

/// Returns the beginning of a text in one line: line breaks and control characters become spaces.
pub fn snippet(text: &str) -> String {
    let mut line = String::new();
    for (index, c) in text.trim().chars().enumerate() {
        if index == SNIPPET_LENGTH {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line
}

/// Returns a text of at most so many bytes as it can be shown: other control characters than line breaks become spaces.
pub(crate) fn shown(text: &str, bytes: usize) -> String {
    let kept = cut(text.trim_end(), bytes);
    let mut shown: String =
        kept.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    if kept.len() < text.trim_end().len() {
        shown.push('…');
    }
    shown
}

/// Joins the text of a tool's result, which is a text or a list of content blocks.
pub(crate) fn result_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| text(block, "/text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the beginning of a text, of at most so many bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_one_short_line() {
        assert_eq!(snippet(" a\n\x1b[31mb "), "a  [31mb");
        assert_eq!(snippet(&"é".repeat(300)), format!("{}…", "é".repeat(200)));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 9), "aé");
    }
}
