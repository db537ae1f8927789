//! Stories: Markdown files of the product, each made into a workstream, and the requirements that they meet.

use crate::play::{GOOD, person_with_one};
use crate::support::{Person, read, write};

#[test]
fn a_story_goes_from_a_requirement_to_a_merged_workstream() {
    let person = Person::new();
    let repo = person.repo.dir().to_path_buf();
    write(&repo.join("REQS.md"), "- REQ-1: people log in\n- REQ-2: people log out\n");
    insta::assert_snapshot!(person.ok(&["story", "list"]), @r#"
    No open stories. Write one: wf story add "<title>"
    Requirements that no story names:
      REQ-1 (REQS.md)
      REQ-2 (REQS.md)
    "#);
    person.ok(&["story", "add", "Log in", "--requirement", "REQ-1", "--text", "With a token."]);
    assert_eq!(
        read(&repo.join("stories/STORY-0001.md")),
        "# STORY-0001: Log in\n\nRequirements: REQ-1\n\nWith a token.\n"
    );
    person.ok(&["story", "add", "Log out"]);
    person.repo.git(&["add", "-A"]);
    person.repo.git(&["commit", "-q", "-m", "stories"]);
    let said = person.ok(&["story", "start", "STORY-1", "--id", "login"]);
    assert!(said.contains("  Story: STORY-0001\n"), "{said}");
    assert_eq!(person.meta("login", "STORY"), "STORY-0001");
    person.refused(
        &["story", "start", "STORY-0001"],
        2,
        &["STORY-0001 is in the workstream login already, which is planning", "wf status login"],
    );
    insta::assert_snapshot!(person.ok(&["story", "list"]), @r"
     STORY       STATE     WORKSTREAM  TITLE
     STORY-0001  planning  login       Log in
     STORY-0002  open                  Log out
    Requirements that no story names:
      REQ-2 (REQS.md)
    ");
    // A story that is changed while it is worked on is shown as that.
    write(&repo.join("stories/STORY-0001.md"), "# STORY-0001: Log in\n\nWith a password.\n");
    let shown = person.ok(&["story", "show", "STORY-0001"]);
    assert!(shown.contains("planning, story changed since"), "{shown}");
    assert!(shown.contains("With a password."), "{shown}");
    let json = person.json(&["story", "list"]);
    assert_eq!(json["stories"][0]["changed"], true);
    assert_eq!(json["uncovered_requirements"][0]["id"], "REQ-1");
    // Closed without a merge, it is open again.
    person.ok(&["close", "login", "--force"]);
    assert_eq!(person.json(&["story", "show", "STORY-0001"])["state"], "open");
}

#[test]
fn a_story_whose_merge_was_taken_back_is_lost() {
    let person = Person::accepted();
    write(&person.repo.dir().join("stories/STORY-0001.md"), "# STORY-0001: Test\n");
    person.repo.commit("stories");
    let meta = person.workstream_dir("tf").join("meta.env");
    write(&meta, &format!("{}STORY=STORY-0001\n", read(&meta)));
    person.ok(&["merge", "tf"]);
    let state = || person.json(&["story", "show", "STORY-0001"])["state"].clone();
    assert_eq!(state(), "done");
    person.repo.git(&["revert", "--no-edit", "-m", "1", "HEAD"]);
    assert_eq!(state(), "lost");
    person.refused(&["merge", "tf"], 8, &["taken back"]);
    person.repo.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(state(), "done");
    person.repo.git(&["reset", "-q", "--hard", "HEAD~3"]);
    assert_eq!(state(), "lost");
    let listed = person.ok(&["story", "list"]);
    assert!(listed.contains("its work is not in the base branch"), "{listed}");
}

#[test]
fn wrong_stories_are_named() {
    let person = Person::new();
    let repo = person.repo.dir().to_path_buf();
    person.refused(&["story", "show", "STORY-9"], 2, &["there is no story STORY-9"]);
    person.refused(&["story", "add", " "], 2, &["the title is empty"]);
    person.refused(&["story", "add", "x", "--requirement", "req 1"], 2, &["REQ-12"]);
    person.ok(&["story", "add", "One"]);
    write(&repo.join("stories/STORY-0001-again.md"), "# Again\n");
    write(&person.hermetic.root().join("secret"), "token\n");
    std::os::unix::fs::symlink(
        person.hermetic.root().join("secret"),
        repo.join("stories/STORY-0002.md"),
    )
    .expect("a link");
    let output = person.wf(&["story", "list"]);
    assert!(output.stderr.contains("STORY-0001.md has the id of"), "{}", output.snapshot());
    assert!(output.stderr.contains("STORY-0002.md was not read"), "{}", output.snapshot());
    let shown = person.wf(&["story", "show", "STORY-0002"]);
    assert_eq!(shown.status, Some(2), "{}", shown.snapshot());
    assert!(!shown.stdout.contains("token"), "{}", shown.snapshot());
}

#[test]
fn the_plan_of_a_workstream_is_drafted_from_its_story() {
    let Some(person) = person_with_one() else { return };
    let draft = r#"
[[step]]
run = "grep -q 'people can log in' /harness-state/run/harness/instructions.txt"
[[step]]
print = '''{"commits": [{"title": "Add a form", "description": "so that", "acceptance": ["a form is shown"]}]}
'''
"#;
    person.cast(GOOD, draft);
    person.ok(&["story", "add", "Log in", "--text", "people can log in"]);
    person.ok(&["story", "start", "STORY-0001", "--id", "login"]);
    let shown = person.ok(&["plan", "login"]);
    assert!(shown.contains("+### COMMIT-LOGIN-001: Add a form"), "{shown}");
    // The draft is shown again; it is not asked for twice.
    person.cast(GOOD, "[[step]]\nrun = \"false\"\n");
    person.ok(&["plan", "login", "--accept"]);
    let plan = read(&person.workstream_dir("login").join("plan.md"));
    assert!(plan.contains("Add a form"), "{plan}");
}
