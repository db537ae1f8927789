//! `wf plan`: drafted by an agent that can change nothing, shown as a difference, accepted by a person.

use std::os::unix::fs::PermissionsExt;

use crate::play::{GOOD, person_with_one};
use crate::support::{ONE, read, write};

const DRAFT: &str = r#"
[[step]]
run = "grep -q 'people can log in' /harness-state/run/harness/instructions.txt"
[[step]]
run = "touch /workspace/x"
expect = 1
[[step]]
print = '''Here: {"commits": [{"title": "Add a form", "description": "so that", "acceptance": ["a form is shown"]}, {"title": "Check it"}]}
'''
"#;

#[test]
fn a_draft_is_shown_and_accepted() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, DRAFT);
    let shown = person.ok(&["plan", "tf", "--from", "people can log in"]);
    assert!(shown.contains("+### COMMIT-TF-002: Add a form"), "{shown}");
    let plan = person.workstream_dir("tf").join("plan.md");
    assert_eq!(read(&plan), ONE);
    person.ok(&["plan", "tf", "--accept"]);
    assert!(read(&plan).contains("### COMMIT-TF-003: Check it"));
    person.refused(&["plan", "tf", "--accept"], 2, &["no draft"]);
    assert!(person.last_run().to_string_lossy().ends_with("_plan"));
}

#[test]
fn a_story_may_be_a_file_and_a_draft_may_be_edited() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, DRAFT);
    write(&person.repo.dir().join("story.md"), "people can log in");
    let editor = person.hermetic.root().join("editor");
    write(&editor, "#!/bin/sh\nsed -i 's/Check it/Check twice/' \"$1\"\n");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = person.command(&["plan", "tf", "--from", "story.md", "--edit", "--accept"]);
    command.env("EDITOR", &editor);
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Check twice"));
}

#[test]
fn a_plan_that_changed_meanwhile_is_not_overwritten() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, DRAFT);
    person.ok(&["plan", "tf", "--from", "people can log in"]);
    person.plan("tf", &format!("{ONE}\nmore words\n"));
    person.refused(&["plan", "tf", "--accept"], 2, &["was changed since"]);
}

#[test]
fn an_agent_that_drafts_nothing_or_takes_too_long_is_an_error() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, "[[step]]\nprint = \"no idea\\n\"\n");
    person.refused(&["plan", "tf", "--from", "x"], 4, &["no JSON object"]);
    person.profile(&format!("{}BREAKDOWN_TIMEOUT=2\n", crate::play::PROFILE));
    person.cast(GOOD, "[[step]]\nsleep = 60\n");
    person.refused(&["plan", "tf", "--from", "x"], 4, &["out of time"]);
}
