//! Notices to people outside of the page, through a webhook, mail and the desktop.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::hook_receiver::{HookReceiver, ReceivedHook};
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, Scene};

const ASKS: &str =
    "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"Which limit: 10 or 100? @everyone\"]\n";

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Waits until as many webhooks have arrived.
fn arrived(receiver: &HookReceiver, count: usize) -> Vec<ReceivedHook> {
    wait_for("the notices", || Some(receiver.hooks()).filter(|list| list.len() >= count))
}

fn file(scene: &Scene, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = scene.person.home().join(name);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
    path
}

fn webhook(scene: &Scene, receiver: &HookReceiver, more: &str) -> String {
    let secret = file(scene, "notify-secret", SECRET, 0o600);
    format!(
        "sweep_secs = 3600\npublic_url = \"https://bottles.example\"\n[notify]\nwebhook_url = \"{}\"\n\
         webhook_secret_file = {secret:?}\n{more}\n",
        receiver.url()
    )
}

/// The signature as openssl computes it.
fn signature_by_openssl(scene: &Scene, request: &ReceivedHook) -> String {
    let text = [
        request.header("webhook-id").as_bytes(),
        b".",
        request.header("webhook-timestamp").as_bytes(),
        b".",
        &request.body,
    ]
    .concat();
    let signed = scene.person.hermetic.work().join("signed");
    std::fs::write(&signed, text).expect("written");
    let key = "echo MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw | base64 -d | od -An -tx1 | tr -d ' \\n'";
    let script = format!(
        "openssl dgst -sha256 -mac HMAC -macopt hexkey:$({key}) -binary \"$1\" | base64 -w0"
    );
    let mut command = scene.person.hermetic.command("sh");
    let output = scene.person.hermetic.run(command.args(["-c", &script, "sh"]).arg(&signed));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    format!("v1,{}", output.stdout.trim())
}

#[test]
fn a_question_reaches_a_webhook_once_and_signed() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(ASKS);
    // The first two attempts fail.
    let receiver = HookReceiver::start(&[500, 302]);
    let more = webhook(&scene, &receiver, "");
    let serving = Serving::start(scene, &more);
    serving.label();
    serving.wait("needs-attention");
    let sent = arrived(&receiver, 1);
    let first = sent[0].json();
    assert_eq!((&first["type"], &first["data"]["issue"]), (&"question".into(), &1.into()));
    assert_eq!(
        first["text"],
        "alice/hooks#1: the agent asks a question: https://bottles.example/bottles/worker-issue-1"
    );
    let question = first["data"]["question"].as_str().expect("a question");
    assert!(question.contains("10 or 100") && !question.contains("@everyone"), "{question}");
    assert_eq!(sent[0].header("webhook-signature"), signature_by_openssl(&serving.scene, &sent[0]));
    // Due now, and not after the pause.
    for attempt in 2..=3 {
        let sql = "UPDATE notice_delivery SET not_before = NULL WHERE state = 'sending'";
        wait_for("the next attempt", || {
            serving.database().execute(sql, []).expect("written");
            (receiver.hooks().len() >= attempt).then_some(())
        });
    }
    let sent = arrived(&receiver, 3);
    let ids: Vec<&str> = sent.iter().map(|it| it.header("webhook-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && id.starts_with("msg_")), "{ids:?}");
    wait_for("it to be done", || {
        let sql = "SELECT count(*) FROM notice_delivery WHERE state = 'sent'";
        (serving.count(sql) == 1).then_some(())
    });
    assert_eq!(receiver.hooks().len(), 3);
}

#[test]
fn a_serve_that_is_killed_while_it_sends_repeats_the_same_id() {
    for (moment, before) in [("notifying", 0), ("notified", 1)] {
        let Some(scene) = Scene::new() else { return };
        scene.person.script(ASKS);
        let receiver = HookReceiver::start(&[]);
        let more = webhook(&scene, &receiver, "");
        let mut serving = Serving::start_to_die_at(scene, moment, &more);
        serving.label();
        serving.wait_for_death();
        assert_eq!(receiver.hooks().len(), before, "{moment}");
        serving.restart();
        let sent = arrived(&receiver, before + 1);
        wait_for("it to be done", || {
            let sql = "SELECT count(*) FROM notice_delivery WHERE state = 'sent'";
            (serving.count(sql) == 1).then_some(())
        });
        let first = sent[0].header("webhook-id");
        assert!(sent.iter().all(|it| it.header("webhook-id") == first), "{moment}");
        assert_eq!(receiver.hooks().len(), before + 1, "{moment}");
    }
}

#[test]
fn people_are_told_of_a_pull_request_only_if_they_want_to() {
    for (wanted, count) in [("on = [\"pull-request\"]", 1), ("", 0)] {
        let Some(scene) = Scene::new() else { return };
        scene.person.script(&format!("{COMMIT}{DONE}"));
        let receiver = HookReceiver::start(&[]);
        let more = webhook(&scene, &receiver, wanted);
        let serving = Serving::start(scene, &more);
        serving.label();
        serving.wait("frozen");
        wait_for("the event to be read", || {
            let sql = "SELECT count(*) FROM cursor WHERE seq = (SELECT max(seq) FROM work_event)";
            (serving.count(sql) == 1).then_some(())
        });
        let sent = arrived(&receiver, count);
        assert_eq!(sent.len(), count);
        for request in &sent {
            assert_eq!(request.json()["data"]["pull_request"], 2);
        }
    }
}

#[test]
fn people_are_told_once_that_an_issue_waits_for_a_budget() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let receiver = HookReceiver::start(&[]);
    let budget = "[budget]\nrun = { tokens = 1000 }\nhost = { tokens = 10 }";
    let more = webhook(&scene, &receiver, budget);
    let mut serving = Serving::start(scene, &more);
    serving.label();
    serving.wait("waiting");
    let sent = arrived(&receiver, 1)[0].json();
    assert_eq!((&sent["type"], &sent["data"]["issue"]), (&"budget".into(), &1.into()));
    serving.restart();
    serving.label();
    serving.wait_handled();
    assert_eq!(receiver.hooks().len(), 1);
}

/// A program that writes what it is given into a file.
fn recorder(scene: &Scene, name: &str, into: &Path) -> PathBuf {
    let text = format!(
        "#!/bin/sh\n{{ printf 'arg:%s\\n' \"$@\"; cat; }} > {0}.part && mv {0}.part {0}\n",
        into.display()
    );
    let folder = scene.person.home().join("programs");
    std::fs::create_dir_all(&folder).expect("a folder");
    file(scene, &format!("programs/{name}"), &text, 0o755)
}

#[test]
fn what_needs_a_person_goes_out_by_mail_and_to_the_desktop() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(ASKS);
    scene.forge.change_issue(scene.issue, |issue| {
        issue.title = "Sort <b>it</b>\r\nBcc: all@example.org".to_owned();
    });
    let (mail, shown) = (scene.person.home().join("mail"), scene.person.home().join("shown"));
    let sendmail = recorder(&scene, "sendmail", &mail);
    recorder(&scene, "notify-send", &shown);
    let more = format!(
        "sweep_secs = 3600\n[notify]\nmail_to = [\"ann@example.org\"]\nmail_from = \"bot@example.org\"\n\
         sendmail = {sendmail:?}\ndesktop = true\n"
    );
    let folder = sendmail.parent().expect("a folder").display().to_string();
    let path = format!("{folder}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    let serving = Serving::start_with(scene, &more, &[("PATH", &path)]);
    serving.label();
    serving.wait("needs-attention");
    let read = |path: &Path| wait_for("a notice", || std::fs::read_to_string(path).ok());
    let mail = read(&mail);
    assert!(mail.starts_with("arg:-i\narg:-f\narg:bot@example.org\narg:--\narg:ann@example.org\n"));
    assert!(mail.contains("Subject: [bot-bottle] alice/hooks#1: the agent asks a question\r\n"));
    assert!(!mail.contains("Bcc:"), "{mail}");
    let shown = read(&shown);
    assert!(shown.contains("arg:alice/hooks#1: the agent asks a question\n"), "{shown}");
    assert!(shown.contains("&lt;b&gt;it&lt;/b&gt;") && !shown.contains("<b>"), "{shown}");
}
