//! `wf log --follow`: the agents of the newest run, until the run has ended.

use testkit::wait::wait_until;

use crate::play::{APPROVE, GOOD, person_with_one};
use crate::support::{ONE, Person};

#[test]
fn a_run_that_ended_is_printed_whole() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let text = person.ok(&["log", "tf", "--follow"]);
    let (work, review) = (text.find("\"notes\": \"done\""), text.find("\"decision\": \"approve\""));
    assert!(work.is_some() && work < review, "{text}");
    assert_eq!(person.ok(&["show", "last", "-w", "tf"]), person.ok(&["show", "-w", "tf"]));
}

#[test]
fn a_run_is_followed_until_it_ends() {
    let Some(person) = person_with_one() else { return };
    let slow = format!("[[step]]\nprint = \"first\\n\"\n[[step]]\nsleep = 1.0\n{GOOD}");
    person.cast(&slow, APPROVE);
    let mut child = person.command(&["run", "tf"]).spawn().expect("started");
    let is_at_work = || person.runs().iter().any(|run| run.join("boxes/implement").is_dir());
    wait_until("the agent", is_at_work);
    let text = person.ok(&["log", "-f", "tf"]);
    assert!(text.starts_with("first\n") && text.contains("\"decision\": \"approve\""), "{text}");
    assert!(person.last_run().join("result.json").is_file());
    assert!(child.wait().expect("ended").success());
}

#[test]
fn a_run_whose_process_is_dead_is_not_waited_for() {
    let Some(person) = person_with_one() else { return };
    let mut command = person.command(&["run", "tf"]);
    let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "wf-answered"));
    assert_eq!(output.signal, Some(9), "{}", output.snapshot());
    let text = person.ok(&["log", "tf", "-f"]);
    assert!(text.contains("\"notes\": \"done\""), "{text}");
}

#[test]
fn a_run_that_needed_no_agent_has_no_log() {
    let person = Person::with_plan("# nothing yet\n");
    person.refused(&["log", "tf", "-f"], 2, &["tf has no run yet; start one: wf run tf"]);
    person.refused(&["run", "tf", "--once"], 4, &["no micro-commits"]);
    person.refused(&["log", "tf", "-f"], 2, &["_none has no log: no agent was started"]);
    person.plan("tf", ONE);
    person.refused(&["log", "tf", "-f", "-n", "3"], 2, &["cannot be used with"]);
}
