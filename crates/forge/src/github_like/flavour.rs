//! Data by which the servers with GitHub's dialect differ. Pure.

use model::id::BranchName;
use serde_json::{Value, json};

use crate::address::{WebBase, encode};
use crate::http::{MissingLink, Protocol};
use crate::kind::ForgeKind;
use crate::pull::DraftMark;
use crate::webhook::NewWebhook;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Gitea or Forgejo.
    Gitea,
    /// GitHub or GitHub Enterprise Server.
    GitHub,
}

const GITEA: Protocol = Protocol {
    token_word: "token",
    accept: "application/json",
    headers: &[],
    page_size_field: "limit",
    page_size: 50,
    total_header: "x-total-count",
    missing_link: MissingLink::Unknown,
};

const GITHUB: Protocol = Protocol {
    token_word: "Bearer",
    accept: "application/vnd.github+json",
    headers: &[("x-github-api-version", "2022-11-28")],
    page_size_field: "per_page",
    page_size: 100,
    total_header: "",
    missing_link: MissingLink::LastPage,
};

impl Flavour {
    pub(super) fn kind(self) -> ForgeKind {
        match self {
            Self::Gitea => ForgeKind::Gitea,
            Self::GitHub => ForgeKind::GitHub,
        }
    }

    pub(super) fn protocol(self) -> &'static Protocol {
        match self {
            Self::Gitea => &GITEA,
            Self::GitHub => &GITHUB,
        }
    }

    /// Returns the front page of the server that a remote names. GitHub's server for SSH on the port of the
    /// web has another name than the web.
    pub(super) fn front_page(self, web: WebBase) -> WebBase {
        match self {
            Self::GitHub if web.host().ends_with(".github.com") => web.with_host("github.com"),
            Self::GitHub | Self::Gitea => web,
        }
    }

    /// Returns the root of the API. GitHub's cloud has a host for it; elsewhere it is below the front page.
    pub(super) fn api_base(self, web: &WebBase) -> WebBase {
        match self {
            Self::Gitea => web.below(&["api", "v1"]),
            Self::GitHub if web.host() == "github.com" || web.host().ends_with(".ghe.com") => {
                let api = format!("api.{}", web.host());
                web.clone().with_host(&api)
            }
            Self::GitHub => web.below(&["api", "v3"]),
        }
    }

    /// Builds the query. Gitea's filter by label returns everything for an unknown name, and nothing for a
    /// name that two labels have, so labels are matched only by the client.
    pub(super) fn open_issues_query(self, labels: &[String]) -> String {
        match self {
            Self::Gitea => "state=open&type=issues".to_owned(),
            Self::GitHub => {
                let mut query = "state=open&sort=created&direction=asc".to_owned();
                if !labels.is_empty() {
                    query.push_str(&format!("&labels={}", encode(&labels.join(","))));
                }
                query
            }
        }
    }

    /// Builds the query, ordered by age: an order that changes with every comment would move entries between pages.
    pub(super) fn open_pulls_query(self, owner: &str, head: Option<&BranchName>) -> String {
        match self {
            Self::Gitea => "state=open&sort=oldest".to_owned(),
            Self::GitHub => {
                let head = head.map(|head| format!("&head={}", encode(&format!("{owner}:{head}"))));
                format!("state=open&sort=created&direction=asc{}", head.unwrap_or_default())
            }
        }
    }

    /// Address of GraphQL, which only GitHub has.
    pub(super) fn graphql(self, web: &WebBase, api: &WebBase) -> String {
        match web.host() == "github.com" || web.host().ends_with(".ghe.com") {
            true => api.url(&["graphql"]),
            false => web.url(&["api", "graphql"]),
        }
    }

    pub(super) fn draft_mark(self) -> DraftMark {
        match self {
            Self::Gitea => DraftMark::Prefix("WIP: "),
            Self::GitHub => DraftMark::Field,
        }
    }

    /// Last segment of the path of an issue's history.
    pub(super) fn events_path(self) -> &'static str {
        match self {
            Self::Gitea => "timeline",
            Self::GitHub => "events",
        }
    }

    /// Builds the fields. The body is sent as JSON: a form is signed in another encoding than it is sent.
    pub(super) fn webhook_fields(self, hook: &NewWebhook) -> Value {
        let config = json!({
            "url": hook.url, "content_type": "json", "secret": hook.secret.expose(), "insecure_ssl": "0",
        });
        match self {
            // Each event covers a family: `issues` also labels and assignments, `pull_request` also comments
            // and reviews.
            Self::Gitea => json!({
                "type": "gitea", "active": true, "config": config,
                "events": ["issues", "issue_comment", "pull_request", "status", "workflow_job"],
            }),
            Self::GitHub => json!({
                "name": "web", "active": true, "config": config,
                "events": [
                    "issues", "issue_comment", "pull_request", "pull_request_review",
                    "pull_request_review_comment", "status", "check_run", "check_suite",
                ],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_has_its_own_host_in_the_cloud_and_a_path_elsewhere() {
        let api = |flavour: Flavour, web: &str| {
            flavour.api_base(&flavour.front_page(WebBase::parse(web).unwrap())).to_string()
        };
        let github = |web| api(Flavour::GitHub, web);
        assert_eq!(github("https://github.com"), "https://api.github.com");
        assert_eq!(github("https://ssh.github.com"), "https://api.github.com");
        assert_eq!(github("https://acme.ghe.com"), "https://api.acme.ghe.com");
        assert_eq!(github("https://git.example"), "https://git.example/api/v3");
        assert_eq!(github("http://git.example:8080/x"), "http://git.example:8080/x/api/v3");
        let gitea = api(Flavour::Gitea, "https://git.example/sub");
        assert_eq!(gitea, "https://git.example/sub/api/v1");
    }
}
