//! Runs in the background, the pauses of one run, and what runs took.

use testkit::wait::wait_for;

use crate::play::{APPROVE, GOOD, OBEDIENT, PROFILE, REJECT, person, person_with_one};
use crate::support::{ONE, Person, read};

const TWO: &str = "# Plan\n\n### COMMIT-TF-001: Add one\n\nDone: [ ]\n\n### COMMIT-TF-002: Add two\n\nDone: [ ]\n";

#[test]
fn a_background_run_is_followed_to_its_end() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, APPROVE);
    let started = person.ok(&["run", "tf", "--detach"]);
    assert!(started.contains("goes on in the background (process "), "{started}");
    let attached = person.transcript(&[&["attach", "tf"], &["attach", "tf", "--json"]]);
    // Tests may run as root or not.
    let root = "warning: wf runs as root; an ordinary user is safer\n";
    insta::assert_snapshot!(attached.replace(root, ""), @r#"
    $ wf attach tf
    > implement
      run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
      print: {"status": "success", "notes": "done"}
    > test
    > review
      print: {"version": 1, "decision": "approve", "blockers": []}
    COMMIT-TF-001: passed
      Run: [ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001
      Next: try it: wf uat list
    ! The run ended with 0: done
    [0]
    $ wf attach tf --json
    {
      "exit_status": 0,
      "log": "[ROOT]/work/app.ops/state/app.tf.background.log",
      "workstream": "tf"
    }
    ! The run ended with 0: done
    [0]
    "#);
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
    // The next one has another log and another status.
    person.ok(&["run", "tf", "--detach"]);
    assert_eq!(person.wf(&["attach", "tf"]).status, Some(8));
}

#[test]
fn one_run_of_a_workstream_at_a_time() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nrun = \"while ! test -e /workspace/go; do sleep 0.1; done\"\n", APPROVE);
    let started = person.json(&["run", "tf", "--detach"]);
    let pid = started["pid"].as_i64().expect("a process").to_string();
    person.refused(&["run", "tf", "--detach"], 3, &["wf attach tf"]);
    wait_for("the agent", || {
        let run = person.runs().pop()?;
        run.join("workspace/Makefile").exists().then_some(())
    });
    // A request to stop ends the run as it does in a terminal.
    assert!(person.hermetic.command("kill").arg(&pid).status().expect("kill").success());
    let output = person.wf(&["attach", "tf"]);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stdout.contains("told to end (SIGTERM)"), "{}", output.snapshot());
    person.cast(GOOD, APPROVE);
    person.ok(&["run", "tf", "--detach"]);
    assert_eq!(person.wf(&["attach", "tf"]).status, Some(0));
}

#[test]
fn a_background_run_that_was_killed_is_named() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nrun = \"while ! test -e /workspace/go; do sleep 0.1; done\"\n", APPROVE);
    let started = person.json(&["run", "tf", "--detach"]);
    let pid = started["pid"].as_i64().expect("a process").to_string();
    wait_for("the run", || (!person.runs().is_empty()).then_some(()));
    assert!(person.hermetic.command("kill").args(["-9", &pid]).status().expect("kill").success());
    person.refused(&["attach", "tf"], 1, &["ended without a result", "wf run tf"]);
    // The next run ends what is left of it.
    person.cast(GOOD, APPROVE);
    person.ok(&["run", "tf"]);
}

#[test]
fn there_is_nothing_to_attach_to_before() {
    let person = Person::with_plan(ONE);
    person.refused(&["attach", "tf"], 2, &["wf run tf --detach"]);
    person.refused(&["run", "nope", "--detach"], 2, &["there is no workstream 'nope'"]);
}

#[test]
fn one_run_may_be_supervised_or_not_whatever_the_profile_says() {
    let Some(person) = person(TWO) else { return };
    person.cast(OBEDIENT, APPROVE);
    let paused = person.wf(&["run", "tf", "--loop", "--supervised"]);
    assert_eq!(paused.status, Some(0), "{}", paused.snapshot());
    assert!(paused.stderr.contains("Paused after this micro-commit"), "{}", paused.snapshot());
    person.profile(&format!("{PROFILE}SUPERVISED_MODE=true\n"));
    person.refused(&["run", "tf", "--loop"], 8, &["waits for your approval"]);
    // The loop goes on to the acceptance test.
    person.refused(
        &["run", "tf", "--loop", "--autonomous"],
        8,
        &["COMMIT-TF-002: passed", "UAT-001"],
    );
    person.refused(&["run", "tf", "--supervised", "--autonomous"], 2, &["cannot be used with"]);
}

#[test]
fn statistics_count_stages_and_failures() {
    let Some(person) = person_with_one() else { return };
    assert!(person.ok(&["stats"]).contains("No runs yet"));
    person.cast(GOOD, REJECT);
    person.wf(&["run", "tf"]);
    person.cast(GOOD, APPROVE);
    person.wf(&["run", "tf"]);
    let stats = person.json(&["stats"]);
    assert_eq!(stats["total"]["runs"], 2, "{stats:#}");
    let row = |stage: &str| {
        let rows = stats["rows"].as_array().expect("rows");
        rows.iter()
            .find(|row| row["stage"] == stage)
            .cloned()
            .unwrap_or_else(|| panic!("{stage}: {stats:#}"))
    };
    assert_eq!((&row("review")["runs"], &row("review")["failed"]), (&2.into(), &1.into()));
    assert_eq!((&row("implement")["runs"], &row("implement")["failed"]), (&2.into(), &0.into()));
    assert!(row("implement")["seconds"].as_f64().expect("a number") > 0.0);
    let table = person.ok(&["stats", "tf"]);
    let head = table.lines().next().expect("a line");
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>().join(" "),
        "WORKSTREAM STAGE RUNS NOT PASSED TIME TOKENS READ WRITTEN COST"
    );
    let plot = person.ok(&["stats", "--by", "stage", "--plot"]);
    assert!(plot.lines().any(|line| line.starts_with("implement") && line.contains('█')), "{plot}");
    assert!(person.ok(&["stats", "other"]).contains("No runs yet"));
    assert!(read(&person.last_run().join("result.json")).contains("passed"));
}
