//! Series of kills with comments, red checks and merged conflicts among what happens: five issues, an agent of 0.3 s.
//! `KILL_SERIES` is the number of series (1), each of 14 kills if it is set and of 5 otherwise.

use std::time::Duration;

use testkit::fake_forge::Room;
use testkit::wait::wait_for;

use super::{Dice, check_house};
use crate::serving::Serving;
use crate::support::{COMMIT, DONE, Scene};

/// What happened in all series.
#[derive(Default)]
struct Tally {
    kills: usize,
    runs: usize,
    wakeups: usize,
}

#[test]
fn every_issue_has_its_two_runs_and_nobody_is_called() {
    let wanted: Option<u64> =
        host::env::var("KILL_SERIES").map(|text| text.parse().expect("a number"));
    let (series, kills) = wanted.map_or((1, 5), |series| (series, 14));
    let mut tally = Tally::default();
    for number in 0..series {
        if one_series(number, kills, &mut tally).is_none() {
            return;
        }
    }
    let Tally { kills, runs, wakeups } = tally;
    println!(
        "series: {series} series, {kills} kills, {runs} runs, {wakeups} by checks, 0 lost, 0 doubled"
    );
}

fn one_series(number: u64, kills: u64, tally: &mut Tally) -> Option<()> {
    let scene = Scene::new()?;
    let mut issues = vec![scene.issue];
    for _ in 0..4 {
        issues.push(scene.forge.add_issue("Another", "Too.", &["bot-bottle:worker"], &["bot1"]));
    }
    scene.person.script(&format!("[[step]]\nsleep = 0.3\n{COMMIT}{DONE}"));
    let mut serving = Serving::start(scene, "sweep_secs = 1\n");
    let mut dice = Dice(number * 7919 + 20_261_118);
    let mut answered = vec![false; issues.len()];
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(100 + dice.roll(1800)));
        answer(&serving, &issues, &mut answered);
        serving.restart();
        tally.kills += 1;
    }
    wait_for("an answer to every pull request", || {
        answer(&serving, &issues, &mut answered);
        answered.iter().all(|done| *done).then_some(())
    });
    wait_for("two runs of each", || {
        let is_done = |issue: &u64| {
            let frozen = serving.work_on(*issue).is_some_and(|(state, _)| state == "frozen");
            frozen && runs_of(&serving, *issue) >= 2
        };
        issues.iter().all(is_done).then_some(())
    });
    for issue in &issues {
        let runs = runs_of(&serving, *issue);
        let told = std::fs::read_to_string(serving.scene.person.hermetic.work().join("serve.log"));
        assert_eq!(
            runs,
            2,
            "series {number}, issue {issue}: one run for each cause\n{}",
            told.unwrap_or_default()
        );
        let range = format!("main..bot-bottle/{}", slug(*issue));
        let commits = serving.scene.person.fork.origin.git(&["rev-list", "--count", &range]);
        assert_eq!(commits.trim(), "2", "series {number}, issue {issue}: one commit for each run");
        tally.runs += runs;
    }
    let called = "SELECT count(*) FROM work_event WHERE state = 'needs-attention'";
    assert_eq!(serving.count(called), 0, "series {number}: a person was called");
    assert_eq!(serving.pulls(), issues.len(), "series {number}: pull requests");
    let comments = serving.scene.forge.comments();
    let statuses = comments.iter().filter(|it| it.body.starts_with("<!-- bot-bottle: status"));
    assert_eq!(statuses.count(), issues.len(), "series {number}: one status comment each");
    check_house(&serving, &format!("series {number}"));
    tally.wakeups += 1;
    Some(())
}

/// Runs in the record of an issue's bottle. A process that was killed before it began one leaves an empty folder.
fn runs_of(serving: &Serving, issue: u64) -> usize {
    let path = serving.scene.person.bottle(&slug(issue)).join("record.json");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    record["runs"].as_array().map_or(0, Vec::len)
}

fn slug(issue: u64) -> String {
    format!("worker-issue-{issue}")
}

/// Answers each new pull request once: with a comment, that of the first issue with a conflict too, and that of the last one
/// with a red check.
fn answer(serving: &Serving, issues: &[u64], answered: &mut [bool]) {
    let Scene { forge, person, .. } = &serving.scene;
    for (at, issue) in issues.iter().enumerate() {
        let branch = format!("bot-bottle/{}", slug(*issue));
        let pull = forge.pulls().into_iter().find(|pull| pull.head == branch);
        let Some(pull) = pull.filter(|_| !answered[at]) else { continue };
        answered[at] = true;
        if at + 1 == issues.len() {
            let tip = person.fork.origin.git(&["rev-parse", &branch]).trim().to_owned();
            forge.set_branch(&branch, &tip);
            forge.add_check(&tip, "test", "failure", "red\n");
        } else {
            if at == 0 {
                // The forge is wrong about it, which the host finds out without an agent.
                forge.change_pull(pull.number, |pull| pull.has_conflicts = true);
            }
            forge.add_comment(Room::Pull, pull.number, "alice", "More, please.");
        }
    }
}
