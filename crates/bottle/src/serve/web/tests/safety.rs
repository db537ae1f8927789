//! What must not work: texts that act, names that lead elsewhere, forms of other pages, strangers at the buttons.

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::{Request, StatusCode};

use super::stage::{Answer, Stage, TOKEN, request};

/// Nothing of what a stranger wrote is more than a text.
#[track_caller]
fn is_harmless(path: &str, text: &str) {
    for word in ["<script>", "<img", "href=\"javascript:", "\u{1b}", "\u{202e}"] {
        assert!(!text.contains(word), "{path} holds {word:?}");
    }
    assert_eq!(text.matches("<script").count(), 1, "{path} has a script that is not ours");
    assert!(!text.contains("style=\"") && !text.contains(" onclick"), "{path} needs inline code");
}

#[tokio::test]
async fn a_title_and_an_agents_output_are_shown_as_text() {
    let stage = Stage::open().furnished();
    let run = stage.run_of("evil");
    for path in ["/".to_owned(), "/bottles/evil".to_owned(), format!("/runs/evil/{run}")] {
        let page = stage.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        is_harmless(&path, &page.text);
        assert!(page.text.contains("&lt;script&gt;alert(1)"), "{path} shows it");
        assert!(page.text.contains(r"\u{202e}\x1b[31m"), "{path} shows what would have acted");
    }
}

#[tokio::test]
async fn what_a_stranger_asks_for_is_shown_as_text() {
    let stage = Stage::guarded();
    let hostile = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%E2%80%AE";
    for path in [format!("/login?next={hostile}"), format!("/login?next=//evil.example/{hostile}")]
    {
        let page = stage.get(&path).await;
        is_harmless(&path, &page.text);
        assert!(page.text.contains("name=\"next\" value=\"/\""), "{path}");
    }
    let cookie = stage.log_in().await;
    for path in [format!("/{hostile}"), format!("/bottles/{hostile}"), format!("/runs/{hostile}/x")]
    {
        let page = stage.get_with(&path, &cookie).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        is_harmless(&path, &page.text);
    }
}

#[tokio::test]
async fn names_lead_nowhere_else() {
    let stage = Stage::open().furnished();
    let run = stage.run_of("stuck");
    std::fs::write(stage.service.home.bottles.join("../secret.json"), "{}").expect("written");
    for name in [
        "..",
        "%2e%2e",
        "..%2f..%2fetc",
        "stuck%2f..%2fbusy",
        "stuck%00",
        "STUCK",
        "%ff",
        "stuck%0a",
        ".",
        "-x",
    ] {
        for path in [
            format!("/bottles/{name}"),
            format!("/runs/{name}/{run}"),
            format!("/runs/stuck/{name}"),
            format!("/runs/stuck/..%2f..%2fbusy%2fruns%2f{run}"),
            format!("/runs/{name}/{run}/live"),
            format!("/api/v1/bottles/{name}"),
            format!("/api/v1/runs/{name}/{run}/log"),
            format!("/api/v1/runs/stuck/{name}/provenance"),
        ] {
            let status = stage.get(&path).await.status;
            let refused = [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST];
            assert!(refused.contains(&status), "{path}: {status}");
        }
    }
}

/// A form as another page would send it.
async fn send(
    stage: &Stage,
    cookie: &str,
    site: Option<&str>,
    origin: Option<&str>,
    form: &str,
) -> Answer {
    let mut request = request("POST", "/bottles/stuck/destroy")
        .header(COOKIE, cookie)
        .header("content-type", "application/x-www-form-urlencoded");
    for (name, value) in [("sec-fetch-site", site), ("origin", origin)] {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    stage.ask(request.body(Body::from(form.to_owned())).expect("a request")).await
}

#[tokio::test]
async fn a_form_of_another_page_does_nothing() {
    let stage = Stage::guarded().furnished();
    let cookie = stage.log_in().await;
    let page = stage.get_with("/bottles/stuck", &cookie).await;
    let (_, rest) = page.text.split_once("name=\"token\" value=\"").expect("a form");
    let own = format!("token={}", rest.split('"').next().expect("a token"));
    let here = "http://127.0.0.1:8473";
    for (site, origin, form) in [
        (Some("cross-site"), Some("https://evil.example"), own.as_str()),
        (Some("same-site"), None, own.as_str()),
        (None, Some("https://evil.example"), own.as_str()),
        (Some("same-origin"), Some(here), "token="),
        (Some("same-origin"), Some(here), "token=0000"),
        (None, None, "token=0000"),
    ] {
        let answer = send(&stage, &cookie, site, origin, form).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{site:?} {origin:?} {form}");
    }
    let other = stage.log_in().await;
    let answer = send(&stage, &other, Some("same-origin"), None, &own).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "a token of another session");
    assert_eq!(
        send(&stage, &cookie, Some("same-origin"), None, "").await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(stage.service.store.count_unhandled().expect("a count"), 0);
    assert_eq!(send(&stage, &cookie, None, Some(here), &own).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_browser_cannot_be_made_to_use_the_api() {
    let stage = Stage::guarded().furnished();
    let cookie = stage.log_in().await;
    let answer = stage.post("/api/v1/bottles/stuck/destroy", &cookie, "").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    assert!(answer.json()["detail"].as_str().is_some_and(|it| it.contains("Bearer")));
    assert_eq!(stage.get_with("/api/v1/bottles", &cookie).await.status, StatusCode::OK);
}

#[tokio::test]
async fn strangers_control_nothing_and_see_nothing() {
    let stage = Stage::guarded().furnished();
    for path in ["/", "/bottles/stuck", "/live", "/nowhere"] {
        let answer = stage.get(path).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{path}");
        assert!(answer.header("location").starts_with("/login?next=/"), "{path}");
        assert!(!answer.text.contains("colon"), "{path}");
    }
    for path in ["/metrics", "/api/v1/bottles", "/api/v1/openapi.json", "/api/v1/nowhere"] {
        let answer = stage.get(path).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    for path in ["/logout", "/api/v1/bottles/stuck/destroy"] {
        let answer = stage.post(path, "", "token=x").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    // A button of a page whose login has ended leads to the login and back.
    let answer = stage.post("/bottles/stuck/destroy", "", "token=x").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.header("location"), "/login?next=/bottles/stuck");
    for bearer in ["", "Bearer", "Bearer ", "Bearer wrong", "Basic eDp5"] {
        let request = request("GET", "/api/v1/bottles").header(AUTHORIZATION, bearer);
        let answer = stage.ask(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{bearer}");
    }
    for cookie in ["bottle=", "bottle=0", "bottle", "__Host-bottle=0"] {
        assert_eq!(stage.get_with("/", cookie).await.status, StatusCode::SEE_OTHER, "{cookie}");
    }
    assert_eq!(stage.service.store.count_unhandled().expect("a count"), 0);
}

#[tokio::test]
async fn a_page_for_reading_controls_nothing() {
    let stage = Stage::open().furnished();
    let pressed = stage.post("/bottles/stuck/destroy", "", "token=x").await;
    assert_eq!(pressed.status, StatusCode::FORBIDDEN, "{}", pressed.text);
    let asked = stage.ask(
        request("POST", "/api/v1/bottles/stuck/destroy").body(Body::empty()).expect("a request"),
    );
    assert_eq!(asked.await.status, StatusCode::FORBIDDEN);
    let with_token = stage.api("POST", "/api/v1/bottles/stuck/destroy", "").await;
    assert_eq!(with_token.status, StatusCode::UNAUTHORIZED, "a token where there is none");
    assert_eq!(stage.service.store.count_unhandled().expect("a count"), 0);
}

#[tokio::test]
async fn the_proxys_word_counts_only_where_it_is_configured() {
    let user = |stage: &Stage, value: &str| {
        let request = request("GET", "/bottles/stuck").header("x-forwarded-user", value);
        let request = request.body(Body::empty()).expect("a request");
        let router = stage.router.clone();
        async move { tower::ServiceExt::oneshot(router, request).await.expect("an answer").status() }
    };
    let behind = Stage::new("user_header = \"X-Forwarded-User\"\n").furnished();
    let asked =
        request("GET", "/").header("x-forwarded-user", "ann").header(AUTHORIZATION, "Basic YTpi");
    let asked = behind.ask(asked.body(Body::empty()).expect("a request")).await;
    assert_eq!(asked.status, StatusCode::OK, "what the proxy asked for is no token of ours");
    assert_eq!(user(&behind, "ann").await, StatusCode::OK);
    assert_eq!(user(&behind, " ").await, StatusCode::UNAUTHORIZED);
    assert_eq!(behind.get("/").await.status, StatusCode::UNAUTHORIZED);
    let guarded = Stage::guarded().furnished();
    assert_eq!(
        user(&guarded, "ann").await,
        StatusCode::SEE_OTHER,
        "nobody was asked to believe it"
    );
}

#[tokio::test]
async fn a_session_ends_when_somebody_logs_out() {
    let stage = Stage::guarded();
    let cookie = stage.log_in().await;
    let page = stage.get_with("/", &cookie).await;
    let (_, rest) = page.text.split_once("name=\"token\" value=\"").expect("a form");
    let form = format!("token={}", rest.split('"').next().expect("a token"));
    assert_eq!(stage.post("/logout", &cookie, "token=x").await.status, StatusCode::FORBIDDEN);
    let answer = stage.post("/logout", &cookie, &form).await;
    assert!(answer.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(stage.get_with("/", &cookie).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn guessing_is_slow_and_the_cookie_is_for_us_alone() {
    let stage = Stage::new(
        "admin_token_file = \"<dir>/token\"\npublic_url = \"https://bottles.example\"\n",
    );
    let right = format!("admin_token={TOKEN}");
    let cookie = stage.post("/login", "", &right).await;
    let cookie = cookie.header("set-cookie");
    for word in ["__Host-bottle=", "HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
        assert!(cookie.contains(word), "{word} is not in {cookie}");
    }
    for _ in 0..10 {
        let answer = stage.post("/login", "", "admin_token=guess").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let answer = stage.post("/login", "", "admin_token=guess").await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(!answer.header("retry-after").is_empty());
    let answer = stage.post("/login", "", &right).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "guesses of others do not lock its owner out");
}

#[tokio::test]
async fn a_form_that_is_too_large_is_not_read() {
    let stage = Stage::guarded().furnished();
    let cookie = stage.log_in().await;
    let large = format!("token=x&prompt={}", "x".repeat(300 * 1024));
    for path in ["/bottles/stuck/resume", "/login", "/logout"] {
        let answer = stage.post(path, &cookie, &large).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
    let body = format!("{{\"prompt\":\"{}\"}}", "x".repeat(300 * 1024));
    let answer = stage.api("POST", "/api/v1/bottles/stuck/resume", &body).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.header("content-type"), "application/problem+json");
}

#[tokio::test]
async fn open_pages_leave_room_for_others() {
    let stage = Stage::open().furnished();
    let follow = || {
        let asked = request("GET", "/live").body(Body::empty()).expect("a request");
        tower::ServiceExt::oneshot(stage.router.clone(), asked)
    };
    let mut open = Vec::new();
    loop {
        let answer = follow().await.expect("an answer");
        if answer.status() != StatusCode::OK {
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            break;
        }
        open.push(answer);
    }
    assert_eq!(open.len(), super::super::STREAMS_MAX);
    assert_eq!(stage.get("/").await.status, StatusCode::OK, "the page itself is there");
    open.pop();
    assert_eq!(
        follow().await.expect("an answer").status(),
        StatusCode::OK,
        "a place is free again"
    );
}

#[tokio::test]
async fn the_wrong_method_and_the_wrong_host_are_refused() {
    let stage = Stage::open().furnished();
    for (method, path) in [
        ("POST", "/"),
        ("DELETE", "/bottles/stuck"),
        ("GET", "/bottles/stuck/destroy"),
        ("TRACE", "/api/v1/bottles"),
        ("PUT", "/api/v1/bottles/stuck/freeze"),
        ("POST", "/healthz"),
    ] {
        let asked = request(method, path).body(Body::empty()).expect("a request");
        let answer = stage.ask(asked).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert!(!answer.header("allow").is_empty(), "{method} {path}");
    }
    for hosts in [&["evil.example:8473"][..], &[], &["127.0.0.1:8473", "evil.example"]] {
        for path in ["/", "/login", "/style.css", "/api/v1/bottles", "/metrics"] {
            let mut asked = Request::builder().uri(path);
            for host in hosts {
                asked = asked.header(HOST, *host);
            }
            let answer = stage.ask(asked.body(Body::empty()).expect("a request")).await;
            assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{hosts:?} {path}");
        }
    }
    let absolute = request("GET", "http://evil.example/").body(Body::empty()).expect("a request");
    assert_eq!(stage.ask(absolute).await.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn every_answer_tells_the_browser_what_it_must_not_do() {
    let stage = Stage::guarded().furnished();
    let large = "x".repeat(300 * 1024);
    let answers = [
        stage.get("/").await,
        stage.get("/login").await,
        stage.get("/style.css").await,
        stage.get("/live.js").await,
        stage.get("/healthz").await,
        stage.get("/api/v1/bottles").await,
        stage.get("/api/v1/%ff").await,
        stage.api("GET", "/api/v1/bottles", "").await,
        stage.api("GET", "/api/v1/bottles?x=1", "").await,
        stage.api("GET", "/nowhere", "").await,
        stage.api("DELETE", "/", "").await,
        stage.post("/login", "", &large).await,
    ];
    for answer in &answers {
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none';"), "{answer:?}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert!(!answer.header("cache-control").is_empty());
    }
}
