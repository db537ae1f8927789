//! Which kind of forge answers.

use forge::{Forge, ForgeError, ForgeKind, ForgeSetting, WebBase};
use model::secret::Secret;
use testkit::fake_gitea::{FakeGitea, Mishap};

use crate::world::{address, count, kind, setting};

async fn open(url: &str, setting: &ForgeSetting) -> Result<Forge, ForgeError> {
    Forge::open(&address(url), Secret::new("some-token"), setting).await
}

#[tokio::test]
async fn a_server_is_asked_once_and_an_explicit_kind_asks_nobody() {
    let server = FakeGitea::start();
    open(&server.remote_url(), &setting()).await.unwrap();
    assert_eq!(count(&server, "GET", "/api/v1/version"), 1);
    let explicit = ForgeSetting { kind: Some(ForgeKind::Gitea), ..setting() };
    open(&server.remote_url(), &explicit).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn forges_that_cannot_be_used_yet_are_named_without_asking_them() {
    for (url, name) in [
        ("git@github.com:a/b.git", "github.com is GitHub"),
        ("https://gitlab.com/group/sub/b.git", "gitlab.com is GitLab"),
    ] {
        let error = open(url, &setting()).await.unwrap_err();
        let rest = "which is not supported yet; open the pull request there by hand";
        assert_eq!(error.to_string(), format!("{name}, {rest}"));
    }
}

#[tokio::test]
async fn a_server_that_is_no_forge_is_told_apart_from_one_that_is_down() {
    let page = Mishap::Status { code: 200, headers: Vec::new(), body: "<html>".to_owned() };
    let odd =
        Mishap::Status { code: 200, headers: Vec::new(), body: "{\"version\":\"v\"}".to_owned() };
    for mishap in [page, odd, Mishap::status(404, ""), Mishap::status(403, "")] {
        let server = FakeGitea::start();
        server.fail_next(1, &mishap);
        let error = open(&server.remote_url(), &setting()).await.unwrap_err();
        assert_eq!(kind(&error), "UnknownForge", "{mishap:?}");
    }
    let server = FakeGitea::start();
    server.fail_next(3, &Mishap::status(502, ""));
    assert_eq!(kind(&open(&server.remote_url(), &setting()).await.unwrap_err()), "Server");
}

#[tokio::test]
async fn a_forgejo_is_one_of_them() {
    let server = FakeGitea::start();
    let body = "{\"version\":\"15.0.3+gitea-1.22.0\"}".to_owned();
    server.fail_next(1, &Mishap::Status { code: 200, headers: Vec::new(), body });
    assert!(matches!(open(&server.remote_url(), &setting()).await, Ok(Forge::Gitea(_))));
}

#[tokio::test]
async fn a_remote_over_ssh_can_be_told_where_the_web_is() {
    let server = FakeGitea::start();
    let web = WebBase::parse(&server.url());
    let setting = ForgeSetting { web, ..setting() };
    open("ssh://git@git.example:2222/alice/hooks.git", &setting).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}
