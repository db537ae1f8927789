//! Lines that no agent should print, and agents that print them.

use agent::reader::LINE_LIMIT;
use agent::report::{UNKNOWN_KEPT, UNKNOWN_LENGTH};
use agent::{AgentOutcome, EventReader, Provider, QuotaReset};
use proptest::prelude::*;

use crate::sample;

fn read(provider: Provider, lines: &[&str], exit: Option<i32>) -> agent::AgentReport {
    let mut reader = EventReader::new(provider);
    for line in lines {
        reader.push_line(line);
    }
    reader.finish(exit)
}

#[test]
fn events_that_nobody_knows_are_kept() {
    let lines = [
        "no json",
        "{\"type\":",
        "[]",
        "3",
        r#"{"type":"from_the_future","x":1}"#,
        r#"{"type":7}"#,
        r#"{"no":"type"}"#,
    ];
    for provider in Provider::all() {
        if provider != Provider::Command {
            let report = read(provider, &lines, None);
            assert_eq!(report.unknown, lines, "{provider:?}");
            assert_eq!(report.outcome, AgentOutcome::Interrupted, "{provider:?}");
        }
    }
}

#[test]
fn noise_between_the_events_changes_nothing() {
    let text = sample::load("codex-success");
    let noisy: Vec<_> = text.lines().flat_map(|line| [line, "", "warning: noise"]).collect();
    let report = read(Provider::Codex, &noisy, Some(0));
    assert_eq!(report.outcome, AgentOutcome::Finished);
    assert_eq!(report.unknown_count, 6);
}

#[test]
fn unknown_lines_are_counted_when_they_are_no_longer_kept() {
    let mut reader = EventReader::new(Provider::Claude);
    for index in 0..1000 {
        reader.push_line(&format!("line {index}"));
    }
    let report = reader.finish(None);
    assert_eq!((report.unknown.len(), report.unknown_count), (UNKNOWN_KEPT, 1000));
}

#[test]
fn a_line_without_end_is_cut_and_not_read() {
    let fits = format!(r#"{{"type":"turn.started","x":"{}"}}"#, "é".repeat(1000));
    let long = format!(r#"{{"type":"turn.started","x":"{}"}}"#, "é".repeat(LINE_LIMIT / 2));
    let report = read(Provider::Codex, &[&fits, &long], None);
    assert_eq!(report.unknown_count, 1);
    assert!(report.unknown[0].len() <= UNKNOWN_LENGTH);
    assert!(long.starts_with(&report.unknown[0]));
}

#[test]
fn pi_may_repeat_itself_at_any_length() {
    let long = format!(r#"{{"type":"message_update","x":"{}"}}"#, "x".repeat(LINE_LIMIT));
    assert_eq!(read(Provider::Pi, &[&long], None).unknown_count, 0);
}

#[test]
fn a_quota_is_told_with_its_end() {
    let opencode = r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"slow down","statusCode":429,"responseHeaders":{"retry-after":"30"}}}}"#;
    let codex = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try later or try again at 3:45 PM."}}"#;
    let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794728000}}"#;
    let claude = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your limit · resets 3pm"}"#;
    let pi = r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"429 Rate limit reached, try again in 20s"}}"#;
    for (provider, lines, expected) in [
        (Provider::OpenCode, vec![opencode], QuotaReset::InSecs(30)),
        (Provider::Codex, vec![codex], QuotaReset::Words("3:45 PM".to_owned())),
        (Provider::Claude, vec![limit, claude], QuotaReset::UnixSecs(1_794_728_000)),
        (Provider::Pi, vec![pi], QuotaReset::Words("20s".to_owned())),
    ] {
        match read(provider, &lines, Some(1)).outcome {
            AgentOutcome::QuotaExhausted { until, .. } => assert_eq!(until, Some(expected)),
            other => panic!("{provider:?}: {other:?}"),
        }
    }
}

#[test]
fn a_cost_of_nothing_for_something_is_no_cost() {
    let step = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":5,"output":1},"cost":0}}"#;
    assert_eq!(read(Provider::OpenCode, &[step], Some(0)).cost_usd, None);
}

#[test]
fn claude_that_goes_on_after_a_result_has_not_ended() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    let more = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"wait"}]}}"#;
    assert_eq!(read(Provider::Claude, &[result], Some(0)).outcome, AgentOutcome::Finished);
    assert_eq!(read(Provider::Claude, &[result, more], Some(0)).outcome, AgentOutcome::Interrupted);
    let vague = r#"{"type":"result","subtype":"success","result":"done"}"#;
    assert!(!read(Provider::Claude, &[vague], Some(0)).outcome.is_finished());
}

#[test]
fn an_answer_cut_short_is_a_failure() {
    let pi = r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"length"}}"#;
    let opencode = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"length"}}"#;
    for (provider, line) in [(Provider::Pi, pi), (Provider::OpenCode, opencode)] {
        let outcome = read(provider, &[line], Some(0)).outcome;
        assert!(matches!(&outcome, AgentOutcome::Failed { reason } if reason.contains("`length`")));
    }
}

#[test]
fn a_program_of_ones_own_is_judged_by_its_status() {
    let report = read(Provider::Command, &["{\"type\":\"result\"}", "", "all done"], Some(0));
    assert_eq!(report.outcome, AgentOutcome::Finished);
    assert_eq!(report.answer.as_deref(), Some("{\"type\":\"result\"}\nall done"));
    assert_eq!(
        read(Provider::Command, &["no"], Some(2)).outcome,
        AgentOutcome::Failed { reason: "it ended with status 2".to_owned() }
    );
    assert_eq!(read(Provider::Command, &[], None).outcome, AgentOutcome::Interrupted);
    let long = "é".repeat(LINE_LIMIT);
    let answer = read(Provider::Command, &[&long, &long, "end"], Some(0)).answer.unwrap();
    assert!(answer.ends_with("end") && answer.len() < 200_000);
}

/// Lines made from the words of real events, so that many of them are nearly right.
fn nearly_an_event() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("type"),
        Just("part"),
        Just("message"),
        Just("content"),
        Just("usage"),
        Just("item"),
        Just("error"),
        Just("result"),
        Just("assistant"),
        Just("step_finish"),
        Just("tool_use"),
        Just("turn.failed"),
        Just("item.completed"),
        Just("message_end"),
        Just("stopReason"),
        Just("text"),
        Just("state"),
        Just("tokens"),
        Just("input"),
        Just("id"),
        Just("step-done"),
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        word.clone().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    let value = leaf.prop_recursive(4, 32, 6, move |inner| {
        let key = word.clone().prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    });
    value.prop_map(|value| value.to_string())
}

/// A real line with one piece of it cut out.
fn broken_recording() -> impl Strategy<Value = String> {
    let files = ["claude-success", "codex-mcp", "opencode-success", "pi-success"];
    let lines: Vec<String> = files
        .iter()
        .flat_map(|file| sample::load(file).lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    (prop::sample::select(lines), any::<prop::sample::Index>(), 0..40_usize).prop_map(
        |(line, at, length)| {
            let start = line.floor_char_boundary(at.index(line.len()));
            let end = line.ceil_char_boundary((start + length).min(line.len()));
            format!("{}{}", &line[..start], &line[end..])
        },
    )
}

proptest! {
    #[test]
    fn no_line_breaks_a_reader(
        lines in prop::collection::vec(
            prop_oneof![any::<String>(), nearly_an_event(), broken_recording()], 0..30,
        ),
        exit in any::<Option<i32>>(),
    ) {
        for provider in Provider::all() {
            let mut reader = EventReader::new(provider);
            for line in &lines {
                reader.push_line(line);
            }
            let report = reader.finish(exit);
            prop_assert!(report.unknown.len() <= lines.len());
        }
    }
}
