//! A machine that reaches the world through the proxy of its network alone.

use egress::model_route::{AuthStyle, Upstream};
use egress::policy::{EgressPolicy, EgressProfile};
use egress::{KeySource, ModelRouteSpec};
use host::web_proxy::WebProxy;
use testkit::connect_proxy::ConnectProxy;

use crate::model::{DUMMY, post};
use crate::server::{Echo, Seen, Server, whole};
use crate::world::{World, client_hello, rules};

fn behind(proxy: &ConnectProxy, direct: &str) -> WebProxy {
    let url = proxy.url();
    WebProxy::from_lookup(|name| match name {
        "HTTPS_PROXY" | "HTTP_PROXY" => Some(url.clone()),
        "NO_PROXY" => Some(direct.to_owned()),
        _ => None,
    })
    .unwrap()
}

fn target(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

#[tokio::test]
async fn the_model_is_called_through_the_proxy_by_its_name() {
    let answer = |_: &Seen| whole("200 OK", "application/json", &[], r#"{"model":"m"}"#);
    let server = Server::start(answer).await;
    let proxy = ConnectProxy::start(Some(server.address));
    // The name resolves nowhere but behind the proxy.
    let upstream = Upstream::parse("http://models.example:8080").unwrap();
    let spec = ModelRouteSpec::new(upstream, AuthStyle::XApiKey, KeySource::None, DUMMY);
    let policy = EgressPolicy::new(EgressProfile::ModelOnly);
    let world = World::start_behind(policy, Some(spec), behind(&proxy, "")).await;
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(target(&proxy.heads()[0]), "models.example:8080");
    assert!(server.seen()[0].head.starts_with("POST /v1/messages "), "{:?}", server.seen());
}

#[tokio::test]
async fn a_box_gets_through_the_proxy_to_what_its_policy_lists_and_to_nothing_else() {
    let echo = Echo::start().await;
    let proxy = ConnectProxy::start(Some(echo.address));
    let policy = EgressPolicy {
        allow: rules(&["mirror.example"]),
        ..EgressPolicy::new(EgressProfile::ModelOnly)
    };
    let world = World::start_behind(policy, None, behind(&proxy, "")).await;
    let hello = client_hello("mirror.example", true);
    assert_eq!(world.through("mirror.example:443", &hello).await.unwrap(), hello);
    assert_eq!(target(&proxy.heads()[0]), "mirror.example:443");
    assert_eq!(world.connect("other.example:443").await.unwrap_err().status, 403);
    // A name that resolves to an address of this network stays refused, although the proxy would reach it.
    world.names.set("mirror.example", &["10.0.0.7:443"]);
    assert_eq!(world.connect("mirror.example:443").await.unwrap_err().status, 403);
    assert_eq!(proxy.heads().len(), 1);
}

#[tokio::test]
async fn with_every_host_open_the_proxy_gets_the_judged_address_and_no_private_one() {
    let echo = Echo::start().await;
    let proxy = ConnectProxy::start(Some(echo.address));
    let policy = EgressPolicy::new(EgressProfile::Open);
    let world = World::start_behind(policy, None, behind(&proxy, "")).await;
    world.names.set("public.example", &["8.8.8.8:443"]);
    world.names.set("inside.example", &["10.0.0.7:443"]);
    let hello = client_hello("public.example", true);
    assert_eq!(world.through("public.example:443", &hello).await.unwrap(), hello);
    assert_eq!(target(&proxy.heads()[0]), "8.8.8.8:443");
    assert_eq!(world.connect("inside.example:443").await.unwrap_err().status, 403);
    assert_eq!(world.connect("unknown.example:443").await.unwrap_err().status, 502);
    assert_eq!(proxy.heads().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_and_exceptions_go_around_it() {
    let answer = |_: &Seen| whole("200 OK", "application/json", &[], "{}");
    let server = Server::start(answer).await;
    let proxy = ConnectProxy::start(None);
    let spec = || {
        let upstream = Upstream::parse("http://models.example").unwrap();
        ModelRouteSpec::new(upstream, AuthStyle::XApiKey, KeySource::None, DUMMY)
    };
    let policy = || {
        let permit_private = vec![server.address];
        EgressPolicy { permit_private, ..EgressPolicy::new(EgressProfile::ModelOnly) }
    };
    let world = World::start_behind(policy(), Some(spec()), behind(&proxy, "")).await;
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert_eq!(got.status, 502);
    assert!(got.body.contains("the proxy of this network (HTTPS_PROXY) refuses it"), "{got:?}");
    let world = World::start_behind(policy(), Some(spec()), behind(&proxy, ".example")).await;
    let here = server.address.to_string();
    world.names.set("models.example", &[&here]);
    assert_eq!(post(&world, "/v1/messages", DUMMY, "{}").await.status, 200);
    assert_eq!(proxy.heads().len(), 1);
}
