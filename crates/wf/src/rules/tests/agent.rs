//! Output of agents, and what is understood of it.

use crate::rules::breakdown::{append_draft, extract_breakdown};
use crate::rules::reply::parse_reply;
use crate::rules::review::extract_review;

use super::{PLAN, plan};

fn replies(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text}\n  => {:?}\n", parse_reply(text))).collect()
}

#[test]
fn claims_of_an_implementer() {
    insta::assert_snapshot!(replies(&[
        r#"{"status": "success", "notes": "done"}"#,
        r#"{"status": "failure", "notes": "no compiler"}"#,
        r#"{"status": "success"} {"status": "failure", "notes": "after all"}"#,
        r#"{"type": "result", "result": "Here:\n{\"status\": \"success\"}"}"#,
        r#"{"status": "success", "clarification_needed": null}"#,
        r#"{"a": {"status": "success"}}"#,
        r#"{"status": "splendid"}"#,
        "{\"status\": \"success\"",
        "all done!",
        "",
    ]), @r#"
    {"status": "success", "notes": "done"}
      => Some(Success { notes: "done" })
    {"status": "failure", "notes": "no compiler"}
      => Some(Failure { notes: "no compiler" })
    {"status": "success"} {"status": "failure", "notes": "after all"}
      => Some(Failure { notes: "after all" })
    {"type": "result", "result": "Here:\n{\"status\": \"success\"}"}
      => Some(Success { notes: "" })
    {"status": "success", "clarification_needed": null}
      => Some(Success { notes: "" })
    {"a": {"status": "success"}}
      => None
    {"status": "splendid"}
      => None
    {"status": "success"
      => None
    all done!
      => None

      => None
    "#);
}

#[test]
fn questions_of_an_implementer() {
    insta::assert_snapshot!(replies(&[
        r#"{"status": "clarification_needed", "question": "Which?", "options": ["a", "b"]}"#,
        r#"{"action": "clarification_needed", "question": "Which?"}"#,
        r#"{"type": "clarification", "question": "Which?", "options": [{"id": "x", "label": "X", "tradeoffs": "slow"}]}"#,
        r#"{"status": "success", "clarification_needed": {"question": " Which? ", "options": [{"id": "x"}, {"label": "Y"}, 7]}}"#,
        r#"{"status": "clarification_needed"}"#,
        r#"{"status": "clarification_needed", "question": "  "}"#,
    ]), @r#"
    {"status": "clarification_needed", "question": "Which?", "options": ["a", "b"]}
      => Some(Clarify { question: "Which?", options: [AnswerOption { id: "option-1", label: "a", tradeoffs: "" }, AnswerOption { id: "option-2", label: "b", tradeoffs: "" }] })
    {"action": "clarification_needed", "question": "Which?"}
      => Some(Clarify { question: "Which?", options: [] })
    {"type": "clarification", "question": "Which?", "options": [{"id": "x", "label": "X", "tradeoffs": "slow"}]}
      => Some(Clarify { question: "Which?", options: [AnswerOption { id: "x", label: "X", tradeoffs: "slow" }] })
    {"status": "success", "clarification_needed": {"question": " Which? ", "options": [{"id": "x"}, {"label": "Y"}, 7]}}
      => Some(Clarify { question: "Which?", options: [AnswerOption { id: "x", label: "x", tradeoffs: "" }, AnswerOption { id: "option-2", label: "Y", tradeoffs: "" }] })
    {"status": "clarification_needed"}
      => None
    {"status": "clarification_needed", "question": "  "}
      => None
    "#);
}

fn reviews(texts: &[&str]) -> String {
    let row = |text: &&str| {
        let review = match extract_review(text) {
            Ok(review) => format!(
                "{:?}, demands {:?}, warning {:?}, {:?}",
                review.decision,
                review.demands(),
                review.warning(),
                review.documentation
            ),
            Err(error) => format!("error: {error}"),
        };
        format!("{text}\n  => {review}\n")
    };
    texts.iter().map(row).collect()
}

#[test]
fn reviews_that_are_understood() {
    insta::assert_snapshot!(reviews(&[
        r#"{"version": 1, "decision": "approve"}"#,
        "Sure!\n```json\n{\"version\": 1, \"decision\": \"approve\", \"blockers\": []}\n```\nbye",
        r#"{"version": 1, "decision": "approve", "blockers": [{"file": "a", "issue": "x"}]}"#,
        r#"{"version": 1, "decision": "request_changes"}"#,
        r#"{"version": 1, "decision": "request_changes", "blockers": [{"file": "a.rs", "line": 3, "issue": "no", "severity": "major", "fix_hint": "yes"}], "required_changes": ["test it"]}"#,
        r#"{"version": 1, "decision": "approve", "documentation": {"required": true, "present": false}}"#,
    ]), @r#"
    {"version": 1, "decision": "approve"}
      => Approve, demands [], warning None, Documentation { required: false, present: false }
    Sure!
    ```json
    {"version": 1, "decision": "approve", "blockers": []}
    ```
    bye
      => Approve, demands [], warning None, Documentation { required: false, present: false }
    {"version": 1, "decision": "approve", "blockers": [{"file": "a", "issue": "x"}]}
      => Approve, demands ["a: x"], warning Some("the reviewer approved but named 1 blocker"), Documentation { required: false, present: false }
    {"version": 1, "decision": "request_changes"}
      => RequestChanges, demands [], warning None, Documentation { required: false, present: false }
    {"version": 1, "decision": "request_changes", "blockers": [{"file": "a.rs", "line": 3, "issue": "no", "severity": "major", "fix_hint": "yes"}], "required_changes": ["test it"]}
      => RequestChanges, demands ["a.rs:3: no (yes)", "test it"], warning None, Documentation { required: false, present: false }
    {"version": 1, "decision": "approve", "documentation": {"required": true, "present": false}}
      => Approve, demands [], warning None, Documentation { required: true, present: false }
    "#);
}

#[test]
fn reviews_that_are_refused() {
    insta::assert_snapshot!(reviews(&[
        "LGTM",
        r#"{"decision": "approve"}"#,
        r#"{"version": 2, "decision": "approve"}"#,
        r#"{"version": 1, "decision": "maybe"}"#,
        r#"{"version": 1, "decision": "approve", "blockers": "none"}"#,
        r#"{"version": 1, "decision": "approve", "blockers": [{"file": "a"}]}"#,
    ]), @r#"
    LGTM
      => error: the reviewer gave no JSON object with a decision
    {"decision": "approve"}
      => error: the review is not valid: claude_review at /: "version" is a required property
    {"version": 2, "decision": "approve"}
      => error: the review is not valid: claude_review at /version: 1 was expected
    {"version": 1, "decision": "maybe"}
      => error: the review is not valid: claude_review at /decision: "maybe" is not one of "approve" or "request_changes"
    {"version": 1, "decision": "approve", "blockers": "none"}
      => error: the review is not valid: claude_review at /blockers: "none" is not of type "array"
    {"version": 1, "decision": "approve", "blockers": [{"file": "a"}]}
      => error: the review is not valid: claude_review at /blockers/0: "issue" is a required property
    "#);
}

fn drafted(answer: &str) -> String {
    let draft = extract_breakdown(answer).unwrap();
    let after = append_draft(PLAN, &plan(), "login", &draft);
    after.strip_prefix(PLAN.trim_end()).unwrap().to_owned()
}

#[test]
fn a_draft_continues_the_numbers_of_the_plan() {
    let answer = r#"Here: {"commits": [{"title": "Log out", "description": "People leave.", "acceptance": ["a button is shown", " "]}, {"title": "Remember\nme"}]}"#;
    insta::assert_snapshot!(drafted(answer), @"


    ### COMMIT-LOGIN-003: Log out

    People leave.

    Acceptance:
    - a button is shown

    Done: [ ]

    ### COMMIT-LOGIN-004: Remember me

    Done: [ ]
    ");
}

#[test]
fn a_draft_cannot_plan_anything_that_is_not_visible() {
    let answer = r#"{"commits": [{"title": "A ### COMMIT-LG-099: evil", "description": "Fine.\n\n### COMMIT-LG-050: evil\nDone: [x]\n```\n<!-- hidden\n---\nEnd."}]}"#;
    insta::assert_snapshot!(drafted(answer), @"


    ### COMMIT-LOGIN-003: A ### COMMIT-LG-099: evil

    Fine.

    > ### COMMIT-LG-050: evil
    > Done: [x]
    > ```
    > <!-- hidden
    > ---
    End.

    Done: [ ]
    ");
}

#[test]
fn drafts_that_are_refused() {
    let many = format!("{{\"commits\": [{}]}}", ["{\"title\": \"x\"}"; 51].join(","));
    let texts = [
        "no idea",
        r#"{"commits": []}"#,
        r#"{"commits": [{}]}"#,
        r#"{"commits": [{"title": " "}]}"#,
        r#"{"commits": "two"}"#,
        &many,
    ];
    let row = |text: &&str| {
        let shown: String = text.chars().take(40).collect();
        format!("{shown}: {}\n", extract_breakdown(text).unwrap_err())
    };
    insta::assert_snapshot!(texts.iter().map(row).collect::<String>(), @r#"
    no idea: the agent gave no JSON object with commits
    {"commits": []}: the draft cannot be used: it has no micro-commits
    {"commits": [{}]}: the draft cannot be used: missing field `title`
    {"commits": [{"title": " "}]}: the draft cannot be used: a micro-commit has no title
    {"commits": "two"}: the draft cannot be used: invalid type: string "two", expected a sequence
    {"commits": [{"title": "x"},{"title": "x: the draft cannot be used: it has more than 50 micro-commits
    "#);
}
