//! A Gitea on loopback that keeps its pull requests in memory and fails when it is told to.
//!
//! It answers in the shapes of a real server (the bodies are made from recorded ones), with its habits: unknown filters
//! are ignored, pages hold at most fifty entries, comments come all at once, success is 201 also for edits.
//!
//! - `api` what each path does
//! - `http` just enough HTTP/1.1
//! - `shape` the bodies
//! - `world` what the server knows

mod api;
mod http;
mod shape;
mod world;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use http::{Answer, Connection};
use world::World;

pub use http::GiteaRequest;
pub use world::{FakeComment, FakePull};

/// The token that a new server accepts.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef01234567";
/// The account behind that token.
pub const LOGIN: &str = "bot1";
/// The owner of the one repository.
pub const OWNER: &str = "alice";
/// The one repository.
pub const REPO: &str = "hooks";

/// What goes wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mishap {
    /// It is answered like this, and nothing is done.
    Status {
        /// The status.
        code: u16,
        /// Headers beyond the usual ones.
        headers: Vec<(String, String)>,
        /// The body, as it is.
        body: String,
    },
    /// It is done, and the connection ends without an answer.
    DropAfterWrite,
    /// It is not done, and the connection ends without an answer.
    DropBefore,
    /// It is done, and answered only after this time.
    Delay(Duration),
    /// It is done, and answered with this status and no body.
    StatusAfterWrite(u16),
}

impl Mishap {
    /// A status with the message that a real server would wrap like this.
    pub fn status(code: u16, message: &str) -> Self {
        Self::Status { code, headers: Vec::new(), body: shape::complaint(message).to_string() }
    }
}

/// Serves until it is dropped.
#[derive(Debug)]
pub struct FakeGitea {
    addr: SocketAddr,
    stage: Arc<Stage>,
    thread: Option<JoinHandle<()>>,
}

/// What the connections share.
#[derive(Debug)]
struct Stage {
    /// The sub-path it is installed under, empty or with a slash before it.
    under: String,
    world: Mutex<World>,
    requests: Mutex<Vec<GiteaRequest>>,
    /// What shall go wrong, and with which method; each is used once.
    mishaps: Mutex<Vec<(Option<String>, Mishap)>>,
    stop: AtomicBool,
}

impl FakeGitea {
    /// Starts on a free port of the loopback interface, at the root of its server.
    ///
    /// # Panics
    /// When the loopback interface has no free port.
    pub fn start() -> Self {
        Self::start_under("")
    }

    /// Starts as an installation under a sub-path such as `/git`.
    ///
    /// # Panics
    /// When the loopback interface has no free port.
    pub fn start_under(path: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let addr = listener.local_addr().expect("a socket that listens");
        let stage = Arc::new(Stage {
            under: path.trim_end_matches('/').to_owned(),
            world: Mutex::new(World::new(format!("http://{addr}{}", path.trim_end_matches('/')))),
            requests: Mutex::default(),
            mishaps: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let thread = std::thread::spawn({
            let stage = Arc::clone(&stage);
            move || stage.accept(&listener)
        });
        Self { addr, stage, thread: Some(thread) }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its front page.
    pub fn url(&self) -> String {
        self.world().root.clone()
    }

    /// The URL by which git would know its repository.
    pub fn remote_url(&self) -> String {
        format!("{}/{OWNER}/{REPO}.git", self.url())
    }

    /// Lets the next `count` requests come to grief.
    pub fn fail_next(&self, count: usize, mishap: &Mishap) {
        self.mishaps().extend(std::iter::repeat_n((None, mishap.clone()), count));
    }

    /// Lets the next `count` requests with this method come to grief, and no others.
    pub fn fail_next_on(&self, method: &str, count: usize, mishap: &Mishap) {
        let planned = (Some(method.to_owned()), mishap.clone());
        self.mishaps().extend(std::iter::repeat_n(planned, count));
    }

    /// Opens a pull request from a branch of the repository itself. Returns its number.
    pub fn add_pull(&self, title: &str, head: &str, base: &str) -> u64 {
        self.world().open_pull(title, "", head, base)
    }

    /// Opens a pull request from a branch of somebody's fork. Returns its number.
    pub fn add_pull_from_fork(&self, title: &str, head: &str, base: &str) -> u64 {
        let mut world = self.world();
        let number = world.open_pull(title, "", head, base);
        world.change_pull(number, |pull| pull.from_fork = true);
        number
    }

    /// Merges a pull request.
    pub fn merge_pull(&self, number: u64) {
        self.world().change_pull(number, |pull| {
            pull.merged = true;
            pull.open = false;
        });
    }

    /// Makes a label. Returns its id.
    pub fn add_label(&self, name: &str) -> u64 {
        let mut world = self.world();
        world.labels.push(name.to_owned());
        world.labels.len() as u64
    }

    /// Says where a branch is, for the pull requests from it.
    pub fn set_branch(&self, name: &str, sha: &str) {
        self.world().branches.insert(name.to_owned(), sha.to_owned());
    }

    /// Gives no page more entries than this, whatever is asked for.
    pub fn cap_pages_at(&self, entries: usize) {
        self.world().page_max = entries;
    }

    /// Takes from the token the right to say whose it is.
    pub fn hide_account(&self) {
        self.world().account_hidden = true;
    }

    /// Every pull request, oldest first.
    pub fn pulls(&self) -> Vec<FakePull> {
        self.world().pulls.clone()
    }

    /// Every comment, oldest first.
    pub fn comments(&self) -> Vec<FakeComment> {
        self.world().comments.clone()
    }

    /// Every request so far, in the order of arrival; those that came to grief are among them.
    pub fn requests(&self) -> Vec<GiteaRequest> {
        self.stage.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.stage.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mishaps(&self) -> MutexGuard<'_, Vec<(Option<String>, Mishap)>> {
        self.stage.mishaps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FakeGitea {
    fn drop(&mut self) {
        self.stage.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits in accept; if nobody listens any more, it has ended already.
        TcpStream::connect(self.addr).ok();
        let ended = self.thread.take().map(JoinHandle::join);
        let failed = matches!(ended, Some(Err(_)));
        assert!(!failed || std::thread::panicking(), "a connection of the fake Gitea panicked");
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
            self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
            let answer = match self.next_mishap(&request.method) {
                None => self.answer(&request),
                Some(Mishap::Status { code, headers, body }) => Answer { code, headers, body },
                Some(Mishap::DropBefore) => return Ok(()),
                Some(Mishap::DropAfterWrite) => {
                    self.answer(&request);
                    return Ok(());
                }
                Some(Mishap::Delay(time)) => {
                    let answer = self.answer(&request);
                    connection.wait(time)?;
                    answer
                }
                Some(Mishap::StatusAfterWrite(code)) => {
                    self.answer(&request);
                    Answer { code, headers: Vec::new(), body: String::new() }
                }
            };
            connection.send(&answer)?;
            if request.closes {
                break;
            }
        }
        Ok(())
    }

    fn answer(&self, request: &GiteaRequest) -> Answer {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        api::answer(&mut world, &self.under, request)
    }

    fn next_mishap(&self, method: &str) -> Option<Mishap> {
        let mut mishaps = self.mishaps.lock().unwrap_or_else(PoisonError::into_inner);
        let at =
            mishaps.iter().position(|(own, _)| own.as_ref().is_none_or(|own| own == method))?;
        Some(mishaps.remove(at).1)
    }
}
