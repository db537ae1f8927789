//! kill -9 of forklift at moments of a slow push: the forklift that finishes the run leaves a record that agrees with origin, one
//! branch and one pull request. `make chaos` kills at every moment, in many rounds.

use std::process::Stdio;
use std::time::Duration;

use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::wait::wait_for;

use crate::support::{Person, field_of, name_of};

const MOMENTS: u64 = 20;

/// Together longer than the push.
const BETWEEN_MOMENTS: Duration = Duration::from_millis(25);

/// Rounds of each moment, from the environment of `make chaos`.
fn rounds() -> Option<u32> {
    host::env::var("PUSH_ROUNDS").map(|text| text.parse().expect("a number"))
}

/// Kills forklift `moment` after it has begun to push, and returns whether it was still alive.
fn kill_while_pushing(person: &Person, forge: &FakeGitea, moment: Duration) -> bool {
    let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
    command.env("FORKLIFT_TOKEN", TOKEN);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("forklift starts");
    wait_for("the intent to push", || {
        let run = person.runs().pop()?;
        let log = std::fs::read_to_string(run.join("operations.jsonl")).ok()?;
        log.contains("\"push\"").then_some(())
    });
    std::thread::sleep(moment);
    let was_alive = child.try_wait().expect("it can be asked").is_none();
    child.kill().expect("killed");
    child.wait().expect("it is gone");
    was_alive
}

fn round(number: u64) -> bool {
    let person = Person::new().expect("bubblewrap");
    let forge = FakeGitea::start();
    person.origin_hook("pre-receive", "sleep 0.3\n");
    let moment = BETWEEN_MOMENTS * u32::try_from(number).expect("small");
    let was_alive = kill_while_pushing(&person, &forge, moment);
    let run = person.only_run();
    let mut command = person.forklift(&["attach", &name_of(&run)]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "at {moment:?}: {}", output.snapshot());
    assert_eq!(field_of(&run, "/publication/problem"), serde_json::Value::Null);
    assert_eq!(person.published().len(), 1, "at {moment:?}");
    let (branch, commit) = (person.published().remove(0), field_of(&run, "/publication/commit"));
    assert_eq!(person.fork.origin.sha(&branch), commit, "at {moment:?}");
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1, "at {moment:?}: {pulls:?}");
    assert_eq!(format!("refs/heads/{}", pulls[0].head), branch);
    was_alive
}

#[test]
fn a_push_that_was_killed_is_published_once() {
    if testkit::part::require(testkit::part::Part::Bwrap).is_none() {
        return;
    }
    let moments: Vec<u64> = match rounds() {
        Some(rounds) => (0..rounds).flat_map(|_| 0..MOMENTS).collect(),
        None => vec![0, 5, 11],
    };
    let landed = moments.iter().filter(|moment| round(**moment)).count();
    println!("{} kills, {landed} while forklift lived, all published once", moments.len());
    assert!(landed > 0, "every kill came too late");
}
