//! Leases while `serve` runs: whoever loses one stops its box and publishes nothing, and what a holder lets expire is taken
//! over.

use testkit::wait::wait_for;

use crate::chaos::{GATE, SELDOM, open_gate};
use crate::serving::Serving;
use crate::support::{COMMIT, DONE, SLUG, Scene};

/// A lease that ends soon.
const SHORT: &str = "lease_secs = 3\n";

/// A step by which the agent shows that it runs.
const BEGUN: &str = "[[step]]\nrun = \"touch /harness-state/begun\"\n";

/// An orchestrator whose agent waits at a gate.
fn serve_at_gate() -> Option<Serving> {
    let scene = Scene::new()?;
    scene.person.script(&format!("{BEGUN}{GATE}{COMMIT}{DONE}"));
    let serving = Serving::start(scene, &format!("{SELDOM}{SHORT}"));
    assert_eq!(serving.label(), Some(202));
    let begun = serving.scene.person.bottle(SLUG).join("harness-state/begun");
    wait_for("the agent", || begun.exists().then_some(()));
    serving.wait("running");
    Some(serving)
}

fn log(serving: &Serving) -> String {
    std::fs::read_to_string(serving.scene.person.hermetic.work().join("serve.log"))
        .unwrap_or_default()
}

#[test]
fn who_lost_its_lease_stops_its_box_and_publishes_nothing_and_the_issue_goes_on() {
    let Some(serving) = serve_at_gate() else { return };
    let first = serving.scene.person.last_run(SLUG);
    let taken = "UPDATE work SET fence = fence + 1, claim_id = 1, holder = 'another/1', \
                 lease_until = CAST(strftime('%s', 'now') AS INTEGER) + 12";
    serving.database().execute_batch(taken).expect("taken over by another host");
    wait_for("the end of the box", || first.join("boxes/agent/exit.json").exists().then_some(()));
    assert!(log(&serving).contains("its lease is lost"), "{}", log(&serving));
    assert_eq!(serving.pulls(), 0);
    open_gate(&serving);
    // The other host never renews, so its lease expires, and this one goes on.
    let reason = serving.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}");
    assert!(log(&serving).contains("its lease had expired"), "{}", log(&serving));
    assert_eq!((serving.pulls(), serving.runs()), (1, 2), "the first run published nothing");
    let run = std::fs::read_to_string(first.join("metadata.json")).expect("a record");
    assert!(run.contains("the lease on its issue was lost while its agent ran"), "{run}");
}

#[test]
fn who_slept_past_its_lease_and_was_not_missed_goes_on() {
    let Some(serving) = serve_at_gate() else { return };
    let pid = serving.pid().to_string();
    serving.signal("-STOP", &pid);
    wait_for("the end of the lease", || {
        let expired =
            "SELECT count(*) FROM work WHERE lease_until <= CAST(strftime('%s', 'now') AS INTEGER)";
        (serving.count(expired) == 1).then_some(())
    });
    serving.signal("-CONT", &pid);
    open_gate(&serving);
    let reason = serving.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}");
    assert_eq!((serving.pulls(), serving.runs()), (1, 1), "its run was not disturbed");
}
