//! A receiver of webhooks on loopback, which keeps what it gets.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::http::{Connection, Performed, Request, Serve, Server, Whole, render_whole};

/// A server that answers every request with 204, or first with planned statuses.
#[derive(Debug)]
pub struct HookReceiver {
    server: Server,
    state: Arc<Received>,
}

/// A webhook, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedHook {
    /// All headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The unchanged body.
    pub body: Vec<u8>,
}

#[derive(Debug, Default)]
struct Received {
    hooks: Mutex<Vec<ReceivedHook>>,
    /// Statuses of the next answers, the last one first.
    statuses: Mutex<Vec<u16>>,
}

impl Serve for Received {
    fn serve(&self, request: &Request, connection: &mut Connection<'_>) -> io::Result<Performed> {
        let (headers, body) = (request.headers.clone(), request.body.clone());
        lock(&self.hooks).push(ReceivedHook { headers, body });
        let status = lock(&self.statuses).pop().unwrap_or(204);
        connection.send(&render_whole(&Whole { status, headers: vec![], body: String::new() }))?;
        Ok(Performed::Answered)
    }
}

impl HookReceiver {
    /// Starts on a free port of the loopback interface; the first answers have these statuses.
    ///
    /// # Panics
    /// When the loopback interface has no free port.
    pub fn start(statuses: &[u16]) -> Self {
        let state = Arc::new(Received::default());
        lock(&state.statuses).extend(statuses.iter().rev());
        Self { server: Server::start(Server::listen(), Arc::clone(&state)), state }
    }

    /// Address for the webhooks.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.server.addr())
    }

    /// All webhooks so far, in the order of arrival.
    pub fn hooks(&self) -> Vec<ReceivedHook> {
        lock(&self.state.hooks).clone()
    }
}

impl ReceivedHook {
    /// The value of a header, empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
