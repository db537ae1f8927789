//! A forge that is reached through the proxy of the network alone.

use std::time::Duration;

use forge::{Forge, ForgeOptions, HttpPool, PlainHttp};
use host::web_proxy::WebProxy;
use model::secret::Secret;
use testkit::connect_proxy::ConnectProxy;
use testkit::fake_forge::{FakeGitea, TOKEN};

use crate::world::{address, options};

fn behind(url: &str) -> ForgeOptions {
    let proxy = WebProxy::from_lookup(|name| (name == "HTTP_PROXY").then(|| url.to_owned()));
    let pool = HttpPool::behind(proxy, None, Duration::from_secs(300));
    ForgeOptions { pool: Some(pool), plain_http: PlainHttp::Allowed, ..options() }
}

#[tokio::test]
async fn the_forge_is_asked_through_the_proxy_by_its_name() {
    let server = FakeGitea::start();
    let number = server.add_pull("t", "topic", "main");
    let here = server.remote_url();
    let authority = here.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let proxy = ConnectProxy::start(Some(authority.parse().unwrap()));
    // The name resolves nowhere but behind the proxy.
    let remote = address(&here.replace(&authority, "forge.corp.example:3000"));
    let token = Secret::new(TOKEN);
    let forge = Forge::open(&remote, &token, &behind(&proxy.url())).await.unwrap();
    forge.read_pr(number).await.unwrap();
    let head = &proxy.heads()[0];
    assert!(head.starts_with("CONNECT forge.corp.example:3000 HTTP/1.1"), "{head}");
}

#[tokio::test]
async fn a_proxy_that_refuses_or_cannot_be_is_named() {
    let remote = address("http://forge.corp.example/alice/hooks");
    let proxy = ConnectProxy::start(None);
    for (url, expected) in [
        (proxy.url(), "the proxy of this network (HTTPS_PROXY) refuses it"),
        (
            "http://127.0.0.1:1".to_owned(),
            "the proxy of this network (HTTPS_PROXY) does not answer",
        ),
        ("socks5://p:1".to_owned(), "HTTPS_PROXY is not the address of an HTTP proxy"),
    ] {
        let token = Secret::new(TOKEN);
        let error = Forge::open(&remote, &token, &behind(&url)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
