//! Webhooks as a real Gitea sends them: recorded deliveries, and deliveries of the same shapes about other threads,
//! signed and sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{OWNER, REPO, Room};

/// The secret that the recorded deliveries were signed with.
pub const SECRET: &str = "sample-webhook-secret";

/// A recorded delivery.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Name of the recording.
    pub name: &'static str,
    /// The headers that it came with.
    pub headers: Vec<(&'static str, &'static str)>,
    /// Its exact bytes.
    pub body: &'static [u8],
    /// The thread that it is about.
    pub about: Option<(Room, u64)>,
}

macro_rules! recorded {
    ($($name:literal => $about:expr),* $(,)?) => {
        [$(Sample {
            name: $name,
            headers: parse_headers(include_str!(concat!($name, ".headers"))),
            body: include_bytes!(concat!($name, ".json")),
            about: $about,
        }),*]
    };
}

/// Recorded deliveries of a Gitea 1.27.2.
pub fn samples() -> Vec<Sample> {
    recorded![
        "issue_opened_labeled_assigned-opened" => Some((Room::Issue, 2)),
        "issue_opened_labeled_assigned-label_updated" => Some((Room::Issue, 2)),
        "issue_opened_labeled_assigned-assigned" => Some((Room::Issue, 2)),
        "issue_comment_created" => Some((Room::Issue, 1)),
        "pull_request_comment_created" => Some((Room::Pull, 3)),
        "pull_request_review_comment" => Some((Room::Pull, 3)),
        "pull_request_review_rejected" => Some((Room::Pull, 3)),
        "pull_request_merged-closed" => Some((Room::Pull, 3)),
        "pull_request_merged-push" => None,
    ]
    .to_vec()
}

/// The request line comes first and is none of them.
fn parse_headers(text: &'static str) -> Vec<(&'static str, &'static str)> {
    text.lines().skip(1).filter_map(|line| line.split_once(": ")).collect()
}

/// A delivery that is ready to be sent, as often as one likes.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Headers of the delivery.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Hook {
    /// A recorded delivery, to the byte.
    pub fn recorded(sample: &Sample) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let kept = sample.headers.iter().filter(|(name, _)| *name != "Content-Length");
        Self { headers: kept.map(own).collect(), body: sample.body.to_vec() }
    }

    /// A delivery in the shape of a recorded one, about another thread of the fake's repository, with a name of its own.
    ///
    /// # Panics
    /// When there is no such sample.
    pub fn about(event: &str, room: Room, number: u64, secret: &str) -> Self {
        let sample = samples().into_iter().find(|sample| sample.name == event);
        let sample = sample.unwrap_or_else(|| panic!("there is no recorded {event}"));
        let mut body: Value = serde_json::from_slice(sample.body).expect("recorded JSON");
        for field in ["issue", "pull_request"] {
            if body.get(field).is_some_and(|it| !it.is_null()) {
                body[field]["number"] = json!(number);
            }
        }
        if body.get("number").is_some() {
            body["number"] = json!(number);
        }
        assert!(sample.about.is_some_and(|(known, _)| known == room), "{event} has another room");
        body["repository"]["name"] = json!(REPO);
        body["repository"]["owner"]["login"] = json!(OWNER);
        let body = serde_json::to_vec_pretty(&body).expect("it renders");
        let mut hook = Self::recorded(&sample);
        hook.body = body;
        hook.rename(&fresh_id());
        hook.sign(secret);
        hook
    }

    /// The same about a change of the issue's text by this account; not signed yet.
    ///
    /// # Panics
    /// When the delivery is not about an issue.
    #[must_use]
    pub fn with_text(mut self, action: &str, sender: &str, title: &str, text: &str) -> Self {
        let mut body: Value = serde_json::from_slice(&self.body).expect("recorded JSON");
        body["action"] = json!(action);
        body["sender"]["login"] = json!(sender);
        (body["issue"]["title"], body["issue"]["body"]) = (json!(title), json!(text));
        self.body = serde_json::to_vec(&body).expect("it renders");
        self
    }

    /// The header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Gives it another name.
    pub fn rename(&mut self, id: &str) {
        for (name, value) in &mut self.headers {
            if name.ends_with("-Delivery") {
                id.clone_into(value);
            }
        }
    }

    /// Signs its bytes as they are.
    ///
    /// # Panics
    /// Never: any secret is long enough.
    pub fn sign(&mut self, secret: &str) {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes()).expect("a key");
        mac.update(&self.body);
        let hex: String =
            mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        for (name, value) in &mut self.headers {
            match name.as_str() {
                "X-Gitea-Signature" | "X-Gogs-Signature" => hex.clone_into(value),
                "X-Hub-Signature-256" => *value = format!("sha256={hex}"),
                _ => {}
            }
        }
    }

    /// Sends it and returns the status, or `None` if nothing came back.
    pub fn send(&self, to: SocketAddr, path: &str) -> Option<u16> {
        let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(300)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(300))).ok()?;
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        stream.write_all(head.as_bytes()).ok()?;
        // A server that has heard enough may close before it has all.
        drop(stream.write_all(&self.body));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let line = answer.split(|byte| *byte == b'\r').next()?;
        std::str::from_utf8(line).ok()?.split(' ').nth(1)?.parse().ok()
    }
}

/// A name that was not used before.
fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("00000000-{:08x}-{count:016x}", std::process::id())
}
