//! A model server that plays scripts, for the real coding agents to talk to on loopback.
//!
//! One server has many [`ModelScript`]s, each under a base URL of its own, and speaks Messages, Chat Completions and
//! Responses under every one of them. Which turn of a script a request gets follows from the request alone: its
//! number is that of the assistant's turns already in the conversation. So a retry gets the same answer, and an agent
//! that resumes goes on where it was. Only [`Turn::FailFirst`] remembers anything.
//!
//! A request that offers no tools is a side call (a title, a summary): it gets a fixed text and no turn.
//!
//! - `script` what the model says, turn by turn
//! - `record` what arrived, as tests ask for it
//! - `route` what a path asks for
//! - `tool` which of the tools on offer a turn calls
//! - `wire` the three APIs
//! - `answer` a turn as a response

mod answer;
mod record;
mod route;
mod script;
mod tool;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use crate::http::{Connection, Performed, Request, Serve, Server};

pub use record::RequestLog;
pub use script::{LAST_TEXT, ModelScript, Turn, Usage};
pub use wire::Wire;

/// Plays scripts until it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    server: Server,
    stage: Arc<Stage>,
}

/// State that the connections share.
#[derive(Debug)]
struct Stage {
    scripts: BTreeMap<String, ModelScript>,
    requests: Mutex<Vec<RequestLog>>,
    /// Number of requests for each [`Turn::FailFirst`].
    asked: Mutex<BTreeMap<answer::Place, usize>>,
}

impl ModelServer {
    /// Starts on a free port of the loopback interface.
    ///
    /// # Panics
    /// When the loopback interface has no free port.
    pub fn start<N: Into<String>>(scripts: impl IntoIterator<Item = (N, ModelScript)>) -> Self {
        Self::start_on(Server::listen(), scripts)
    }

    /// Starts on a socket of the caller's, as for boxes that have no loopback in common with the test.
    ///
    /// # Panics
    /// When the socket does not listen.
    pub fn start_on<N: Into<String>>(
        listener: TcpListener,
        scripts: impl IntoIterator<Item = (N, ModelScript)>,
    ) -> Self {
        let stage = Arc::new(Stage {
            scripts: scripts.into_iter().map(|(name, script)| (name.into(), script)).collect(),
            requests: Mutex::default(),
            asked: Mutex::default(),
        });
        Self { server: Server::start(listener, Arc::clone(&stage)), stage }
    }

    /// Address of the server.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The base URL of a script. Clients of the OpenAI kind want `/v1` after it.
    pub fn base_url(&self, script: &str) -> String {
        format!("http://{}{}{script}", self.addr(), route::SCRIPT_PREFIX)
    }

    /// Every request so far, in the order of arrival; those that still wait for their answer are among them.
    pub fn requests(&self) -> Vec<RequestLog> {
        self.stage.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Serve for Stage {
    fn serve(&self, request: &Request, connection: &mut Connection<'_>) -> io::Result<Performed> {
        let ask = record::read(request);
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(ask.log.clone());
        self.answer(&ask).perform(connection)
    }
}
