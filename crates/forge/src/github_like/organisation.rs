//! New issues, and the repositories of organisations.

use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{WireIssue, WireRepository};
use super::{Flavour, GithubLike};
use crate::error::{ForgeError, ForgeResult};
use crate::http::HttpRequest;
use crate::organisation::{FoundRepository, NewIssue};
use crate::provider::OrganisationProvider;
use crate::thread::Issue;

/// Colour of a label that is created: Gitea wants one.
const LABEL_COLOUR: &str = "#5b7fa6";

#[derive(Debug, Deserialize)]
struct WireNumberedLabel {
    id: u64,
    name: String,
}

impl OrganisationProvider for GithubLike {
    async fn make_issue(&self, issue: &NewIssue) -> ForgeResult<Issue> {
        let labels = match self.flavour {
            // GitHub creates what is missing.
            Flavour::GitHub => json!(issue.labels),
            Flavour::Gitea => json!(self.label_ids(&issue.labels).await?),
        };
        let body = json!({
            "title": issue.title, "body": issue.body, "labels": labels, "assignees": issue.assignees,
        });
        let request = HttpRequest::post(self.repo_url(&["issues"]), body, "open the issue");
        let made: WireIssue = self.client.json(&request).await?;
        let odd = || self.client.unreadable(&request, "it is a pull request");
        self.show_issue(made).ok_or_else(odd)
    }

    /// Lists the repositories of an organisation, or else of an account.
    async fn repositories(&self, org: &str) -> ForgeResult<Vec<FoundRepository>> {
        let list = async |kind: &str, query: &str| {
            let url = self.api.url(&[kind, org, "repos"]);
            let action = format!("list the repositories of {org}");
            self.client.list(&url, query, &action, WireRepository::id).await
        };
        let query = match self.flavour {
            Flavour::GitHub => "type=all&sort=full_name&direction=asc",
            Flavour::Gitea => "",
        };
        let found = match list("orgs", query).await {
            Err(ForgeError::NotFound { .. }) => list("users", "").await?,
            other => other?,
        };
        Ok(found.into_iter().filter_map(WireRepository::into_found).collect())
    }
}

impl GithubLike {
    /// Ids of labels on a Gitea; missing ones are created.
    async fn label_ids(&self, names: &[String]) -> ForgeResult<Vec<u64>> {
        let id_of = |label: &WireNumberedLabel| label.id;
        let url = self.repo_url(&["labels"]);
        let mut known = self.client.list(&url, "", "list the labels", id_of).await?;
        let shared = self.api.url(&["orgs", &self.owner, "labels"]);
        match self.client.list(&shared, "", "list the labels of the organisation", id_of).await {
            Ok(labels) => known.extend(labels),
            // The owner is no organisation, or hides them.
            Err(ForgeError::NotFound { .. } | ForgeError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut ids = Vec::new();
        for name in names {
            let id = match known.iter().find(|label| label.name == *name) {
                Some(label) => label.id,
                None => self.make_label(name).await?,
            };
            ids.push(id);
        }
        Ok(ids)
    }

    async fn make_label(&self, name: &str) -> ForgeResult<u64> {
        let body: Value = json!({ "name": name, "color": LABEL_COLOUR });
        let request = HttpRequest::post(self.repo_url(&["labels"]), body, "make a label");
        Ok(self.client.json::<WireNumberedLabel>(&request).await?.id)
    }
}
