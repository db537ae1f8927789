//! `wf plan`: drafts, differences, acceptance and refusals.

use crate::play::{GOOD, PROFILE, person_with_one};
use crate::support::{ONE, Person, write};

const DRAFT: &str = r#"
[[step]]
print = '''Here: {"commits": [{"title": "Add a form", "description": "So that people can log in.", "acceptance": ["a form is shown"]}, {"title": "Check it"}]}
'''
"#;

fn drafting() -> Option<Person> {
    let person = person_with_one()?;
    person.cast(GOOD, DRAFT);
    Some(person)
}

#[test]
fn a_draft_is_shown_as_a_difference() {
    let Some(person) = drafting() else { return };
    insta::assert_snapshot!(person.transcript(&[&["plan", "tf", "--from", "people can log in"]]), @r#"
    $ wf plan tf --from "people can log in"
    --- plan.md
    +++ plan.draft.md
    @@ -6,3 +6,16 @@
     - it runs
     
     Done: [ ]
    +
    +### COMMIT-TF-002: Add a form
    +
    +So that people can log in.
    +
    +Acceptance:
    +- a form is shown
    +
    +Done: [ ]
    +
    +### COMMIT-TF-003: Check it
    +
    +Done: [ ]
    ! > plan
    !   print: Here: {"commits": [{"title": "Add a form", "description": "So that people can log in.", "acceptance": ["a form is shown"]}, {"title": "Check it"}]}
    ! Accept it: wf plan tf --accept, or edit it: wf plan tf --edit
    [0]
    "#);
}

#[test]
fn a_draft_is_shown_as_json() {
    let Some(person) = drafting() else { return };
    insta::assert_snapshot!(person.transcript(&[&["plan", "tf", "--from", "people can log in", "--json"]]), @r##"
    $ wf plan tf --from "people can log in" --json
    {
      "accepted": false,
      "draft": "# Plan\n\n### COMMIT-TF-001: Add test harness\n\nAcceptance:\n- it runs\n\nDone: [ ]\n\n### COMMIT-TF-002: Add a form\n\nSo that people can log in.\n\nAcceptance:\n- a form is shown\n\nDone: [ ]\n\n### COMMIT-TF-003: Check it\n\nDone: [ ]\n",
      "workstream": "tf"
    }
    ! > plan
    !   print: Here: {"commits": [{"title": "Add a form", "description": "So that people can log in.", "acceptance": ["a form is shown"]}, {"title": "Check it"}]}
    ! Accept it: wf plan tf --accept, or edit it: wf plan tf --edit
    [0]
    "##);
}

#[test]
fn a_draft_is_accepted() {
    let Some(person) = drafting() else { return };
    person.ok(&["plan", "tf", "--from", "people can log in"]);
    let accepted = person.transcript(&[
        &["plan", "tf", "--accept", "--quiet"],
        &["status", "tf"],
        &["plan", "tf", "--accept"],
    ]);
    insta::assert_snapshot!(accepted, @"
    $ wf plan tf --accept --quiet
    --- plan.md
    +++ plan.draft.md
    @@ -6,3 +6,16 @@
     - it runs
     
     Done: [ ]
    +
    +### COMMIT-TF-002: Add a form
    +
    +So that people can log in.
    +
    +Acceptance:
    +- a form is shown
    +
    +Done: [ ]
    +
    +### COMMIT-TF-003: Check it
    +
    +Done: [ ]
    Accepted the draft
    [0]
    $ wf status tf
    workstream     tf: Test framework
    status         planning
    branch         feat/tf from main at [SHA]
    worktree       [ROOT]/work/app.ops/worktrees/tf
    expects        mk/ tests/
    touched        0 files, refreshed [TIME]
    plan           0 of 3 done
                   [ ] COMMIT-TF-001: Add test harness
                   [ ] COMMIT-TF-002: Add a form
                   [ ] COMMIT-TF-003: Check it
    needs you      write the plan, then: wf run tf
    [0]
    $ wf plan tf --accept
    ! error: there is no draft; create one: wf plan --from STORY
    [2]
    ");
}

#[test]
fn the_plan_after_an_accepted_draft() {
    let Some(person) = drafting() else { return };
    person.ok(&["plan", "tf", "--from", "people can log in", "--accept"]);
    let dir = person.workstream_dir("tf");
    insta::assert_snapshot!([person.file(&dir.join("plan.md")), person.file(&dir.join("notes.md"))].concat(), @"
    # Plan

    ### COMMIT-TF-001: Add test harness

    Acceptance:
    - it runs

    Done: [ ]

    ### COMMIT-TF-002: Add a form

    So that people can log in.

    Acceptance:
    - a form is shown

    Done: [ ]

    ### COMMIT-TF-003: Check it

    Done: [ ]
    # Notes: Test framework
    - [TIME]: ada accepted a drafted plan
    ");
}

#[test]
fn a_plan_that_changed_since_the_draft() {
    let Some(person) = drafting() else { return };
    person.ok(&["plan", "tf", "--from", "people can log in"]);
    person.plan("tf", &format!("{ONE}\nmore\n"));
    let changed = person.wf(&["plan", "tf", "--accept"]);
    insta::assert_snapshot!(person.redacted(&changed.stderr), @"error: plan.md was changed since the draft was made; create a new one: wf plan --from STORY");
}

#[test]
fn drafts_that_cannot_be_made() {
    let Some(person) = person_with_one() else { return };
    let empty = person.transcript(&[&["plan", "tf"], &["plan", "tf", "--from", " "]]);
    person.cast(GOOD, "[[step]]\nprint = \"no idea\\n\"\n");
    let none = person.shot(&["plan", "tf", "--from", "x"], &[]);
    person.cast(GOOD, "[[step]]\nexit = 5\n");
    let failed = person.shot(&["plan", "tf", "--from", "x"], &[]);
    person.profile(&format!("{PROFILE}BREAKDOWN_TIMEOUT=2\n"));
    person.cast(GOOD, "[[step]]\nsleep = 600\n");
    let slow = person.shot(&["plan", "tf", "--from", "x"], &[]);
    person.plan("tf", "### COMMIT-TF-1: bad\n");
    let broken = person.shot(&["plan", "tf", "--from", "x"], &[]);
    insta::assert_snapshot!([empty, none, failed, slow, broken].concat(), @r#"
    $ wf plan tf
    ! error: there is no draft; create one: wf plan --from STORY
    [2]
    $ wf plan tf --from " "
    ! error: the story is empty; give some text or a file
    [2]
    $ wf plan tf --from x
    ! > plan
    !   print: no idea
    ! error: the agent gave no JSON object with commits
    [4]
    $ wf plan tf --from x
    ! > plan
    !   exit: 5
    ! error: the agent failed: the script ended with status 5
    [4]
    $ wf plan tf --from x
    ! > plan
    !   sleep: 600 s
    ! error: the agent was out of time after 2 s
    [4]
    $ wf plan tf --from x
    ! error: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.md: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    [2]
    "#);
}

#[test]
fn an_edited_draft_must_still_be_a_plan() {
    let Some(person) = drafting() else { return };
    person.ok(&["plan", "tf", "--from", "people can log in"]);
    let draft = person.workstream_dir("tf").join("plan.draft.md");
    write(&draft, "### COMMIT-TF-1: bad\n");
    let refused = person.wf(&["plan", "tf", "--accept"]);
    insta::assert_snapshot!(person.redacted(&refused.stderr), @"error: [ROOT]/work/app.ops/workflow/projects/app/workstreams/tf/plan.draft.md: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'");
}
