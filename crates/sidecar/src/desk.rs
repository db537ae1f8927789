//! One call from its parameters to its answer: counted, judged, done, and written down whatever becomes of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forge::{ForgeError, ScopedForge, Thread, WriteOutcome, WriteRefusal};
use model::escape::escape_line;
use model::redact::Redactor;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::call::{Call, DoneStatus, Method};
use crate::journal::{Entry, EntryOutcome, Journal, JournalError};
use crate::queue::DoneQueue;
use crate::rules::budget::{Budget, Purse, Spent, spend};

/// As much of a name that somebody made up as a record needs.
const NAME_MAX: usize = 64;
/// A summary is a paragraph.
const SUMMARY_MAX_BYTES: usize = 10_000;

/// Limits on one bottle's calls.
#[derive(Debug, Clone)]
pub struct Limits {
    /// For one request, whichever way it is asked.
    pub body_max_bytes: usize,
    /// In all; more are refused.
    pub reads_max: u64,
    /// In all; more are refused.
    pub writes_max: u64,
    /// After so many calls every further one has to wait a little.
    pub slow_after: u64,
    /// How long it has to wait.
    pub slow_by: Duration,
    /// At once; more wait.
    pub in_flight_max: usize,
    /// At once; more wait to be accepted.
    pub connections_max: usize,
    /// For a read.
    pub read_timeout: Duration,
    /// For a write; it goes on in the background and is written down.
    pub write_timeout: Duration,
    /// For a client to send its request.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_max_bytes: 256 * 1024,
            reads_max: 2_000,
            writes_max: 200,
            slow_after: 20_000,
            slow_by: Duration::from_millis(50),
            in_flight_max: 16,
            connections_max: 64,
            read_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(90),
            request_timeout: Duration::from_secs(30),
        }
    }
}

/// Where the calls of one bottle arrive.
pub struct Desk {
    forge: Arc<ScopedForge>,
    journal: Arc<dyn Journal>,
    queue: DoneQueue,
    redactor: Arc<Redactor>,
    limits: Limits,
    places: Arc<Semaphore>,
    seen: Mutex<Seen>,
}

/// What was asked so far.
#[derive(Debug, Default)]
struct Seen {
    calls: u64,
    spent: Spent,
}

/// Why a call has no result, as an agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) sort: TroubleSort,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TroubleSort {
    NoSuchMethod,
    BadParams,
    Refused,
    Forge,
    TimedOut,
    Internal,
}

impl Desk {
    /// Prepares a desk. The redactor stands before every text that leaves for the queue; the forge has its own.
    pub fn new(
        forge: Arc<ScopedForge>,
        journal: Arc<dyn Journal>,
        queue: DoneQueue,
        redactor: Arc<Redactor>,
        limits: Limits,
    ) -> Self {
        let places = Arc::new(Semaphore::new(limits.in_flight_max));
        let seen = Mutex::default();
        Self { forge, journal, queue, redactor, limits, places, seen }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Does one call. It runs on a task of its own, so that it is done and written down also when whoever asked has
    /// gone away in the middle.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: &str,
        params: Value,
    ) -> Result<Value, Trouble> {
        let (desk, name) = (Arc::clone(self), method.to_owned());
        let limit = match Method::parse(method) {
            Some(Method::PostComment | Method::UpdateDescription) => self.limits.write_timeout,
            Some(_) | None => self.limits.read_timeout,
        };
        let doing = tokio::spawn(async move { desk.attend(&name, params).await });
        match timeout(limit, doing).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Trouble::new(TroubleSort::Internal, "the sidecar failed")),
            Err(_) => {
                let message = format!("{method} took too long; it may still be done");
                Err(Trouble::new(TroubleSort::TimedOut, message))
            }
        }
    }

    /// Writes down that a request was turned away before it could be read.
    pub(crate) fn note_refusal(&self, what: &str, why: &str) -> Result<(), Trouble> {
        self.count();
        let sentence = format!("refused {what}: {why}");
        self.write_down(what, "", EntryOutcome::Refused, sentence)
    }

    /// Waits until nothing is under way any more, or the time is over.
    pub(crate) async fn settle(&self, limit: Duration) {
        let all = u32::try_from(self.limits.in_flight_max).unwrap_or(u32::MAX);
        // If the time is over, what is still under way ends with the process; its intent is written down.
        timeout(limit, self.places.acquire_many(all)).await.map(drop).ok();
    }

    async fn attend(&self, name: &str, params: Value) -> Result<Value, Trouble> {
        // Closed only with the desk itself.
        let Ok(_place) = self.places.acquire().await else {
            return Err(Trouble::new(TroubleSort::Internal, "the sidecar stops"));
        };
        if self.count() > self.limits.slow_after {
            tokio::time::sleep(self.limits.slow_by).await;
        }
        let Some(method) = Method::parse(name) else {
            let shown = show_name(name);
            self.write_down(
                &shown,
                "",
                EntryOutcome::Refused,
                format!("refused {shown}: no such method"),
            )?;
            return Err(Trouble::new(
                TroubleSort::NoSuchMethod,
                format!("no such method: {shown}"),
            ));
        };
        match Call::parse(method, params) {
            Ok(call) => self.answer(method, call).await,
            Err(why) => {
                let sentence = format!("refused {name}: bad parameters");
                self.write_down(name, "", EntryOutcome::Refused, sentence)?;
                Err(Trouble::new(TroubleSort::BadParams, why))
            }
        }
    }

    async fn answer(&self, method: Method, call: Call) -> Result<Value, Trouble> {
        let name = method.name();
        if !self.pay(&call) {
            let sentence = format!("refused {name}: too many calls");
            self.write_down(name, "", EntryOutcome::Refused, sentence)?;
            let message = "too many calls in this run; finish and call signal_done";
            return Err(Trouble::new(TroubleSort::Refused, message));
        }
        match call {
            Call::ReadIssue { number } => {
                let read = self.forge.read_issue(number).await;
                self.after_read(name, number, &format!("issue #{number}"), read)
            }
            Call::ReadPr { number } => {
                let read = self.forge.read_pr(number).await;
                self.after_read(name, number, &format!("PR #{number} description"), read)
            }
            Call::ReadComments { number, kind } => {
                let read = self.forge.read_comments(number, kind).await;
                self.after_read(name, number, &format!("comments on #{number}"), read)
            }
            Call::PostComment { number, kind, body } => {
                let thread = self.forge.choose_thread(number, kind);
                self.intend(name, thread, "post comment to")?;
                let done = self.forge.post_comment(thread, &body).await;
                self.after_write(name, thread, ("posted comment to", "comment to"), done)
            }
            Call::UpdateDescription { number, kind, body } => {
                let thread = self.forge.choose_thread(number, kind);
                self.intend(name, thread, "update description of")?;
                let done = self.forge.update_description(thread, &body).await;
                let done = done.map(|ruling| match ruling {
                    WriteOutcome::Done(()) => WriteOutcome::Done(json!({ "updated": true })),
                    WriteOutcome::Refused(refusal) => WriteOutcome::Refused(refusal),
                });
                let words = ("updated description of", "description of");
                self.after_write(name, thread, words, done)
            }
            Call::SignalDone { status, summary } => self.signal_done(status, &summary),
        }
    }

    fn after_read(
        &self,
        method: &str,
        number: u64,
        what: &str,
        read: Result<impl Serialize, ForgeError>,
    ) -> Result<Value, Trouble> {
        let target = format!("#{number}");
        match read {
            Ok(found) => {
                self.write_down(method, &target, EntryOutcome::Done, format!("read {what}"))?;
                render(&found)
            }
            Err(error) => {
                let sentence = format!("could not read {what}: {error}");
                self.write_down(method, &target, EntryOutcome::Failed, sentence)?;
                Err(Trouble::new(TroubleSort::Forge, error.to_string()))
            }
        }
    }

    /// What would be refused is not intended, so a look comes first.
    fn intend(&self, method: &str, thread: Thread, what: &str) -> Result<(), Trouble> {
        if !self.forge.may_write(thread) {
            return Ok(());
        }
        let target = format!("#{}", thread.number());
        self.write_down(method, &target, EntryOutcome::Intended, format!("will {what} {target}"))
    }

    fn after_write(
        &self,
        method: &str,
        thread: Thread,
        (done, what): (&str, &str),
        written: Result<WriteOutcome<impl Serialize>, ForgeError>,
    ) -> Result<Value, Trouble> {
        let target = format!("#{}", thread.number());
        match written {
            Ok(WriteOutcome::Done(made)) => {
                self.write_down(method, &target, EntryOutcome::Done, format!("{done} {target}"))?;
                render(&made)
            }
            Ok(WriteOutcome::Refused(WriteRefusal { reason, .. })) => {
                let sentence = format!("refused {what} {target}: {reason}");
                self.write_down(method, &target, EntryOutcome::Refused, sentence.clone())?;
                Err(Trouble::new(TroubleSort::Refused, sentence))
            }
            Err(error) => {
                let sentence = format!("{what} {target} failed: {error}");
                self.write_down(method, &target, EntryOutcome::Failed, sentence)?;
                Err(Trouble::new(TroubleSort::Forge, error.to_string()))
            }
        }
    }

    fn signal_done(&self, status: DoneStatus, summary: &str) -> Result<Value, Trouble> {
        let name = Method::SignalDone.name();
        if summary.len() > SUMMARY_MAX_BYTES {
            let why = format!("the summary has more than {SUMMARY_MAX_BYTES} bytes");
            let sentence = format!("refused done: {why}");
            self.write_down(name, "", EntryOutcome::Refused, sentence)?;
            return Err(Trouble::new(TroubleSort::Refused, why));
        }
        match self.queue.signal(status, &self.redactor.redact(summary)) {
            Ok(event) if event.status == status => {
                let sentence = format!("signalled done: {}", status.name());
                self.write_down(name, "", EntryOutcome::Done, sentence)?;
                Ok(json!({ "status": status }))
            }
            Ok(event) => {
                let why = format!("{} was signalled already", event.status.name());
                let sentence = format!("refused done: {}: {why}", status.name());
                self.write_down(name, "", EntryOutcome::Refused, sentence)?;
                Err(Trouble::new(TroubleSort::Refused, why))
            }
            // Paths of the host are no concern of the agent's, so only the record has the reason.
            Err(error) => {
                let sentence = format!("could not signal done: {}: {error}", status.name());
                self.write_down(name, "", EntryOutcome::Failed, sentence)?;
                let message = "the sidecar cannot write its queue";
                Err(Trouble::new(TroubleSort::Internal, message))
            }
        }
    }

    fn pay(&self, call: &Call) -> bool {
        let purse = match call {
            Call::ReadIssue { .. } | Call::ReadPr { .. } | Call::ReadComments { .. } => Purse::Read,
            Call::PostComment { .. } | Call::UpdateDescription { .. } => Purse::Write,
            Call::SignalDone { .. } => Purse::Free,
        };
        let Limits { reads_max, writes_max, .. } = self.limits;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        spend(&Budget { reads_max, writes_max }, &mut seen.spent, purse)
    }

    fn count(&self) -> u64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.calls += 1;
        seen.calls
    }

    /// A call that cannot be written down has no answer either.
    fn write_down(
        &self,
        method: &str,
        target: &str,
        outcome: EntryOutcome,
        sentence: String,
    ) -> Result<(), Trouble> {
        let (method, target) = (method.to_owned(), target.to_owned());
        let entry = Entry { method, target, outcome, sentence };
        let unwritten = |_: JournalError| {
            Trouble::new(TroubleSort::Internal, "the sidecar cannot write its record")
        };
        self.journal.record(&entry).map_err(unwritten)
    }
}

impl Trouble {
    fn new(sort: TroubleSort, message: impl Into<String>) -> Self {
        Self { sort, message: message.into() }
    }
}

fn render(found: &impl Serialize) -> Result<Value, Trouble> {
    serde_json::to_value(found)
        .map_err(|error| Trouble::new(TroubleSort::Internal, error.to_string()))
}

fn show_name(name: &str) -> String {
    let short: String = name.chars().take(NAME_MAX).collect();
    escape_line(&short).into_owned()
}
