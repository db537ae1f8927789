//! Extraction of JSON from an agent's output: between text, in fences, in the wrapper of a command line tool.

use serde_json::{Deserializer, Value};

/// Size of the searched tail, larger than any answer.
const LOOKED_AT: usize = 4 << 20;

/// The last object in a text that `wanted` accepts. Prompts hold sample JSON and agents echo prompts, so the last one
/// counts.
pub(crate) fn last_object(text: &str, wanted: impl Fn(&Value) -> bool + Copy) -> Option<Value> {
    all_objects(text, wanted).pop()
}

/// All objects in a text that `wanted` accepts, in order. A wrapper `{"type": "result", "result": "text"}` is opened.
pub(crate) fn all_objects(text: &str, wanted: impl Fn(&Value) -> bool + Copy) -> Vec<Value> {
    let mut found = Vec::new();
    for value in objects(tail_of(text)) {
        if let Some(inner) = unwrap(&value) {
            found.extend(objects(inner).filter(|value| wanted(value)));
        } else if wanted(&value) {
            found.push(value);
        }
    }
    found
}

fn unwrap(value: &Value) -> Option<&str> {
    (value.get("type")?.as_str()? == "result").then_some(())?;
    value.get("result")?.as_str()
}

/// All objects in a text that are not inside another one.
fn objects(text: &str) -> impl Iterator<Item = Value> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(open) = text.get(at..)?.find('{') {
            let start = at + open;
            let mut stream = Deserializer::from_str(&text[start..]).into_iter::<Value>();
            if let Some(Ok(value)) = stream.next() {
                at = start + stream.byte_offset();
                return Some(value);
            }
            at = start + 1;
        }
        None
    })
}

fn tail_of(text: &str) -> &str {
    let from = text.len().saturating_sub(LOOKED_AT);
    let from = (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn last(text: &str) -> Option<Value> {
        last_object(text, |value| value.get("status").is_some())
    }

    #[test]
    fn the_last_object_counts() {
        let text = "I was told to print {\"status\": \"success\"}.\n```json\n{\"status\": \"failure\", \"notes\": \"}\"}\n```\n{\"other\": 1} { not json";
        assert_eq!(last(text).unwrap()["status"], "failure");
        assert_eq!(last("nothing"), None);
        assert_eq!(last("{\"a\": {\"status\": \"success\"}}"), None);
    }

    #[test]
    fn the_wrapper_of_a_tool_is_opened() {
        let wrapped = serde_json::json!({"type": "result", "result": "Here:\n```json\n{\"status\": \"success\"}\n```"});
        assert_eq!(last(&wrapped.to_string()).unwrap()["status"], "success");
        let lines = format!("{{\"type\":\"system\"}}\n{wrapped}\n");
        assert_eq!(last(&lines).unwrap()["status"], "success");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[{}\\[\\]\":,a-z0-9 \\n\\\\é]{0,200}") {
            let _found = last(&text);
        }
    }
}
