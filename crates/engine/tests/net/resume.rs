//! A conversation that goes on in another box: the workspace and the harness state are all that it needs.

use agent::{Provider, SessionRequest, Usage};
use testkit::model_server::{ModelScript, ModelServer, Turn};

use crate::support::{Rig, on_backend};
use crate::worker::{SCRIPT, Worked, Worker, asked};

on_backend!(bwrap, Bwrap, codex, claude, opencode, pi);
on_backend!(docker, Docker, codex, claude);

async fn codex(rig: &Rig) {
    goes_on(rig, Provider::Codex).await;
}

async fn claude(rig: &Rig) {
    goes_on(rig, Provider::Claude).await;
}

async fn opencode(rig: &Rig) {
    goes_on(rig, Provider::OpenCode).await;
}

async fn pi(rig: &Rig) {
    goes_on(rig, Provider::Pi).await;
}

const FIRST: &str = "Remember the word heliotrope";
const SECOND: &str = "Which word was it?";

/// What two turns use up, by the scripted model.
const TWO_TURNS: Usage =
    Usage { input: 200, output: 40, cache_read: 0, cache_write: 0, reasoning: 0 };

async fn goes_on(rig: &Rig, provider: Provider) {
    let Some(worker) = Worker::find(rig, provider).await else { return };
    let script = ModelScript::new([
        Turn::shell("echo first >/workspace/first.txt"),
        Turn::text("I will remember"),
        Turn::shell("cp /workspace/first.txt /workspace/second.txt"),
        Turn::text("It was heliotrope"),
    ]);
    let server = ModelServer::start([(SCRIPT, script)]);

    let first = worker.work(&server, FIRST, SessionRequest::Fresh { id: None }, None).await;
    check(&first, "I will remember");
    let turns: Vec<_> = asked(&server).iter().map(|request| request.turn).collect();
    assert_eq!(turns, [Some(0), Some(1)]);
    let session = first.report.session_id.clone().expect("a session");

    let wish = SessionRequest::Resume(session.clone());
    let second = worker.work(&server, SECOND, wish, first.report.thread_usage).await;
    check(&second, "It was heliotrope");
    assert_eq!(second.report.session_id, Some(session));

    let later = asked(&server).split_off(2);
    let turns: Vec<_> = later.iter().map(|request| request.turn).collect();
    assert_eq!(turns, [Some(2), Some(3)], "the conversation goes on where it was");
    for request in &later {
        let heard = [FIRST, "I will remember", SECOND].map(|text| request.raw_body.contains(text));
        assert_eq!(heard, [true; 3], "{}", request.raw_body);
    }
    let read = |name: &str| std::fs::read_to_string(rig.workspace().join(name)).unwrap_or_default();
    assert_eq!((read("first.txt"), read("second.txt")), ("first\n".into(), "first\n".into()));
    check_thread(provider, &first, &second);
}

/// Both boxes count their own turns, and the agent agrees with the wire.
fn check(worked: &Worked, answer: &str) {
    let Worked { back, report } = worked;
    assert_eq!(report.answer.as_deref(), Some(answer), "{report:#?}");
    assert_eq!(report.tool_calls.len(), 1, "{report:#?}");
    assert_eq!(report.usage, TWO_TURNS, "{report:#?}");
    assert_eq!((back.usage().input, back.usage().output), (200, 40), "{:?}", back.usage());
    assert_eq!(back.summary().denials, [], "nobody else was asked for");
}

/// Codex counts the whole conversation; the others begin anew.
fn check_thread(provider: Provider, first: &Worked, second: &Worked) {
    let threads = [first.report.thread_usage, second.report.thread_usage];
    let expected = match provider {
        Provider::Codex => [Some(TWO_TURNS), Some(TWO_TURNS + TWO_TURNS)],
        _ => [None, None],
    };
    assert_eq!(threads, expected);
}
