//! One call to the model, from the client's request to the last byte of the response.

use std::sync::Arc;
use std::time::Duration;

use host::clock;
use host::tls::load_client_config;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::request;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};
use model::wire::WireApi;

use super::MODEL_PREFIX;
use super::auth::{exchange_key, shows_key};
use super::key::{FetchedKey, KeyStore};
use super::path::{AllowedPath, find_path};
use super::quota::waiting_until;
use super::spec::ModelRouteSpec;
use super::tap::{Form, Tap, Tapped};
use super::usage::Spend;
use crate::config::EgressError;
use crate::policy::{DenyReason, EgressProfile};
use crate::proxy::{
    EgressAttempt, ProxyResponse, ProxyState, RequestError, Upload, UpstreamFailure,
    UpstreamResponse, UpstreamRoute, UpstreamTarget, explain_to_model_client, forward_response,
    strip_hop_by_hop,
};
use crate::record::TrafficKind;

#[derive(Debug)]
pub(crate) struct ModelRoute {
    spec: ModelRouteSpec,
    keys: KeyStore,
    way: UpstreamRoute,
}

impl ModelRoute {
    pub(crate) async fn open(spec: ModelRouteSpec, keys: KeyStore) -> Result<Self, EgressError> {
        spec.check()?;
        let tls = match spec.upstream.tls {
            true => Some(load_client_config(spec.ca_file.clone()).await?),
            false => None,
        };
        let place = UpstreamTarget::Chosen(spec.upstream.host.clone(), spec.upstream.port);
        Ok(Self { spec, keys, way: UpstreamRoute { place, tls } })
    }
}

/// Handles a request below the route's prefix.
pub(crate) async fn answer(shared: &Arc<ProxyState>, request: Request<Incoming>) -> ProxyResponse {
    let (host, port) = match &shared.model {
        Some(route) => (route.spec.upstream.host.clone(), route.spec.upstream.port),
        None => ("the model".to_owned(), 0),
    };
    let mut attempt = match shared.begin(TrafficKind::Model, &host, port) {
        Ok(attempt) => attempt,
        Err(refusal) => return explain_to_model_client(&refusal.into(), (&host, port)),
    };
    match call(shared, request, &mut attempt).await {
        Ok(reached) => {
            note_answer(shared, &reached.response);
            if let Some(call) = &mut attempt.call {
                call.answered(&reached.response);
            }
            forward_response(shared, reached, attempt)
        }
        Err(error) => {
            // A call that was cut for its size looks like a broken connection from outside.
            let error = attempt.meter.refusal().map_or(error, RequestError::from);
            if error != RequestError::Failed(UpstreamFailure::BrokenOff) {
                // The server never received the whole call, so nothing was used.
                attempt.call = None;
            }
            attempt.stopped_by(&error);
            explain_to_model_client(&error, attempt.target())
        }
    }
}

/// Checks a call, sends it with the real key, and sends it once more with a new key if the server no longer
/// accepts this one.
async fn call(
    shared: &Arc<ProxyState>,
    request: Request<Incoming>,
    attempt: &mut EgressAttempt,
) -> Result<UpstreamResponse, RequestError> {
    let route = shared.model.as_ref().ok_or(DenyReason::NoModel)?;
    let known = judge(shared, route, &request)?;
    let (mut head, body) = request.into_parts();
    let body = Upload::new(body, &attempt.meter, route.spec.max_body_bytes);
    let (body, kept) = body.keep(&shared.state);
    prepare_head(&mut head, route)?;

    let Ok(key) = route.keys.current().await else { return Err(UpstreamFailure::NoKey.into()) };
    shared.state.usage_mut().requests += 1;
    attempt.call = known.api.filter(|_| known.generates).map(ModelCall::Sent);
    let time_limit = Duration::from_secs(shared.policy.limits.total_secs);
    let first = keyed(&head, route, &key, body);
    let reached = shared.send(&route.way, first, &attempt.meter, time_limit).await?;
    if reached.response.status() != StatusCode::UNAUTHORIZED {
        return Ok(reached);
    }
    // Without a newer key, the server's own response is the best answer.
    let Ok(Some(fresh)) = route.keys.replace(&key).await else { return Ok(reached) };
    match kept.take() {
        Some(body) => {
            note_answer(shared, &reached.response);
            let again = keyed(&head, route, &fresh, body);
            shared.send(&route.way, again, &attempt.meter, time_limit).await
        }
        None => Ok(reached),
    }
}

fn judge(
    shared: &ProxyState,
    route: &ModelRoute,
    request: &Request<Incoming>,
) -> Result<&'static AllowedPath, DenyReason> {
    if shared.policy.profile == EgressProfile::None {
        return Err(DenyReason::ProfileNone);
    }
    let path = request.uri().path();
    let below = path.strip_prefix(MODEL_PREFIX).unwrap_or(path);
    let known =
        find_path(&route.spec.apis, request.method(), below).ok_or(DenyReason::ModelPath)?;
    // Probing the server needs no key; agents do so before anything else.
    let needs_key = *request.method() != Method::HEAD && !route.spec.dummy_key.is_empty();
    if needs_key && !shows_key(request.headers(), &route.spec.dummy_key) {
        return Err(DenyReason::ModelKey);
    }
    let limit = route.spec.max_body_bytes;
    if hyper::body::Body::size_hint(request.body()).lower() > limit {
        return Err(DenyReason::ModelBody { limit });
    }
    let mut usage = shared.state.usage_mut();
    match usage.reached(&route.spec.caps) {
        Some(what) => {
            usage.cap_hit = Some(what.clone());
            Err(DenyReason::ModelCap { what })
        }
        None => Ok(known),
    }
}

/// Converts the head of the client's request into ours, except for the key.
fn prepare_head(head: &mut request::Parts, route: &ModelRoute) -> Result<(), DenyReason> {
    strip_hop_by_hop(&mut head.headers);
    // Compressed responses cannot be counted in passing, and compression hardly shrinks events.
    head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Ok(host) = HeaderValue::try_from(route.spec.upstream.authority()) {
        head.headers.insert(HOST, host);
    }
    let asked = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let below = asked.strip_prefix(MODEL_PREFIX).unwrap_or(asked);
    let slash = if below.starts_with('/') { "" } else { "/" };
    let target = format!("{}{slash}{below}", route.spec.upstream.path);
    let Ok(target) = PathAndQuery::try_from(target) else { return Err(DenyReason::BadTarget) };
    head.uri = Uri::from(target);
    head.extensions.clear();
    Ok(())
}

fn keyed(
    head: &request::Parts,
    route: &ModelRoute,
    key: &FetchedKey,
    body: Upload,
) -> Request<Upload> {
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.uri.clone();
    *request.headers_mut() = head.headers.clone();
    exchange_key(request.headers_mut(), route.spec.auth, key.secret.as_ref());
    request
}

fn note_answer(shared: &ProxyState, response: &Response<Incoming>) {
    let until = waiting_until(response.status(), response.headers(), clock::now());
    let mut usage = shared.state.usage_mut();
    *usage.by_status.entry(response.status().as_u16()).or_default() += 1;
    if until.is_some() || response.status().is_success() {
        usage.waiting_until = until;
    }
}

/// State of one call that makes the model generate.
#[derive(Debug)]
pub(crate) enum ModelCall {
    /// The server may have started to work.
    Sent(WireApi),
    Refused,
    /// The response is being forwarded.
    Answering(Tap),
}

impl ModelCall {
    fn answered(&mut self, response: &Response<Incoming>) {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let form = if is_stream { Form::Events } else { Form::Document };
        if let Self::Sent(api) = *self {
            let is_success = response.status().is_success();
            *self = if is_success { Self::Answering(Tap::new(api, form)) } else { Self::Refused };
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        if let Self::Answering(tap) = self {
            tap.push(piece);
        }
    }

    /// Adds the call's usage to the run's account. A call cut off before the response counts as well, since
    /// the server probably charges for it.
    pub(crate) fn finish(self, bytes_up: u64, shared: &ProxyState) -> Option<Spend> {
        let route = shared.model.as_ref()?;
        let tap = match self {
            Self::Refused => return None,
            // Nothing left this host: there was no connection to send it over.
            Self::Sent(_) if bytes_up == 0 => return None,
            Self::Sent(api) => Tap::new(api, Form::Events),
            Self::Answering(tap) => tap,
        };
        let Tapped { model, tokens, estimated } = tap.finish(bytes_up);
        let spend = Spend { tokens, usd: route.spec.prices.cost(&model, &tokens), estimated };
        shared.state.usage_mut().add(&spend);
        Some(spend)
    }
}
