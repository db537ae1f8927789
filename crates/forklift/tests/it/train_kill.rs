//! kill -9 of a train: the branch never has half a step, and no step twice. `make chaos` kills at every moment.

use std::process::Stdio;
use std::time::Duration;

use testkit::part::{Part, require};

use crate::support::Person;
use crate::train::{KEEPS_BOTH, merged, only_branch, seven, train, train_command};

const RULES: &str = "---\ncheck: 'true'\n---\n";

/// Between the kills of the moments, from the beginning of a train.
const BETWEEN_MOMENTS: Duration = Duration::from_millis(40);

/// The branch has whole steps alone: each merge brings in a commit that a finished train has as well, in that order.
fn assert_whole(person: &Person, when: &str) {
    let steps: Vec<String> =
        [4, 3, 0].map(|before| person.fork.upstream.sha(&format!("main~{before}"))).into();
    for branch in person.published() {
        let merged = merged(person, &branch);
        assert_eq!(merged, steps[..merged.len()], "{when}");
    }
}

fn finishes(person: &Person, when: &str) {
    assert_whole(person, when);
    let output = train(person, KEEPS_BOTH, &[]);
    assert_eq!(output.status, Some(0), "{when}: {}", output.snapshot());
    assert_whole(person, when);
    assert_eq!(merged(person, &only_branch(person)).len(), 3, "{when}");
}

#[test]
fn a_train_that_was_killed_between_any_two_writes_goes_on() {
    let points = [
        "train-planned",
        "pinned",
        "prepared",
        "launched",
        "judged",
        "pushed",
        "published",
        "closed",
        "train-packed",
        "train-moved",
    ];
    for point in points {
        let Some(person) = seven(RULES) else { return };
        // The first kill is in the first step that reaches the point, the second in a train that goes on.
        for _ in 0..2 {
            let mut command = train_command(&person, KEEPS_BOTH, &[]);
            command.env("BOTTLEWORKS_FAILPOINT", point);
            let output = person.hermetic.run(&mut command);
            assert!(output.signal == Some(9) || output.success(), "{point}: {}", output.snapshot());
            assert_whole(&person, point);
        }
        finishes(&person, point);
    }
}

/// Kills a train at one moment; returns whether it was still at work.
fn killed_at(moment: Duration) -> bool {
    let person = seven(RULES).expect("bubblewrap");
    let mut command = train_command(&person, KEEPS_BOTH, &[]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("forklift starts");
    std::thread::sleep(moment);
    let was_alive = child.try_wait().expect("it can be asked").is_none();
    child.kill().expect("killed");
    child.wait().expect("it is gone");
    finishes(&person, &format!("{moment:?}"));
    was_alive
}

#[test]
fn a_train_that_was_killed_at_any_moment_has_whole_steps_and_none_twice() {
    if require(Part::Bwrap).is_none() {
        return;
    }
    let kills = host::env::var("TRAIN_KILLS").map(|text| text.parse().expect("a number"));
    let moments: Vec<u32> = match kills {
        Some(kills) => (0..kills).collect(),
        None => vec![8, 30, 55],
    };
    let count = moments.len();
    let landed = moments.into_iter().filter(|at| killed_at(BETWEEN_MOMENTS * (*at % 100))).count();
    println!(
        "{count} kills of a train, {landed} while it was at work, none with half a step or one twice"
    );
    assert!(landed > 0, "every kill came too late");
}
