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
//! - `http` just enough HTTP/1.1

mod answer;
mod http;
mod record;
mod route;
mod script;
mod tool;
mod wire;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use answer::Performed;
use http::Connection;

pub use record::RequestLog;
pub use script::{LAST_TEXT, ModelScript, Turn, Usage};
pub use wire::Wire;

/// Plays scripts until it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    addr: SocketAddr,
    stage: Arc<Stage>,
    thread: Option<JoinHandle<()>>,
}

/// What the connections share.
#[derive(Debug)]
struct Stage {
    scripts: BTreeMap<String, ModelScript>,
    requests: Mutex<Vec<RequestLog>>,
    /// How often each [`Turn::FailFirst`] was asked for.
    asked: Mutex<BTreeMap<answer::Place, usize>>,
    stop: AtomicBool,
}

impl ModelServer {
    /// Starts on a free port of the loopback interface.
    ///
    /// # Panics
    /// When the loopback interface has no free port.
    pub fn start<N: Into<String>>(scripts: impl IntoIterator<Item = (N, ModelScript)>) -> Self {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).expect("a free port"), scripts)
    }

    /// Starts on a socket of the caller's, as for boxes that have no loopback in common with the test.
    ///
    /// # Panics
    /// When the socket does not listen.
    pub fn start_on<N: Into<String>>(
        listener: TcpListener,
        scripts: impl IntoIterator<Item = (N, ModelScript)>,
    ) -> Self {
        let addr = listener.local_addr().expect("a socket that listens");
        let stage = Arc::new(Stage {
            scripts: scripts.into_iter().map(|(name, script)| (name.into(), script)).collect(),
            requests: Mutex::default(),
            asked: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let thread = std::thread::spawn({
            let stage = Arc::clone(&stage);
            move || stage.accept(&listener)
        });
        Self { addr, stage, thread: Some(thread) }
    }

    /// Where the server listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL of a script. Clients of the OpenAI kind want `/v1` after it.
    pub fn base_url(&self, script: &str) -> String {
        format!("http://{}{}{script}", self.addr, route::SCRIPT_PREFIX)
    }

    /// Every request so far, in the order of arrival; those that still wait for their answer are among them.
    pub fn requests(&self) -> Vec<RequestLog> {
        self.stage.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stage.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits in accept; if nobody listens any more, it has ended already.
        TcpStream::connect(self.addr).ok();
        let ended = self.thread.take().map(JoinHandle::join);
        let failed = matches!(ended, Some(Err(_)));
        assert!(!failed || std::thread::panicking(), "a connection of the model server panicked");
    }
}

impl Stage {
    fn accept(&self, listener: &TcpListener) {
        std::thread::scope(|scope| {
            for stream in listener.incoming() {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                // A client that is gone already is no concern of the server's.
                let Ok(stream) = stream else { continue };
                // An error means that the client went away, or that the server stops: either ends the connection.
                scope.spawn(move || self.serve(stream).ok());
            }
        });
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut connection = Connection::open(stream, &self.stop)?;
        while let Some(request) = connection.next_request()? {
            let ask = record::read(&request);
            self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(ask.log.clone());
            let answer = self.answer(&ask);
            match answer.perform(&mut connection)? {
                Performed::Answered if request.keep_alive => {}
                Performed::Answered | Performed::Ended => break,
            }
        }
        Ok(())
    }
}
