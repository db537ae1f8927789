//! `wf clarify`: lists, pages, answers and refusals.

use crate::support::{ONE, Person, write};

/// A workstream with a blocking, an important and an unreadable question.
fn asked() -> Person {
    let person = Person::with_plan(ONE);
    person.ok(&["clarify", "ask", "tf", "--question", "How fast?", "--urgency", "important"]);
    person.ok(&[
        "clarify",
        "ask",
        "tf",
        "--question",
        "Which method?\nThe plan does not say.",
        "--option",
        "Tokens",
        "--option",
        "Cookies",
    ]);
    let pending = person.workstream_dir("tf").join("clarifications/pending");
    write(&pending.join("CLQ-007.json"), "{\"urgency\": \"low\"}");
    write(&pending.join("CLQ-008.md"), "# a question\n");
    person
}

#[test]
fn a_question_is_asked() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[
        &["clarify", "ask", "tf", "--question", "Which?", "--option", "a", "--option", "b"],
        &["clarify", "ask", "tf", "--question", "Later?", "--urgency", "low"],
        &["status", "tf"],
    ]), @"
    $ wf clarify ask tf --question Which? --option a --option b
    Asked CLQ-001; tf is blocked:clarification
    [0]
    $ wf clarify ask tf --question Later? --urgency low
    Asked CLQ-002; tf is blocked:clarification
    [0]
    $ wf status tf
    workstream     tf: Test framework
    status         blocked:clarification
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           0 of 1 done
                   [ ] COMMIT-TF-001: Add test harness
    questions      CLQ-001, CLQ-002
    needs you      answer: wf clarify list
    [0]
    ");
}

#[test]
fn a_question_is_asked_as_json() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[&["clarify", "ask", "tf", "--question", "Which?", "--option", "a", "--json"]]), @r#"
    $ wf clarify ask tf --question Which? --option a --json
    {
      "version": 1,
      "id": "CLQ-001",
      "status": "pending",
      "created": "[TIME]",
      "answered": null,
      "urgency": "blocking",
      "source_stage": "manual",
      "workstream": "tf",
      "blocks": [],
      "question": "Which?",
      "options": [
        {
          "id": "option-1",
          "label": "a"
        }
      ],
      "answer": null,
      "answered_by": null
    }
    [0]
    "#);
}

#[test]
fn questions_are_listed_blocking_ones_first() {
    let person = asked();
    insta::assert_snapshot!(person.transcript(&[&["clarify", "list"], &["clarify", "list", "--workstream", "tf"]]), @r#"
    $ wf clarify list
     ID       WORKSTREAM  URGENCY    QUESTION
     CLQ-002  tf          blocking   Which method?
     CLQ-007  tf          blocking   cannot be read: clarification at /: "version" is a required property
     CLQ-008  tf          blocking   cannot be read: there is no JSON file beside the Markdown
     CLQ-001  tf          important  How fast?
    [0]
    $ wf clarify list --workstream tf
     ID       WORKSTREAM  URGENCY    QUESTION
     CLQ-002  tf          blocking   Which method?
     CLQ-007  tf          blocking   cannot be read: clarification at /: "version" is a required property
     CLQ-008  tf          blocking   cannot be read: there is no JSON file beside the Markdown
     CLQ-001  tf          important  How fast?
    [0]
    "#);
}

#[test]
fn questions_are_listed_as_json() {
    let person = Person::with_plan(ONE);
    person.ok(&["clarify", "ask", "tf", "--question", "How fast?", "--urgency", "low"]);
    write(&person.workstream_dir("tf").join("clarifications/pending/CLQ-007.json"), "{");
    insta::assert_snapshot!(person.transcript(&[&["clarify", "list", "--json"]]), @r#"
    $ wf clarify list --json
    [
      {
        "id": "CLQ-007",
        "problem": "not valid JSON: EOF while parsing an object at line 1 column 1",
        "workstream": "tf"
      },
      {
        "question": {
          "answer": null,
          "answered": null,
          "answered_by": null,
          "blocks": [],
          "created": "[TIME]",
          "id": "CLQ-001",
          "options": [],
          "question": "How fast?",
          "source_stage": "manual",
          "status": "pending",
          "urgency": "low",
          "version": 1,
          "workstream": "tf"
        },
        "workstream": "tf"
      }
    ]
    [0]
    "#);
}

#[test]
fn a_question_is_shown() {
    let person = asked();
    insta::assert_snapshot!(person.transcript(&[&["clarify", "show", "CLQ-002"]]), @"
    $ wf clarify show CLQ-002
    # CLQ-002: Which method?

    - Status: pending
    - Urgency: blocking
    - Workstream: tf
    - Raised: [TIME] (manual)

    ## Question

    Which method?
    The plan does not say.

    ## Options

    1. **Tokens** (option-1)
    2. **Cookies** (option-2)
    [0]
    ");
}

#[test]
fn an_answered_question_is_shown_and_listed_with_all() {
    let person = asked();
    insta::assert_snapshot!(person.transcript(&[
        &["clarify", "answer", "CLQ-002", "2"],
        &["clarify", "show", "CLQ-002"],
        &["clarify", "list", "--all"],
    ]), @r#"
    $ wf clarify answer CLQ-002 2
    Answered CLQ-002: option-2: Cookies
      tf is blocked:clarification
    [0]
    $ wf clarify show CLQ-002
    # CLQ-002: Which method?

    - Status: answered
    - Urgency: blocking
    - Workstream: tf
    - Raised: [TIME] (manual)

    ## Question

    Which method?
    The plan does not say.

    ## Options

    1. **Tokens** (option-1)
    2. **Cookies** (option-2)

    ## Answer

    option-2: Cookies

    Answered by ada at [TIME].
    [0]
    $ wf clarify list --all
     ID       WORKSTREAM  URGENCY    QUESTION
     CLQ-002  tf          blocking   Which method?
     CLQ-007  tf          blocking   cannot be read: clarification at /: "version" is a required property
     CLQ-008  tf          blocking   cannot be read: there is no JSON file beside the Markdown
     CLQ-001  tf          important  How fast?
    [0]
    "#);
}

#[test]
fn the_last_answer_lifts_the_block() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.question("tf", "CLQ-002", "blocking");
    let run = person.shot(&["run", "tf"], &[]);
    let answers = person.transcript(&[
        &["clarify", "answer", "CLQ-001", "jwt"],
        &["clarify", "answer", "CLQ-002", "in words", "--json"],
    ]);
    insta::assert_snapshot!(format!("{run}{answers}{}", person.meta_lines("tf")), @r#"
    $ wf run tf
    COMMIT-TF-001: blocked at clarification: blocked by CLQ-001, CLQ-002
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: answer: wf clarify show CLQ-001 -w tf
    [8]
    $ wf clarify answer CLQ-001 jwt
    Answered CLQ-001: jwt: Tokens
      tf is blocked:clarification
    [0]
    $ wf clarify answer CLQ-002 "in words" --json
    {
      "question": {
        "answer": "in words",
        "answered": "[TIME]",
        "answered_by": "ada",
        "blocks": [],
        "created": "[TIME]",
        "id": "CLQ-002",
        "options": [
          {
            "id": "jwt",
            "label": "Tokens"
          }
        ],
        "question": "Which?",
        "source_stage": "",
        "status": "answered",
        "urgency": "blocking",
        "version": 1,
        "workstream": "tf"
      },
      "status": "implement",
      "workstream": "tf"
    }
    [0]
    STATUS=implement
    BLOCKED_BY=
    LAST_RESULT=blocked
    LAST_RUN_ID=[STAMP]_app_tf_COMMIT-TF-001
    LAST_COMMIT_SHA=
    "#);
}

#[test]
fn answers_that_are_refused() {
    let person = asked();
    person.ok(&["clarify", "answer", "CLQ-001", "fast"]);
    insta::assert_snapshot!(person.transcript(&[
        &["clarify", "answer", "CLQ-002", "9"],
        &["clarify", "answer", "CLQ-002", " "],
        &["clarify", "answer", "CLQ-001", "again"],
        &["clarify", "answer", "CLQ-003", "x"],
        &["clarify", "answer", "CLQ-007", "x"],
        &["clarify", "show", "../x"],
        &["clarify", "answer", "CLQ-002"],
        &["clarify", "ask", "tf", "--question", " "],
        &["clarify", "list", "--workstream", "other"],
    ]), @r#"
    $ wf clarify answer CLQ-002 9
    ! error: there is no option 9; choose 1 to 2, or answer in words
    [2]
    $ wf clarify answer CLQ-002 " "
    ! error: the answer is empty; nothing was changed
    [2]
    $ wf clarify answer CLQ-001 again
    ! error: CLQ-001 was answered already
    [2]
    $ wf clarify answer CLQ-003 x
    ! error: there is no question CLQ-003; did you mean 'CLQ-001'? See: wf clarify list
    [2]
    $ wf clarify answer CLQ-007 x
    ! error: CLQ-007: clarification at /: "version" is a required property
    [2]
    $ wf clarify show ../x
    ! error: "../x" is not a valid clarification id: CLQ- and three to nine digits
    [2]
    $ wf clarify answer CLQ-002
    ! error: give the answer, as in: wf clarify answer CLQ-002 "...", or set EDITOR
    [2]
    $ wf clarify ask tf --question " "
    ! error: the question is empty
    [2]
    $ wf clarify list --workstream other
    ! error: there is no workstream 'other'; see: wf list
    [2]
    "#);
}

#[test]
fn the_same_number_in_two_workstreams_needs_a_name() {
    let person = Person::with_plan(ONE);
    person.ok(&["new", "other", "Other"]);
    person.question("tf", "CLQ-001", "low");
    person.question("other", "CLQ-001", "low");
    insta::assert_snapshot!(person.transcript(&[
        &["clarify", "answer", "CLQ-001", "1"],
        &["clarify", "answer", "CLQ-001", "1", "--workstream", "other"],
        &["clarify", "list"],
    ]), @"
    $ wf clarify answer CLQ-001 1
    ! error: several workstreams have CLQ-001; say which: --workstream ID
    [2]
    $ wf clarify answer CLQ-001 1 --workstream other
    Answered CLQ-001: jwt: Tokens
      other is planning
    [0]
    $ wf clarify list
     ID       WORKSTREAM  URGENCY  QUESTION
     CLQ-001  tf          low      Which?
    [0]
    ");
}

#[test]
fn the_files_of_a_question_move_with_its_answer() {
    let person = Person::with_plan(ONE);
    person.ok(&["clarify", "ask", "tf", "--question", "Which?", "--option", "a"]);
    let before = person.tree(&person.workstream_dir("tf").join("clarifications"), &[]);
    person.ok(&["clarify", "answer", "CLQ-001", "1"]);
    let after = person.tree(&person.workstream_dir("tf").join("clarifications"), &[]);
    let page = person.file(&person.workstream_dir("tf").join("clarifications/answered/CLQ-001.md"));
    insta::assert_snapshot!(format!("{before}\n{after}\n{page}"), @"
    answered/
    pending/
    pending/CLQ-001.json
    pending/CLQ-001.md

    answered/
    answered/CLQ-001.json
    answered/CLQ-001.md
    pending/

    # CLQ-001: Which?

    - Status: answered
    - Urgency: blocking
    - Workstream: tf
    - Raised: [TIME] (manual)

    ## Question

    Which?

    ## Options

    1. **a** (option-1)

    ## Answer

    option-1: a

    Answered by ada at [TIME].
    ");
}

#[test]
fn editors_that_cannot_answer() {
    let person = asked();
    let shots = [
        person.shot(&["clarify", "answer", "CLQ-002"], &[("EDITOR", "no-such-editor")]),
        person.shot(&["clarify", "answer", "CLQ-002"], &[("EDITOR", "false")]),
        person.shot(&["clarify", "answer", "CLQ-002"], &[("EDITOR", "true")]),
    ];
    insta::assert_snapshot!(shots.concat(), @"
    $ wf clarify answer CLQ-002
    ! error: the editor 'no-such-editor' was not found; set EDITOR
    [2]
    $ wf clarify answer CLQ-002
    ! error: the editor failed (Exited(1)); nothing was changed
    [1]
    $ wf clarify answer CLQ-002
    ! error: the answer is empty; nothing was changed
    [2]
    ");
}
