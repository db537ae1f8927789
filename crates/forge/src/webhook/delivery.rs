//! Deliveries of webhooks: verification, and the thread that one is about. Pure.
//!
//! The signature is checked over the raw bytes, and only then are they parsed. Nothing else of a delivery is
//! trusted: the state of the thread is read from the forge.

use hmac::{Hmac, KeyInit, Mac};
use model::digest::sha256;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::Sha256;

use super::text::{DeliveredText, read_text};
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
    pub target: DeliveryTarget,
}

/// Part of a repository that a delivery is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryTarget {
    Thread(Thread),
    /// A commit whose checks changed, with its branch where the forge names it.
    Commit {
        sha: String,
        branch: Option<String>,
    },
}

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
    /// Commit of a status.
    sha: Option<String>,
    check_run: Option<GithubCheck>,
    check_suite: Option<GithubCheck>,
    workflow_job: Option<GithubCheck>,
    workflow_run: Option<GithubCheck>,
    /// Branches with the commit of a status, on GitHub.
    branches: Option<Vec<GithubBranch>>,
}

#[derive(Deserialize)]
struct GithubCheck {
    head_sha: Option<String>,
    head_branch: Option<String>,
    check_suite: Option<Box<Self>>,
    pull_requests: Option<Vec<NumberedThread>>,
}

#[derive(Deserialize)]
struct GithubBranch {
    name: String,
}

impl GithubBody {
    /// Target of a delivery about a check.
    fn check_target(self) -> Option<DeliveryTarget> {
        let checks = [self.check_run, self.check_suite, self.workflow_job, self.workflow_run];
        let Some(check) = checks.into_iter().flatten().next() else {
            let branch = self.branches.and_then(|list| list.into_iter().next());
            let branch = branch.map(|branch| branch.name);
            return self.sha.map(|sha| DeliveryTarget::Commit { sha, branch });
        };
        if let Some(pull) = check.pull_requests.into_iter().flatten().next() {
            return Some(DeliveryTarget::Thread(Thread::Pull(pull.number)));
        }
        let branch = check.check_suite.and_then(|suite| suite.head_branch).or(check.head_branch);
        check.head_sha.map(|sha| DeliveryTarget::Commit { sha, branch })
    }
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
    let mut body = body;
    let (repository, is_pull) = (body.repository.take(), body.is_pull);
    let thread = match (body.pull_request.take(), body.issue.take()) {
        (Some(pull), _) => Some(Thread::Pull(pull.number)),
        (None, Some(issue)) if is_pull || issue.pull_request.is_some() => {
            Some(Thread::Pull(issue.number))
        }
        (None, Some(issue)) => Some(Thread::Issue(issue.number)),
        (None, None) => None,
    };
    let target = thread.map(DeliveryTarget::Thread).or_else(|| body.check_target());
    let Some(target) = target else { return Ok(None) };
    let repo = repository.ok_or(DeliveryError::Body)?;
    Ok(Some(DeliverySubject { owner: repo.owner.login, repo: repo.name, target }))
}

#[derive(Deserialize)]
struct GitlabBody {
    #[serde(default)]
    object_kind: String,
    project: Option<GitlabProject>,
    object_attributes: Option<GitlabObject>,
    issue: Option<GitlabObject>,
    merge_request: Option<GitlabObject>,
    /// Commit and branch of a job.
    sha: Option<String>,
    #[serde(rename = "ref")]
    branch: Option<String>,
}

#[derive(Deserialize)]
struct GitlabProject {
    path_with_namespace: String,
}

#[derive(Deserialize)]
struct GitlabObject {
    iid: Option<u64>,
    /// Commit and branch of a pipeline.
    sha: Option<String>,
    #[serde(rename = "ref")]
    branch: Option<String>,
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
        "pipeline" => {
            let iid = number(body.merge_request);
            let of_commit = body.object_attributes.and_then(|it| Some((it.sha?, it.branch)));
            return gitlab_check(body.project, iid, of_commit);
        }
        "build" => {
            let of_commit = body.sha.map(|sha| (sha, body.branch));
            return gitlab_check(body.project, None, of_commit);
        }
        _ => return Ok(None),
    };
    let target = thread.map(DeliveryTarget::Thread);
    gitlab_subject(body.project, target)
}

fn gitlab_check(
    project: Option<GitlabProject>,
    iid: Option<u64>,
    of_commit: Option<(String, Option<String>)>,
) -> Result<Option<DeliverySubject>, DeliveryError> {
    let commit = of_commit.map(|(sha, branch)| DeliveryTarget::Commit { sha, branch });
    gitlab_subject(project, iid.map(|iid| DeliveryTarget::Thread(Thread::Pull(iid))).or(commit))
}

fn gitlab_subject(
    project: Option<GitlabProject>,
    target: Option<DeliveryTarget>,
) -> Result<Option<DeliverySubject>, DeliveryError> {
    let Some(target) = target else { return Ok(None) };
    let path = project.ok_or(DeliveryError::Body)?.path_with_namespace;
    let (owner, repo) = path.rsplit_once('/').ok_or(DeliveryError::Body)?;
    Ok(Some(DeliverySubject { owner: owner.to_owned(), repo: repo.to_owned(), target }))
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
            let subject = delivery.subject.map(|it| (it.owner, it.repo, it.target));
            let expected = sample.about.map(|(room, number)| {
                let thread = match room {
                    Room::Issue => Thread::Issue(number),
                    Room::Pull => Thread::Pull(number),
                };
                ("alice".to_owned(), "hooks".to_owned(), DeliveryTarget::Thread(thread))
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
        let target = read.subject.map(|subject| subject.target);
        assert_eq!(target, Some(DeliveryTarget::Thread(Thread::Pull(7))));
        let headers = [("X-Gitlab-Event", "Note Hook"), ("Idempotency-Key", "a-b")];
        let body = br#"{"object_kind": "note", "project": {"path_with_namespace": "a/b/widget"},
            "object_attributes": {"id": 1}, "merge_request": {"iid": 3}}"#;
        let read = ForgeKind::GitLab.parse_delivery(header(&headers), body).expect("it reads");
        let subject = read.subject.expect("a subject");
        assert_eq!((subject.owner.as_str(), subject.repo.as_str()), ("a/b", "widget"));
        let target = DeliveryTarget::Thread(Thread::Pull(3));
        assert_eq!((subject.target, read.event.as_str()), (target, "Note Hook"));
        let unnamed = ForgeKind::GitLab.parse_delivery(header(&headers[..1]), body);
        assert_eq!(unnamed.expect("it reads").id.len(), 64);
    }

    #[test]
    fn deliveries_about_checks_name_a_commit_or_a_pull_request() {
        let target = |kind: ForgeKind, body: &str| {
            let headers = [
                ("X-GitHub-Delivery", "a"),
                ("X-GitHub-Event", "status"),
                ("X-Gitea-Delivery", "a"),
                ("X-Gitea-Event-Type", "status"),
                ("X-Gitlab-Event", "Pipeline Hook"),
            ];
            let read = kind.parse_delivery(header(&headers), body.as_bytes()).expect("it reads");
            read.subject.map(|subject| subject.target)
        };
        let commit = |branch: Option<&str>| {
            let branch = branch.map(str::to_owned);
            Some(DeliveryTarget::Commit { sha: "abc".to_owned(), branch })
        };
        let repo = r#""repository":{"name":"widget","owner":{"login":"acme"}}"#;
        let status = format!(r#"{{"sha":"abc","state":"failure",{repo}}}"#);
        assert_eq!(target(ForgeKind::Gitea, &status), commit(None));
        let status = format!(r#"{{"sha":"abc","branches":[{{"name":"b"}}],{repo}}}"#);
        assert_eq!(target(ForgeKind::GitHub, &status), commit(Some("b")));
        let job = format!(r#"{{"workflow_job":{{"head_sha":"abc","head_branch":"b"}},{repo}}}"#);
        assert_eq!(target(ForgeKind::Gitea, &job), commit(Some("b")));
        let run = format!(
            r#"{{"check_run":{{"head_sha":"abc","check_suite":{{"head_branch":"b"}},"pull_requests":[]}},{repo}}}"#
        );
        assert_eq!(target(ForgeKind::GitHub, &run), commit(Some("b")));
        let suite = format!(
            r#"{{"check_suite":{{"head_sha":"abc","pull_requests":[{{"number":7}}]}},{repo}}}"#
        );
        let pull = |number| Some(DeliveryTarget::Thread(Thread::Pull(number)));
        assert_eq!(target(ForgeKind::GitHub, &suite), pull(7));
        let project = r#""project":{"path_with_namespace":"acme/widget"}"#;
        let pipeline = format!(
            r#"{{"object_kind":"pipeline","object_attributes":{{"sha":"abc","ref":"b"}},{project}}}"#
        );
        assert_eq!(target(ForgeKind::GitLab, &pipeline), commit(Some("b")));
        let of_merge =
            pipeline.replace("{\"object_kind", "{\"merge_request\":{\"iid\":3},\"object_kind");
        assert_eq!(target(ForgeKind::GitLab, &of_merge), pull(3));
        let build = format!(r#"{{"object_kind":"build","sha":"abc","ref":"b",{project}}}"#);
        assert_eq!(target(ForgeKind::GitLab, &build), commit(Some("b")));
        let push = format!(r#"{{"object_kind":"push","ref":"refs/heads/b",{project}}}"#);
        assert_eq!(target(ForgeKind::GitLab, &push), None);
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
