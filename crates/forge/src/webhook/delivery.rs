//! Deliveries of webhooks: verification, and the thread that one is about. Pure.
//!
//! The signature is checked over the raw bytes, and only then are they parsed. Nothing else of a delivery is
//! trusted: the state of the thread is read from the forge.

use hmac::{Hmac, KeyInit, Mac};
use model::digest::sha256;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::Sha256;

use crate::kind::ForgeKind;
use crate::thread::Thread;

/// Limit on the sender's id of a delivery.
const ID_MAX_CHARS: usize = 128;
const EVENT_MAX_CHARS: usize = 64;

/// Parsed webhook delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDelivery {
    /// The sender's id of the delivery.
    pub id: String,
    /// The sender's name of the event.
    pub event: String,
    /// The thread that changed; `None` for pings, pushes and the like.
    pub subject: Option<DeliverySubject>,
}

/// Thread that a delivery is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySubject {
    /// The owner of the repository, nested groups included.
    pub owner: String,
    pub repo: String,
    pub thread: Thread,
}

/// Text of an issue as a delivery has it, and the account whose change the delivery reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredText {
    pub sender: String,
    pub title: String,
    pub body: String,
}

/// Changes of an issue whose sender has read the text, or wrote it.
const TEXT_ACTIONS: [&str; 8] =
    ["opened", "edited", "assigned", "labeled", "label_updated", "reopened", "open", "update"];

/// Reason why a genuine delivery cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    #[error("the header {0} is missing or odd")]
    Header(&'static str),
    #[error("the body is not the JSON that this event has")]
    Body,
}

/// Delivery format of a kind of forge.
struct DeliveryFormat {
    signature: Signature,
    /// Headers with the id; the first present one counts.
    id: &'static [&'static str],
    missing_id: MissingId,
    /// Headers with the event; the first present one counts.
    event: &'static [&'static str],
    body: fn(&[u8]) -> Result<Option<DeliverySubject>, DeliveryError>,
}

enum Signature {
    /// HMAC-SHA-256 of the body in hexadecimal digits after a prefix, in the first present one of these headers.
    Hmac {
        headers: &'static [&'static str],
        prefix: &'static str,
    },
    Secret {
        header: &'static str,
    },
}

enum MissingId {
    Refused,
    /// Older servers send none: deliveries with the same bytes are the same delivery.
    DigestOfBody,
}

const GITEA: DeliveryFormat = DeliveryFormat {
    signature: Signature::Hmac {
        headers: &["x-gitea-signature", "x-forgejo-signature"],
        prefix: "",
    },
    id: &["x-gitea-delivery", "x-forgejo-delivery"],
    missing_id: MissingId::Refused,
    event: &["x-gitea-event-type", "x-forgejo-event-type", "x-gitea-event"],
    body: parse_github_like,
};

const GITHUB: DeliveryFormat = DeliveryFormat {
    signature: Signature::Hmac { headers: &["x-hub-signature-256"], prefix: "sha256=" },
    id: &["x-github-delivery"],
    missing_id: MissingId::Refused,
    event: &["x-github-event"],
    body: parse_github_like,
};

const GITLAB: DeliveryFormat = DeliveryFormat {
    signature: Signature::Secret { header: "x-gitlab-token" },
    id: &["idempotency-key", "x-gitlab-event-uuid"],
    missing_id: MissingId::DigestOfBody,
    event: &["x-gitlab-event"],
    body: parse_gitlab,
};

impl ForgeKind {
    fn delivery_format(self) -> Option<&'static DeliveryFormat> {
        match self {
            Self::Gitea => Some(&GITEA),
            Self::GitHub => Some(&GITHUB),
            Self::GitLab => Some(&GITLAB),
            Self::Folder => None,
        }
    }

    /// Returns whether forges of this kind deliver webhooks.
    pub fn has_webhooks(self) -> bool {
        self.delivery_format().is_some()
    }

    /// Returns whether a delivery was signed with this secret. `header` finds a header by its name in lower
    /// case. A missing or empty signature never counts.
    pub fn verify_delivery<'a>(
        self,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
        secret: &str,
    ) -> bool {
        let Some(format) = self.delivery_format().filter(|_| !secret.is_empty()) else {
            return false;
        };
        match format.signature {
            Signature::Hmac { headers, prefix } => {
                let text = headers.iter().find_map(|name| header(name));
                let signature = text.and_then(|text| text.strip_prefix(prefix)).and_then(parse_hex);
                let matches = |signature: Vec<u8>| {
                    mac(secret, body).is_some_and(|mac| mac.verify_slice(&signature).is_ok())
                };
                signature.is_some_and(matches)
            }
            // Comparing the hashes takes equally long for every guess.
            Signature::Secret { header: name } => {
                let given = header(name).filter(|given| !given.is_empty());
                let own = mac(secret, secret.as_bytes()).map(|mac| mac.finalize().into_bytes());
                given.zip(own).is_some_and(|(given, own)| {
                    mac(secret, given.as_bytes()).is_some_and(|mac| mac.verify_slice(&own).is_ok())
                })
            }
        }
    }

    /// Reads the text of an issue from a delivery that opened, edited, labelled or assigned it; `None` for any other.
    pub fn read_delivered_text(self, body: &[u8]) -> Option<DeliveredText> {
        read_text(self, body)
    }

    /// Parses a genuine delivery.
    pub fn parse_delivery<'a>(
        self,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
    ) -> Result<WebhookDelivery, DeliveryError> {
        const ID: DeliveryError = DeliveryError::Header("that names the delivery");
        const EVENT: DeliveryError = DeliveryError::Header("that names the event");
        let format = self.delivery_format().ok_or(EVENT)?;
        let first = |names: &[&str]| names.iter().find_map(|name| header(name));
        let event = first(format.event).ok_or(EVENT)?;
        let id = match (first(format.id), &format.missing_id) {
            (Some(id), _) => id.to_owned(),
            (None, MissingId::DigestOfBody) => sha256(body),
            (None, MissingId::Refused) => return Err(ID),
        };
        let is_plain = |c: char| c.is_ascii_graphic();
        if id.is_empty() || id.chars().count() > ID_MAX_CHARS || !id.chars().all(is_plain) {
            return Err(ID);
        }
        let event = event.chars().filter(|c| is_plain(*c) || *c == ' ');
        let event = event.take(EVENT_MAX_CHARS).collect();
        Ok(WebhookDelivery { id, event, subject: (format.body)(body)? })
    }
}

/// Reads the text of an issue from a stored delivery that was verified; `None` if the delivery is about something else.
fn read_text(kind: ForgeKind, body: &[u8]) -> Option<DeliveredText> {
    match kind {
        ForgeKind::Gitea | ForgeKind::GitHub => {
            let body: GithubText = serde_json::from_slice(body).ok()?;
            let issue =
                body.issue.filter(|_| body.comment.is_none() && body.pull_request.is_none())?;
            let acts = TEXT_ACTIONS.contains(&body.action.as_str());
            acts.then(|| DeliveredText {
                sender: body.sender.login,
                title: issue.title,
                body: issue.body.unwrap_or_default(),
            })
        }
        ForgeKind::GitLab => {
            let body: GitlabText = serde_json::from_slice(body).ok()?;
            let is_issue = ["issue", "work_item"].contains(&body.object_kind.as_str());
            let issue = body.object_attributes;
            let acts = issue.action.as_deref().is_some_and(|it| TEXT_ACTIONS.contains(&it));
            (is_issue && acts).then(|| DeliveredText {
                sender: body.user.username,
                title: issue.title,
                body: issue.description.unwrap_or_default(),
            })
        }
        ForgeKind::Folder => None,
    }
}

#[derive(Deserialize)]
struct GithubText {
    action: String,
    issue: Option<GithubIssueText>,
    sender: GithubOwner,
    /// Present if the delivery is about a comment.
    comment: Option<IgnoredAny>,
    pull_request: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct GithubIssueText {
    title: String,
    body: Option<String>,
}

#[derive(Deserialize)]
struct GitlabText {
    object_kind: String,
    user: GitlabSender,
    object_attributes: GitlabIssueText,
}

#[derive(Deserialize)]
struct GitlabSender {
    username: String,
}

#[derive(Deserialize)]
struct GitlabIssueText {
    title: String,
    description: Option<String>,
    action: Option<String>,
}

fn mac(secret: &str, bytes: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(bytes);
    Some(mac)
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(2) || bytes.len() > 128 {
        return None;
    }
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    bytes.chunks(2).map(pair).collect()
}

#[derive(Deserialize)]
struct GithubBody {
    repository: Option<GithubRepo>,
    issue: Option<NumberedThread>,
    pull_request: Option<NumberedThread>,
    #[serde(default)]
    is_pull: bool,
}

#[derive(Deserialize)]
struct GithubRepo {
    name: String,
    owner: GithubOwner,
}

#[derive(Deserialize)]
struct GithubOwner {
    login: String,
}

#[derive(Deserialize)]
struct NumberedThread {
    number: u64,
    /// Present if the issue is a pull request.
    pull_request: Option<IgnoredAny>,
}

fn parse_github_like(body: &[u8]) -> Result<Option<DeliverySubject>, DeliveryError> {
    let body: GithubBody = serde_json::from_slice(body).or(Err(DeliveryError::Body))?;
    let thread = match (body.pull_request, body.issue) {
        (Some(pull), _) => Thread::Pull(pull.number),
        (None, Some(issue)) if body.is_pull || issue.pull_request.is_some() => {
            Thread::Pull(issue.number)
        }
        (None, Some(issue)) => Thread::Issue(issue.number),
        (None, None) => return Ok(None),
    };
    let repo = body.repository.ok_or(DeliveryError::Body)?;
    Ok(Some(DeliverySubject { owner: repo.owner.login, repo: repo.name, thread }))
}

#[derive(Deserialize)]
struct GitlabBody {
    #[serde(default)]
    object_kind: String,
    project: Option<GitlabProject>,
    object_attributes: Option<GitlabObject>,
    issue: Option<GitlabObject>,
    merge_request: Option<GitlabObject>,
}

#[derive(Deserialize)]
struct GitlabProject {
    path_with_namespace: String,
}

#[derive(Deserialize)]
struct GitlabObject {
    iid: Option<u64>,
}

fn parse_gitlab(body: &[u8]) -> Result<Option<DeliverySubject>, DeliveryError> {
    let body: GitlabBody = serde_json::from_slice(body).or(Err(DeliveryError::Body))?;
    let number = |object: Option<GitlabObject>| object.and_then(|object| object.iid);
    let thread = match body.object_kind.as_str() {
        "issue" | "work_item" => number(body.object_attributes).map(Thread::Issue),
        "merge_request" => number(body.object_attributes).map(Thread::Pull),
        "note" => match (number(body.merge_request), number(body.issue)) {
            (Some(iid), _) => Some(Thread::Pull(iid)),
            (None, iid) => iid.map(Thread::Issue),
        },
        _ => return Ok(None),
    };
    let Some(thread) = thread else { return Ok(None) };
    let path = body.project.ok_or(DeliveryError::Body)?.path_with_namespace;
    let (owner, repo) = path.rsplit_once('/').ok_or(DeliveryError::Body)?;
    Ok(Some(DeliverySubject { owner: owner.to_owned(), repo: repo.to_owned(), thread }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_forge::Room;
    use testkit::fake_forge::hooks::{SECRET, Sample, samples};

    fn header<'a>(list: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
        move |name| {
            list.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
        }
    }

    #[track_caller]
    fn read(sample: &Sample) -> WebhookDelivery {
        let headers = header(&sample.headers);
        let gitea = ForgeKind::Gitea;
        assert!(gitea.verify_delivery(&headers, sample.body, SECRET), "{}", sample.name);
        gitea.parse_delivery(&headers, sample.body).expect(sample.name)
    }

    #[test]
    fn recorded_deliveries_are_genuine_and_say_where_to_look() {
        let mut seen = 0;
        for sample in samples() {
            let delivery = read(&sample);
            let subject = delivery.subject.map(|it| (it.owner, it.repo, it.thread));
            let expected = sample.about.map(|(room, number)| {
                let thread = match room {
                    Room::Issue => Thread::Issue(number),
                    Room::Pull => Thread::Pull(number),
                };
                ("alice".to_owned(), "hooks".to_owned(), thread)
            });
            assert_eq!(subject, expected, "{}", sample.name);
            assert!(!delivery.id.is_empty() && !delivery.event.is_empty());
            seen += 1;
        }
        assert!(seen >= 6, "{seen}");
    }

    #[test]
    fn one_changed_byte_or_another_secret_is_not_genuine() {
        for sample in samples() {
            let headers = header(&sample.headers);
            let mut body = sample.body.to_vec();
            body.push(b' ');
            let gitea = ForgeKind::Gitea;
            assert!(!gitea.verify_delivery(&headers, &body, SECRET));
            assert!(!gitea.verify_delivery(&headers, sample.body, "another"));
            assert!(!gitea.verify_delivery(&headers, sample.body, ""));
        }
    }

    #[test]
    fn a_missing_empty_or_odd_signature_is_not_genuine() {
        let body = b"{}";
        for kind in ForgeKind::all() {
            assert!(!kind.verify_delivery(|_| None, body, SECRET), "{kind:?}");
            for odd in ["", "00", "sha256=", "zz", &"0".repeat(64), "sha1=00"] {
                assert!(!kind.verify_delivery(|_| Some(odd), body, SECRET), "{kind:?} {odd}");
            }
        }
    }

    #[test]
    fn each_kind_is_verified_in_its_own_way() {
        let body = b"{\"zen\": \"Speak\"}";
        let own = mac(SECRET, body).expect("a mac").finalize().into_bytes();
        let hex: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
        let prefixed = format!("sha256={hex}");
        let check = |kind: ForgeKind, name, value: &str| {
            kind.verify_delivery(|asked| (asked == name).then_some(value), body, SECRET)
        };
        assert!(check(ForgeKind::Gitea, "x-gitea-signature", &hex));
        assert!(check(ForgeKind::Gitea, "x-forgejo-signature", &hex));
        assert!(check(ForgeKind::GitHub, "x-hub-signature-256", &prefixed));
        assert!(!check(ForgeKind::GitHub, "x-hub-signature-256", &hex));
        assert!(check(ForgeKind::GitLab, "x-gitlab-token", SECRET));
        assert!(!check(ForgeKind::GitLab, "x-gitlab-token", "sample-webhook-secres"));
    }

    #[test]
    fn github_and_gitlab_say_where_to_look() {
        let headers = [("X-GitHub-Delivery", "72d3162e"), ("X-GitHub-Event", "issue_comment")];
        let body = br#"{"action": "created", "issue": {"number": 7, "pull_request": {"url": "x"}},
            "repository": {"name": "widget", "owner": {"login": "acme"}}}"#;
        let read = ForgeKind::GitHub.parse_delivery(header(&headers), body).expect("it reads");
        assert_eq!(read.subject.map(|subject| subject.thread), Some(Thread::Pull(7)));
        let headers = [("X-Gitlab-Event", "Note Hook"), ("Idempotency-Key", "a-b")];
        let body = br#"{"object_kind": "note", "project": {"path_with_namespace": "a/b/widget"},
            "object_attributes": {"id": 1}, "merge_request": {"iid": 3}}"#;
        let read = ForgeKind::GitLab.parse_delivery(header(&headers), body).expect("it reads");
        let subject = read.subject.expect("a subject");
        assert_eq!((subject.owner.as_str(), subject.repo.as_str()), ("a/b", "widget"));
        assert_eq!((subject.thread, read.event.as_str()), (Thread::Pull(3), "Note Hook"));
        let unnamed = ForgeKind::GitLab.parse_delivery(header(&headers[..1]), body);
        assert_eq!(unnamed.expect("it reads").id.len(), 64);
    }

    #[test]
    fn the_text_of_an_issue_has_the_sender_of_its_change() {
        let text = |kind: ForgeKind, body: &str| {
            kind.read_delivered_text(body.as_bytes()).map(|it| (it.sender, it.title, it.body))
        };
        let ann = Some(("ann".to_owned(), "T".to_owned(), "B".to_owned()));
        let edited = r#"{"action":"edited","issue":{"number":3,"title":"T","body":"B"},
            "sender":{"login":"ann"}}"#;
        assert_eq!(text(ForgeKind::GitHub, edited), ann);
        assert_eq!(text(ForgeKind::Gitea, edited), ann);
        let closed = edited.replace("edited", "closed");
        assert_eq!(text(ForgeKind::GitHub, &closed), None);
        let comment = edited.replace("\"sender\"", "\"comment\":{},\"sender\"");
        assert_eq!(text(ForgeKind::GitHub, &comment), None, "a comment tells nothing of the text");
        let gitlab = r#"{"object_kind":"issue","user":{"username":"ann"},
            "object_attributes":{"title":"T","description":"B","action":"update"}}"#;
        assert_eq!(text(ForgeKind::GitLab, gitlab), ann);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let named = [("X-Gitea-Delivery", "a"), ("X-Gitea-Event-Type", "issues")];
        let error = |headers: &[(&str, &str)], body: &[u8]| {
            ForgeKind::Gitea.parse_delivery(header(headers), body).expect_err("it is refused")
        };
        let id = DeliveryError::Header("that names the delivery");
        assert_eq!(error(&named, b"nonsense"), DeliveryError::Body);
        assert_eq!(error(&named, b"{\"issue\": {\"number\": 3}}"), DeliveryError::Body);
        assert_eq!(error(&named[1..], b"{}"), id);
        let odd = [("X-Gitea-Delivery", "a\tb"), named[1]];
        assert_eq!(error(&odd, b"{}"), id);
    }
}
