//! Recorded requests, as tests query them.

use serde_json::Value;

use super::Wire;

use super::route::{Route, parse_route};
use super::tool::Offer;
use crate::http::Request;

/// The headers that carry a key, the usual one first.
const AUTH_HEADERS: [&str; 3] = ["authorization", "x-api-key", "api-key"];

/// One request, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLog {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The script that the path names; empty if it names none.
    pub script: String,
    /// The API in which a turn was asked for; [`Wire::Other`] for anything but a turn.
    pub wire: Wire,
    /// The model asked for.
    pub model: Option<String>,
    /// The names of the tools on offer. A tool in a namespace is `<namespace>__<name>`.
    pub tools: Vec<String>,
    /// The number of the turn asked for, from 0; `None` for side calls and for anything but a turn.
    pub turn: Option<usize>,
    /// The whole value of the header that carried a key.
    pub auth: Option<String>,
    /// The name of that header, in lower case.
    pub auth_header: Option<String>,
    /// Reasoning effort: a word, or the number of tokens for it.
    pub effort: Option<String>,
    /// The text of the last tool result in the conversation. Some agents show a tool's failure nowhere else.
    pub last_tool_result: Option<String>,
    /// True if the answer shall be a stream of events.
    pub stream: bool,
    /// All headers in the order of arrival, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub raw_body: String,
}

impl RequestLog {
    /// Returns whether the request wanted an answer of the model outside the conversation.
    pub fn is_side_call(&self) -> bool {
        self.wire != Wire::Other && self.turn.is_none()
    }
}

/// A request that was read: what it wants, what tests see of it, and which tools an answer may call.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) route: Route,
    pub(super) log: RequestLog,
    pub(super) offers: Vec<Offer>,
    /// Why the body makes no sense, if it does not.
    pub(super) complaint: Option<String>,
}

/// Reads a request of any kind.
pub(super) fn read(request: &Request) -> Ask {
    let (script, route) = parse_route(&request.method, &request.path);
    let wire = match route {
        Route::Turn(wire) => wire,
        Route::CountTokens | Route::Models | Route::Greeting | Route::Unknown => Wire::Other,
    };
    let parsed = serde_json::from_slice::<Value>(&request.body);
    let complaint = match &parsed {
        Err(error) if wire != Wire::Other => Some(format!("the body is not JSON: {error}")),
        Ok(_) | Err(_) => None,
    };
    let body = parsed.unwrap_or_default();
    let offers = wire.offers(&body);
    let auth_header = AUTH_HEADERS.into_iter().find(|name| request.header(name).is_some());
    let log = RequestLog {
        method: request.method.clone(),
        path: request.path.clone(),
        script: script.to_owned(),
        wire,
        model: body["model"].as_str().map(str::to_owned),
        tools: offers.iter().map(Offer::full_name).collect(),
        turn: (!offers.is_empty()).then(|| wire.turns_so_far(&body)),
        auth: auth_header.and_then(|name| request.header(name)).map(str::to_owned),
        auth_header: auth_header.map(str::to_owned),
        effort: wire.effort(&body),
        last_tool_result: wire.last_tool_result(&body),
        stream: body["stream"] == true,
        headers: request.headers.clone(),
        raw_body: String::from_utf8_lossy(&request.body).into_owned(),
    };
    Ask { route, log, offers, complaint }
}
