//! Markdown pages beside the JSON files, and the JSON itself.

use jiff::Timestamp;
use model::id::{ClarificationId, UatId, WorkstreamId};

use crate::rules::active::{ActiveRow, render_active};
use crate::rules::clarification::{
    AnswerOption, Clarification, NewQuestion, Urgency, render_clarification,
};
use crate::rules::schema::render_json;
use crate::rules::uat::{Uat, new_uat, render_uat};

use super::{meta, plan, sha};

fn question(options: &[(&str, &str, &str)]) -> Clarification {
    let option = |&(id, label, tradeoffs): &(&str, &str, &str)| AnswerOption {
        id: id.to_owned(),
        label: label.to_owned(),
        tradeoffs: tradeoffs.to_owned(),
    };
    let question = NewQuestion {
        text: "Which method?\nThe plan does not say.".to_owned(),
        options: options.iter().map(option).collect(),
        urgency: Urgency::Blocking,
        source_stage: "implementation",
        blocks: vec!["COMMIT-LG-001".to_owned()],
    };
    let workstream = WorkstreamId::parse("login").unwrap();
    Clarification::new(ClarificationId::numbered(7), &workstream, question, Timestamp::UNIX_EPOCH)
}

fn chosen() -> Clarification {
    question(&[("jwt", "Tokens", "no state"), ("session", "Cookies", "")])
}

#[test]
fn a_pending_question_with_options() {
    insta::assert_snapshot!(render_clarification(&chosen()), @"
    # CLQ-007: Which method?

    - Status: pending
    - Urgency: blocking
    - Workstream: login
    - Raised: 1970-01-01T00:00:00Z (implementation)
    - Blocks: COMMIT-LG-001

    ## Question

    Which method?
    The plan does not say.

    ## Options

    1. **Tokens** (jwt): no state
    2. **Cookies** (session)
    ");
}

#[test]
fn an_open_question_that_was_answered() {
    let answered =
        question(&[]).answered("In words.".to_owned(), "ada".to_owned(), Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!(render_clarification(&answered), @"
    # CLQ-007: Which method?

    - Status: answered
    - Urgency: blocking
    - Workstream: login
    - Raised: 1970-01-01T00:00:00Z (implementation)
    - Blocks: COMMIT-LG-001

    ## Question

    Which method?
    The plan does not say.

    ## Answer

    In words.

    Answered by ada at 1970-01-01T00:00:00Z.
    ");
}

#[test]
fn the_json_of_a_pending_question() {
    insta::assert_snapshot!(render_json(&chosen()), @r#"
    {
      "version": 1,
      "id": "CLQ-007",
      "status": "pending",
      "created": "1970-01-01T00:00:00Z",
      "answered": null,
      "urgency": "blocking",
      "source_stage": "implementation",
      "workstream": "login",
      "blocks": [
        "COMMIT-LG-001"
      ],
      "question": "Which method?\nThe plan does not say.",
      "options": [
        {
          "id": "jwt",
          "label": "Tokens",
          "tradeoffs": "no state"
        },
        {
          "id": "session",
          "label": "Cookies"
        }
      ],
      "answer": null,
      "answered_by": null
    }
    "#);
}

#[test]
fn typed_answers_are_resolved() {
    let row = |question: &Clarification, typed: &str| match question.choose_answer(typed) {
        Ok(answer) => format!("{typed:?}: {answer:?}\n"),
        Err(error) => format!("{typed:?}: {error}\n"),
    };
    let typed = ["1", "2", "3", "0", "jwt", " session ", "neither", "", " ", "1.5"];
    let with: String = typed.iter().map(|typed| row(&chosen(), typed)).collect();
    let without: String = typed.iter().map(|typed| row(&question(&[]), typed)).collect();
    insta::assert_snapshot!(format!("with options\n{with}\nwithout options\n{without}"), @r#"
    with options
    "1": "jwt: Tokens"
    "2": "session: Cookies"
    "3": there is no option 3; choose 1 to 2, or answer in words
    "0": there is no option 0; choose 1 to 2, or answer in words
    "jwt": "jwt: Tokens"
    " session ": "session: Cookies"
    "neither": "neither"
    "": the answer is empty; nothing was changed
    " ": the answer is empty; nothing was changed
    "1.5": "1.5"

    without options
    "1": "1"
    "2": "2"
    "3": "3"
    "0": "0"
    "jwt": "jwt"
    " session ": "session"
    "neither": "neither"
    "": the answer is empty; nothing was changed
    " ": the answer is empty; nothing was changed
    "1.5": "1.5"
    "#);
}

fn uat() -> Uat {
    let workstream = WorkstreamId::parse("login").unwrap();
    let head = sha('a');
    new_uat(UatId::numbered(3), &workstream, &plan().commits, Some(&head), Timestamp::UNIX_EPOCH)
}

#[test]
fn a_pending_acceptance_test() {
    insta::assert_snapshot!(render_uat(&uat()), @"
    # UAT-003: acceptance of login

    - Status: pending
    - Created: 1970-01-01T00:00:00Z
    - Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

    ## Scenarios

    ### 1. COMMIT-LG-001: the form is shown

    - Try what COMMIT-LG-001 brought: Add a form

    Expected: the form is shown

    ### 2. COMMIT-LG-001: the password is hidden

    - Try what COMMIT-LG-001 brought: Add a form

    Expected: the password is hidden

    ### 3. COMMIT-LG-002: Check the password

    - Try what COMMIT-LG-002 brought: Check the password

    Expected: It works as the plan says
    ");
}

#[test]
fn a_passed_acceptance_test() {
    insta::assert_snapshot!(render_uat(&uat().passed("ada".to_owned(), Timestamp::UNIX_EPOCH)), @"
    # UAT-003: acceptance of login

    - Status: passed
    - Created: 1970-01-01T00:00:00Z
    - Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    - Validated by ada at 1970-01-01T00:00:00Z

    ## Scenarios

    ### 1. COMMIT-LG-001: the form is shown

    - Try what COMMIT-LG-001 brought: Add a form

    Expected: the form is shown

    Result: passed

    ### 2. COMMIT-LG-001: the password is hidden

    - Try what COMMIT-LG-001 brought: Add a form

    Expected: the password is hidden

    Result: passed

    ### 3. COMMIT-LG-002: Check the password

    - Try what COMMIT-LG-002 brought: Check the password

    Expected: It works as the plan says

    Result: passed
    ");
}

#[test]
fn a_failed_acceptance_test_that_was_superseded() {
    let issues = vec!["too slow".to_owned(), "wrong colour".to_owned()];
    let failed = uat().failed(issues, "ada".to_owned(), Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!(render_uat(&failed.superseded()), @"
    # UAT-003: acceptance of login

    - Status: superseded
    - Created: 1970-01-01T00:00:00Z
    - Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    - Validated by ada at 1970-01-01T00:00:00Z

    ## Scenarios

    ### 1. COMMIT-LG-001: the form is shown

    - Try what COMMIT-LG-001 brought: Add a form

    Expected: the form is shown

    ### 2. COMMIT-LG-001: the password is hidden

    - Try what COMMIT-LG-001 brought: Add a form

    Expected: the password is hidden

    ### 3. COMMIT-LG-002: Check the password

    - Try what COMMIT-LG-002 brought: Check the password

    Expected: It works as the plan says

    ## Issues

    - too slow
    - wrong colour
    ");
}

#[test]
fn the_json_of_an_acceptance_test() {
    insta::assert_snapshot!(render_json(&uat()), @r#"
    {
      "version": 1,
      "id": "UAT-003",
      "status": "pending",
      "created": "1970-01-01T00:00:00Z",
      "completed": null,
      "workstream": "login",
      "commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "requirements": [
        "COMMIT-LG-001",
        "COMMIT-LG-002"
      ],
      "scenarios": [
        {
          "name": "COMMIT-LG-001: the form is shown",
          "steps": [
            "Try what COMMIT-LG-001 brought: Add a form"
          ],
          "expected": "the form is shown",
          "result": null
        },
        {
          "name": "COMMIT-LG-001: the password is hidden",
          "steps": [
            "Try what COMMIT-LG-001 brought: Add a form"
          ],
          "expected": "the password is hidden",
          "result": null
        },
        {
          "name": "COMMIT-LG-002: Check the password",
          "steps": [
            "Try what COMMIT-LG-002 brought: Check the password"
          ],
          "expected": "It works as the plan says",
          "result": null
        }
      ],
      "result": null,
      "validated_by": null,
      "issues": []
    }
    "#);
}

#[test]
fn the_table_of_active_workstreams() {
    let mut odd = meta();
    odd.title = "a|b".to_owned();
    odd.expected_paths = Vec::new();
    let rows = [ActiveRow { meta: &meta(), touched: 3 }, ActiveRow { meta: &odd, touched: 0 }];
    insta::assert_snapshot!(render_active("app", &rows), @r"
    # Active workstreams: app

    | ID | Branch | Worktree | Status | Title | Expected paths | Last refreshed | Touched files |
    |---|---|---|---|---|---|---|---|
    | login | feat/login | /ops/worktrees/login | implement | Log in | src/ | 2025-01-15T12:00:00Z | 3 |
    | login | feat/login | /ops/worktrees/login | implement | a\|b |  | 2025-01-15T12:00:00Z | 0 |
    ");
}

#[test]
fn the_table_without_workstreams() {
    insta::assert_snapshot!(render_active("app", &[]), @r#"
    # Active workstreams: app

    | ID | Branch | Worktree | Status | Title | Expected paths | Last refreshed | Touched files |
    |---|---|---|---|---|---|---|---|

    None. Start one: wf new <id> "<title>" "<paths>"
    "#);
}
