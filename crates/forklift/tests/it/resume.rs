//! Living with runs that stopped short: going on from them, doing them again, being told of them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use testkit::repo::Fork;

use crate::support::{GATE, MERGE, Person};

const ASKS: &str = "[[step]]\nrun = \"echo half done > half.txt\"\n\n[[step]]\nrun = \"echo which one? > STUCK.md\"\n";

const GOES_ON: &str = "[[step]]\nrun = '''test -f half.txt && test ! -e STUCK.md && rm half.txt'''\n\n[[step]]\n\
                       run = \"git merge -q --no-edit upstream/main\"\n";

fn name_of(run: &Path) -> String {
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

fn script(person: &Person, text: &str) -> String {
    let path = person.hermetic.root().join("second.toml");
    std::fs::write(&path, text).expect("the script");
    path.to_string_lossy().into_owned()
}

#[test]
fn a_stuck_run_goes_on_from_its_workspace_with_the_answer() {
    let Some(person) = Person::new() else { return };
    let stuck = person.run(ASKS, &[]);
    assert_eq!(stuck.status, Some(4), "{}", stuck.snapshot());
    let first = person.only_run();
    let second = script(&person, GOES_ON);
    let args = ["resume", &name_of(&first), "--answer", "the left one", "--script", &second];
    let output = person.hermetic.run(&mut person.forklift(&args));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let runs = person.runs();
    assert_eq!(runs.len(), 2, "a run directory is never used again");
    let told = std::fs::read_to_string(runs[1].join("harness-state/instructions.txt"));
    let told = told.expect("instructions");
    assert!(told.contains("the left one") && told.contains("which one?"), "{told}");
    assert!(first.join("workspace/STUCK.md").exists(), "the first run stays as it is");
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_run_that_ran_out_of_time_can_be_gone_on_with() {
    let Some(person) = Person::new() else { return };
    let slow = "[[step]]\nrun = \"echo half > half.txt\"\n\n[[step]]\nsleep = 600\n";
    let late = person.run(slow, &["--timeout", "8"]);
    assert_eq!(late.status, Some(5), "{}", late.snapshot());
    let second = script(&person, GOES_ON);
    let name = name_of(&person.only_run());
    let args = ["resume", &name, "--timeout", "600", "--script", &second];
    let output = person.hermetic.run(&mut person.forklift(&args));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

/// What the agent left in its home may be a trap for whoever writes there next.
#[test]
fn a_trap_in_the_harness_state_catches_nobody() {
    let Some(person) = Person::new() else { return };
    let outside = person.hermetic.root().join("outside.txt");
    std::fs::write(&outside, "mine").expect("written");
    let trap = format!(
        "[[step]]\nrun = '''ln -sf {0} /harness-state/instructions.txt; ln -sf {0} /harness-state/fork-context.md
rm -rf /harness-state/logs; ln -s {1} /harness-state/logs; ln -sf {0} STUCK.md; rm STUCK.md; echo help > STUCK.md'''\n",
        outside.display(),
        person.hermetic.root().display()
    );
    assert_eq!(person.run(&trap, &[]).status, Some(4));
    let second = script(&person, MERGE);
    let name = name_of(&person.only_run());
    let args = ["resume", &name, "--script", &second];
    let output = person.hermetic.run(&mut person.forklift(&args));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(std::fs::read_to_string(outside).expect("there"), "mine");
    assert!(!person.hermetic.root().join("agent.log").exists());
}

#[test]
fn what_reached_its_aim_or_never_began_cannot_be_gone_on_with() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let name = name_of(&person.only_run());
    let output = person.hermetic.run(&mut person.forklift(&["resume", &name]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("reached its target"), "{}", output.stderr);
    let output = person.hermetic.run(&mut person.forklift(&["resume", "no-such-run"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("no-such-run"), "{}", output.stderr);
}

#[test]
fn a_run_can_be_done_once_more_from_anywhere() {
    let Some(person) = Person::new() else { return };
    let failed = person.run("[[step]]\nexit = 7\n", &[]);
    assert_eq!(failed.status, Some(6), "{}", failed.snapshot());
    let second = script(&person, MERGE);
    let name = name_of(&person.only_run());
    let mut command = person.forklift(&["retry", &name, "--script", &second]);
    command.current_dir(person.hermetic.root());
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_verdict_is_told_to_the_persons_own_command() {
    let Some(person) = Person::new() else { return };
    let told = person.hermetic.root().join("told.json");
    let line = format!("cat > '{}'", told.display());
    let output = person.run(ASKS, &["--notify-cmd", &line]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    let value: Value = serde_json::from_slice(&std::fs::read(told).expect("told")).expect("JSON");
    assert_eq!(value["verdict"]["kind"], "stuck");
    assert_eq!(value["status"], 4);
    assert!(value["stuck"].as_str().expect("the note").contains("which one?"));
}

#[test]
fn a_notification_that_fails_changes_nothing() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &["--notify-cmd", "exit 3"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("notification command failed"), "{}", output.stderr);
}

#[test]
fn p18_two_forklifts_take_turns_on_one_fork() {
    let Some(person) = Person::new() else { return };
    let mut first = person.start(&format!("{GATE}{MERGE}"), &[]);
    person.wait_for_box(&mut first);
    let output = person.hermetic.run(&mut person.command(MERGE, &["--wait", "0"]));
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("another forklift"), "{}", output.stderr);
    let mut second = person.start(MERGE, &["--wait", "600"]);
    assert!(second.try_wait().expect("it can be asked").is_none(), "it did not wait");
    person.open_gate(&person.only_run());
    assert!(second.wait().expect("it ends").success());
    assert!(first.wait().expect("it ends").success());
    assert_eq!(person.runs().len(), 2);
}

#[test]
fn a_person_who_will_not_wait_for_the_other_forklift_can_leave() {
    let Some(person) = Person::new() else { return };
    let mut first = person.start("[[step]]\nsleep = 600\n", &[]);
    person.wait_for_box(&mut first);
    let mut command = person.command(MERGE, &["--wait", "600"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut second = command.spawn().expect("it starts");
    let mut said = BufReader::new(second.stderr.take().expect("a pipe")).lines();
    let line = said.next().expect("a line").expect("text");
    assert!(line.contains("another forklift"), "{line}");
    let stop = |id: u32| {
        let mut kill = person.hermetic.command("kill");
        person.hermetic.run_ok(kill.args(["-INT", &id.to_string()]));
    };
    stop(second.id());
    assert_eq!(second.wait().expect("it ends").code(), Some(130));
    let line = said.next().expect("a line").expect("text");
    assert!(line.starts_with("error: stopped"), "{line}");
    stop(first.id());
    assert_eq!(first.wait().expect("it ends").code(), Some(130));
    assert_eq!(person.runs().len(), 1);
}

#[test]
fn a_run_is_shown_with_how_it_was_made_and_what_it_goes_on_from() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("FORK.md", "---\nsetup: 'true'\ncheck: test -f upstream.txt\n---\n");
        fork.fork_commit("rules");
        fork.clean_merge()
    }) else {
        return;
    };
    assert_eq!(person.run(ASKS, &[]).status, Some(4));
    let first = name_of(&person.only_run());
    let second = script(&person, GOES_ON);
    let output =
        person.hermetic.run(&mut person.forklift(&["resume", &first, "--script", &second]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let name = name_of(&person.runs()[1]);
    let shown = person.hermetic.run(&mut person.forklift(&["show", &name])).stdout;
    let from = format!("goes on     from {first}");
    for words in [
        "target      tip",
        "strategy    merge",
        &from,
        "s: test -f upstream.txt",
        "set-up      passed",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}
