//! The token is in one header and nowhere else.

use forge::{Forge, ForgeKind, ForgeOptions, PlainHttp};
use model::secret::Secret;
use testkit::fake_forge::{FakeGitea, Mishap, TOKEN};

use crate::world::{address, kind, new_pull, open, options};

#[tokio::test]
async fn the_token_travels_in_its_header_alone() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    forge.create_pull(&new_pull("forklift/x")).await.unwrap();
    forge.whoami().await.unwrap();
    let requests = server.requests();
    assert!(requests.len() > 2);
    for request in requests {
        let asks_for_kind = request.path.ends_with("/version");
        let expected = (!asks_for_kind).then(|| format!("token {TOKEN}"));
        assert_eq!(request.header("authorization"), expected.as_deref(), "{}", request.path);
        assert!(!request.path.contains(TOKEN) && !request.query.contains(TOKEN));
        assert!(!request.body.contains(TOKEN));
    }
}

#[tokio::test]
async fn no_error_and_no_debug_output_shows_the_token() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    assert!(!format!("{forge:?} {forge:#?}").contains(TOKEN));
    let words = format!("bad token {TOKEN} in Authorization: token {TOKEN}");
    for code in [200, 301, 400, 401, 403, 404, 409, 422, 429, 500] {
        let headers = vec![("location".to_owned(), format!("/login?token={TOKEN}"))];
        let long = format!("{}{words}", "x".repeat(180));
        for body in [words.clone(), format!("{{\"message\":\"{words}\"}}"), long] {
            let mishap = Mishap::Status { code, headers: headers.clone(), body };
            let server = FakeGitea::start();
            let forge = open(&server).await;
            server.fail_next(3, &mishap);
            let error = forge.read_pr(1).await.unwrap_err();
            let shown = format!("{error} {error:?} {error:#?}");
            assert!(!shown.contains(&TOKEN[..12]), "{shown}");
        }
    }
}

#[tokio::test]
async fn words_from_a_server_cannot_act_on_a_terminal() {
    let server = FakeGitea::start();
    let forge = open(&server).await;
    server.fail_next(1, &Mishap::status(422, &format!("a\u{1b}[2Jb\nc{}", "x".repeat(1000))));
    let shown = forge.read_pr(1).await.unwrap_err().to_string();
    assert!(shown.contains("(a\\x1b[2Jb cxxx") && shown.len() < 400, "{shown}");
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_refused_unseen() {
    let server = FakeGitea::start();
    for token in ["", "two words", "line\nend", "naïve"] {
        let options = options();
        let address = address(&server.remote_url());
        let error = Forge::open(&address, &Secret::new(token), &options).await.unwrap_err();
        assert_eq!(kind(&error), "BadToken");
        assert!(token.is_empty() || !error.to_string().contains(token));
    }
}

/// Nothing is contacted: the name does not exist.
#[tokio::test]
async fn a_token_is_not_sent_over_plain_http_unless_that_is_allowed() {
    let remote = address("http://git.example/alice/hooks");
    let token = Secret::new(TOKEN);
    for kind in [ForgeKind::Gitea, ForgeKind::GitHub, ForgeKind::GitLab] {
        let refusing = ForgeOptions { kind: Some(kind), ..options() };
        let error = Forge::open(&remote, &token, &refusing).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the token for git.example would travel unencrypted; use https, or set FORGE_ALLOW_HTTP=1 to allow plain http"
        );
        let allowing = ForgeOptions { plain_http: PlainHttp::Allowed, ..refusing };
        Forge::open(&remote, &token, &allowing).await.unwrap();
    }
    assert_eq!(PlainHttp::parse(Some("1")), PlainHttp::Allowed);
    assert_eq!(PlainHttp::parse(Some("0")), PlainHttp::Refused);
    assert_eq!(PlainHttp::parse(None), PlainHttp::Refused);
}
