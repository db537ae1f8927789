//! Fake forges: servers on loopback that keep a repository in memory, record requests, and fail on demand.
//!
//! A [`Flavour`] is one kind of forge: its paths, its shapes and its habits. The rest is the same for all, so that one
//! suite can run over every kind.
//!
//! - `github_like` Gitea and GitHub
//! - `gitlab` GitLab
//! - [`hooks`] webhooks as a real Gitea sends them
//! - `world` the state of a server
//! - `git_http` its repository, over git's own protocol
//! - `request` requests as they arrived
//! - `page` pages of lists
//! - `time` the server's own clock

mod git_http;
mod github_like;
mod gitlab;
pub mod hooks;
mod page;
mod request;
mod time;
mod world;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Connection, Performed, Request, Serve, Server, Whole, render_whole};

pub use github_like::{FakeGitea, FakeGithub, GiteaFlavour, GithubFlavour};
pub use gitlab::{FakeGitlab, GitlabFlavour};
use page::PageStyle;
pub use request::ForgeRequest;
use request::decode;
pub use world::{
    FakeAnswer, FakeCheck, FakeComment, FakeFile, FakeHook, FakeIssue, FakePull, FakeRepository,
    FakeReview, Room, World,
};

/// The token that a new server accepts.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef01234567";
/// The account behind that token.
pub const LOGIN: &str = "bot1";
/// The owner of the one repository.
pub const OWNER: &str = "alice";
/// The one repository.
pub const REPO: &str = "hooks";
/// Account whose pull requests come from a fork.
pub const STRANGER: &str = "carol";

/// One kind of forge.
pub trait Flavour: fmt::Debug + Send + Sync + 'static {
    /// True if issues and pull requests share one sequence of numbers.
    const NUMBERING: Numbering;

    /// Answers a request below the installation's path.
    fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> FakeResponse;
}

/// Numbering of a forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// Issues and pull requests share their numbers.
    Shared,
    /// Each has its own.
    Separate,
}

/// Fault to inject into a request.
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
    /// A status with a message that a real server would wrap like this.
    pub fn status(code: u16, message: &str) -> Self {
        Self::Status { code, headers: Vec::new(), body: render_error(message).to_string() }
    }
}

/// Response of a fake forge.
#[derive(Debug)]
pub struct FakeResponse {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl FakeResponse {
    fn json(code: u16, body: &Value) -> Self {
        Self { code, headers: Vec::new(), body: body.to_string() }
    }

    fn empty(code: u16) -> Self {
        Self { code, headers: Vec::new(), body: String::new() }
    }

    fn error(code: u16, message: &str) -> Self {
        Self::json(code, &render_error(message))
    }

    fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

fn render_error(message: &str) -> Value {
    json!({ "message": message, "url": "https://forge.example.test/api/docs" })
}

/// A forge of one flavour; serves until it is dropped.
#[derive(Debug)]
pub struct FakeForge<F: Flavour> {
    server: Server,
    stage: Arc<Stage<F>>,
}

/// State that the connections share.
#[derive(Debug)]
struct Stage<F> {
    /// The sub-path it is installed under, empty or with a slash before it.
    under: String,
    world: Mutex<World>,
    requests: Mutex<Vec<ForgeRequest>>,
    /// Planned failures and their methods; each is used once.
    mishaps: Mutex<Vec<(Option<String>, Mishap)>>,
    flavour: PhantomData<fn() -> F>,
}

impl<F: Flavour> FakeForge<F> {
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
        let listener = Server::listen();
        let addr = listener.local_addr().expect("a socket that listens");
        let under = path.trim_end_matches('/').to_owned();
        let stage = Arc::new(Stage {
            world: Mutex::new(World::new(format!("http://{addr}{under}"), F::NUMBERING)),
            under,
            requests: Mutex::default(),
            mishaps: Mutex::default(),
            flavour: PhantomData,
        });
        Self { server: Server::start(listener, Arc::clone(&stage)), stage }
    }

    /// Address of the server.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Its front page.
    pub fn url(&self) -> String {
        self.world().root.clone()
    }

    /// The URL by which git would know its repository.
    pub fn remote_url(&self) -> String {
        format!("{}/{OWNER}/{REPO}.git", self.url())
    }

    /// Injects a fault into the next `count` requests.
    pub fn fail_next(&self, count: usize, mishap: &Mishap) {
        self.mishaps().extend(std::iter::repeat_n((None, mishap.clone()), count));
    }

    /// Injects a fault into the next `count` requests with this method.
    pub fn fail_next_on(&self, method: &str, count: usize, mishap: &Mishap) {
        let planned = (Some(method.to_owned()), mishap.clone());
        self.mishaps().extend(std::iter::repeat_n(planned, count));
    }

    /// Takes back all faults that have not happened yet.
    pub fn recover(&self) {
        self.mishaps().clear();
    }

    /// Opens an issue of the owner's. Returns its number.
    pub fn add_issue(&self, title: &str, body: &str, labels: &[&str], assignees: &[&str]) -> u64 {
        self.world().open_issue(title, body, labels, assignees)
    }

    /// Opens a pull request of the account's from a branch of the repository itself. Returns its number.
    pub fn add_pull(&self, title: &str, head: &str, base: &str) -> u64 {
        self.world().open_pull(title, "", head, base)
    }

    /// Opens a pull request from a branch of another person's fork. Returns its number.
    pub fn add_pull_from_fork(&self, title: &str, head: &str, base: &str) -> u64 {
        let mut world = self.world();
        let number = world.open_pull(title, "", head, base);
        world.change_pull(number, |pull| {
            pull.from_fork = true;
            pull.author = STRANGER.to_owned();
        });
        number
    }

    /// Changes an issue behind everybody's back.
    pub fn change_issue(&self, number: u64, change: impl FnOnce(&mut FakeIssue)) {
        self.world().change_issue(number, change);
    }

    /// Changes a pull request behind everybody's back.
    pub fn change_pull(&self, number: u64, change: impl FnOnce(&mut FakePull)) {
        self.world().change_pull(number, change);
    }

    /// Closes an issue.
    ///
    /// # Panics
    /// When there is no such issue.
    pub fn close_issue(&self, number: u64) {
        let mut world = self.world();
        let issue = world.issues.iter_mut().find(|issue| issue.number == number);
        issue.expect("an issue").open = false;
    }

    /// Merges a pull request.
    pub fn merge_pull(&self, number: u64) {
        self.world().change_pull(number, |pull| {
            pull.merged = true;
            pull.open = false;
        });
    }

    /// Adds a comment of a user.
    pub fn add_comment(&self, room: Room, number: u64, author: &str, body: &str) {
        self.world().comment(room, number, author, body);
    }

    /// Replaces the token that the server accepts.
    pub fn set_token(&self, token: &str) {
        token.clone_into(&mut self.world().token);
    }

    /// Deletes an issue.
    pub fn delete_issue(&self, number: u64) {
        self.world().issues.retain(|issue| issue.number != number);
    }

    /// Changes the text of a comment behind everybody's back.
    ///
    /// # Panics
    /// When there is no comment with this text.
    pub fn edit_comment(&self, before: &str, after: &str) {
        let mut world = self.world();
        let comment = world.comments.iter_mut().find(|comment| comment.body == before);
        after.clone_into(&mut comment.expect("a comment").body);
    }

    /// Adds a review of a pull request, with one remark on a line of a file.
    pub fn add_review(&self, review: FakeReview) {
        self.world().reviews.push(review);
    }

    /// Reports a check of a commit.
    pub fn add_check(&self, sha: &str, name: &str, state: &str, log: &str) {
        let mut world = self.world();
        let id = world.checks.len() as u64 + 1;
        let [sha, name, state, log] = [sha, name, state, log].map(str::to_owned);
        world.checks.push(FakeCheck { id, sha, name, state, log });
    }

    /// Says that an issue comes after others.
    pub fn set_blockers(&self, issue: u64, before: &[u64]) {
        self.world().blockers.insert(issue, before.to_vec());
    }

    /// Keeps a file at this path below the installation.
    pub fn add_file(&self, path: &str, file: FakeFile) {
        self.world().files.insert(path.to_owned(), file);
    }

    /// Gives the newest comment with this text a thumbs-up.
    ///
    /// # Panics
    /// When there is no such comment.
    pub fn add_thumbs_up(&self, words: &str, user: &str) {
        let mut world = self.world();
        let found = world.comments.iter().rev().find(|comment| comment.body.contains(words));
        let id = found.expect("a comment with these words").id;
        world.thumbs.entry(id).or_default().push(user.to_owned());
    }

    /// Answers to remarks, oldest first.
    pub fn answers(&self) -> Vec<FakeAnswer> {
        self.world().answers.clone()
    }

    /// Reviews whose thread is resolved, by number from 1.
    pub fn resolved(&self) -> Vec<u64> {
        self.world().resolved.iter().copied().collect()
    }

    /// Puts a repository into the list of its owner.
    pub fn add_repository(&self, repository: FakeRepository) {
        let owner = repository.full_name.split('/').next().unwrap_or_default().to_owned();
        self.world().repositories.entry(owner).or_default().push(repository);
    }

    /// Empties the list of an organisation.
    pub fn remove_repositories(&self, org: &str) {
        self.world().repositories.insert(org.to_owned(), Vec::new());
    }

    /// Labels of the repository that were created.
    pub fn labels(&self) -> Vec<String> {
        self.world().labels.clone()
    }

    /// Removes a user from an organisation.
    pub fn remove_member(&self, org: &str, user: &str) {
        if let Some(members) = self.world().orgs.get_mut(org) {
            members.remove(user);
        }
    }

    /// Makes a user a member of an organisation, which is created if it is missing.
    pub fn add_member(&self, org: &str, user: &str) {
        self.world().orgs.entry(org.to_owned()).or_default().insert(user.to_owned());
    }

    /// Makes a webhook behind everybody's back.
    pub fn add_hook(&self, url: &str) {
        self.world().add_hook(url, "of somebody", vec!["issues".to_owned()]);
    }

    /// Removes every webhook behind everybody's back.
    pub fn remove_hooks(&self) {
        self.world().hooks.clear();
    }

    /// Says where a branch is, for the pull requests from it.
    pub fn set_branch(&self, name: &str, sha: &str) {
        self.world().branches.insert(name.to_owned(), sha.to_owned());
    }

    /// Has git find this repository at [`Self::remote_url`], for whoever has the token.
    pub fn serve_git(&self, dir: &Path) {
        self.world().git_dir = Some(dir.to_owned());
    }

    /// Gives no page more entries than this, whatever is asked for.
    pub fn cap_pages_at(&self, entries: usize) {
        self.world().page_max = entries;
    }

    /// Takes from the token the right to say whose it is.
    pub fn hide_account(&self) {
        self.world().account_hidden = true;
    }

    /// Every issue, oldest first.
    pub fn issues(&self) -> Vec<FakeIssue> {
        self.world().issues.clone()
    }

    /// Every pull request, oldest first.
    pub fn pulls(&self) -> Vec<FakePull> {
        self.world().pulls.clone()
    }

    /// Every comment, oldest first.
    pub fn comments(&self) -> Vec<FakeComment> {
        self.world().comments.clone()
    }

    /// Every webhook.
    pub fn hooks(&self) -> Vec<FakeHook> {
        self.world().hooks.clone()
    }

    /// Number of connections so far.
    pub fn connections(&self) -> usize {
        self.server.connections()
    }

    /// Every request so far, in the order of arrival; those with a fault are among them.
    pub fn requests(&self) -> Vec<ForgeRequest> {
        self.stage.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.stage.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mishaps(&self) -> MutexGuard<'_, Vec<(Option<String>, Mishap)>> {
        self.stage.mishaps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Flavour> Serve for Stage<F> {
    fn serve(&self, request: &Request, connection: &mut Connection<'_>) -> io::Result<Performed> {
        if let Some(answer) = self.git(request) {
            connection.send(&answer)?;
            return Ok(Performed::Answered);
        }
        let request = ForgeRequest::read(request);
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        if let Some(file) = self.file(&request) {
            connection.send(&file)?;
            return Ok(Performed::Answered);
        }
        let answer = match self.next_mishap(&request.method) {
            None => self.answer(&request),
            Some(Mishap::Status { code, headers, body }) => FakeResponse { code, headers, body },
            Some(Mishap::DropBefore) => return Ok(Performed::Ended),
            Some(Mishap::DropAfterWrite) => {
                self.answer(&request);
                return Ok(Performed::Ended);
            }
            Some(Mishap::Delay(time)) => {
                let answer = self.answer(&request);
                connection.wait(time)?;
                answer
            }
            Some(Mishap::StatusAfterWrite(code)) => {
                self.answer(&request);
                FakeResponse::empty(code)
            }
        };
        let FakeResponse { code: status, headers, body } = answer;
        connection.send(&render_whole(&Whole { status, headers, body }))?;
        Ok(Performed::Answered)
    }
}

impl<F: Flavour> Stage<F> {
    fn answer(&self, request: &ForgeRequest) -> FakeResponse {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        match request.path.strip_prefix(&self.under) {
            Some(path) => F::answer(&mut world, path, request),
            None => FakeResponse::error(404, "nothing is installed here"),
        }
    }

    /// The response for git; `None` if the request is about something else, or nobody serves a repository.
    fn git(&self, request: &Request) -> Option<Vec<u8>> {
        let path = request.path.strip_prefix(&self.under)?;
        let rest = path.strip_prefix(&format!("/{OWNER}/{REPO}.git"))?;
        let (dir, token) = {
            let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
            (world.git_dir.clone()?, world.token.clone())
        };
        Some(git_http::answer(&dir, rest, &token, request))
    }

    /// The response for a file; `None` if there is none at this path. Without the token there is nothing to see.
    fn file(&self, request: &ForgeRequest) -> Option<Vec<u8>> {
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let file = world.files.get(request.path.strip_prefix(&self.under)?)?;
        let may_read = request.header("authorization").is_some_and(|it| it.ends_with(&world.token));
        Some(match file {
            FakeFile::Bytes(bytes) if may_read => {
                let length = bytes.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {length}\r\n\r\n"
                );
                [head.as_bytes(), bytes.as_slice()].concat()
            }
            FakeFile::Elsewhere(to) if may_read => {
                format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
                    .into_bytes()
            }
            FakeFile::Bytes(_) | FakeFile::Elsewhere(_) => {
                b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec()
            }
        })
    }

    fn next_mishap(&self, method: &str) -> Option<Mishap> {
        let mut mishaps = self.mishaps.lock().unwrap_or_else(PoisonError::into_inner);
        let at =
            mishaps.iter().position(|(own, _)| own.as_ref().is_none_or(|own| own == method))?;
        Some(mishaps.remove(at).1)
    }
}
