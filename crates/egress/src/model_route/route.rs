//! One call to the model, from the client's request to the last byte of the response.

use std::sync::Arc;
use std::time::Duration;

use host::clock;
use host::tls::load_client_config;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue,
    TRANSFER_ENCODING,
};
use hyper::http::request;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};
use model::redact::SecretMask;
use model::wire::WireApi;

use super::MODEL_PREFIX;
use super::auth::{betas_of, exchange_key, shows_key};
use super::bound::CallBound;
use super::dialect::{Dialect, FRAMES};
use super::key::{FetchedKey, KeyStore};
use super::path::{AllowedPath, find_path};
use super::quota::waiting_until;
use super::reservation::{Reservation, Reservations};
use super::spec::ModelRouteSpec;
use super::tap::{Form, Tap, Tapped};
use super::usage::Spend;
use crate::config::EgressError;
use crate::policy::{DenyReason, EgressProfile};
use crate::proxy::{
    CallBody, EgressAttempt, ProxyResponse, ProxyState, RequestError, Upload, UpstreamFailure,
    UpstreamResponse, UpstreamRoute, UpstreamTarget, explain_to_model_client, forward_masked,
    strip_hop_by_hop,
};
use crate::record::TrafficKind;
use crate::state::EgressState;

#[derive(Debug)]
pub(crate) struct ModelRoute {
    spec: ModelRouteSpec,
    keys: KeyStore,
    way: UpstreamRoute,
    reservations: Arc<Reservations>,
}

impl ModelRoute {
    pub(crate) async fn open(
        spec: ModelRouteSpec,
        keys: KeyStore,
        state: &Arc<EgressState>,
    ) -> Result<Self, EgressError> {
        spec.check()?;
        let tls = match spec.upstream.tls {
            true => Some(load_client_config(spec.ca_file.clone()).await?),
            false => None,
        };
        let place = UpstreamTarget::Chosen(spec.upstream.host.clone(), spec.upstream.port);
        let reservations = Reservations::new(spec.caps, spec.prices.clone(), Arc::clone(state));
        Ok(Self { spec, keys, way: UpstreamRoute { place, tls }, reservations })
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
        Ok((reached, mask)) => {
            note_answer(shared, &reached.response);
            if let Some(call) = &mut attempt.call {
                call.answered(&reached.response);
            }
            forward_masked(shared, reached, attempt, &mask)
        }
        Err(error) => {
            // A call that was cut for its size looks like a broken connection from outside.
            let error = attempt.meter.refusal().map_or(error, RequestError::from);
            attempt.call = attempt.call.take().and_then(|call| call.failed(&error));
            attempt.stopped_by(&error);
            explain_to_model_client(&error, attempt.target())
        }
    }
}

/// Checks a call and sends it. Returns the response with the mask of the key that it was sent with.
async fn call(
    shared: &Arc<ProxyState>,
    request: Request<Incoming>,
    attempt: &mut EgressAttempt,
) -> Result<(UpstreamResponse, Arc<SecretMask>), RequestError> {
    let route = shared.model.as_ref().ok_or(DenyReason::NoModel)?;
    let known = judge(shared, route, &request)?;
    let (mut head, body) = request.into_parts();
    prepare_head(&mut head, route)?;
    let body = Upload::new(body, &attempt.meter, route.spec.max_body_bytes);
    let Ok(key) = route.keys.current().await else { return Err(UpstreamFailure::NoKey.into()) };
    let body = match known.api.filter(|_| known.generates) {
        Some(api) => {
            let (body, reservation) = reserve(shared, route, api, body).await?;
            let stage = CallStage::Sent(api);
            attempt.call = Some(ModelCall { reservation, stage, is_answered: false });
            translate(route, &mut head, body)?
        }
        // A cloud has calls of its own beside those that generate.
        None if route.spec.dialect != Dialect::Plain => return Err(DenyReason::ModelPath.into()),
        None => {
            route.reservations.count()?;
            body.keep(&shared.state)
        }
    };
    let (reached, mask) = send(shared, route, &head, key, body, attempt).await?;
    check_readable(&reached.response)?;
    Ok((reached, mask))
}

/// Sends a call with the real key, and once more with a new key if the server no longer accepts this one.
async fn send(
    shared: &ProxyState,
    route: &ModelRoute,
    head: &request::Parts,
    key: FetchedKey,
    CallBody { upload, kept, .. }: CallBody,
    attempt: &EgressAttempt,
) -> Result<(UpstreamResponse, Arc<SecretMask>), RequestError> {
    let time_limit = Duration::from_secs(shared.policy.limits.total_secs);
    let first = keyed(head, route, &key, upload);
    let reached = shared.send(&route.way, first, &attempt.meter, time_limit).await?;
    if reached.response.status() != StatusCode::UNAUTHORIZED {
        return Ok((reached, key.mask));
    }
    // Without a newer key, the server's own response is the best answer.
    let Ok(Some(fresh)) = route.keys.replace(&key).await else { return Ok((reached, key.mask)) };
    match kept.take() {
        Some(body) => {
            note_answer(shared, &reached.response);
            let again = keyed(head, route, &fresh, body);
            let reached = shared.send(&route.way, again, &attempt.meter, time_limit).await?;
            Ok((reached, fresh.mask))
        }
        None => Ok((reached, key.mask)),
    }
}

/// Refuses a response in which the key could not be found: compressed although no encoding was asked for, or of another
/// protocol.
fn check_readable(response: &Response<Incoming>) -> Result<(), UpstreamFailure> {
    let is_plain = |name, plain: &str| {
        let values = response.headers().get_all(name).into_iter();
        let values = values.map(|value| value.to_str().unwrap_or("?"));
        values
            .flat_map(|value| value.split(','))
            .all(|word| word.trim().eq_ignore_ascii_case(plain))
    };
    let is_http = response.status() != StatusCode::SWITCHING_PROTOCOLS;
    if is_http && is_plain(CONTENT_ENCODING, "identity") && is_plain(TRANSFER_ENCODING, "chunked") {
        Ok(())
    } else {
        Err(UpstreamFailure::Encoded)
    }
}

/// Reserves the most of a call. Under a cap that is read from the body, which therefore is not streamed.
async fn reserve(
    shared: &ProxyState,
    route: &ModelRoute,
    api: WireApi,
    body: Upload,
) -> Result<(CallBody, Reservation), RequestError> {
    let has_cap = route.reservations.has_cap();
    if !has_cap && route.spec.dialect == Dialect::Plain {
        let reservation = route.reservations.reserve(CallBound::default()).await?;
        return Ok((body.keep(&shared.state), reservation));
    }
    let length = hyper::body::Body::size_hint(&body).exact();
    let Ok(body) = body.read_ahead(&shared.state).await else {
        return Err(UpstreamFailure::BrokenOff.into());
    };
    let bound = match &body.read {
        _ if !has_cap => CallBound::default(),
        Some(bytes) => CallBound::read(api, bytes),
        None => CallBound { body_bytes: length.unwrap_or_default(), answer: None },
    };
    let reservation = route.reservations.reserve(bound).await?;
    Ok((body, reservation))
}

/// Rewrites a call for a cloud that takes it in another form.
fn translate(
    route: &ModelRoute,
    head: &mut request::Parts,
    body: CallBody,
) -> Result<CallBody, RequestError> {
    let spec = &route.spec;
    if spec.dialect == Dialect::Plain {
        return Ok(body);
    }
    let Some(read) = &body.read else {
        return Err(DenyReason::ModelBody { limit: spec.max_body_bytes }.into());
    };
    let betas = betas_of(&head.headers);
    let call = spec.dialect.rewrite(read, spec.model.as_deref(), &betas);
    let call = call.ok_or(DenyReason::BadTarget)?;
    let target = format!("{}{}", spec.upstream.path, call.path);
    head.uri = Uri::from(PathAndQuery::try_from(target).or(Err(DenyReason::BadTarget))?);
    head.headers.insert(CONTENT_LENGTH, call.body.len().into());
    Ok(body.replaced(call.body))
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
    // A compressed response can be neither counted nor searched in passing.
    head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Ok(host) = HeaderValue::try_from(route.spec.upstream.authority()) {
        head.headers.insert(HOST, host);
    }
    let asked = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let below = asked.strip_prefix(MODEL_PREFIX).unwrap_or(asked);
    let below = match below.strip_prefix("/v1") {
        Some(rest) if route.spec.drops_version && !rest.starts_with(char::is_alphanumeric) => rest,
        _ => below,
    };
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
    let (secret, account) = (key.secret.as_ref(), key.account.as_deref());
    exchange_key(request.headers_mut(), route.spec.auth, secret, account);
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

/// One call that makes the model generate.
#[derive(Debug)]
pub(crate) struct ModelCall {
    stage: CallStage,
    reservation: Reservation,
    /// The server sent all that it will send. Without this the client left, and the server may go on generating.
    is_answered: bool,
}

#[derive(Debug)]
enum CallStage {
    /// The server may have started to work.
    Sent(WireApi),
    /// The server broke off before its answer.
    Unanswered(WireApi),
    Refused,
    /// The response is being forwarded.
    Answering(Box<Tap>),
}

impl ModelCall {
    fn answered(&mut self, response: &Response<Incoming>) {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = kind
            .is_some_and(|kind| kind.starts_with("text/event-stream") || kind.starts_with(FRAMES));
        let form = if is_stream { Form::Events } else { Form::Document };
        if let CallStage::Sent(api) = self.stage {
            let is_success = response.status().is_success();
            let answering = || CallStage::Answering(Box::new(Tap::new(api, form)));
            self.stage = if is_success { answering() } else { CallStage::Refused };
        }
    }

    /// Drops a call whose server never received all of it: nothing was used.
    fn failed(mut self, error: &RequestError) -> Option<Self> {
        match (error, &self.stage) {
            (RequestError::Failed(UpstreamFailure::BrokenOff), CallStage::Sent(api)) => {
                self.stage = CallStage::Unanswered(*api);
                Some(self)
            }
            // It was answered, and the answer is not forwarded.
            (RequestError::Failed(UpstreamFailure::Encoded), _) => Some(self),
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        if let CallStage::Answering(tap) = &mut self.stage {
            tap.push(piece);
        }
    }

    /// Notes that the response ended, or that the server broke it off.
    pub(crate) fn end(&mut self) {
        self.is_answered = true;
    }

    /// Adds the call's usage to the run's account. A call cut off before or within the response counts as well, since
    /// the server probably charges for it: with its whole answer if the client left, who could otherwise spend
    /// beyond a cap by never waiting for the end.
    pub(crate) fn finish(self, bytes_up: u64, shared: &ProxyState) -> Option<Spend> {
        let route = shared.model.as_ref()?;
        let Self { stage, reservation, is_answered } = self;
        let (tap, client_left) = match stage {
            CallStage::Refused => return None,
            // Nothing left this host: there was no connection to send it over.
            CallStage::Sent(_) | CallStage::Unanswered(_) if bytes_up == 0 => return None,
            CallStage::Sent(api) => (Tap::new(api, Form::Events), true),
            CallStage::Unanswered(api) => (Tap::new(api, Form::Events), false),
            CallStage::Answering(tap) => (*tap, !is_answered),
        };
        let Tapped { model, mut tokens, mut estimated, is_whole } = tap.finish(bytes_up);
        if client_left && !is_whole {
            tokens.output = tokens.output.max(reservation.answer());
            estimated = true;
        }
        let spend = Spend { tokens, usd: route.spec.prices.cost(&model, &tokens), estimated };
        reservation.settle(&model, &spend);
        Some(spend)
    }
}
