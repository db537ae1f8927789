//! What the forge reports wakes a bottle: failing checks and conflicts, on each kind of forge, up to a limit.

use testkit::fake_forge::{Flavour, GiteaFlavour, GithubFlavour, GitlabFlavour};
use testkit::repo::Repo;
use testkit::wait::wait_for;

use testkit::fake_forge::hooks::{Hook, SECRET};
use testkit::fake_forge::{OWNER, REPO, Room};

use crate::before_publishing::commit_to_main;
use crate::kinds::KindServing;
use crate::serving::Serving;
use crate::support::{COMMIT, DONE, SLUG, Scene};

const WORKER: &[&str] = &["bot-bottle:worker"];

fn served<F: Flavour>(kind: &'static str, more: &str) -> Option<KindServing<F>> {
    let mut serving = KindServing::<F>::new(kind, WORKER)?;
    serving.person.script(&format!("{COMMIT}{DONE}"));
    serving.serve(more);
    serving.wait("frozen");
    Some(serving)
}

/// A red check wakes the bottle with the end of its log, and a second commit turns it green.
#[track_caller]
fn red_and_green<F: Flavour>(kind: &'static str) {
    let Some(serving) = served::<F>(kind, "") else { return };
    let red = serving.publish_head();
    serving.forge.add_check(&red, "test", "failure", "line 1\nassert 1 == 2\n");
    serving.wait_runs(2, "frozen");
    let prompt = serving.last_prompt();
    assert!(prompt.contains("assert 1 == 2"), "{prompt}");
    let green = serving.publish_head();
    assert_ne!(red, green, "a second commit");
    serving.forge.add_check(&green, "test", "success", "fine\n");
    // Two more looks at the issue after the check was green.
    let seen = serving.requests(&format!("/{}", serving.issue));
    wait_for("two looks", || {
        (serving.requests(&format!("/{}", serving.issue)) > seen + 8).then_some(())
    });
    assert_eq!((serving.runs(), serving.forge.pulls().len()), (2, 1), "{}", serving.log());
}

#[test]
fn a_red_check_wakes_the_bottle_on_gitea() {
    red_and_green::<GiteaFlavour>("gitea");
}

#[test]
fn a_red_check_wakes_the_bottle_on_github() {
    red_and_green::<GithubFlavour>("github");
}

#[test]
fn a_red_check_wakes_the_bottle_on_gitlab() {
    red_and_green::<GitlabFlavour>("gitlab");
}

/// The webhook about a check that was repeated may be lost.
#[test]
fn a_check_that_turns_red_after_it_was_green_is_found_by_looking() {
    let Some(serving) = served::<GiteaFlavour>("gitea", "") else { return };
    let head = serving.publish_head();
    serving.forge.add_check(&head, "test", "success", "fine\n");
    let seen = serving.requests("/status");
    wait_for("a look at the checks", || (serving.requests("/status") > seen).then_some(()));
    serving.forge.add_check(&head, "test", "failure", "assert 1 == 2\n");
    serving.wait_runs(2, "frozen");
    assert!(serving.last_prompt().contains("assert 1 == 2"), "{}", serving.last_prompt());
}

#[test]
fn after_its_wakeups_a_person_is_called() {
    let Some(serving) = served::<GiteaFlavour>("gitea", "max_wakeups = 1\n") else { return };
    let first = serving.publish_head();
    serving.forge.add_check(&first, "test", "failure", "red\n");
    serving.wait_runs(2, "frozen");
    let second = serving.publish_head();
    serving.forge.add_check(&second, "test", "failure", "still red\n");
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("checks fail: test; the agent was woken 1 times"), "{reason}");
    assert_eq!(serving.runs(), 2);
}

#[test]
fn an_agent_that_changes_nothing_is_not_woken_for_the_same_commit_again() {
    let Some(serving) = served::<GiteaFlavour>("gitea", "") else { return };
    serving.person.script(DONE);
    let head = serving.publish_head();
    serving.forge.add_check(&head, "test", "failure", "red\n");
    let reason = wait_for("a person", || {
        serving.work().filter(|(state, _)| state == "needs-attention").map(|(_, reason)| reason)
    });
    assert!(reason.contains("also after the agent looked at it"), "{reason}");
    assert_eq!(serving.runs(), 2);
}

#[test]
fn checks_of_commits_that_others_pushed_wake_nobody() {
    let Some(serving) = served::<GiteaFlavour>("gitea", "") else { return };
    let foreign = "1234567890123456789012345678901234567890";
    serving.forge.set_branch(&serving.branch(), foreign);
    serving.forge.add_check(foreign, "test", "failure", "red\n");
    let seen = serving.requests("/reviews");
    wait_for("three looks", || (serving.requests("/reviews") > seen + 3).then_some(()));
    assert_eq!((serving.runs(), serving.requests("/status")), (1, 0));
}

/// History in which people repeat one resolution: the branch changes the number, the base changes the word.
pub(crate) fn teach(repo: &Repo) {
    let line = |number: usize, word: usize| format!("version {number} word{word}\n");
    repo.write("config", line(0, 0));
    repo.commit("config");
    for round in 0..14 {
        repo.git(&["checkout", "--quiet", "-b", &format!("topic{round}")]);
        repo.write("config", line(round + 1, round));
        repo.commit("number");
        repo.git(&["checkout", "--quiet", "-"]);
        repo.write("config", line(round, round + 1));
        repo.commit("word");
        repo.try_git(&["merge", "--quiet", "--no-ff", &format!("topic{round}")]).ok();
        repo.write("config", line(round + 1, round + 1));
        repo.git(&["add", "config"]);
        repo.git(&["commit", "--quiet", "--no-edit"]);
    }
    repo.git(&["push", "--quiet", "origin", "HEAD:main"]);
}

/// A conflict that people have resolved the same way before needs no model.
#[track_caller]
fn resolved_alone<F: Flavour>(kind: &'static str) {
    let Some(mut serving) = KindServing::<F>::new(kind, WORKER) else { return };
    teach(&serving.person.fork.checkout);
    let number = "[[step]]\nrun = \"echo 'version 15 word14' > config; git commit -qam number\"\n";
    serving.person.script(&format!("{number}{DONE}"));
    serving.serve("");
    serving.wait("frozen");
    let before = serving.publish_head();
    commit_to_main(&serving.person, "config", "version 14 word15\n");
    let pull = serving.forge.pulls()[0].number;
    serving.forge.change_pull(pull, |pull| pull.has_conflicts = true);
    wait_for("the merge", || {
        let name = format!("refs/heads/{}", serving.branch());
        let tip = serving.person.fork.origin.git(&["rev-parse", &name]).trim().to_owned();
        (tip != before).then_some(tip)
    });
    serving.forge.change_pull(pull, |pull| pull.has_conflicts = false);
    let merged = serving.publish_head();
    serving.wait_runs(2, "frozen");
    let origin = &serving.person.fork.origin;
    let parents = origin.git(&["rev-list", "--parents", "-1", &merged]);
    assert_eq!(parents.split_whitespace().count(), 3, "a merge commit: {parents}");
    assert!(parents.contains(&before), "{parents}");
    let content = origin.git(&["show", &format!("{merged}:config")]);
    assert_eq!(content.trim(), "version 15 word15");
    let run = serving.person.last_run(SLUG);
    assert!(!run.join("boxes/agent").exists(), "no agent was started");
    let document = serving.person.provenance(SLUG);
    assert_eq!(document["verdict"]["kind"], "publish", "{document:#}");
    assert_eq!(serving.forge.pulls().len(), 1);
    // The next run of the agent begins with the merge.
    serving.person.script(&format!(
        "[[step]]\nrun = \"git merge -q origin/{}; {}\"\n{DONE}",
        serving.branch(),
        "echo more >> work.txt; git add -A; git commit -qm more"
    ));
    serving.forge.add_comment(
        testkit::fake_forge::Room::Issue,
        serving.issue,
        "alice",
        "More, please.",
    );
    serving.wait_runs(3, "frozen");
    assert_ne!(serving.publish_head(), merged, "{}", serving.person.log(SLUG));
}

#[test]
fn a_conflict_is_resolved_without_a_model_on_gitea() {
    resolved_alone::<GiteaFlavour>("gitea");
}

#[test]
fn a_conflict_is_resolved_without_a_model_on_github() {
    resolved_alone::<GithubFlavour>("github");
}

#[test]
fn a_conflict_is_resolved_without_a_model_on_gitlab() {
    resolved_alone::<GitlabFlavour>("gitlab");
}

#[test]
fn a_conflict_that_needs_judgement_wakes_the_agent() {
    let Some(serving) = served::<GiteaFlavour>("gitea", "") else { return };
    let before = serving.publish_head();
    commit_to_main(&serving.person, "work.txt", "another beginning\n");
    let merge =
        "git merge -q origin/main || { echo both > work.txt; git add -A; git commit -qm both; }";
    serving.person.script(&format!("[[step]]\nrun = \"{merge}\"\n{DONE}"));
    let pull = serving.forge.pulls()[0].number;
    serving.forge.change_pull(pull, |pull| pull.has_conflicts = true);
    wait_for("the merge", || (serving.publish_head() != before).then_some(()));
    serving.forge.change_pull(pull, |pull| pull.has_conflicts = false);
    serving.wait_runs(2, "frozen");
    assert!(serving.last_prompt().contains("conflicts with its base"), "{}", serving.last_prompt());
}

#[test]
fn a_forge_that_still_computes_a_conflict_starts_no_agent() {
    let Some(serving) = served::<GiteaFlavour>("gitea", "") else { return };
    serving.publish_head();
    commit_to_main(&serving.person, "other.txt", "something else\n");
    let pull = serving.forge.pulls()[0].number;
    serving.forge.change_pull(pull, |pull| pull.has_conflicts = true);
    wait_for("the host's own merge", || {
        serving.work().filter(|(_, reason)| reason.contains("merges cleanly")).map(drop)
    });
    let seen = serving.requests("/reviews");
    wait_for("three looks", || (serving.requests("/reviews") > seen + 3).then_some(()));
    assert_eq!(serving.runs(), 1);
}

#[test]
fn a_base_that_moved_on_is_merged_if_the_operator_asks() {
    let Some(serving) = served::<GiteaFlavour>("gitea", "update_branches = true\n") else { return };
    let before = serving.publish_head();
    commit_to_main(&serving.person, "other.txt", "something else\n");
    let pull = serving.forge.pulls()[0].number;
    serving.forge.change_pull(pull, |pull| pull.is_behind = true);
    wait_for("the merge", || (serving.publish_head() != before).then_some(()));
    serving.forge.change_pull(pull, |pull| pull.is_behind = false);
    serving.wait_runs(2, "frozen");
    assert!(!serving.person.last_run(SLUG).join("boxes/agent").exists(), "no agent was started");
}

/// Killed at each moment of a run that a red check caused, it comes to the same end: one run, one commit.
#[track_caller]
fn woken_once_although_killed_at(moment: &str) {
    let Some(mut serving) = served::<GiteaFlavour>("gitea", "") else { return };
    let head = serving.publish_head();
    serving.restart_to_die_at(moment);
    serving.forge.add_check(&head, "test", "failure", "red\n");
    serving.wait_for_death();
    serving.restart();
    serving.wait_runs(2, "frozen");
    let green = serving.publish_head();
    serving.forge.add_check(&green, "test", "success", "fine\n");
    let seen = serving.requests("/reviews");
    wait_for("two looks", || (serving.requests("/reviews") > seen + 2).then_some(()));
    let count =
        serving.person.fork.origin.git(&["rev-list", "--count", &format!("{head}..{green}")]);
    assert_eq!((serving.runs(), count.trim()), (2, "1"), "after {moment}");
    assert_eq!(serving.forge.pulls().len(), 1, "after {moment}");
}

#[test]
fn killed_after_the_claim_it_is_woken_once() {
    woken_once_although_killed_at("claimed");
}

#[test]
fn killed_after_the_run_was_begun_it_is_woken_once() {
    woken_once_although_killed_at("pinned");
}

#[test]
fn killed_after_the_push_it_is_woken_once() {
    woken_once_although_killed_at("pushed");
}

#[test]
fn killed_after_it_was_frozen_it_is_woken_once() {
    woken_once_although_killed_at("recorded");
}

#[test]
fn the_branch_of_a_merged_pull_request_goes_and_others_stay() {
    for merged in [true, false] {
        let Some(serving) = served::<GiteaFlavour>("gitea", "") else { return };
        serving.publish_head();
        let pull = serving.forge.pulls()[0].number;
        serving.forge.change_pull(pull, |pull| (pull.open, pull.merged) = (false, merged));
        serving.wait("destroyed");
        let name = format!("refs/heads/{}", serving.branch());
        let there =
            serving.person.fork.origin.try_git(&["rev-parse", "--verify", "--quiet", &name]);
        assert_eq!(there.is_err(), merged, "{there:?}");
    }
}

/// A delivery about a status of a commit, as a Gitea sends it.
fn status_hook(sha: &str, state: &str) -> Hook {
    let mut hook = Hook::about("issue_comment_created", Room::Issue, 1, SECRET);
    for (name, value) in &mut hook.headers {
        if name.ends_with("-Event") || name.ends_with("-Event-Type") {
            "status".clone_into(value);
        }
    }
    let body = serde_json::json!({
        "sha": sha, "state": state, "context": "test",
        "repository": { "name": REPO, "owner": { "login": OWNER } },
    });
    hook.body = body.to_string().into_bytes();
    hook.sign(SECRET);
    hook
}

/// A webhook about a check is looked at at once, with at most four requests on a kept connection.
#[test]
fn a_delivery_about_a_check_is_one_look_of_at_most_four_requests() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let serving = Serving::start(scene, "sweep_secs = 3600\nstatus_comment = false\n");
    serving.label();
    serving.wait("frozen");
    let head = serving.scene.published().expect("a branch").trim().to_owned();
    let forge = &serving.scene.forge;
    forge.set_branch(&format!("bot-bottle/{SLUG}"), &head);
    forge.add_check(&head, "test", "pending", "");
    let look = |state: &str| {
        let (requests, connections) = (forge.requests().len(), forge.connections());
        let sent = status_hook(&head, state).send(serving.address, "/webhooks/gitea");
        assert_eq!(sent, Some(202));
        serving.wait_handled();
        let list: Vec<String> = forge.requests()[requests..]
            .iter()
            .map(|request| format!("{} {}", request.method, request.path))
            .collect();
        (list, forge.connections() - connections)
    };
    // Who is a member is asked first, and then known for half a minute.
    look("pending");
    let (requests, connections) = look("pending");
    assert!(requests.iter().any(|path| path.ends_with("/status")), "{requests:#?}");
    assert!((1..=4).contains(&requests.len()), "{requests:#?}");
    assert_eq!(connections, 0, "{requests:#?}");
    let foreign = status_hook("1234567890123456789012345678901234567890", "failure");
    let before = forge.requests().len();
    assert_eq!(foreign.send(serving.address, "/webhooks/gitea"), Some(202));
    assert_eq!(serving.count("SELECT count(*) FROM delivery WHERE event = 'status'"), 2);
    assert_eq!(forge.requests().len(), before, "a commit of nobody's is not looked at");
    forge.add_check(&head, "test", "failure", "assert 1 == 2\n");
    look("failure");
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    serving.wait("frozen");
    assert!(serving.last_prompt().contains("assert 1 == 2"), "{}", serving.last_prompt());
}

/// A comment on an issue with a pull request is looked at with at most four requests, on a kept connection.
#[test]
fn a_delivery_about_a_comment_is_one_look_of_at_most_four_requests() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let more = "sweep_secs = 3600\nstatus_comment = false\nmax_wakeups = 0\n";
    let serving = Serving::start(scene, more);
    serving.label();
    serving.wait("frozen");
    let (forge, issue) = (&serving.scene.forge, serving.scene.issue);
    let look = || {
        let (requests, connections) = (forge.requests().len(), forge.connections());
        forge.add_comment(Room::Issue, issue, "carol", "Words of an outsider.");
        assert_eq!(serving.tell("issue_comment_created", Room::Issue, issue), Some(202));
        serving.wait_handled();
        let list: Vec<String> = forge.requests()[requests..]
            .iter()
            .map(|request| format!("{} {}", request.method, request.path))
            .collect();
        (list, forge.connections() - connections)
    };
    // Who is a member is asked first, and then known for half a minute.
    look();
    let (requests, connections) = look();
    assert!((1..=4).contains(&requests.len()), "{requests:#?}");
    assert_eq!(connections, 0, "{requests:#?}");
}
