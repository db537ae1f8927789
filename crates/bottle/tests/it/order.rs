//! The order of issues: those that come after others wait for them, and priorities move issues in the queue.

use testkit::fake_forge::{Flavour, GiteaFlavour, GithubFlavour, GitlabFlavour, Room};
use testkit::wait::wait_for;

use crate::kinds::KindServing;
use crate::serving::Serving;
use crate::support::{COMMIT, DONE, Scene};

const WORKER: &[&str] = &["bot-bottle:worker"];
const LABELLED: &str = "issue_opened_labeled_assigned-label_updated";

fn scene() -> Option<Scene> {
    let scene = Scene::new()?;
    scene.person.script(&format!("{COMMIT}{DONE}"));
    Some(scene)
}

fn set_body(serving: &Serving, issue: u64, body: &str) {
    serving.scene.forge.change_issue(issue, |issue| body.clone_into(&mut issue.body));
}

fn tell(serving: &Serving, issue: u64) {
    assert_eq!(serving.tell(LABELLED, Room::Issue, issue), Some(202));
}

/// Waits until the work on an issue is in a state, and returns its reason.
fn wait_on(serving: &Serving, issue: u64, state: &str) -> String {
    let seen = || serving.work_on(issue).filter(|(now, _)| now == state).map(|(_, why)| why);
    wait_for(&format!("#{issue} to be {state}"), seen)
}

#[test]
fn an_issue_waits_until_the_one_before_it_is_closed() {
    let Some(scene) = scene() else { return };
    let first = scene.forge.add_issue("First", "", &[], &[]);
    let serving = Serving::start(scene, "sweep_secs = 3600\n");
    set_body(&serving, 1, &format!("Then this.\n\nAfter #{first}\n"));
    tell(&serving, 1);
    let reason = wait_on(&serving, 1, "waiting");
    assert_eq!(reason, format!("it comes after #{first}, which is open"));
    wait_for("the words on the issue", || {
        let comments = serving.scene.forge.comments();
        comments.iter().any(|it| it.body.contains("it comes after")).then_some(())
    });
    serving.scene.forge.close_issue(first);
    tell(&serving, first);
    wait_on(&serving, 1, "frozen");
    assert_eq!(serving.runs(), 1);
}

#[test]
fn a_circle_is_named_on_its_issues_and_an_edit_opens_it() {
    let Some(scene) = scene() else { return };
    let second = scene.forge.add_issue("Second", "After #1", WORKER, &["bot1"]);
    let serving = Serving::start(scene, "sweep_secs = 1\n");
    set_body(&serving, 1, &format!("After #{second}"));
    tell(&serving, 1);
    tell(&serving, second);
    for issue in [1, second] {
        let reason = wait_on(&serving, issue, "needs-attention");
        assert!(reason.contains("circle") && reason.contains(&format!("#{second}")), "{reason}");
    }
    assert_eq!(serving.pulls(), 0);
    set_body(&serving, second, "No order.");
    tell(&serving, second);
    wait_on(&serving, second, "frozen");
    wait_on(&serving, 1, "waiting");
    serving.scene.forge.close_issue(second);
    wait_on(&serving, 1, "frozen");
}

/// The first two are looked at before the third one closes the circle, and no sweep comes for an hour.
#[test]
fn a_circle_of_three_is_named_on_each_of_its_issues() {
    let Some(scene) = scene() else { return };
    let second = scene.forge.add_issue("Second", "", &[], &["bot1"]);
    let third = scene.forge.add_issue("Third", "After #1", &[], &["bot1"]);
    let body = |issue, text: String| scene.forge.change_issue(issue, |issue| issue.body = text);
    body(1, format!("After #{second}"));
    body(second, format!("After #{third}"));
    let serving = Serving::start(scene, "sweep_secs = 3600\n");
    tell(&serving, 1);
    wait_on(&serving, 1, "waiting");
    let label = |issue| {
        let add =
            |issue: &mut testkit::fake_forge::FakeIssue| issue.labels.push(WORKER[0].to_owned());
        serving.scene.forge.change_issue(issue, add);
        tell(&serving, issue);
    };
    label(second);
    wait_on(&serving, second, "waiting");
    label(third);
    for issue in [third, second, 1] {
        let reason = wait_on(&serving, issue, "needs-attention");
        assert!(reason.contains(&format!("in a circle: #{issue} after ")), "#{issue}: {reason}");
        wait_for("the words on the issue", || {
            let comments = serving.scene.forge.comments();
            let is_told = |it: &testkit::fake_forge::FakeComment| {
                it.on == issue && it.body.contains("in a circle")
            };
            comments.iter().any(is_told).then_some(())
        });
    }
    set_body(&serving, third, "No order.");
    tell(&serving, third);
    wait_on(&serving, third, "frozen");
    wait_on(&serving, second, "waiting");
    wait_on(&serving, 1, "waiting");
}

#[test]
fn what_cannot_be_waited_for_is_named() {
    let Some(scene) = scene() else { return };
    let foreign = scene.forge.add_issue("Foreign", "After acme/other#7", WORKER, &["bot1"]);
    let serving = Serving::start(scene, "sweep_secs = 3600\n");
    set_body(&serving, 1, "After #999");
    tell(&serving, 1);
    tell(&serving, foreign);
    let reason = wait_on(&serving, 1, "needs-attention");
    assert!(reason.contains("#999, which this repository does not have"), "{reason}");
    let reason = wait_on(&serving, foreign, "needs-attention");
    assert!(reason.contains("acme/other#7, of another repository"), "{reason}");
    assert_eq!(serving.pulls(), 0);
}

/// The text that a member gave to the agent decides, as it does for the agent.
#[test]
fn an_outsiders_edit_changes_no_order() {
    let Some(scene) = scene() else { return };
    let first = scene.forge.add_issue("First", "", &[], &[]);
    let serving = Serving::start(scene, "sweep_secs = 3600\n");
    serving.scene.forge.change_issue(1, |issue| {
        "mallory".clone_into(&mut issue.author);
        issue.body = format!("After #{first}");
    });
    serving.tell_text("label_updated", "alice", "Do it", &format!("After #{first}"));
    wait_on(&serving, 1, "waiting");
    set_body(&serving, 1, "Now, at once!");
    serving.tell_text("edited", "mallory", "Do it", "Now, at once!");
    serving.wait_handled();
    assert_eq!(wait_on(&serving, 1, "waiting"), format!("it comes after #{first}, which is open"));
    assert_eq!(serving.pulls(), 0);
}

/// An issue that the forge itself says comes after another one.
#[track_caller]
fn forges_order_counts<F: Flavour>(kind: &'static str) {
    let Some(mut serving) = KindServing::<F>::new(kind, WORKER) else { return };
    serving.person.script(&format!("{COMMIT}{DONE}"));
    let first = serving.forge.add_issue("First", "", &[], &[]);
    serving.forge.set_blockers(serving.issue, &[first]);
    serving.serve("");
    let reason = serving.wait("waiting");
    assert_eq!(reason, format!("it comes after #{first}, which is open"));
    serving.forge.close_issue(first);
    serving.wait("frozen");
}

#[test]
fn dependencies_of_gitea_are_waited_for() {
    forges_order_counts::<GiteaFlavour>("gitea");
}

#[test]
fn dependencies_of_github_are_waited_for() {
    forges_order_counts::<GithubFlavour>("github");
}

#[test]
fn dependencies_of_gitlab_are_waited_for() {
    forges_order_counts::<GitlabFlavour>("gitlab");
}

#[test]
fn an_issue_of_high_priority_is_taken_before_one_that_waits_longer() {
    let Some(scene) = scene() else { return };
    let kit = scene.person.hermetic.root().join("kit");
    std::fs::create_dir(&kit).expect("made");
    std::fs::write(kit.join("gate"), "").expect("the gate");
    let bottle = format!("[[mount]]\nhost = {kit:?}\ninside = \"/opt/kit\"\n");
    scene.person.manifest("bottles", "kit", &bottle);
    scene.person.agent("worker", "bottle = \"kit\"\n");
    let gate = "[[step]]\nrun = \"while [ -e /opt/kit/gate ]; do sleep 0.05; done\"\n";
    scene.person.script(&format!("{gate}{COMMIT}{DONE}"));
    let serving = Serving::start(scene, "sweep_secs = 3600\nmax_bottles = 1\n");
    tell(&serving, 1);
    wait_on(&serving, 1, "running");
    // Only now: the look at the start would find them as well.
    let plain = serving.scene.forge.add_issue("Plain", "", WORKER, &["bot1"]);
    let labels = ["bot-bottle:worker", "priority:high"];
    let urgent = serving.scene.forge.add_issue("Urgent", "", &labels, &["bot1"]);
    for issue in [plain, urgent] {
        tell(&serving, issue);
        wait_on(&serving, issue, "queued");
    }
    std::fs::remove_file(kit.join("gate")).expect("the gate");
    serving.wait_for_all(&[1, plain, urgent]);
    let order = "SELECT group_concat(issue_number) FROM \
        (SELECT issue_number FROM work_event WHERE state = 'claimed' ORDER BY seq)";
    let claimed: String =
        serving.database().query_row(order, [], |row| row.get(0)).expect("a list");
    assert_eq!(claimed, format!("1,{urgent},{plain}"));
}
