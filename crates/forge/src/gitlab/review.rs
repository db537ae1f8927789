//! Answers to remarks, reactions, reviewers and assignees, and the jobs of pipelines.

use hyper::Method;
use serde_json::{Value, json};

use super::Gitlab;
use super::wire::{WireAward, WirePipelineJob};
use crate::check_report::CheckReport;
use crate::error::ForgeResult;
use crate::http::HttpRequest;
use crate::provider::{CheckProvider, ForgeProvider, ReviewProvider};
use crate::pull::PullRequest;
use crate::thread::{Comment, Thread};

impl CheckProvider for Gitlab {
    /// The pipeline comes with the merge request itself.
    async fn checks(&self, pull: &PullRequest) -> ForgeResult<Vec<CheckReport>> {
        Ok(pull.checks.clone().unwrap_or_default())
    }

    /// Reads the log of the first failed job of a pipeline.
    async fn check_log(
        &self,
        pull: &PullRequest,
        report: &CheckReport,
    ) -> ForgeResult<Option<Vec<u8>>> {
        let action = format!("read a log of !{}", pull.number);
        let url = self.project_url(&["pipelines", &report.id.to_string(), "jobs"]);
        let request = HttpRequest::get(format!("{url}?scope%5B%5D=failed"), action.as_str());
        let jobs: Vec<WirePipelineJob> = self.client.json(&request).await?;
        let Some(job) = jobs.first() else { return Ok(None) };
        let url = self.project_url(&["jobs", &job.id.to_string(), "trace"]);
        let response = self.client.call(&HttpRequest::get(url, action)).await?;
        let head = format!("job {}:\n", job.name).into_bytes();
        Ok(Some([head, response.body.to_vec()].concat()))
    }
}

impl ReviewProvider for Gitlab {
    async fn make_reply(&self, pull: u64, remark: &Comment, body: &str) -> ForgeResult<()> {
        let Some(thread) = &remark.thread else {
            return self.make_comment(Thread::Pull(pull), body).await.map(drop);
        };
        let url = self.thread_url(Thread::Pull(pull), &["discussions", &thread.id, "notes"]);
        let action = format!("answer a remark on !{pull}");
        self.client.call(&HttpRequest::post(url, json!({ "body": body }), action)).await.map(drop)
    }

    async fn resolve_thread(&self, pull: u64, remark: &Comment) -> ForgeResult<bool> {
        let Some(thread) = &remark.thread else { return Ok(false) };
        let url = self.thread_url(Thread::Pull(pull), &["discussions", &thread.id]);
        let fields = Some(json!({ "resolved": true }));
        let action = format!("resolve a thread of !{pull}");
        self.client.is_there(&HttpRequest::set(Method::PUT, url, fields, action)).await
    }

    async fn thumbs_up(&self, thread: Thread, comment: u64) -> ForgeResult<Vec<String>> {
        let url = self.thread_url(thread, &["notes", &comment.to_string(), "award_emoji"]);
        let awards: Vec<WireAward> =
            self.client.json(&HttpRequest::get(url, "read the reactions")).await?;
        let yes = awards.into_iter().filter(|award| award.name == "thumbsup");
        Ok(yes.filter_map(|award| award.user).map(|user| user.username).collect())
    }

    async fn request_reviewers(&self, pull: u64, logins: &[String]) -> ForgeResult<()> {
        let ids = self.user_ids(logins).await?;
        self.set_fields(pull, json!({ "reviewer_ids": ids })).await
    }

    async fn add_labels(&self, pull: u64, labels: &[String]) -> ForgeResult<()> {
        self.set_fields(pull, json!({ "add_labels": labels.join(",") })).await
    }

    async fn add_assignees(&self, pull: u64, logins: &[String]) -> ForgeResult<()> {
        let ids = self.user_ids(logins).await?;
        self.set_fields(pull, json!({ "assignee_ids": ids })).await
    }
}

impl Gitlab {
    /// Ids of accounts; unknown ones are left out.
    pub(super) async fn user_ids(&self, logins: &[String]) -> ForgeResult<Vec<u64>> {
        let mut ids = Vec::new();
        for login in logins {
            ids.extend(self.find_user(login).await?.map(|user| user.id));
        }
        Ok(ids)
    }

    async fn set_fields(&self, pull: u64, fields: Value) -> ForgeResult<()> {
        let url = self.thread_url(Thread::Pull(pull), &[]);
        let action = format!("update merge request !{pull}");
        self.client.call(&HttpRequest::set(Method::PUT, url, Some(fields), action)).await.map(drop)
    }
}
