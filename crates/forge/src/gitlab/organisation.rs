//! New issues, and the projects of groups.

use serde_json::json;

use super::Gitlab;
use super::wire::{GitlabIssue, WireProject};
use crate::error::{ForgeError, ForgeResult};
use crate::http::HttpRequest;
use crate::organisation::{FoundRepository, NewIssue};
use crate::provider::OrganisationProvider;
use crate::thread::Issue;

impl OrganisationProvider for Gitlab {
    async fn make_issue(&self, issue: &NewIssue) -> ForgeResult<Issue> {
        let body = json!({
            "title": issue.title, "description": issue.body, "labels": issue.labels.join(","),
            "assignee_ids": self.user_ids(&issue.assignees).await?,
        });
        let url = self.project_url(&["issues"]);
        let made: GitlabIssue =
            self.client.json(&HttpRequest::post(url, body, "open the issue")).await?;
        Ok(self.show_issue(made))
    }

    /// Lists the projects of a group with its subgroups, or else of an account.
    async fn repositories(&self, org: &str) -> ForgeResult<Vec<FoundRepository>> {
        let list = async |kind: &str, query: &str| {
            let url = self.api.url(&[kind, org, "projects"]);
            let action = format!("list the projects of {org}");
            self.client.list(&url, query, &action, WireProject::id).await
        };
        let query = "include_subgroups=true&order_by=path&sort=asc";
        let found = match list("groups", query).await {
            Err(ForgeError::NotFound { .. }) => list("users", "order_by=path&sort=asc").await?,
            other => other?,
        };
        Ok(found.into_iter().filter_map(WireProject::into_found).collect())
    }
}
