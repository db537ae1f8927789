//! The implementing agent's report about its work. It is a claim: git decides what was done.

use serde_json::Value;

use super::clarification::AnswerOption;
use super::extract::last_object;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentReply {
    Success { notes: String },
    Failure { notes: String },
    Clarify { question: String, options: Vec<AnswerOption> },
}

pub(crate) fn parse_reply(text: &str) -> Option<AgentReply> {
    let object = last_object(text, |value| parse_object(value).is_some())?;
    parse_object(&object)
}

/// A question is a field beside any status, a status, or an action; the scripted agent emits an event.
fn parse_object(value: &Value) -> Option<AgentReply> {
    let word = |key: &str| value.get(key).and_then(Value::as_str);
    let notes = || word("notes").unwrap_or_default().to_owned();
    let is_question = [word("status"), word("action")].contains(&Some("clarification_needed"))
        || word("type") == Some("clarification");
    match value.get("clarification_needed").filter(|needed| needed.is_object()) {
        Some(needed) => return read_question(needed),
        None if is_question => return read_question(value),
        None => {}
    }
    match word("status")? {
        "success" => Some(AgentReply::Success { notes: notes() }),
        "failure" => Some(AgentReply::Failure { notes: notes() }),
        _ => None,
    }
}

fn read_question(value: &Value) -> Option<AgentReply> {
    let question = value.get("question")?.as_str()?.trim();
    let options = value.get("options").and_then(Value::as_array).into_iter().flatten();
    let options = options.enumerate().filter_map(|(at, option)| read_option(at, option)).collect();
    (!question.is_empty()).then(|| AgentReply::Clarify { question: question.to_owned(), options })
}

/// An option is an object or a plain string.
fn read_option(at: usize, value: &Value) -> Option<AnswerOption> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let label =
        value.as_str().map(str::to_owned).or_else(|| text("label")).or_else(|| text("id"))?;
    let id = text("id").unwrap_or_else(|| format!("option-{}", at + 1));
    Some(AnswerOption { id, label, tradeoffs: text("tradeoffs").unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> (String, usize) {
        match parse_reply(text) {
            Some(AgentReply::Clarify { question, options }) => (question, options.len()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_question_has_three_spellings() {
        let expected = ("Which?".to_owned(), 2);
        assert_eq!(
            asked(r#"{"status":"clarification_needed","question":"Which?","options":["a","b"]}"#),
            expected
        );
        assert_eq!(
            asked(
                r#"{"action":"clarification_needed","question":"Which?","options":[{"id":"a","label":"A"},{"label":"B"}]}"#
            ),
            expected
        );
        assert_eq!(
            asked(
                r#"{"status":"failure","clarification_needed":{"question":"Which?","options":["a","b"]}}"#
            ),
            expected
        );
    }

    #[test]
    fn success_and_failure_are_claims_with_notes() {
        assert_eq!(
            parse_reply(r#"{"status":"success","clarification_needed":null}"#),
            Some(AgentReply::Success { notes: String::new() })
        );
        assert_eq!(
            parse_reply(r#"{"status":"failure","notes":"no compiler"}"#),
            Some(AgentReply::Failure { notes: "no compiler".to_owned() })
        );
        for nothing in
            ["", "done!", r#"{"status":"splendid"}"#, r#"{"status":"clarification_needed"}"#]
        {
            assert_eq!(parse_reply(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn an_echoed_prompt_does_not_count() {
        let text = "Output:\n{\"status\": \"success\", \"commit_sha\": \"<sha>\", \"files_changed\": [...]}\nI give up.\n{\"status\": \"failure\", \"notes\": \"x\"}";
        assert_eq!(parse_reply(text), Some(AgentReply::Failure { notes: "x".to_owned() }));
    }
}
