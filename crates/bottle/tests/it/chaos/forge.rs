//! Rows 8 to 12: webhooks that are doubled, forged or lost, and a forge that misbehaves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use testkit::fake_forge::hooks::{Hook, SECRET};
use testkit::fake_forge::{Mishap, Room};
use testkit::wait::PATIENCE;

use super::{GATE, SELDOM, check, check_house, open_gate, scene, wait_until_it_works};
use crate::serving::Serving;
use crate::support::{COMMIT, DONE};

#[test]
fn row_8_doubled_reordered_and_replayed_webhooks_make_one_job() {
    let Some(scene) = scene() else { return };
    let serving = Serving::start(scene, SELDOM);
    let opened = Hook::about("issue_opened_labeled_assigned-opened", Room::Issue, 1, SECRET);
    let labelled =
        Hook::about("issue_opened_labeled_assigned-label_updated", Room::Issue, 1, SECRET);
    let closed = Hook::about("pull_request_merged-closed", Room::Pull, 2, SECRET);
    for hook in [&closed, &labelled, &opened] {
        for round in 0..10 {
            let expected = if round == 0 { 202 } else { 200 };
            assert_eq!(hook.send(serving.address, "/webhooks/gitea"), Some(expected));
        }
    }
    serving.wait("frozen");
    assert_eq!(labelled.send(serving.address, "/webhooks/gitea"), Some(200), "a day later");
    check(&serving, "after ten of each");
    assert_eq!(serving.count("SELECT count(*) FROM delivery"), 3);
    assert_eq!(serving.count("SELECT count(*) FROM work"), 1);
}

#[test]
fn row_8_forged_oversized_and_slow_webhooks_leave_no_row() {
    let Some(scene) = scene() else { return };
    let serving = Serving::start(scene, SELDOM);
    let path = "/webhooks/gitea";
    let good = Hook::about("issue_opened_labeled_assigned-opened", Room::Issue, 1, SECRET);
    let mut forged = good.clone();
    forged.sign("another secret");
    assert_eq!(forged.send(serving.address, path), Some(401));
    let mut changed = good.clone();
    changed.body.extend_from_slice(b" ");
    assert_eq!(changed.send(serving.address, path), Some(401));
    let mut huge = good.clone();
    huge.body = vec![b' '; 10 * 1024 * 1024];
    huge.sign(SECRET);
    assert_eq!(huge.send(serving.address, path), Some(413));
    assert_eq!(good.send(serving.address, "/webhooks/svn"), Some(404));
    let mut elsewhere = good.clone();
    let body = String::from_utf8(elsewhere.body).expect("text");
    elsewhere.body = body.replace("\"name\": \"hooks\"", "\"name\": \"other\"").into_bytes();
    elsewhere.sign(SECRET);
    assert_eq!(elsewhere.send(serving.address, path), Some(403));
    assert_eq!(slow_loris(serving.address), 0, "a head that never ends");
    assert_eq!(serving.count("SELECT count(*) FROM delivery"), 0);
}

/// Sends a head that never ends, and waits until nobody listens any more; what came back.
fn slow_loris(address: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream.write_all(b"POST /webhooks/gitea HTTP/1.1\r\nHost: x\r\nX-Slow: ").expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it is closed, and not by us");
    answer.len()
}

#[test]
fn row_9_lost_webhooks_are_found_by_looking() {
    let Some(scene) = scene() else { return };
    let mut issues = vec![scene.issue];
    for _ in 0..2 {
        issues.push(scene.forge.add_issue("Another", "Too.", &["bot-bottle:worker"], &["bot1"]));
    }
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let serving = Serving::start(scene, "sweep_secs = 2\n");
    serving.label();
    serving.wait_for_all(&issues);
    assert_eq!(serving.pulls(), issues.len());
}

/// Row 10: the forge misbehaves when the pull request is opened.
#[track_caller]
fn survives(mishap: &Mishap, count: usize) {
    let Some(scene) = scene() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    scene.forge.fail_next_on("POST", count, mishap);
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1, "{mishap:?}");
    check_house(&serving, &format!("{mishap:?}"));
}

#[test]
fn row_10_a_forge_that_fails() {
    survives(&Mishap::status(500, "oops"), 3);
}

#[test]
fn row_10_a_forge_that_wants_fewer_requests() {
    let headers = vec![("Retry-After".to_owned(), "2".to_owned())];
    survives(&Mishap::Status { code: 429, headers, body: "{}".to_owned() }, 2);
}

#[test]
fn row_10_a_write_that_was_done_and_not_answered() {
    survives(&Mishap::DropAfterWrite, 1);
}

#[test]
fn row_10_a_write_that_was_done_and_answered_wrongly() {
    survives(&Mishap::StatusAfterWrite(502), 1);
}

#[test]
fn row_10_an_answer_that_is_no_json() {
    let body = "<html>maintenance</html>".to_owned();
    survives(&Mishap::Status { code: 200, headers: Vec::new(), body }, 1);
}

#[test]
fn row_11_a_forge_that_is_down_for_long_is_waited_for() {
    let Some(scene) = scene() else { return };
    scene.person.script(&format!("[[step]]\nrun = \"true\"\n{GATE}{COMMIT}{DONE}"));
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    wait_until_it_works(&serving);
    serving.scene.forge.fail_next(10_000, &Mishap::DropBefore);
    open_gate(&serving);
    serving.wait("waiting");
    assert_eq!(serving.pulls(), 0);
    serving.scene.forge.recover();
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    check_house(&serving, "after the forge came back");
}

#[test]
fn row_12_a_branch_that_origin_refuses_needs_a_person_and_keeps_the_work() {
    use std::os::unix::fs::PermissionsExt;
    let Some(scene) = scene() else { return };
    let hook = scene.person.fork.origin.dir().join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("a folder");
    std::fs::write(&hook, "#!/bin/sh\necho protected >&2\nexit 1\n").expect("written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a program");
    let serving = Serving::start(scene, SELDOM);
    serving.label();
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("rejected"), "{reason}");
    assert_eq!(serving.pulls(), 0);
    let document = serving.scene.provenance();
    assert_eq!(document["commits"]["new"].as_array().map(Vec::len), Some(1), "{document:#}");
}
