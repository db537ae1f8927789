//! What a webhook says. First whether it may say anything: its signature is checked over the bytes as they came, and
//! only then are they read. Then one thing alone: at which thread to look. What is true there is asked of the forge.

use hmac::{Hmac, KeyInit, Mac};
use orchestrator_db::About;
use serde::Deserialize;
use sha2::Sha256;

/// A sender's own name for a delivery is no longer than this.
const ID_MAX_CHARS: usize = 128;

/// Who sends, as the address says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HookSource {
    Gitea,
    Forgejo,
    GitHub,
    GitLab,
}

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) owner: String,
    pub(crate) repo: String,
    pub(crate) about: About,
}

/// A webhook that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The sender's own name for it.
    pub(crate) id: String,
    /// What it is about, in the sender's words.
    pub(crate) event: String,
    /// Where to look; nothing for pings, pushes and the like.
    pub(crate) call: Option<Call>,
}

/// A webhook that makes no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HookFault {
    #[error("the header {0} is missing or odd")]
    Header(&'static str),
    #[error("the body is not the JSON that this event has")]
    Body,
}

impl HookSource {
    pub(crate) const ALL: [Self; 4] = [Self::Gitea, Self::Forgejo, Self::GitHub, Self::GitLab];

    /// The word in the address, and in the inbox.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == word)
    }
}

/// Whether a delivery was signed with this secret. A missing or empty signature never is.
pub(crate) fn is_genuine<'a>(
    source: HookSource,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    secret: &str,
) -> bool {
    if secret.is_empty() {
        return false;
    }
    let signature = match source {
        HookSource::Gitea => header("x-gitea-signature"),
        HookSource::Forgejo => {
            header("x-forgejo-signature").or_else(|| header("x-gitea-signature"))
        }
        HookSource::GitHub => {
            header("x-hub-signature-256").and_then(|text| text.strip_prefix("sha256="))
        }
        // It sends the secret itself. Comparing what both become takes equally long for every guess.
        HookSource::GitLab => {
            let given = header("x-gitlab-token").unwrap_or_default();
            return !given.is_empty()
                && mac(secret, secret.as_bytes()).is_some_and(|own| {
                    let own = own.finalize().into_bytes();
                    mac(secret, given.as_bytes()).is_some_and(|it| it.verify_slice(&own).is_ok())
                });
        }
    };
    let Some(signature) = signature.and_then(parse_hex) else { return false };
    mac(secret, body).is_some_and(|mac| mac.verify_slice(&signature).is_ok())
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

/// Reads a delivery that is genuine.
pub(crate) fn read_hook<'a>(
    source: HookSource,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
) -> Result<Reading, HookFault> {
    let first = |names: &[&str]| names.iter().find_map(|name| header(name));
    let (id, event) = match source {
        HookSource::Gitea | HookSource::Forgejo => (
            first(&["x-gitea-delivery", "x-forgejo-delivery"]),
            first(&["x-gitea-event-type", "x-forgejo-event-type", "x-gitea-event"]),
        ),
        HookSource::GitHub => (first(&["x-github-delivery"]), first(&["x-github-event"])),
        HookSource::GitLab => {
            (first(&["idempotency-key", "x-gitlab-event-uuid"]), first(&["x-gitlab-event"]))
        }
    };
    let event = event.ok_or(HookFault::Header("that names the event"))?.to_owned();
    // An older GitLab names no delivery. What is the same to the last byte is the same then.
    let id = match (id, source) {
        (Some(id), _) => id.to_owned(),
        (None, HookSource::GitLab) => model::digest::sha256(body),
        (None, _) => return Err(HookFault::Header("that names the delivery")),
    };
    let plain = |c: char| c.is_ascii_graphic();
    if id.is_empty() || id.chars().count() > ID_MAX_CHARS || !id.chars().all(plain) {
        return Err(HookFault::Header("that names the delivery"));
    }
    let call = match source {
        HookSource::GitLab => read_gitlab(body)?,
        HookSource::Gitea | HookSource::Forgejo | HookSource::GitHub => read_gitea(body)?,
    };
    Ok(Reading {
        id,
        event: event.chars().filter(|c| plain(*c) || *c == ' ').take(64).collect(),
        call,
    })
}

/// Gitea, Forgejo and GitHub say it alike.
#[derive(Deserialize)]
struct GiteaBody {
    repository: Option<GiteaRepo>,
    issue: Option<Numbered>,
    pull_request: Option<Numbered>,
    #[serde(default)]
    is_pull: bool,
}

#[derive(Deserialize)]
struct GiteaRepo {
    name: String,
    owner: GiteaOwner,
}

#[derive(Deserialize)]
struct GiteaOwner {
    login: String,
}

#[derive(Deserialize)]
struct Numbered {
    number: u64,
    /// An issue that has this is a pull request.
    pull_request: Option<serde::de::IgnoredAny>,
}

fn read_gitea(body: &[u8]) -> Result<Option<Call>, HookFault> {
    let body: GiteaBody = serde_json::from_slice(body).or(Err(HookFault::Body))?;
    let about = match (body.pull_request, body.issue) {
        (Some(pull), _) => About::Pull(pull.number),
        (None, Some(issue)) if body.is_pull || issue.pull_request.is_some() => {
            About::Pull(issue.number)
        }
        (None, Some(issue)) => About::Issue(issue.number),
        (None, None) => return Ok(None),
    };
    let repo = body.repository.ok_or(HookFault::Body)?;
    Ok(Some(Call { owner: repo.owner.login, repo: repo.name, about }))
}

#[derive(Deserialize)]
struct GitLabBody {
    #[serde(default)]
    object_kind: String,
    project: Option<GitLabProject>,
    object_attributes: Option<GitLabThing>,
    issue: Option<GitLabThing>,
    merge_request: Option<GitLabThing>,
}

#[derive(Deserialize)]
struct GitLabProject {
    path_with_namespace: String,
}

#[derive(Deserialize)]
struct GitLabThing {
    iid: Option<u64>,
}

fn read_gitlab(body: &[u8]) -> Result<Option<Call>, HookFault> {
    let body: GitLabBody = serde_json::from_slice(body).or(Err(HookFault::Body))?;
    let number = |thing: Option<GitLabThing>| thing.and_then(|thing| thing.iid);
    let about = match body.object_kind.as_str() {
        "issue" | "work_item" => number(body.object_attributes).map(About::Issue),
        "merge_request" => number(body.object_attributes).map(About::Pull),
        "note" => match (number(body.merge_request), number(body.issue)) {
            (Some(iid), _) => Some(About::Pull(iid)),
            (None, iid) => iid.map(About::Issue),
        },
        _ => return Ok(None),
    };
    let Some(about) = about else { return Ok(None) };
    let path = body.project.ok_or(HookFault::Body)?.path_with_namespace;
    let (owner, repo) = path.rsplit_once('/').ok_or(HookFault::Body)?;
    Ok(Some(Call { owner: owner.to_owned(), repo: repo.to_owned(), about }))
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
    fn read(sample: &Sample) -> Reading {
        let headers = header(&sample.headers);
        assert!(is_genuine(HookSource::Gitea, &headers, sample.body, SECRET), "{}", sample.name);
        read_hook(HookSource::Gitea, &headers, sample.body).expect(sample.name)
    }

    #[test]
    fn recorded_deliveries_are_genuine_and_say_where_to_look() {
        let mut seen = 0;
        for sample in samples() {
            let reading = read(&sample);
            let about = reading.call.map(|call| (call.owner, call.repo, call.about));
            let expected = sample.about.map(|(room, number)| {
                let about = match room {
                    Room::Issue => About::Issue(number),
                    Room::Pull => About::Pull(number),
                };
                ("alice".to_owned(), "hooks".to_owned(), about)
            });
            assert_eq!(about, expected, "{}", sample.name);
            assert!(!reading.id.is_empty() && !reading.event.is_empty());
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
            assert!(!is_genuine(HookSource::Gitea, &headers, &body, SECRET));
            assert!(!is_genuine(HookSource::Gitea, &headers, sample.body, "another"));
            assert!(!is_genuine(HookSource::Gitea, &headers, sample.body, ""));
        }
    }

    #[test]
    fn a_missing_empty_or_odd_signature_is_not_genuine() {
        let body = b"{}";
        for source in HookSource::ALL {
            assert!(!is_genuine(source, |_| None, body, SECRET), "{source:?}");
            for odd in ["", "00", "sha256=", "zz", &"0".repeat(64), "sha1=00"] {
                assert!(!is_genuine(source, |_| Some(odd), body, SECRET), "{source:?} {odd}");
            }
        }
    }

    #[test]
    fn each_source_is_checked_in_its_own_way() {
        let body = b"{\"zen\": \"Speak\"}";
        let hex: String = mac(SECRET, body)
            .expect("a mac")
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let prefixed = format!("sha256={hex}");
        let check = |source, name, value: &str| {
            is_genuine(source, |asked| (asked == name).then_some(value), body, SECRET)
        };
        assert!(check(HookSource::Forgejo, "x-forgejo-signature", &hex));
        assert!(check(HookSource::GitHub, "x-hub-signature-256", &prefixed));
        assert!(!check(HookSource::GitHub, "x-hub-signature-256", &hex));
        assert!(check(HookSource::GitLab, "x-gitlab-token", SECRET));
        assert!(!check(HookSource::GitLab, "x-gitlab-token", "sample-webhook-secres"));
    }

    #[test]
    fn github_and_gitlab_say_where_to_look() {
        let headers = [("X-GitHub-Delivery", "72d3162e"), ("X-GitHub-Event", "issue_comment")];
        let body = br#"{"action": "created", "issue": {"number": 7, "pull_request": {"url": "x"}},
            "repository": {"name": "widget", "owner": {"login": "acme"}}}"#;
        let reading = read_hook(HookSource::GitHub, header(&headers), body).expect("it reads");
        assert_eq!(reading.call.map(|call| call.about), Some(About::Pull(7)));
        let headers = [("X-Gitlab-Event", "Note Hook"), ("Idempotency-Key", "a-b")];
        let body = br#"{"object_kind": "note", "project": {"path_with_namespace": "a/b/widget"},
            "object_attributes": {"id": 1}, "merge_request": {"iid": 3}}"#;
        let reading = read_hook(HookSource::GitLab, header(&headers), body).expect("it reads");
        let call = reading.call.expect("a call");
        assert_eq!((call.owner.as_str(), call.repo.as_str()), ("a/b", "widget"));
        assert_eq!((call.about, reading.event.as_str()), (About::Pull(3), "Note Hook"));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let named = [("X-Gitea-Delivery", "a"), ("X-Gitea-Event-Type", "issues")];
        let fault = |headers: &[(&str, &str)], body: &[u8]| {
            read_hook(HookSource::Gitea, header(headers), body).expect_err("it is refused")
        };
        assert_eq!(fault(&named, b"nonsense"), HookFault::Body);
        assert_eq!(fault(&named, b"{\"issue\": {\"number\": 3}}"), HookFault::Body);
        assert_eq!(fault(&named[1..], b"{}"), HookFault::Header("that names the delivery"));
        let odd = [("X-Gitea-Delivery", "a\tb"), named[1]];
        assert_eq!(fault(&odd, b"{}"), HookFault::Header("that names the delivery"));
    }
}
