//! The methods over JSON-RPC, and the line that each leaves.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use sidecar::{CallLimits, CallOutcome};
use testkit::fake_forge::GiteaFlavour;
use testkit::fake_forge::GitlabFlavour;
use testkit::fake_forge::{Mishap, Room};

use crate::world::World;

#[tokio::test]
async fn each_method_reaches_the_forge_and_leaves_a_sentence() {
    let world = World::<GiteaFlavour>::owning(&[2], CallLimits::default()).await;
    let pull = world.server.add_pull("Mine", "run/one", "main");
    assert_eq!(pull, 2);
    world.server.add_comment(Room::Issue, 1, "alice", "please");
    let issue = world.call("read_issue", json!({ "number": 1 })).await.unwrap();
    assert_eq!((&issue["title"], &issue["state"]), (&json!("Do it"), &json!("open")));
    let read = world.call("read_pr", json!({ "number": pull })).await.unwrap();
    assert_eq!((&read["head_branch"], &read["merged"]), (&json!("run/one"), &json!(false)));
    let comments = world.call("read_comments", json!({ "number": 1 })).await.unwrap();
    assert_eq!((&comments[0]["body"], &comments[0]["kind"]), (&json!("please"), &json!("plain")));
    let posted = json!({ "number": 1, "body": "On it." });
    world.call("post_comment", posted).await.unwrap();
    let update = json!({ "number": pull, "body": "Closes #1" });
    world.call("update_description", update).await.unwrap();
    let done = json!({ "status": "success", "summary": "It works." });
    world.call("signal_done", done).await.unwrap();
    assert_eq!(
        world.sentences(),
        [
            "read issue #1",
            "read PR #2 description",
            "read comments on #1",
            "posted comment to #1",
            "updated description of #2",
            "signalled done: success",
        ]
    );
    assert_eq!(world.server.comments()[1].body, "On it.");
    assert_eq!(world.server.pulls()[0].body, "Closes #1");
}

#[tokio::test]
async fn a_write_is_intended_before_it_is_done() {
    let world = World::new().await;
    world.call("post_comment", json!({ "number": 1, "body": "hello" })).await.unwrap();
    let told: Vec<_> =
        world.entries().into_iter().map(|entry| (entry.outcome, entry.sentence)).collect();
    assert_eq!(
        told,
        [
            (CallOutcome::Intended, "will post comment to #1".to_owned()),
            (CallOutcome::Done, "posted comment to #1".to_owned()),
        ]
    );
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_done() {
    let world = World::new().await;
    world.memory.broken.store(true, Ordering::Relaxed);
    let error = world.call("post_comment", json!({ "number": 1, "body": "x" })).await.unwrap_err();
    assert_eq!(error["code"], -32603);
    assert_eq!(world.server.comments().len(), 0);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_told_and_written_down() {
    let world = World::new().await;
    for (method, params, code) in [
        ("delete_repository", json!({}), -32601),
        ("read_issue", json!({ "number": 1, "owner": "x" }), -32602),
        ("read_issue", json!([1]), -32602),
        ("post_comment", json!({ "number": 12, "body": "x" }), -32001),
        ("read_issue", json!({ "number": 12 }), -32002),
    ] {
        let error = world.call(method, params).await.unwrap_err();
        assert_eq!(error["code"], code, "{method}: {error}");
    }
    let sentences = world.sentences();
    assert_eq!(
        sentences[..4],
        [
            "refused delete_repository: no such method",
            "refused read_issue to #1: unknown field `owner`, expected `number` (owner=\"x\")",
            "refused read_issue: parameters are given by name, as an object",
            "refused comment to #12: out of scope",
        ]
    );
    assert!(sentences[4].starts_with("could not read issue #12: "), "{sentences:?}");
}

#[tokio::test]
async fn batches_notifications_and_garbage_are_answered_as_the_standard_says() {
    let world = World::new().await;
    let call = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "read_issue", "params": { "number": 1 } });
    let mut quiet = call(Value::Null);
    quiet.as_object_mut().unwrap().remove("id");
    let batch = json!([call(json!(1)), quiet, call(json!("b"))]);
    let (status, answers) = world.post("/", batch.to_string()).await;
    assert_eq!((status, answers.as_array().unwrap().len()), (200, 2));
    assert_eq!(world.post("/", quiet.to_string()).await, (204, Value::Null));
    assert_eq!(world.sentences().len(), 4);
    let (status, answer) = world.post("/", "{").await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32700)));
    assert_eq!(world.sentences()[4], "refused request: it is not a call");
    assert_eq!(world.post("/elsewhere", "{}").await.0, 404);
}

#[tokio::test]
async fn a_forge_that_is_slow_is_not_waited_for_and_the_write_is_still_written_down() {
    let limits = CallLimits {
        read_timeout: Duration::from_millis(200),
        write_timeout: Duration::from_millis(200),
        ..CallLimits::default()
    };
    let world = World::<GiteaFlavour>::with(limits).await;
    world.server.fail_next_on("POST", 1, &Mishap::Delay(Duration::from_millis(600)));
    let error = world.call("post_comment", json!({ "number": 1, "body": "x" })).await.unwrap_err();
    assert_eq!(error["code"], -32003);
    let world = world.stop().await;
    assert_eq!(world.sentences(), ["posted comment to #1"]);
    assert_eq!(world.server.comments().len(), 1);
}

#[tokio::test]
async fn where_the_two_are_numbered_apart_an_agent_may_say_which_it_means() {
    let on_pull = json!({ "number": 1, "body": "x", "kind": "pull_request" });
    let stranger = World::<GitlabFlavour>::with(CallLimits::default()).await;
    stranger.server.add_pull("Somebody's", "run/one", "main");
    let error = stranger.call("post_comment", on_pull.clone()).await.unwrap_err();
    assert_eq!(error["code"], -32001);
    let world = World::<GitlabFlavour>::owning(&[1], CallLimits::default()).await;
    assert_eq!(world.server.add_pull("Mine", "run/one", "main"), 1);
    world.call("post_comment", on_pull).await.unwrap();
    world.call("post_comment", json!({ "number": 1, "body": "y" })).await.unwrap();
    let rooms: Vec<_> = world.server.comments().iter().map(|comment| comment.room).collect();
    assert_eq!(rooms, [Room::Pull, Room::Issue]);
}
