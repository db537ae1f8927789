//! kill -9 of a train: the branch never has half a step, and no step twice. `make chaos` kills at every moment.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use testkit::part::{Part, require};

use crate::support::Person;
use crate::train::{KEEPS_BOTH, merged, only_branch, seven, train, train_command};
use crate::train_break::{CHECK, nine};

const RULES: &str = "---\ncheck: 'true'\n---\n";

/// Points that every step passes.
const POINTS: &[&str] = &[
    "sync-begun",
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

/// The branch has whole steps alone: each merge brings in a commit that a finished train has as well, in that order.
fn assert_whole(person: &Person, when: &str) {
    let steps: Vec<String> =
        [4, 3, 0].map(|before| person.fork.upstream.sha(&format!("main~{before}"))).into();
    for branch in person.published() {
        let merged = merged(person, &branch);
        assert_eq!(merged, steps[..merged.len()], "{when}");
    }
}

fn finishes(person: &Person, flags: &[&str], when: &str) {
    assert_whole(person, when);
    let output = train(person, KEEPS_BOTH, flags);
    assert_eq!(output.status, Some(0), "{when}: {}", output.snapshot());
    assert_whole(person, when);
    if flags.contains(&"--stack") {
        let branches = person.published();
        let steps: Vec<usize> = branches.iter().map(|it| merged(person, it).len()).collect();
        assert_eq!(steps, [1, 2, 3], "{when}: {branches:?}");
    } else {
        assert_eq!(merged(person, &only_branch(person)).len(), 3, "{when}");
    }
}

/// Kills a train twice at a point: in the first step that reaches it, and in the train that goes on.
fn killed_twice_at(point: &str, flags: &[&str]) {
    let Some(person) = seven(RULES) else { return };
    for _ in 0..2 {
        let mut command = train_command(&person, KEEPS_BOTH, flags);
        command.env("BOTTLEWORKS_FAILPOINT", point);
        let output = person.hermetic.run(&mut command);
        assert!(output.signal == Some(9) || output.success(), "{point}: {}", output.snapshot());
        assert_whole(&person, point);
    }
    finishes(&person, flags, point);
}

#[test]
fn a_train_that_was_killed_between_any_two_writes_goes_on() {
    POINTS.iter().for_each(|point| killed_twice_at(point, &[]));
}

#[test]
fn a_stack_that_was_killed_between_any_two_writes_goes_on() {
    // Before a step is pushed, a stack does what every train does.
    let points = POINTS.iter().skip_while(|point| **point != "pushed");
    points.for_each(|point| killed_twice_at(point, &["--stack"]));
}

#[test]
fn a_train_that_was_killed_after_it_named_a_break_does_not_search_it_again() {
    let Some(person) = nine(CHECK) else { return };
    let script = "[[step]]\nrun = 'touch repaired && git add -A && git commit -q --no-edit'\n";
    let flags = ["--accept-dropped"];
    let mut command = train_command(&person, script, &flags);
    command.env("BOTTLEWORKS_FAILPOINT", "train-break");
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.signal, Some(9), "{}", output.snapshot());
    assert!(person.published().is_empty());
    let output = train(&person, script, &flags);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(!output.stderr.contains("searching"), "{}", output.stderr);
    let steps = [5, 4, 0].map(|before| person.fork.upstream.sha(&format!("main~{before}")));
    assert_eq!(merged(&person, &only_branch(&person)), steps);
}

/// Starts a train that reports what it does, one line each.
fn started(person: &Person) -> Child {
    let mut command = train_command(person, KEEPS_BOTH, &["--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("forklift starts")
}

/// Reads this many lines of a train's report; fewer if it ends before.
fn read_lines(child: &mut Child, most: usize) -> usize {
    let lines = BufReader::new(child.stdout.as_mut().expect("a pipe")).lines();
    lines.take(most).map_while(Result::ok).count()
}

/// Kills a train some milliseconds after it reported this many things; returns whether it was still at work.
fn killed_after(lines: usize, pause: Duration) -> bool {
    let person = seven(RULES).expect("bubblewrap");
    let mut child = started(&person);
    read_lines(&mut child, lines);
    // The kill lies between two reports.
    std::thread::sleep(pause);
    let was_alive = child.try_wait().expect("it can be asked").is_none();
    child.kill().expect("killed");
    child.wait().expect("it is gone");
    finishes(&person, &[], &format!("{pause:?} after {lines} lines"));
    was_alive
}

#[test]
fn a_train_that_was_killed_at_any_moment_has_whole_steps_and_none_twice() {
    if require(Part::Bwrap).is_none() {
        return;
    }
    let kills = host::env::var("TRAIN_KILLS").map(|text| text.parse().expect("a number"));
    let count: usize = kills.unwrap_or(3);
    let person = seven(RULES).expect("bubblewrap");
    let mut whole = started(&person);
    let lines = read_lines(&mut whole, usize::MAX);
    assert!(whole.wait().expect("it ends").success() && lines > 10, "{lines} lines");
    let landed = (0..count).filter(|number| {
        let pause = Duration::from_millis(u64::try_from(number * 7 % 30).expect("small"));
        killed_after(1 + number * (lines * 4 / 5) / count, pause)
    });
    let landed = landed.count();
    println!(
        "{count} kills of a train, {landed} while it was at work, none with half a step or one twice"
    );
    // One that comes after the end on a busy machine says nothing, and most do not.
    assert!(landed * 3 >= count * 2, "{landed} of {count} kills came before the end");
}
