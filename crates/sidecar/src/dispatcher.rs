//! One call from its parameters to its result: counted, judged, done, and recorded whatever becomes of it.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forge::{ForgeError, ScopedForge, Thread, WriteOutcome, WriteRefusal, text_digest};
use model::escape::escape_line;
use model::redact::Redactor;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::attachment::{list_attachments, show_attachment};
use crate::call::{DoneStatus, ForgeCall, ForgeMethod};
use crate::call_log::{CallLog, CallLogError, CallOutcome, CallRecord};
use crate::queue::DoneQueue;
use crate::rules::budget::{CallCost, CallsSpent, spend};

/// As much of an unknown method's name as a record needs.
const NAME_MAX: usize = 64;
/// A summary is a paragraph.
const SUMMARY_MAX_BYTES: usize = 10_000;

/// Limits on the calls of one bottle.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// Bytes of one request, over either protocol.
    pub body_max_bytes: usize,
    /// Reads in all; more are refused.
    pub reads_max: u64,
    /// Writes in all; more are refused.
    pub writes_max: u64,
    /// Calls after which every further one has to wait.
    pub slow_after: u64,
    pub slow_by: Duration,
    /// Calls at once; more wait.
    pub in_flight_max: usize,
    /// Connections at once; more wait to be accepted.
    pub connections_max: usize,
    pub read_timeout: Duration,
    /// Time for a write; a longer one continues in the background and is recorded.
    pub write_timeout: Duration,
    /// Time for a client to send its request.
    pub request_timeout: Duration,
}

impl Default for CallLimits {
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

pub struct Dispatcher {
    forge: Arc<ScopedForge>,
    call_log: Arc<dyn CallLog>,
    queue: DoneQueue,
    redactor: Arc<Redactor>,
    limits: CallLimits,
    slots: Arc<Semaphore>,
    counts: Mutex<CallCounts>,
}

#[derive(Debug, Default)]
struct CallCounts {
    calls: u64,
    spent: CallsSpent,
}

/// Error of a call, as the agent gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallError {
    pub(crate) kind: CallErrorKind,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallErrorKind {
    UnknownMethod,
    BadParams,
    Refused,
    Forge,
    TimedOut,
    Internal,
}

impl Dispatcher {
    /// Makes a dispatcher. The redactor is applied to every text for the queue; the forge has its own.
    pub fn new(
        forge: Arc<ScopedForge>,
        call_log: Arc<dyn CallLog>,
        queue: DoneQueue,
        redactor: Arc<Redactor>,
        limits: CallLimits,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(limits.in_flight_max));
        let counts = Mutex::default();
        Self { forge, call_log, queue, redactor, limits, slots, counts }
    }

    pub(crate) fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Performs one call on a task of its own, so that it is finished and recorded also when its caller has gone.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        let (dispatcher, name) = (Arc::clone(self), method.to_owned());
        let limit = match ForgeMethod::parse(method) {
            Some(ForgeMethod::PostComment | ForgeMethod::UpdateDescription) => {
                self.limits.write_timeout
            }
            Some(_) | None => self.limits.read_timeout,
        };
        let task = tokio::spawn(async move { dispatcher.dispatch(&name, params).await });
        match timeout(limit, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(CallError::new(CallErrorKind::Internal, "the sidecar failed")),
            Err(_) => {
                let message = format!("{method} took too long; it may still be done");
                Err(CallError::new(CallErrorKind::TimedOut, message))
            }
        }
    }

    /// Records that a request was refused before it could be read.
    pub(crate) fn record_refusal(&self, what: &str, why: &str) -> Result<(), CallError> {
        self.count();
        let sentence = format!("refused {what}: {why}");
        self.record(what, "", CallOutcome::Refused, sentence)
    }

    /// Waits until no call is in flight, or the time is over.
    pub(crate) async fn drain(&self, limit: Duration) {
        let all = u32::try_from(self.limits.in_flight_max).unwrap_or(u32::MAX);
        // After that a call ends with the process; its intent is recorded.
        timeout(limit, self.slots.acquire_many(all)).await.map(drop).ok();
    }

    async fn dispatch(&self, name: &str, params: Value) -> Result<Value, CallError> {
        // Closed only with the dispatcher itself.
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(CallError::new(CallErrorKind::Internal, "the sidecar stops"));
        };
        if self.count() > self.limits.slow_after {
            tokio::time::sleep(self.limits.slow_by).await;
        }
        let Some(method) = ForgeMethod::parse(name) else {
            let shown = show_name(name);
            let sentence = format!("refused {shown}: no such method");
            let error =
                CallError::new(CallErrorKind::UnknownMethod, format!("no such method: {shown}"));
            return self.refuse(&shown, sentence, error);
        };
        let attempt = CallAim::of(&params);
        match ForgeCall::parse(method, params).map_err(|why| (why, attempt)) {
            Ok(call) => self.perform(name, call).await,
            Err((why, attempt)) => {
                let to = if attempt.target.is_empty() { "" } else { " to " };
                let sentence =
                    format!("refused {name}{to}{}: {}{}", attempt.target, why, attempt.others);
                self.record(name, &attempt.target, CallOutcome::Refused, sentence)?;
                Err(CallError::new(CallErrorKind::BadParams, why))
            }
        }
    }

    async fn perform(&self, name: &str, call: ForgeCall) -> Result<Value, CallError> {
        if !self.pay(&call) {
            let sentence = format!("refused {name}: too many calls");
            let message = "too many calls in this run; finish and call signal_done";
            let error = CallError::new(CallErrorKind::Refused, message);
            return self.refuse(name, sentence, error);
        }
        match call {
            ForgeCall::ReadIssue { number } => {
                let read = self.forge.read_issue(number.get()).await;
                self.after_read(name, number, &format!("issue #{number}"), read)
            }
            ForgeCall::ReadPr { number } => {
                let read = self.forge.read_pr(number.get()).await;
                self.after_read(name, number, &format!("PR #{number} description"), read)
            }
            ForgeCall::ReadComments { number, kind } => {
                let read = self.forge.read_comments(number.get(), kind.map(Into::into)).await;
                self.after_read(name, number, &format!("comments on #{number}"), read)
            }
            ForgeCall::ListAttachments {} => {
                let listed = Ok(list_attachments(self.forge.attachments()));
                let texts = ("listed the attachments".to_owned(), String::new());
                self.conclude(name, "", texts, listed)
            }
            ForgeCall::ReadAttachment { name: file } => self.read_attachment(name, &file).await,
            ForgeCall::PostComment { number, kind, body, reply_to: Some(remark), resolve } => {
                let thread = self.forge.choose_thread(number.get(), kind.map(Into::into));
                let what = format!("answer remark {remark} on");
                self.intend(name, thread, &what)?;
                let done = self.forge.post_reply(thread, remark.get(), &body, resolve).await;
                let words = match &done {
                    Ok(WriteOutcome::Done(answered)) if answered.resolved => {
                        format!("answered remark {remark} and resolved its thread on")
                    }
                    _ => format!("answered remark {remark} on"),
                };
                let failed = format!("answer to remark {remark} on");
                self.after_write(name, thread, (&words, &failed), done)
            }
            ForgeCall::PostComment { number, kind, body, reply_to: None, .. } => {
                let thread = self.forge.choose_thread(number.get(), kind.map(Into::into));
                self.intend(name, thread, "post comment to")?;
                let done = self.forge.post_comment(thread, &body).await;
                self.after_write(name, thread, ("posted comment to", "comment to"), done)
            }
            ForgeCall::UpdateDescription { number, kind, body } => {
                let thread = self.forge.choose_thread(number.get(), kind.map(Into::into));
                self.intend(name, thread, "update description of")?;
                let done = self.forge.update_description(thread, &body).await;
                self.after_update(name, thread, done)
            }
            ForgeCall::SignalDone { status, summary } => self.signal_done(status, &summary),
        }
    }

    async fn read_attachment(&self, method: &str, file: &str) -> Result<Value, CallError> {
        let shown = show_name(file);
        let refuse = |why: String| {
            let error = CallError::new(CallErrorKind::Refused, why.clone());
            self.refuse(method, format!("refused attachment {shown}: {why}"), error)
        };
        let texts =
            (format!("read attachment {shown}"), format!("could not read attachment {shown}"));
        let bytes = match self.forge.read_attachment(file).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                return refuse("there is none of this name; see list_attachments".to_owned());
            }
            Err(error) => return self.conclude(method, &shown, texts, Err::<Value, _>(error)),
        };
        match show_attachment(file, &bytes) {
            Some(found) => self.conclude(method, &shown, texts, Ok(found)),
            None => refuse("only images, PDFs and texts are handed out".to_owned()),
        }
    }

    fn after_read(
        &self,
        method: &str,
        number: NonZeroU64,
        what: &str,
        read: Result<impl Serialize, ForgeError>,
    ) -> Result<Value, CallError> {
        let texts = (format!("read {what}"), format!("could not read {what}"));
        self.conclude(method, &format!("#{number}"), texts, read)
    }

    /// Records the result of a call; an error is appended to the second text.
    fn conclude(
        &self,
        method: &str,
        target: &str,
        (done, failed): (String, String),
        result: Result<impl Serialize, ForgeError>,
    ) -> Result<Value, CallError> {
        match result {
            Ok(found) => {
                self.record(method, target, CallOutcome::Done, done)?;
                serde_json::to_value(&found)
                    .map_err(|error| CallError::new(CallErrorKind::Internal, error.to_string()))
            }
            Err(error) => {
                self.record(method, target, CallOutcome::Failed, format!("{failed}: {error}"))?;
                Err(CallError::new(CallErrorKind::Forge, error.to_string()))
            }
        }
    }

    /// Records the intent of a write, unless it will be refused.
    fn intend(&self, method: &str, thread: Thread, what: &str) -> Result<(), CallError> {
        if !self.forge.may_write(thread) {
            return Ok(());
        }
        let target = format!("#{}", thread.number());
        self.record(method, &target, CallOutcome::Intended, format!("will {what} {target}"))
    }

    fn after_write(
        &self,
        method: &str,
        thread: Thread,
        (done, what): (&str, &str),
        written: Result<WriteOutcome<impl Serialize>, ForgeError>,
    ) -> Result<Value, CallError> {
        let target = format!("#{}", thread.number());
        let written = match written {
            Ok(WriteOutcome::Done(made)) => Ok(made),
            Ok(WriteOutcome::Refused(WriteRefusal { reason, .. })) => {
                let sentence = format!("refused {what} {target}: {reason}");
                self.record(method, &target, CallOutcome::Refused, sentence.clone())?;
                return Err(CallError::new(CallErrorKind::Refused, sentence));
            }
            Err(error) => Err(error),
        };
        let texts = (format!("{done} {target}"), format!("{what} {target} failed"));
        self.conclude(method, &target, texts, written)
    }

    /// Records an updated description, with the digest of its text.
    fn after_update(
        &self,
        method: &str,
        thread: Thread,
        written: Result<WriteOutcome<String>, ForgeError>,
    ) -> Result<Value, CallError> {
        let texts = ("updated description of", "description of");
        match written {
            Ok(WriteOutcome::Done(text)) => {
                let target = format!("#{}", thread.number());
                self.write_record(CallRecord {
                    method: method.to_owned(),
                    sentence: format!("{} {target}", texts.0),
                    target,
                    outcome: CallOutcome::Done,
                    text_sha256: Some(text_digest(&text)),
                })?;
                Ok(json!({ "updated": true }))
            }
            other => self.after_write(method, thread, texts, other),
        }
    }

    fn signal_done(&self, status: DoneStatus, summary: &str) -> Result<Value, CallError> {
        let name = ForgeMethod::SignalDone.name();
        if summary.len() > SUMMARY_MAX_BYTES {
            let why = format!("the summary has more than {SUMMARY_MAX_BYTES} bytes");
            let sentence = format!("refused done: {why}");
            return self.refuse(name, sentence, CallError::new(CallErrorKind::Refused, why));
        }
        match self.queue.signal(status, &self.redactor.redact(summary)) {
            Ok(event) if event.status == status => {
                let sentence = format!("signalled done: {}", status.name());
                self.record(name, "", CallOutcome::Done, sentence)?;
                Ok(json!({ "status": status }))
            }
            Ok(event) => {
                let why = format!("{} was signalled already", event.status.name());
                let sentence = format!("refused done: {}: {why}", status.name());
                self.refuse(name, sentence, CallError::new(CallErrorKind::Refused, why))
            }
            // The reason holds paths of the host, so only the record has it.
            Err(error) => {
                let sentence = format!("could not signal done: {}: {error}", status.name());
                self.record(name, "", CallOutcome::Failed, sentence)?;
                let message = "the sidecar cannot write its queue";
                Err(CallError::new(CallErrorKind::Internal, message))
            }
        }
    }

    fn pay(&self, call: &ForgeCall) -> bool {
        let cost = match call {
            ForgeCall::ReadIssue { .. }
            | ForgeCall::ReadPr { .. }
            | ForgeCall::ReadComments { .. }
            | ForgeCall::ListAttachments {}
            | ForgeCall::ReadAttachment { .. } => CallCost::Read,
            ForgeCall::PostComment { .. } | ForgeCall::UpdateDescription { .. } => CallCost::Write,
            ForgeCall::SignalDone { .. } => CallCost::Free,
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        spend(&self.limits, &mut counts.spent, cost)
    }

    fn count(&self) -> u64 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.calls += 1;
        counts.calls
    }

    /// Records a refusal, and returns its error.
    fn refuse(&self, method: &str, sentence: String, error: CallError) -> Result<Value, CallError> {
        self.record(method, "", CallOutcome::Refused, sentence)?;
        Err(error)
    }

    /// Records a call. One that cannot be recorded gets no result either.
    fn record(
        &self,
        method: &str,
        target: &str,
        outcome: CallOutcome,
        sentence: String,
    ) -> Result<(), CallError> {
        let (method, target) = (method.to_owned(), target.to_owned());
        self.write_record(CallRecord { method, target, outcome, sentence, text_sha256: None })
    }

    fn write_record(&self, entry: CallRecord) -> Result<(), CallError> {
        let unrecorded = |_: CallLogError| {
            CallError::new(CallErrorKind::Internal, "the sidecar cannot write its record")
        };
        self.call_log.record(&entry).map_err(unrecorded)
    }
}

impl CallError {
    fn new(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// Aim of a call with bad parameters, for the record.
struct CallAim {
    /// `#12`, or empty without a number.
    target: String,
    /// Parameters that no method has, with their values.
    others: String,
}

impl CallAim {
    /// Names of all parameters.
    const KNOWN: [&'static str; 8] =
        ["number", "kind", "body", "status", "summary", "reply_to", "resolve", "name"];

    fn of(params: &Value) -> Self {
        let number =
            params.get("number").filter(|number| !number.is_object() && !number.is_array());
        let target =
            number.map(|number| format!("#{}", show_name(number.to_string().trim_matches('"'))));
        let fields = params.as_object().into_iter().flatten();
        let others = fields.filter(|(name, _)| !Self::KNOWN.contains(&name.as_str()));
        let others: Vec<String> = others
            .take(8)
            .map(|(name, value)| format!("{}={}", show_name(name), show_name(&value.to_string())))
            .collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!(" ({})", others.join(", ")),
        };
        Self { target: target.unwrap_or_default(), others }
    }
}

fn show_name(name: &str) -> String {
    let short: String = name.chars().take(NAME_MAX).collect();
    escape_line(&short).into_owned()
}
