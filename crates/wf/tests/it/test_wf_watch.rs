//! `wf watch` in a real terminal of 80 by 24: it shows what a run does, and its keys act.

use testkit::wait::wait_for;

use crate::play::{PROFILE, person_with_one};
use crate::support::{ONE, Person, read, write};
use crate::terminal;

#[test]
fn the_board_reacts_to_a_run_and_answers_its_question() {
    let person = Person::with_plan(ONE);
    let Some(terminal) = terminal::start(&person, &["watch"]) else { return };
    let screen = terminal.shows("> tf");
    assert!(screen.contains("planning") && screen.contains("0/1"), "{screen}");

    person.question("tf", "CLQ-001", "blocking");
    person.wf(&["run", "tf"]);
    let screen = terminal.shows("blocked:clarification");
    assert!(screen.contains("answer CLQ-001") && screen.contains("1) Tokens"), "{screen}");

    terminal.press(&["a"]);
    terminal.shows("Answer to CLQ-001");
    terminal.press(&["1", "Enter"]);
    let screen = terminal.shows("Answered CLQ-001");
    assert!(screen.contains("implement"), "{screen}");
    let answered = person.workstream_dir("tf").join("clarifications/answered/CLQ-001.json");
    assert!(read(&answered).contains("\"answered_by\": \"ada\""));

    terminal.press(&["q"]);
    terminal.ends();
}

#[test]
fn the_stage_of_a_run_is_shown_while_it_is_on() {
    let person = Person::with_plan(ONE);
    let lock = person.ops().join("locks/workstream.app.tf.lock");
    let Some(terminal) = terminal::start(&person, &["watch"]) else { return };
    terminal.shows("0 at work");
    // A run is its lock and its journal.
    let state = person.ops().join("state");
    write(&lock, "");
    let holder = std::fs::File::open(&lock).expect("made");
    holder.lock().expect("free");
    let journal = r#"{"stem":"x","directory":"x","stage":"implement","started":"2025-01-15T10:00:00Z","micro_commit":null,"accepted":null}"#;
    write(&state.join("app.tf.run.json"), journal);
    let screen = terminal.shows("1 at work");
    assert!(screen.contains("implement "), "{screen}");
    drop(holder);
    terminal.shows("0 at work");
}

#[test]
fn the_log_of_the_last_run_opens_in_the_pager_and_leads_back() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.wf(&["run", "tf"]);
    let Some(terminal) = terminal::start(&person, &["watch"]) else { return };
    terminal.shows("> tf");
    terminal.press(&["d"]);
    terminal.shows("tf has no diff.patch yet");
    terminal.press(&["l"]);
    terminal.shows("# Run ");
    terminal.press(&["q"]);
    terminal.shows("> tf");
    terminal.press(&["C-c"]);
    terminal.ends();
}

#[test]
fn the_diff_opens_and_a_micro_commit_is_approved_or_rejected_by_a_key() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}SUPERVISED_MODE=true\n"));
    person.run_once(0);
    let Some(terminal) = terminal::start(&person, &["watch"]) else { return };
    terminal.shows("> tf");
    terminal.press(&["d"]);
    terminal.shows("+harness");
    terminal.press(&["q"]);
    terminal.shows("> tf");

    terminal.press(&["y"]);
    terminal.shows("Approved; continue: wf run tf");
    assert_eq!(person.meta("tf", "APPROVED_SHA"), person.worktree("tf").head());

    terminal.press(&["n"]);
    terminal.shows("Why is tf rejected");
    terminal.press(&["Escape"]);
    terminal.press(&["n"]);
    terminal.shows("Why is tf rejected");
    terminal.press(&["wrong", "Space", "folder", "Enter"]);
    terminal.shows("Rejected; repeat it: wf run tf");
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Done: [ ]"));
    assert!(read(&person.workstream_dir("tf").join("rejections.json")).contains("wrong folder"));
}

#[test]
fn somebody_is_told_when_something_needs_them() {
    let person = Person::with_plan(ONE);
    let told = person.hermetic.work().join("told");
    let script = person.hermetic.work().join("tell");
    write(&script, &format!("#!/bin/sh\necho \"$2\" >> {}\n", told.display()));
    let profile = format!("TEST_IN=host\nNOTIFY_CMD=\"sh {} word\"\n", script.display());
    person.profile(&profile);
    let Some(terminal) = terminal::start(&person, &["watch"]) else { return };
    terminal.shows("> tf");
    person.ok(&["clarify", "ask", "tf", "--question", "Which?"]);
    terminal.shows("CLQ-001 Which?");
    wait_for("what was told", || told.exists().then(|| read(&told)));
    assert!(read(&told).contains("tf needs you: answer CLQ-001"));
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let person = Person::new();
    person.refused(&["watch"], 2, &["needs a terminal", "wf list"]);
}
