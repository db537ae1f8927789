//! Servers that repeat the real key: the box never sees it.

use std::sync::Arc;

use egress::KeySource;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use crate::model::{DUMMY, key_file, policy, post, spec};
use crate::server::{Piece, STREAM_HEAD, Server, chunk, whole};
use crate::world::{Got, PATIENCE, World, header};

const REAL: &str = "sk-a1/b2+C3-the-real-one";
const BASE64: &str = "c2stYTEvYjIrQzMtdGhlLXJlYWwtb25l";
const BASE64_OF_BEARER: &str = "QmVhcmVyIHNrLWExL2IyK0MzLXRoZS1yZWFsLW9uZQ";

async fn world_of(server: &Server) -> World {
    let (dir, key) = key_file(REAL);
    let world = World::start_with(policy(server), Some(spec(server, key))).await;
    world.keep(dir);
    world
}

/// The key as servers and gateways may repeat it.
fn spellings() -> Vec<String> {
    let each = |spell: &dyn Fn(u8) -> String| REAL.bytes().map(spell).collect::<String>();
    vec![
        REAL.to_owned(),
        format!("Bearer {REAL}"),
        REAL.replace('/', "\\/"),
        REAL.replace('/', "%2F").replace('+', "%2b"),
        each(&|byte| format!("\\u{byte:04x}")),
        each(&|byte| format!("%{byte:02X}")),
        each(&|byte| format!("{byte:02x}")),
        BASE64.to_owned(),
        BASE64_OF_BEARER.to_owned(),
    ]
}

fn check_hidden(got: &Got) {
    let text = format!("{}{}", got.head, got.body).replace("\\/", "/").to_lowercase();
    for sign in ["the-real-one", "sk-a1/", "%73%6b", "u0073", "736b2d61", "tdghllxjlywwtb25l"] {
        assert!(!text.contains(sign), "{sign}: {got:?}");
    }
    assert!(!text.contains("xrozs1yzwfsllw9uz"), "{got:?}");
}

#[tokio::test]
async fn a_key_in_headers_and_body_is_masked_in_every_spelling() {
    for spelling in spellings() {
        let repeated = spelling.clone();
        let server = Server::start(move |_| {
            let headers =
                [format!("x-seen: {repeated}"), format!("www-authenticate: a {repeated} b")];
            let headers = headers.each_ref().map(String::as_str);
            let body = format!(r#"{{"echo":"{repeated}","again":"{repeated}"}}"#);
            whole("200 OK", "application/json", &headers, &body)
        })
        .await;
        let world = world_of(&server).await;
        let got = post(&world, "/v1/messages", DUMMY, "{}").await;
        check_hidden(&got);
        let length = spelling.len() * 2 + r#"{"echo":"","again":""}"#.len();
        assert_eq!(got.body.len(), length, "the announced length holds: {got:?}");
        assert!(got.body.starts_with(r#"{"echo":""#) && got.body.ends_with(r#""}"#), "{got:?}");
        assert_eq!(header(&got.head, "content-length"), Some(length.to_string().as_str()));
    }
}

#[tokio::test]
async fn a_server_that_repeats_its_requests_headers_shows_no_key_for_any_call() {
    let server = Server::start(|seen| {
        let status = if seen.head.starts_with("POST") { "400 Bad Request" } else { "200 OK" };
        whole(status, "text/plain", &[], &seen.head)
    })
    .await;
    let world = world_of(&server).await;
    let get = format!(
        "GET /-/model/v1/models HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\nconnection: close\r\n\r\n"
    );
    let got = world.raw(get.as_bytes()).await;
    assert!(got.status == 200 && got.body.contains("x-api-key: ****"), "{got:?}");
    check_hidden(&got);
    check_hidden(&post(&world, "/v1/messages", DUMMY, "{}").await);
}

#[tokio::test]
async fn the_words_after_the_status_and_the_trailers_are_not_passed_on() {
    let server = Server::start(|_| {
        let head = format!(
            "HTTP/1.1 200 {REAL}\r\ntrailer: x-key\r\ntransfer-encoding: chunked\r\n\r\n\
             2\r\n{{}}\r\n0\r\nx-key: {REAL}\r\n\r\n"
        );
        vec![Piece::Text(head)]
    })
    .await;
    let world = world_of(&server).await;
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert_eq!(got.status, 200, "{got:?}");
    check_hidden(&got);
}

#[tokio::test]
async fn a_key_split_over_chunks_is_masked() {
    for spelling in spellings() {
        let repeated = spelling.clone();
        let server = Server::start(move |_| {
            let text = format!("data: {repeated}\n\n");
            let mut pieces = vec![Piece::Text(STREAM_HEAD.to_owned())];
            pieces.extend(
                text.as_bytes().chunks(5).map(|part| chunk(&String::from_utf8_lossy(part))),
            );
            pieces.push(Piece::Text("0\r\n\r\n".to_owned()));
            pieces
        })
        .await;
        let world = world_of(&server).await;
        let got = post(&world, "/v1/messages", DUMMY, "{}").await;
        // Without the sizes of the chunks.
        let body: String = got.body.split("\r\n").skip(1).step_by(2).collect();
        check_hidden(&Got { body: body.clone(), ..got });
        assert!(body.starts_with("data: ") && body.ends_with("\n\n"), "{body:?}");
        assert_eq!(body.len(), spelling.len() + 8);
    }
}

#[tokio::test]
async fn a_stream_stays_a_stream_while_the_key_is_searched() {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let server = Server::start(move |_| {
        vec![
            Piece::Text(STREAM_HEAD.to_owned()),
            chunk("data: one\n\n"),
            Piece::Wait(Arc::clone(&wait)),
            // All of it may be the start of the key, and is not.
            chunk("sk-a1/"),
            chunk("x\n\n"),
            Piece::Text("0\r\n\r\n".to_owned()),
        ]
    })
    .await;
    let world = world_of(&server).await;
    let mut stream = world.dial().await;
    let ask = format!(
        "POST /-/model/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\n\
         connection: close\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("data: one\n\n") {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await;
        text += &String::from_utf8_lossy(&buffer[..read.unwrap().unwrap()]);
    }
    go_on.notify_one();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("sk-a1/x\n\n"), "{text}");
}

#[tokio::test]
async fn an_answer_in_an_encoding_that_was_not_asked_for_is_refused() {
    let encodings = ["content-encoding: gzip", "content-encoding: identity, br"];
    for encoding in encodings {
        let server =
            Server::start(move |_| whole("200 OK", "application/json", &[encoding], "xyz")).await;
        let world = world_of(&server).await;
        let got = post(&world, "/v1/messages", DUMMY, r#"{"max_tokens":7}"#).await;
        assert!(got.status == 502 && got.body.contains("encoded"), "{got:?}");
        let (report, entries) = world.finish().await;
        assert_eq!((report.usage.estimated, entries[0].reason.as_deref()), (1, Some("encoded")));
    }
    let plain = ["content-encoding: identity"];
    let server = Server::start(move |_| whole("200 OK", "text/plain", &plain, "xyz")).await;
    assert_eq!(post(&world_of(&server).await, "/v1/messages", DUMMY, "{}").await.body, "xyz");
}

#[tokio::test]
async fn a_key_that_was_replaced_is_masked_too() {
    let server = Server::start(|seen| match header(&seen.head, "x-api-key") {
        Some("fresh-key-0002") => {
            whole("200 OK", "text/plain", &[], "stale-key-0001 fresh-key-0002 other-key-0003")
        }
        _ => whole("401 Unauthorized", "application/json", &[], "stale-key-0001"),
    })
    .await;
    let argv = ["/bin/sh", "-c", "cat $0; echo fresh-key-0002 > $0"];
    let (dir, path) = key_file("stale-key-0001");
    let mut argv: Vec<String> = argv.map(str::to_owned).to_vec();
    argv.push(path.display().to_string());
    let mut spec = spec(&server, path);
    spec.key = KeySource::Command(argv);
    let world = World::start_with(policy(&server), Some(spec)).await;
    world.keep(dir);
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert_eq!(got.body, format!("{0} {0} other-key-0003", "*".repeat(14)));
}

#[tokio::test]
async fn answers_that_only_resemble_a_key_are_left_alone() {
    let body = "sk-a1/b2 ghp_aB3dE6gH9jK2mN5pQ8sT x-api-key: abc AKIAABCDEFGHIJKLMNOP";
    let server = Server::start(move |_| whole("200 OK", "text/plain", &[], body)).await;
    assert_eq!(post(&world_of(&server).await, "/v1/messages", DUMMY, "{}").await.body, body);
}
