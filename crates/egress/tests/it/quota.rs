//! Servers that are busy or out of quota: the agent sees their words, the host learns until when.

use egress::record::EgressVerdict;

use crate::model::{DUMMY, key_file, policy, post, spec};
use crate::server::{Server, whole};
use crate::world::{World, header};

#[tokio::test]
async fn too_many_requests_are_passed_on_and_noted() {
    let server = Server::start(|seen| {
        if seen.body == "again" {
            let body = r#"{"usage":{"input_tokens":1,"output_tokens":1}}"#;
            return whole("200 OK", "application/json", &[], body);
        }
        let headers =
            ["retry-after: 120", "anthropic-ratelimit-tokens-reset: 2099-01-01T00:00:00Z"];
        whole("429 Too Many Requests", "application/json", &headers, "{\"error\":\"slow down\"}")
    })
    .await;
    let (_dir, key) = key_file("k");
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    let before = host::clock::now();
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert_eq!((got.status, got.body.as_str()), (429, "{\"error\":\"slow down\"}"));
    assert_eq!(header(&got.head, "retry-after"), Some("120"));
    let until = world.state.usage().waiting_until.unwrap();
    let wait = until.duration_since(before).as_secs();
    assert!((119..=121).contains(&wait), "{wait}");
    assert_eq!(world.state.usage().input, 0, "a refused call costs nothing");

    assert_eq!(post(&world, "/v1/messages", DUMMY, "again").await.status, 200);
    let (report, entries) = world.finish().await;
    assert_eq!(report.usage.waiting_until, None, "the server takes calls again");
    assert_eq!(report.usage.by_status, [(200, 1), (429, 1)].into());
    assert_eq!((entries[0].verdict, entries[0].status), (EgressVerdict::Allowed, Some(429)));
}

#[tokio::test]
async fn an_overloaded_server_without_a_date_is_noted_by_its_status() {
    let server = Server::start(|_| whole("529 Overloaded", "application/json", &[], "{}")).await;
    let (_dir, key) = key_file("k");
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    assert_eq!(post(&world, "/v1/messages", DUMMY, "{}").await.status, 529);
    let (report, _) = world.finish().await;
    assert_eq!((report.usage.waiting_until, report.usage.by_status[&529]), (None, 1));
}
