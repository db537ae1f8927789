//! Checks of commits: statuses on both, and check runs on GitHub.

use hyper::StatusCode;
use serde::Deserialize;

use super::{Flavour, GithubLike};
use crate::check_report::{CheckReport, CheckState};
use crate::error::{ForgeError, ForgeResult};
use crate::http::{HttpRequest, read_page};
use crate::provider::CheckProvider;
use crate::pull::PullRequest;

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireCombined {
    /// Null on Gitea when there is none.
    statuses: Option<Vec<WireStatus>>,
}

#[derive(Debug, Deserialize)]
struct WireStatus {
    id: u64,
    /// GitHub's name of the field.
    state: Option<String>,
    /// Gitea's name of the field.
    status: Option<String>,
    context: Option<String>,
    description: Option<String>,
    target_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireCheckRuns {
    #[serde(default)]
    check_runs: Vec<WireCheckRun>,
}

#[derive(Debug, Deserialize)]
struct WireCheckRun {
    id: u64,
    name: String,
    status: String,
    conclusion: Option<String>,
    html_url: Option<String>,
    output: Option<WireCheckOutput>,
}

#[derive(Debug, Deserialize)]
struct WireCheckOutput {
    title: Option<String>,
    summary: Option<String>,
}

/// A job of Gitea Actions.
#[derive(Debug, Deserialize)]
struct WireJobs {
    jobs: Option<Vec<WireJob>>,
}

#[derive(Debug, Deserialize)]
struct WireJob {
    id: u64,
    name: String,
    head_sha: Option<String>,
    conclusion: Option<String>,
}

impl WireStatus {
    fn into_report(self) -> CheckReport {
        let word = self.status.or(self.state).unwrap_or_default();
        CheckReport {
            id: self.id,
            name: self.context.unwrap_or_else(|| "status".to_owned()),
            state: CheckState::parse(&word),
            description: self.description.unwrap_or_default(),
            url: read_page(self.target_url).unwrap_or_default(),
        }
    }
}

impl WireCheckRun {
    fn into_report(self) -> CheckReport {
        let state = match self.status.as_str() {
            "completed" => CheckState::parse(self.conclusion.as_deref().unwrap_or_default()),
            _ => CheckState::Pending,
        };
        let output = self.output.into_iter();
        let words = output.flat_map(|output| [output.title, output.summary]).flatten();
        CheckReport {
            id: self.id,
            name: self.name,
            state,
            description: words.collect::<Vec<_>>().join("\n"),
            url: read_page(self.html_url).unwrap_or_default(),
        }
    }
}

impl CheckProvider for GithubLike {
    async fn checks(&self, pull: &PullRequest) -> ForgeResult<Vec<CheckReport>> {
        let sha = pull.head_sha.as_str();
        let action = format!("read the checks of #{}", pull.number);
        let get = |path: &str| {
            let url =
                format!("{}?{}=100", self.repo_url(&["commits", sha, path]), self.page_size());
            HttpRequest::get(url, action.as_str())
        };
        let combined: WireCombined = self.client.json(&get("status")).await?;
        let mut reports: Vec<CheckReport> =
            combined.statuses.into_iter().flatten().map(WireStatus::into_report).collect();
        if self.flavour == Flavour::GitHub {
            let runs: WireCheckRuns = self.client.json(&get("check-runs")).await?;
            reports.extend(runs.check_runs.into_iter().map(WireCheckRun::into_report));
        }
        Ok(reports)
    }

    async fn check_log(
        &self,
        pull: &PullRequest,
        report: &CheckReport,
    ) -> ForgeResult<Option<Vec<u8>>> {
        let job = match self.flavour {
            Flavour::GitHub => Some(report.id),
            Flavour::Gitea => self.find_job(pull, report).await?,
        };
        let Some(job) = job else { return Ok(None) };
        let url = self.repo_url(&["actions", "jobs", &job.to_string(), "logs"]);
        let request = HttpRequest::get(url, format!("read a log of #{}", pull.number));
        let response = self.client.send(&request).await?;
        match response.status {
            StatusCode::OK => Ok(Some(response.body.to_vec())),
            // GitHub keeps logs on another server, with a short-lived address.
            StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT => {
                let place = response.headers.get("location").and_then(|it| it.to_str().ok());
                let place = place.filter(|it| it.starts_with("https://"));
                match place {
                    Some(url) => {
                        self.client.fetch_unsigned(url, &request.action, None).await.map(Some)
                    }
                    None => Ok(None),
                }
            }
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::FORBIDDEN => Ok(None),
            _ => self.client.check_status(&request, &response).map(|()| None),
        }
    }
}

impl GithubLike {
    fn page_size(&self) -> &'static str {
        self.flavour.protocol().page_size_field
    }

    /// Finds the failed job of Gitea Actions whose status this is. Servers before 1.25 do not list jobs.
    async fn find_job(&self, pull: &PullRequest, report: &CheckReport) -> ForgeResult<Option<u64>> {
        let url = format!("{}?status=failure&limit=50", self.repo_url(&["actions", "jobs"]));
        let request = HttpRequest::get(url, format!("list the jobs of #{}", pull.number));
        let jobs: WireJobs = match self.client.json(&request).await {
            Ok(jobs) => jobs,
            Err(ForgeError::NotFound { .. } | ForgeError::Unreadable { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let fits = |job: &&WireJob| {
            job.head_sha.as_deref() == Some(&pull.head_sha)
                && job.conclusion.as_deref() == Some("failure")
        };
        let jobs: Vec<WireJob> = jobs.jobs.unwrap_or_default();
        let mut of_commit = jobs.iter().filter(fits).peekable();
        let first = of_commit.peek().map(|job| job.id);
        // A status is named after its workflow and its job.
        let named = of_commit.find(|job| report.name.contains(&job.name));
        Ok(named.map(|job| job.id).or(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_check_runs_are_read() {
        let gitea = r#"{"state":"failure","statuses":[
            {"id":4,"status":"failure","context":"ci / test","description":"1 failed","target_url":null}]}"#;
        let read: WireCombined = serde_json::from_str(gitea).unwrap();
        let report = read.statuses.unwrap().remove(0).into_report();
        assert!(report.is_failed() && report.name == "ci / test");
        let none: WireCombined = serde_json::from_str(r#"{"statuses":null}"#).unwrap();
        assert!(none.statuses.is_none());
        let github = r#"{"total_count":2,"check_runs":[
            {"id":9,"name":"test","status":"completed","conclusion":"timed_out","html_url":"https://x/9",
             "output":{"title":"Tests","summary":null}},
            {"id":10,"name":"lint","status":"in_progress","conclusion":null,"output":null}]}"#;
        let read: WireCheckRuns = serde_json::from_str(github).unwrap();
        let states: Vec<CheckState> =
            read.check_runs.into_iter().map(|run| run.into_report().state).collect();
        assert_eq!(states, [CheckState::Failed, CheckState::Pending]);
    }
}
