//! The scripted agent, read like any other.

use agent::{AgentOutcome, AgentReport, EventReader, Progress, Provider};

const STEPS: [&str; 5] = [
    r#"{"detail":"git status","index":0,"kind":"run","type":"step"}"#,
    "On branch main",
    r#"{"index":0,"ms":12,"status":0,"type":"step-done"}"#,
    r#"{"detail":"false","index":1,"kind":"run","type":"step"}"#,
    r#"{"index":1,"ms":1,"status":1,"type":"step-done"}"#,
];
const ASKED: &str = r#"{"options":["red"],"question":"red or blue?","type":"clarification"}"#;

fn read(more: &[&str], exit: Option<i32>) -> AgentReport {
    let mut reader = EventReader::new(Provider::Scripted);
    for line in STEPS.iter().chain(more) {
        reader.push_line(line);
    }
    reader.finish(exit)
}

#[test]
fn steps_are_tools_and_the_rest_is_kept() {
    let report = read(&[r#"{"status":0,"type":"result"}"#], Some(0));
    assert_eq!(report.outcome, AgentOutcome::Finished);
    let calls: Vec<_> =
        report.tool_calls.iter().map(|call| (call.detail.as_str(), call.ok)).collect();
    assert_eq!(calls, [("git status", Some(true)), ("false", Some(false))]);
    assert_eq!(report.unknown, ["On branch main"]);
    assert_eq!((report.cost_usd, report.usage.total()), (None, 0));
}

#[test]
fn a_script_ends_with_its_own_status() {
    let ended = |more: &[&str]| read(more, Some(0)).outcome;
    assert_eq!(
        ended(&[r#"{"status":3,"type":"result"}"#]),
        AgentOutcome::Failed { reason: "the script ended with status 3".to_owned() }
    );
    assert_eq!(
        ended(&[ASKED, r#"{"status":0,"type":"result"}"#]),
        AgentOutcome::NeedsClarification { question: "red or blue?".to_owned() }
    );
    assert_eq!(ended(&[ASKED]), AgentOutcome::Interrupted);
}

#[test]
fn a_step_is_news() {
    let mut reader = EventReader::new(Provider::Scripted);
    assert_eq!(
        reader.push_line(STEPS[0]),
        [Progress::ToolCall { name: "run".to_owned(), summary: "git status".to_owned() }]
    );
}

#[test]
fn an_agent_that_was_stopped_leaves_a_step_open() {
    let report = read(&[r#"{"type":"step","index":2,"kind":"sleep","detail":"600 s"}"#], None);
    assert_eq!(report.outcome, AgentOutcome::Interrupted);
    assert_eq!(report.tool_calls.last().map(|call| call.ok), Some(None));
}

#[test]
fn a_line_that_is_not_an_event_is_kept_as_text() {
    let lines = [
        "{",
        "[1]",
        "null",
        r#"{"type":"thought","text":"hm"}"#,
        r#"{"type":"step","index":-1,"kind":"run","detail":""}"#,
        r#"{"status":0}"#,
        r#"hi{"type":"result","status":0}"#,
    ];
    let report = read(&lines, Some(0));
    assert_eq!(report.unknown[1..], lines);
    assert_eq!(report.tool_calls.len(), 2);
}

#[test]
fn an_end_without_a_beginning_invents_no_step() {
    let report = read(&[r#"{"type":"step-done","index":7,"status":0,"ms":1}"#], Some(0));
    assert_eq!(report.tool_calls.len(), 2);
}
