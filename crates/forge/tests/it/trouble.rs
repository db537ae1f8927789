//! Errors of each status, in one sentence that says what to do, and retries.

use std::net::TcpListener;
use std::time::Duration;

use forge::{Forge, ForgeError, ForgeKind, ForgeOptions};
use host::clock;
use model::secret::Secret;
use testkit::fake_forge::{FakeGitea, Mishap};

use crate::world::{address, count, kind, new_pull, open, open_impatient, open_with, options};

/// Reads a pull request from a server that answers like this, and returns the sentence.
async fn read_with(code: u16, message: &str) -> (String, String, usize) {
    let server = FakeGitea::start();
    server.add_pull("t", "forklift/x", "main");
    let forge = open(&server).await;
    server.fail_next(50, &Mishap::status(code, message));
    let error = forge.read_pr(1).await.unwrap_err();
    (kind(&error), error.to_string(), count(&server, "GET", "/pulls/1"))
}

async fn check(code: u16, message: &str, expected: &str, sentence: &str, asked: usize) {
    let (kind, shown, times) = read_with(code, message).await;
    assert_eq!((kind.as_str(), shown.as_str(), times), (expected, sentence, asked), "{code}");
}

#[tokio::test]
async fn each_status_has_a_meaning_and_a_sentence() {
    check(
        401,
        "invalid username, password or token",
        "Unauthorized",
        "127.0.0.1 does not accept the token (invalid username, password or token); make a new one and store it in its place",
        1,
    )
    .await;
    check(
        403,
        "required=[write:issue]",
        "Forbidden",
        "127.0.0.1 does not let the token read pull request #1 (required=[write:issue]); give the token the missing scope, or its account write access",
        1,
    )
    .await;
    check(
        404,
        "not found",
        "NotFound",
        "127.0.0.1 could not read pull request #1, because it finds no such thing (not found); check the names of repository and branch, and that the token can see them",
        1,
    )
    .await;
    check(
        409,
        "",
        "Conflict",
        "127.0.0.1 could not read pull request #1, because what is there stands in the way; look at it on the forge, then try again",
        1,
    )
    .await;
    check(
        422,
        "[Title]: Required",
        "Invalid",
        "127.0.0.1 refused the values it was given to read pull request #1 ([Title]: Required); change what it names and try again",
        1,
    )
    .await;
    check(429, "", "RateLimited", "127.0.0.1 wants fewer requests; try again later", 3).await;
    check(
        500,
        "",
        "Server",
        "127.0.0.1 failed to read pull request #1 with status 500; try again later, or ask whoever runs it",
        3,
    )
    .await;
}

#[tokio::test]
async fn the_statuses_around_them_mean_the_same() {
    for (code, expected) in [
        (400, "Invalid"),
        (405, "Conflict"),
        (410, "NotFound"),
        (412, "Conflict"),
        (413, "Invalid"),
        (423, "Forbidden"),
        (502, "Server"),
        (503, "Server"),
        (504, "Server"),
    ] {
        assert_eq!(read_with(code, "").await.0, expected, "{code}");
    }
}

#[tokio::test]
async fn the_server_itself_refuses_what_it_should() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    assert_eq!(kind(&forge.read_pr(9).await.unwrap_err()), "NotFound");
    forge.create_pull(&new_pull("forklift/x")).await.unwrap();
    let again = forge.create_pull(&new_pull("forklift/x")).await.unwrap_err();
    assert_eq!(kind(&again), "Conflict");
    assert_eq!(kind(&forge.create_pull(&new_pull("main")).await.unwrap_err()), "Invalid");
    let stranger = open_with(&server, "not-the-token").await;
    assert_eq!(kind(&stranger.whoami().await.unwrap_err()), "Unauthorized");
    assert_eq!(server.pulls().len(), 1);
}

#[tokio::test]
async fn refusals_of_a_write_are_final() {
    for code in [401, 403, 404, 409, 422] {
        let server = FakeGitea::start();
        let forge = open(&server).await;
        server.fail_next_on("POST", 1, &Mishap::status(code, ""));
        forge.create_pull(&new_pull("forklift/x")).await.unwrap_err();
        assert_eq!(count(&server, "POST", "/pulls"), 1, "{code}");
        assert_eq!(count(&server, "GET", "/pulls"), 0, "{code}");
    }
}

#[tokio::test]
async fn a_read_survives_what_passes() {
    for mishap in [Mishap::status(503, ""), Mishap::DropBefore, Mishap::status(429, "")] {
        let server = FakeGitea::start();
        server.add_pull("t", "forklift/x", "main");
        let forge = open(&server).await;
        server.fail_next(2, &mishap);
        forge.read_pr(1).await.unwrap();
        assert_eq!(count(&server, "GET", "/pulls/1"), 3, "{mishap:?}");
    }
}

fn busy(retry_after: &str) -> Mishap {
    let headers = vec![("retry-after".to_owned(), retry_after.to_owned())];
    Mishap::Status { code: 429, headers, body: String::new() }
}

#[tokio::test]
async fn a_short_wait_is_waited_also_before_a_write() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    server.fail_next_on("POST", 1, &busy("1"));
    let before = clock::monotonic();
    forge.create_pull(&new_pull("forklift/x")).await.unwrap();
    assert!(before.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.pulls().len(), 1);
}

#[tokio::test]
async fn a_long_wait_is_told_and_not_waited() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    server.fail_next(1, &busy("3600"));
    let error = forge.read_pr(1).await.unwrap_err();
    let ForgeError::RateLimited { until: Some(until), .. } = &error else { panic!("{error:?}") };
    let wait = until.duration_since(clock::now()).as_secs();
    assert!((3500..=3600).contains(&wait), "{wait}");
    assert!(error.to_string().starts_with("127.0.0.1 wants fewer requests; try again after 2"));
}

#[tokio::test]
async fn a_moved_repository_is_told_and_never_followed() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    let headers = vec![("location".to_owned(), "/api/v1/repos/alice/new/pulls".to_owned())];
    let mishap = Mishap::Status { code: 301, headers, body: "<a>".to_owned() };
    server.fail_next_on("POST", 1, &mishap);
    let error = forge.create_pull(&new_pull("forklift/x")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "127.0.0.1 says that the repository has moved to /api/v1/repos/alice/new/pulls; point the remote at its new address"
    );
    assert_eq!(count(&server, "GET", "/new/pulls") + count(&server, "POST", "/new/pulls"), 0);
}

#[tokio::test]
async fn silence_ends() {
    let server = FakeGitea::start();
    server.add_pull("t", "forklift/x", "main");
    let forge = open_impatient(&server).await;
    server.fail_next(3, &Mishap::Delay(Duration::from_secs(600)));
    let error = forge.read_pr(1).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "127.0.0.1 could not be reached to read pull request #1: it did not answer in time; check the network and the address"
    );
}

#[tokio::test]
async fn a_closed_door_is_said_to_be_one() {
    let port = {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().port()
    };
    let address = address(&format!("http://127.0.0.1:{port}/alice/hooks"));
    let options = ForgeOptions { kind: Some(ForgeKind::Gitea), ..options() };
    let forge = Forge::open(&address, &Secret::new("token"), &options).await.unwrap();
    let error = forge.create_pull(&new_pull("forklift/x")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "127.0.0.1 could not be reached to open the pull request: it did not take the connection; check the network and the address"
    );
}

#[tokio::test]
async fn an_answer_is_read_up_to_a_limit() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    let body = " ".repeat(33 * 1024 * 1024);
    server.fail_next(1, &Mishap::Status { code: 200, headers: Vec::new(), body });
    let error = forge.read_pr(1).await.unwrap_err();
    assert!(error.to_string().contains("far too large"), "{error}");
}

#[tokio::test]
async fn half_an_answer_is_none() {
    let server = FakeGitea::start();
    server.add_pull("t", "forklift/x", "main");
    let forge = open_impatient(&server).await;
    let headers = vec![("content-length".to_owned(), "5000".to_owned())];
    server.fail_next(1, &Mishap::Status { code: 200, headers, body: "{".to_owned() });
    assert_eq!(forge.read_pr(1).await.unwrap().number, 1);
    assert_eq!(count(&server, "GET", "/pulls/1"), 2);
}
