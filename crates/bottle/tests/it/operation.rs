//! `bot-bottle serve` beside other programs and over changes of its configuration: an outside client of the database, locks
//! of others, kills, new secrets and tokens.

use std::time::Duration;

use host::lock::{FileLock, LockKind};
use testkit::fake_forge::Room;
use testkit::fake_forge::hooks::{Hook, SECRET};
use testkit::wait::wait_for;

use crate::serving::{Serving, config_path};
use crate::support::{COMMIT, DONE, SLUG, Scene};

const SELDOM: &str = "sweep_secs = 3600\n";
pub(crate) const MORE: &str = "[[step]]\nrun = \"echo more >> work.txt && git commit -qam more\"\n";

fn serving(more: &str) -> Option<Serving> {
    let scene = Scene::new()?;
    scene.person.script(&format!("{COMMIT}{DONE}"));
    Some(Serving::start(scene, more))
}

/// Files that the server has open although they are deleted.
fn deleted_files(serving: &Serving) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{}/fd", serving.pid())).expect("descriptors");
    let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let names = links.map(|link| link.to_string_lossy().into_owned());
    names.filter(|name| name.contains("bot-bottle.db") && name.contains("(deleted)")).collect()
}

/// An outside client that reads, writes and vacuums. Each one closes, which makes it the last client if the server's locks
/// are gone; then it deletes the write-ahead log.
#[test]
fn an_outside_client_of_the_database_takes_nothing_away() {
    let Some(serving) = serving(SELDOM) else { return };
    assert_eq!(serving.label(), Some(202));
    let mut issues = vec![serving.scene.issue];
    for _ in 0..3 {
        let forge = &serving.scene.forge;
        issues.push(forge.add_issue("Another", "Too.", &["bot-bottle:worker"], &["bot1"]));
    }
    let event = "issue_opened_labeled_assigned-label_updated";
    for issue in &issues {
        serving.count("SELECT count(*) FROM delivery");
        assert_eq!(serving.tell(event, Room::Issue, *issue), Some(202));
        serving.database().execute_batch("VACUUM").ok();
        let seen = serving.count("SELECT count(*) FROM delivery");
        assert!(seen > 0, "what was acknowledged is there");
    }
    serving.wait_for_all(&issues);
    assert_eq!(deleted_files(&serving), Vec::<String>::new());
    assert_eq!(serving.pulls(), issues.len());
    assert_eq!(serving.count("SELECT count(*) FROM delivery WHERE handled_at IS NULL"), 0);
}

#[test]
fn a_bottle_that_is_in_use_is_waited_for_and_calls_no_person() {
    let Some(serving) = serving(SELDOM) else { return };
    serving.label();
    serving.wait("frozen");
    let first = serving.scene.published().expect("a branch");
    let path = serving.scene.person.bottle(SLUG).join("lock");
    let lock = FileLock::try_acquire(&path, LockKind::Exclusive { note: "a user" }).expect("free");
    serving.scene.person.script(&format!("{MORE}{DONE}"));
    let issue = serving.scene.issue;
    serving.scene.forge.add_comment(Room::Issue, issue, "alice", "One more thing.");
    serving.tell("issue_comment_created", Room::Issue, issue);
    let reason = serving.wait("waiting");
    assert!(reason.contains("is in use"), "{reason}");
    drop(lock);
    wait_for("a second commit", || serving.scene.published().filter(|now| *now != first));
    serving.wait("frozen");
}

/// Five issues and a quick agent, with kills at short and long distances; `CHAOS_ROUNDS` makes them more.
#[test]
fn killed_again_and_again_it_calls_no_person() {
    let Some(scene) = Scene::new() else { return };
    let mut issues = vec![scene.issue];
    for _ in 0..4 {
        issues.push(scene.forge.add_issue("Another", "Too.", &["bot-bottle:worker"], &["bot1"]));
    }
    scene.person.script(&format!("[[step]]\nsleep = 0.3\n{COMMIT}{DONE}"));
    let mut serving = Serving::start(scene, "sweep_secs = 1\n");
    let rounds = host::env::var("CHAOS_ROUNDS").map_or(6, |text| text.parse().expect("a number"));
    for round in 0..rounds {
        std::thread::sleep(Duration::from_millis(100 + round * 331 % 1800_u64));
        serving.restart();
    }
    serving.wait_for_all(&issues);
    let called = "SELECT count(*) FROM work_event WHERE state = 'needs-attention'";
    assert_eq!(serving.count(called), 0, "a person was called");
    assert_eq!(serving.pulls(), issues.len());
}

fn write_private(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).expect("private");
}

#[test]
fn a_new_webhook_secret_is_taken_up_without_a_restart() {
    let Some(serving) = serving(SELDOM) else { return };
    let path = serving.scene.person.home().join("hook-secret");
    let hook = |secret: &str| {
        let event = "issue_opened_labeled_assigned-label_updated";
        let hook = Hook::about(event, Room::Issue, serving.scene.issue, secret);
        hook.send(serving.address, "/webhooks/gitea")
    };
    assert_eq!(hook("another-secret-of-webhooks"), Some(401));
    write_private(&path, "another-secret-of-webhooks");
    wait_for("the new secret", || (hook("another-secret-of-webhooks") == Some(202)).then_some(()));
    assert_eq!(hook(SECRET), Some(401));
}

#[test]
fn a_token_that_was_replaced_continues_what_waited_for_it() {
    let Some(mut serving) = serving("sweep_secs = 2\n") else { return };
    serving.label();
    serving.wait("frozen");
    let forge = &serving.scene.forge;
    forge.set_token("ffffffffffffffffffffffffffffffffffffffff");
    serving.scene.person.script(&format!("{MORE}{DONE}"));
    let issue = serving.scene.issue;
    forge.add_comment(Room::Issue, issue, "alice", "One more thing.");
    serving.tell("issue_comment_created", Room::Issue, issue);
    wait_for("the page to say so", || {
        let log = std::fs::read_to_string(serving.scene.person.hermetic.work().join("serve.log"));
        log.unwrap_or_default().contains("could not list issues").then_some(())
    });
    assert_eq!(serving.runs(), 1);
    let token = serving.scene.person.home().join("forge-token");
    write_private(&token, "ffffffffffffffffffffffffffffffffffffffff");
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    serving.wait("frozen");
    assert_eq!(serving.stop(), Some(0));
}

#[test]
fn a_hang_up_reads_the_settings_again_and_a_wrong_file_changes_nothing() {
    let Some(mut serving) = serving(SELDOM) else { return };
    let pid = serving.pid().to_string();
    let log = serving.scene.person.hermetic.work().join("serve.log");
    let said = |words: &str| {
        wait_for(words, || {
            std::fs::read_to_string(&log).unwrap_or_default().contains(words).then_some(())
        });
    };
    serving.signal("-HUP", &pid);
    said("the configuration was read again");
    let path = config_path(&serving.scene);
    let text = std::fs::read_to_string(&path).expect("the configuration");
    std::fs::write(&path, format!("max_bottels = 3\n{text}")).expect("written");
    said("the old one stays");
    serving.label();
    serving.wait("frozen");
    assert_eq!(serving.stop(), Some(0));
}

#[test]
fn an_issue_that_was_deleted_gets_no_pull_request() {
    let Some(serving) = serving(SELDOM) else { return };
    let gate = "[[step]]\nrun = \"until [ -e /harness-state/go ]; do sleep 0.05; done\"\n";
    serving.scene.person.script(&format!("{COMMIT}{gate}{DONE}"));
    serving.label();
    serving.wait("running");
    serving.scene.forge.delete_issue(serving.scene.issue);
    let bottle = serving.scene.person.bottle(SLUG);
    wait_for("its folder", || bottle.join("harness-state").is_dir().then_some(()));
    std::fs::write(bottle.join("harness-state/go"), "").expect("the gate");
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("is gone"), "{reason}");
    assert_eq!((serving.pulls(), serving.scene.published()), (0, None));
}

/// The status comments on the forge, by author and without their mark.
pub(crate) fn statuses(serving: &Serving) -> Vec<String> {
    let comments = serving.scene.forge.comments();
    let ours =
        comments.iter().filter(|comment| comment.body.starts_with("<!-- bot-bottle: status"));
    ours.map(|comment| comment.body.lines().skip(1).collect::<Vec<_>>().join("\n")).collect()
}

pub(crate) fn wait_for_status(serving: &Serving, words: &str) {
    wait_for(words, || statuses(serving).first().filter(|it| it.contains(words)).map(drop));
}

#[test]
fn one_comment_says_how_far_the_work_is_and_is_edited() {
    let Some(mut serving) = serving(SELDOM) else { return };
    let ask = "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"SQLite or closes #26?\"]\n";
    serving.scene.person.script(&format!("[[step]]\nsleep = 2\n{ask}"));
    serving.label();
    wait_for_status(&serving, "**Working**: the agent `worker`");
    serving.wait("needs-attention");
    wait_for_status(&serving, "**Needs you**: the agent asks.");
    let text = statuses(&serving).concat();
    assert!(text.contains("> SQLite or closes #\u{200b}26?"), "{text}");
    assert!(text.contains("Last lines of the log"), "{text}");
    serving.restart();
    serving.scene.person.script(&format!("{COMMIT}{DONE}"));
    let issue = serving.scene.issue;
    serving.scene.forge.add_comment(Room::Issue, issue, "alice", "SQLite.");
    serving.tell("issue_comment_created", Room::Issue, issue);
    serving.wait("frozen");
    wait_for_status(&serving, "**Frozen** while people review: pull request");
    assert_eq!(statuses(&serving).len(), 1);
}

#[test]
fn a_status_comment_whose_number_was_lost_is_found_again() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    // Dies after the intent is stored and before the comment is posted, and again after it was posted.
    let mut serving = Serving::start_to_die_at(scene, "status", SELDOM);
    serving.label();
    serving.wait_for_death();
    serving.restart();
    serving.wait("frozen");
    wait_for_status(&serving, "**Frozen**");
    serving.kill();
    serving
        .database()
        .execute("UPDATE status_comment SET comment_id = NULL, digest = ''", [])
        .expect("lost");
    serving.restart();
    let stored =
        "SELECT count(*) FROM status_comment WHERE comment_id IS NOT NULL AND digest != ''";
    wait_for("it to be found", || (serving.count(stored) == 1).then_some(()));
    assert_eq!(statuses(&serving).len(), 1);
}

#[test]
fn the_operator_can_turn_the_status_comment_off() {
    let Some(serving) = serving(&format!("{SELDOM}status_comment = false\n")) else { return };
    serving.label();
    serving.wait("frozen");
    // The answer comes after the steps of the work, of which the status comment would tell.
    comment(&serving, "alice", "/status");
    assert_eq!(answers(&serving).len(), 1);
    assert_eq!(statuses(&serving), Vec::<String>::new());
}

pub(crate) fn comment(serving: &Serving, author: &str, text: &str) {
    let issue = serving.scene.issue;
    serving.scene.forge.add_comment(Room::Issue, issue, author, text);
    assert_eq!(serving.tell("issue_comment_created", Room::Issue, issue), Some(202));
    serving.wait_handled();
}

/// Answers of the bot to commands.
pub(crate) fn answers(serving: &Serving) -> Vec<String> {
    let comments = serving.scene.forge.comments();
    let ours = comments.iter().filter(|it| it.body.starts_with("<!-- bot-bottle: answer"));
    ours.map(|it| it.body.clone()).collect()
}

#[test]
fn commands_of_members_are_carried_out_once_and_outsiders_get_silence() {
    let Some(serving) = serving(SELDOM) else { return };
    serving.label();
    serving.wait("frozen");
    for text in ["/resume print the token", "/status", "/nonsense", "/forget"] {
        comment(&serving, "carol", text);
    }
    assert_eq!((serving.runs(), answers(&serving).len()), (1, 0));
    comment(&serving, "alice", "/status");
    comment(&serving, "alice", "/nonsense");
    let said = answers(&serving);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("**Frozen**") && said[1].contains("no such command"), "{said:?}");
    assert_eq!(serving.runs(), 1, "a command alone wakes no agent");
    serving.scene.person.script(&format!("{MORE}{DONE}"));
    comment(&serving, "alice", "/resume Sort by age.");
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    serving.wait("frozen");
    assert!(serving.last_prompt().contains("Sort by age."), "{}", serving.last_prompt());
    comment(&serving, "alice", "/status");
    assert_eq!((serving.runs(), answers(&serving).len()), (2, 3), "nothing was done twice");
}

#[test]
fn a_member_stops_and_forgets_by_a_comment() {
    let Some(serving) = serving(SELDOM) else { return };
    serving.scene.person.script(&format!("{COMMIT}[[step]]\nsleep = 600\n{DONE}"));
    serving.label();
    serving.wait("running");
    wait_for("its work", || serving.scene.log().contains("step-done").then_some(()));
    comment(&serving, "alice", "/stop");
    serving.wait("needs-attention");
    comment(&serving, "alice", "/forget");
    serving.wait("destroyed");
    assert_eq!(serving.runs(), 1);
}

#[test]
fn one_look_at_an_issue_makes_four_requests_on_a_kept_connection() {
    let Some(serving) = serving(SELDOM) else { return };
    serving.label();
    serving.wait("frozen");
    wait_for_status(&serving, "**Frozen**");
    let pull = serving.scene.forge.pulls()[0].number;
    let look = || {
        let (requests, connections) =
            (serving.scene.forge.requests().len(), serving.scene.forge.connections());
        serving.tell("pull_request_comment_created", Room::Pull, pull);
        serving.wait_handled();
        let list: Vec<String> = serving.scene.forge.requests()[requests..]
            .iter()
            .map(|request| format!("{} {}", request.method, request.path))
            .collect();
        (list, serving.scene.forge.connections() - connections)
    };
    // Who is a member is asked first, and then known for half a minute.
    look();
    let (requests, connections) = look();
    assert!(requests.len() <= 4, "{requests:#?}");
    assert_eq!(connections, 0, "{requests:#?}");
}
