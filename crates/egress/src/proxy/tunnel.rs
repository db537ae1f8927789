//! Tunnels opened by `CONNECT`.
//!
//! On port 443 the first bytes must be a TLS ClientHello for exactly the requested host; nothing is sent to the server
//! before that is known. On other ports the same holds for a ClientHello, and anything else is parsed as plain
//! requests, which are served one by one like all the others, so a tunnel does not bypass their rules.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use host::web_proxy::WebScheme;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::http::uri::Authority;
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::answer::{ProxyResponse, explain};
use super::attempt::EgressAttempt;
use super::hello::{HELLO_MAX, Hello, judge_hello, parse_hello};
use super::pump::pump;
use super::service::{parse_target, serve_plain_inside};
use super::shared::ProxyState;
use super::upstream::{RequestError, UpstreamFailure, UpstreamTarget};
use crate::policy::{DenyReason, HostName, port_of};
use crate::record::TrafficKind;

const TLS_PORT: u16 = 443;
/// A fatal alert, "access denied": the only refusal that a TLS client understands.
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// A tunnel that was granted and waits for the client's first bytes.
pub(super) struct Tunnel {
    upgrade: OnUpgrade,
    attempt: EgressAttempt,
    host: HostName,
    port: u16,
    /// The server connection, where it must exist before the response.
    outside: Option<TcpStream>,
}

/// Decides about a tunnel and connects to the server.
pub(super) async fn open(
    shared: &Arc<ProxyState>,
    request: &mut Request<Incoming>,
) -> (ProxyResponse, Option<Tunnel>) {
    let host_text = request.uri().host().unwrap_or_default().to_owned();
    let authority = request.uri().authority().map_or("", Authority::as_str);
    let port = port_of(authority, 0).unwrap_or(0);
    let mut attempt = match shared.begin(TrafficKind::Connect, &host_text, port) {
        Ok(attempt) => attempt,
        Err(refusal) => return (explain(&refusal.into(), (&host_text, port)), None),
    };
    match prepare(shared, &host_text, port, &mut attempt).await {
        Ok((host, outside)) => {
            let upgrade = hyper::upgrade::on(request);
            let granted = Response::new(Either::Left(Full::default()));
            (granted, Some(Tunnel { upgrade, attempt, host, port, outside }))
        }
        Err(error) => {
            attempt.stopped_by(&error);
            (explain(&error, attempt.target()), None)
        }
    }
}

async fn prepare(
    shared: &ProxyState,
    host: &str,
    port: u16,
    attempt: &mut EgressAttempt,
) -> Result<(HostName, Option<TcpStream>), RequestError> {
    let host = parse_target(host, port)?;
    shared.policy.judge_name(&host, port)?;
    shared.judge_caps()?;
    let place = UpstreamTarget::Asked(host.clone(), port);
    if port != TLS_PORT {
        // Behind a proxy the name may be one that only the proxy resolves.
        if shared.proxy.server_for(WebScheme::Https, host.as_str(), port).is_none() {
            shared.locate(&place).await?;
        }
        return Ok((host, None));
    }
    let (stream, address) = shared.connect(&place, WebScheme::Https).await?;
    attempt.reached(Some(address));
    Ok((host, Some(stream)))
}

/// Copies the bytes of a tunnel after the client has received the response.
pub(super) async fn run(shared: &Arc<ProxyState>, tunnel: Tunnel) {
    let Tunnel { upgrade, mut attempt, host, port, outside } = tunnel;
    let limit = Duration::from_secs(shared.policy.limits.header_secs);
    let Ok(Ok(upgraded)) = timeout(limit, upgrade).await else {
        attempt.stopped_by(&UpstreamFailure::BrokenOff.into());
        return;
    };
    // Only Unix sockets are ever served with upgrades.
    let Ok(parts) = upgraded.downcast::<TokioIo<UnixStream>>() else { return };
    let mut inside = parts.io.into_inner();
    let mut first = parts.read_buf.to_vec();
    let Ok(hello) = timeout(limit, read_hello(&mut inside, &mut first)).await else {
        attempt.stopped_by(&UpstreamFailure::TimedOut.into());
        return;
    };
    match hello {
        Hello::Greets(sni) => {
            if let Err(refusal) = judge_hello(sni.as_deref(), &host) {
                attempt.stopped_by(&refusal.into());
                inside.write_all(&ALERT).await.unwrap_or_default();
                return;
            }
            let place = UpstreamTarget::Asked(host, port);
            let outside = match outside {
                Some(outside) => outside,
                None => match shared.connect(&place, WebScheme::Https).await {
                    Ok((outside, address)) => {
                        attempt.reached(Some(address));
                        outside
                    }
                    Err(error) => return attempt.stopped_by(&error),
                },
            };
            carry(shared, inside, outside, first, &attempt).await;
        }
        Hello::NotTls if port != TLS_PORT => {
            attempt.reached(None);
            drop(attempt);
            let (reader, writer) = inside.into_split();
            let inside = tokio::io::join(Cursor::new(first).chain(reader), writer);
            serve_plain_inside(shared, inside, host, port).await;
        }
        Hello::NotTls => {
            attempt.stopped_by(&DenyReason::NotTls.into());
            let text = DenyReason::NotTls.explain(host.as_str(), port);
            let answer = format!("HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n{text}\n");
            inside.write_all(answer.as_bytes()).await.unwrap_or_default();
        }
        // The client closed the connection without sending anything.
        Hello::Incomplete => {}
    }
}

/// Reads until the first bytes can be classified; the bytes read are in `first`.
async fn read_hello(inside: &mut UnixStream, first: &mut Vec<u8>) -> Hello {
    loop {
        let hello = if first.is_empty() { Hello::Incomplete } else { parse_hello(first) };
        if hello != Hello::Incomplete || first.len() >= HELLO_MAX {
            return hello;
        }
        match inside.read_buf(first).await {
            Ok(0) | Err(_) => return Hello::Incomplete,
            Ok(_) => {}
        }
    }
}

async fn carry(
    shared: &ProxyState,
    mut inside: UnixStream,
    mut outside: TcpStream,
    first: Vec<u8>,
    attempt: &EgressAttempt,
) {
    let meter = &attempt.meter;
    let is_counted = meter.count_up(first.len() as u64).is_ok();
    if !is_counted || outside.write_all(&first).await.is_err() {
        return;
    }
    drop(first);
    pump(inside.split(), outside.split(), meter, &shared.policy.limits).await;
}
