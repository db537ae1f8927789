//! Which kind of forge answers.

use forge::{Forge, ForgeError, ForgeKind, ForgeOptions, WebBase};
use model::secret::Secret;
use testkit::fake_forge::FakeGithub;
use testkit::fake_forge::FakeGitlab;
use testkit::fake_forge::{FakeGitea, Mishap};

use crate::world::{address, count, kind, options};

async fn open(url: &str, options: &ForgeOptions) -> Result<Forge, ForgeError> {
    Forge::open(&address(url), &Secret::new("some-token"), options).await
}

#[tokio::test]
async fn a_server_is_asked_once_and_an_explicit_kind_asks_nobody() {
    let server = FakeGitea::start();
    open(&server.remote_url(), &options()).await.unwrap();
    assert_eq!(count(&server, "GET", "/api/v1/version"), 1);
    let explicit = ForgeOptions { kind: Some(ForgeKind::Gitea), ..options() };
    open(&server.remote_url(), &explicit).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_other_kinds_are_known_by_what_they_answer() {
    let (github, gitlab) = (FakeGithub::start(), FakeGitlab::start());
    for (url, kind) in
        [(github.remote_url(), ForgeKind::GitHub), (gitlab.remote_url(), ForgeKind::GitLab)]
    {
        assert_eq!(open(&url, &options()).await.unwrap().kind(), kind);
    }
    let asked = github.requests().into_iter().chain(gitlab.requests());
    assert!(asked.into_iter().all(|request| request.header("authorization").is_none()));
}

#[tokio::test]
async fn a_project_in_groups_is_found_by_its_whole_path() {
    let gitlab = FakeGitlab::start();
    let url = format!("{}/group/sub/hooks.git", gitlab.url());
    let forge = open(&url, &options()).await.unwrap();
    assert_eq!(kind(&forge.read_pr(1).await.unwrap_err()), "Unauthorized");
    let last = gitlab.requests().pop().unwrap();
    assert_eq!(last.path, "/api/v4/projects/group%2Fsub%2Fhooks/merge_requests/1");
}

#[tokio::test]
async fn some_kinds_are_known_by_their_name_without_asking_them() {
    let github = open("git@github.com:a/b.git", &options()).await.unwrap();
    assert_eq!(github.kind(), ForgeKind::GitHub);
    let gitlab = open("git@gitlab.com:group/sub/b.git", &options()).await.unwrap();
    assert_eq!(gitlab.kind(), ForgeKind::GitLab);
}

#[tokio::test]
async fn a_server_that_is_no_forge_is_told_apart_from_one_that_is_down() {
    let page = Mishap::Status { code: 200, headers: Vec::new(), body: "<html>".to_owned() };
    let odd =
        Mishap::Status { code: 200, headers: Vec::new(), body: "{\"version\":\"v\"}".to_owned() };
    for mishap in [page, odd, Mishap::status(404, "")] {
        let server = FakeGitea::start();
        server.fail_next(1, &mishap);
        let error = open(&server.remote_url(), &options()).await.unwrap_err();
        assert_eq!(kind(&error), "UnknownForge", "{mishap:?}");
    }
    let server = FakeGitea::start();
    server.fail_next(3, &Mishap::status(502, ""));
    assert_eq!(kind(&open(&server.remote_url(), &options()).await.unwrap_err()), "Server");
}

#[tokio::test]
async fn a_server_that_wants_a_login_first_is_told_apart_and_gets_no_token() {
    for status in [401, 403] {
        let server = FakeGitea::start();
        server.fail_next(3, &Mishap::status(status, "{\"message\":\"Only signed in user\"}"));
        let error = open(&server.remote_url(), &options()).await.unwrap_err();
        assert_eq!(kind(&error), "LoginWanted", "{error}");
        let words = error.to_string();
        assert!(words.contains(&status.to_string()) && words.contains("name the kind"), "{words}");
        assert!(server.requests().iter().all(|it| it.header("authorization").is_none()));
    }
}

#[tokio::test]
async fn a_forgejo_and_one_that_was_built_without_a_number_are_known() {
    for version in ["15.0.3+gitea-1.22.0", "development"] {
        let server = FakeGitea::start();
        let body = format!("{{\"version\":\"{version}\"}}");
        server.fail_next(1, &Mishap::Status { code: 200, headers: Vec::new(), body });
        let forge = open(&server.remote_url(), &options()).await.unwrap();
        assert_eq!(forge.kind(), ForgeKind::Gitea);
    }
}

#[tokio::test]
async fn a_remote_over_ssh_can_be_told_where_the_web_is() {
    let server = FakeGitea::start();
    let web = WebBase::parse(&server.url());
    let options = ForgeOptions { web, ..options() };
    open("ssh://git@git.example:2222/alice/hooks.git", &options).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}
