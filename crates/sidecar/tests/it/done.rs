//! The word that the work is done.

use serde_json::json;
use sidecar::{DoneStatus, load_events};
use testkit::fake_forge::TOKEN;

use crate::world::World;

#[tokio::test]
async fn the_word_lies_in_the_queue_once_however_often_it_is_said() {
    let world = World::new().await;
    let summary = format!("done, with {TOKEN}");
    for _ in 0..3 {
        world
            .call("signal_done", json!({ "status": "success", "summary": summary }))
            .await
            .unwrap();
    }
    let error =
        world.call("signal_done", json!({ "status": "failure", "summary": "" })).await.unwrap_err();
    assert_eq!(error["message"], "success was signalled already");
    let events = load_events(&world.dir.path().join("queue")).unwrap();
    assert_eq!(events.len(), 1);
    let event = &events[0].1;
    assert_eq!((event.run.as_str(), event.status), ("app_1", DoneStatus::Success));
    assert_eq!(event.summary, "done, with ***");
    assert_eq!(world.sentences().len(), 4);
    assert_eq!(world.sentences()[3], "refused done: failure: success was signalled already");
}

#[tokio::test]
async fn many_who_say_it_at_once_say_it_once() {
    let world = World::new().await;
    let say = || world.call("signal_done", json!({ "status": "blocked", "summary": "which?" }));
    let (a, b, c) = tokio::join!(say(), say(), say());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(load_events(&world.dir.path().join("queue")).unwrap().len(), 1);
}

#[tokio::test]
async fn a_summary_is_a_paragraph() {
    let world = World::new().await;
    let long = "x".repeat(20_000);
    let params = json!({ "status": "success", "summary": long });
    assert_eq!(world.call("signal_done", params).await.unwrap_err()["code"], -32001);
    assert_eq!(load_events(&world.dir.path().join("queue")).unwrap().len(), 0);
}
