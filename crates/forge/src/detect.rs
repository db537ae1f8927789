//! Detection of a server's kind: from the options, else from its name, else from its responses.

use serde::Deserialize;

use crate::address::{ForgeAddress, WebBase};
use crate::error::{ForgeError, ForgeResult};
use crate::forge::ForgeOptions;
use crate::http::{Client, HttpRequest, HttpResponse, MissingLink, Protocol};
use crate::kind::ForgeKind;

/// Request that needs no login, and the response by which a kind is recognised.
struct Probe {
    base: ProbeBase,
    path: &'static [&'static str],
    recognises: fn(&HttpResponse) -> bool,
}

/// Page that a probe is below. The path before the owner of a repository is an installation's path for some
/// kinds, and may be groups for others.
enum ProbeBase {
    Installation,
    Root,
}

/// Protocol for a server of unknown kind.
const UNKNOWN: Protocol = Protocol {
    token_word: "",
    accept: "application/json",
    headers: &[],
    page_size_field: "",
    page_size: 0,
    total_header: "",
    missing_link: MissingLink::Unknown,
};

impl ForgeKind {
    fn probe(self) -> Option<Probe> {
        match self {
            Self::Gitea => Some(Probe {
                base: ProbeBase::Installation,
                path: &["api", "v1", "version"],
                recognises: is_gitea,
            }),
            Self::GitHub => Some(Probe {
                base: ProbeBase::Root,
                path: &["api", "v3", "meta"],
                recognises: |response| {
                    let names = ["x-github-enterprise-version", "x-github-request-id"];
                    names.iter().any(|name| response.headers.contains_key(*name))
                },
            }),
            Self::GitLab => Some(Probe {
                base: ProbeBase::Root,
                path: &["api", "v4", "version"],
                recognises: |response| response.headers.contains_key("x-gitlab-meta"),
            }),
            Self::Folder => None,
        }
    }
}

pub async fn find_kind(address: &ForgeAddress, options: &ForgeOptions) -> ForgeResult<ForgeKind> {
    let host = options.web.as_ref().map_or(address.host.as_str(), WebBase::host);
    match options.kind.or_else(|| ForgeKind::all().find(|kind| kind.owns_host(host))) {
        Some(kind) => Ok(kind),
        None => probe_server(address, options).await,
    }
}

/// Probes for each kind in turn. No token is sent to a server of unknown kind.
async fn probe_server(address: &ForgeAddress, options: &ForgeOptions) -> ForgeResult<ForgeKind> {
    let installation = options.web.clone().unwrap_or_else(|| address.web_base());
    let root = options.web.clone().unwrap_or_else(|| address.root_base());
    let client = Client::open(&installation, &UNKNOWN, None, options).await?;
    let mut wants_login = None;
    for (kind, probe) in ForgeKind::all().filter_map(|kind| kind.probe().map(|probe| (kind, probe)))
    {
        let base = match probe.base {
            ProbeBase::Installation => &installation,
            ProbeBase::Root => &root,
        };
        let response = send_probe(&client, base.url(probe.path)).await?;
        if (probe.recognises)(&response) {
            return Ok(kind);
        }
        let status = response.status.as_u16();
        wants_login = wants_login.or(matches!(status, 401 | 403).then_some(status));
    }
    let host = installation.host().to_owned();
    Err(match wants_login {
        Some(status) => ForgeError::LoginWanted { host, status },
        None => ForgeError::UnknownForge { host },
    })
}

/// Returns whether a response is Gitea's. Gitea and Forgejo show their version without a login: a number, or
/// a word for a build without one.
fn is_gitea(response: &HttpResponse) -> bool {
    #[derive(Deserialize)]
    struct VersionBody {
        version: String,
    }
    let is_version = |body: VersionBody| {
        body.version.starts_with(|c: char| c.is_ascii_digit()) || body.version == "development"
    };
    response.status.is_success() && serde_json::from_slice(&response.body).is_ok_and(is_version)
}

/// Sends a probe. Any response is informative, except that of a server that is down or busy.
async fn send_probe(client: &Client, url: String) -> ForgeResult<HttpResponse> {
    let request = HttpRequest::get(url, "say which kind of forge it is");
    let response = client.send(&request).await?;
    match client.check_status(&request, &response) {
        Err(error @ (ForgeError::Server { .. } | ForgeError::RateLimited { .. })) => Err(error),
        Err(_) | Ok(()) => Ok(response),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_names_say_enough() {
        let kind = |host: &str| ForgeKind::all().find(|kind| kind.owns_host(host));
        assert_eq!(kind("github.com"), Some(ForgeKind::GitHub));
        assert_eq!(kind("ssh.github.com"), Some(ForgeKind::GitHub));
        assert_eq!(kind("acme.ghe.com"), Some(ForgeKind::GitHub));
        assert_eq!(kind("notgithub.com"), None);
        assert_eq!(kind("github.com.example"), None);
        assert_eq!(kind("altssh.gitlab.com"), Some(ForgeKind::GitLab));
        assert_eq!(kind("codeberg.org"), Some(ForgeKind::Gitea));
        assert_eq!(kind("git.example"), None);
    }
}
