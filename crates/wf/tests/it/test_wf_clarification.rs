//! Questions block, and answers lift the block.

use crate::support::{ONE, Person, read, result, write};

#[test]
fn golden_10_4_a_blocking_question_stops_the_run() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.refused(&["run", "tf", "--once"], 8, &["CLQ-001"]);
    let result = person.only_result();
    assert_eq!(
        (result["status"].as_str(), result["blocked_reason"].as_str()),
        (Some("blocked"), Some("CLQ-001"))
    );
    assert!(result["stages"].get("implement").is_none(), "nothing was attempted: {result}");
    assert_eq!(person.meta("tf", "STATUS"), "blocked:clarification");
    assert_eq!(person.meta("tf", "BLOCKED_BY"), "CLQ-001");
    assert_eq!(person.meta("tf", "LAST_RESULT"), "blocked");
}

#[test]
fn an_answer_lifts_the_block() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.wf(&["run", "tf"]);
    let said = person.ok(&["clarify", "answer", "CLQ-001", "1"]);
    assert!(said.contains("jwt: Tokens") && said.contains("tf is implement"), "{said}");
    assert_eq!(
        (person.meta("tf", "STATUS"), person.meta("tf", "BLOCKED_BY")),
        ("implement".to_owned(), String::new())
    );
    let dir = person.workstream_dir("tf").join("clarifications");
    assert!(!dir.join("pending/CLQ-001.json").exists());
    assert!(read(&dir.join("answered/CLQ-001.json")).contains("\"answered_by\": \"ada\""));
    assert!(read(&dir.join("answered/CLQ-001.md")).contains("## Answer"));
    person.refused(&["clarify", "answer", "CLQ-001", "2"], 2, &["answered already"]);
}

#[test]
fn what_cannot_be_read_blocks_too() {
    for (file, text) in
        [("CLQ-007.md", "# a question\n"), ("CLQ-007.json", "{\"urgency\": \"low\"}")]
    {
        let person = Person::with_plan(ONE);
        write(&person.workstream_dir("tf").join("clarifications/pending").join(file), text);
        person.refused(&["run", "tf"], 8, &["CLQ-007"]);
        assert!(person.ok(&["clarify", "list"]).contains("cannot be read"));
    }
}

#[test]
fn a_question_that_is_not_blocking_does_not_stop() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "low");
    // It goes on to IMPLEMENT, which has no box here.
    person.refused(&["run", "tf"], 2, &["OPENAI_API_KEY"]);
    person.question("tf", "CLQ-002", "nonsense");
    person.refused(&["run", "tf"], 8, &["CLQ-002"]);
}

#[test]
fn questions_are_numbered_over_the_project_closed_ones_included() {
    let person = Person::with_plan(ONE);
    person.ok(&["new", "other", "Other"]);
    assert!(person.ok(&["clarify", "ask", "tf", "--question", "One?"]).contains("CLQ-001"));
    person.ok(&["close", "tf", "--force"]);
    let asked = person.json(&[
        "clarify",
        "ask",
        "other",
        "--question",
        "Two?",
        "--option",
        "yes",
        "--option",
        "no",
        "--urgency",
        "low",
    ]);
    assert_eq!(asked["id"], "CLQ-002");
    assert_eq!(asked["options"][1]["label"], "no");
    let listed = person.ok(&["clarify", "list"]);
    assert!(
        listed.contains("CLQ-002") && !listed.contains("CLQ-001"),
        "closed ones are not listed: {listed}"
    );
}

#[test]
fn an_editor_can_answer() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    let editor = person.hermetic.root().join("editor.sh");
    write(
        &editor,
        "#!/bin/sh\nprintf 'in words\\n' | cat - \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"\n",
    );
    let mut command = person.command(&["clarify", "answer", "CLQ-001"]);
    command.env("EDITOR", format!("sh {}", editor.display()));
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("Answered CLQ-001: in words"), "{}", output.stdout);
}

#[test]
fn bad_answers_change_nothing() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.refused(&["clarify", "answer", "CLQ-001", "9"], 2, &["no option 9"]);
    person.refused(&["clarify", "answer", "CLQ-001", " "], 2, &["empty"]);
    person.refused(&["clarify", "answer", "CLQ-002", "x"], 2, &["did you mean 'CLQ-001'"]);
    person.refused(&["clarify", "show", "../x"], 2, &["clarification id"]);
    assert!(person.ok(&["clarify", "show", "CLQ-001"]).contains("Which?"));
}

#[test]
fn a_blocking_question_also_guards_a_finished_plan() {
    let person = Person::with_plan(crate::support::ONE_DONE);
    person.question("tf", "CLQ-001", "blocking");
    person.refused(&["run", "tf"], 8, &["CLQ-001"]);
    assert_eq!(result(&person.runs()[0])["microcommit"], serde_json::Value::Null);
}
