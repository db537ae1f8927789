//! Opening the issue of one dispatch, once.

use std::time::Duration;

use forge::{Forge, ForgeError, Issue, NewIssue};
use orchestrator_db::{Dispatch, DispatchState};

use super::Service;
use crate::exit::{Failure, OrGeneral};
use crate::flow::access::ForgeAccess;
use crate::flow::home::ManifestKind;
use crate::rules::dispatch_text::{dispatch_mark, render_dispatch};
use crate::rules::target::{agent_label, bottle_label, judge_target, parse_labels};

/// Attempts before a person is needed.
const ATTEMPTS_MAX: u32 = 40;
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Opens the issue of a dispatch, stores what came of it, and returns that.
pub(super) async fn open_issue(service: &Service, dispatch: Dispatch) -> Result<Dispatch, Failure> {
    let mut dispatch = dispatch;
    let outcome = try_to_open(service, &mut dispatch).await;
    dispatch.not_before = None;
    match outcome {
        Ok(()) => {
            dispatch.state = DispatchState::Opened;
            dispatch.problem = String::new();
            tracing::info!(id = dispatch.id, issue = dispatch.issue_number, "dispatched");
        }
        Err(failure) => {
            dispatch.attempts += 1;
            dispatch.problem = failure.to_string();
            let passes = failure.is_transient() || is_token_refused(&failure);
            if passes && dispatch.attempts < ATTEMPTS_MAX {
                let pause = FIRST_PAUSE.saturating_mul(1 << (dispatch.attempts - 1).min(10));
                let soonest = host::clock::now() + pause.min(LONGEST_PAUSE);
                dispatch.not_before = Some(failure.retry_after().unwrap_or(soonest));
            } else {
                dispatch.state = DispatchState::Failed;
            }
            tracing::warn!(id = dispatch.id, %failure, state = dispatch.state.name(), "not dispatched");
        }
    }
    service.store.save_dispatch(&dispatch).or_general()?;
    Ok(dispatch)
}

async fn try_to_open(service: &Service, dispatch: &mut Dispatch) -> Result<(), Failure> {
    let request = dispatch.request.clone();
    let repos = service.repos();
    let repo = repos.find(&request.owner, &request.repo).ok_or_else(|| {
        Failure::not_found(format!("{}/{} is not served", request.owner, request.repo))
    })?;
    // With the spelling of the configuration, by which its work is stored.
    let key = repo.issue(1);
    (dispatch.request.owner, dispatch.request.repo) = (key.owner, key.repo);
    service.home.load_agent(&request.agent)?;
    for bottle in &request.bottles {
        service.home.manifest(ManifestKind::Bottles, bottle)?;
    }
    let access = repo.shared_access(1, None);
    let forge = access.open().await?;
    let new = new_issue(&access, &forge, dispatch).await?;
    let earlier = match dispatch.state {
        DispatchState::Opening => forge.find_issue(&new).await.or_general()?,
        DispatchState::Pending | DispatchState::Opened | DispatchState::Failed => None,
    };
    let issue = match earlier {
        Some(issue) => issue,
        None => {
            dispatch.state = DispatchState::Opening;
            service.store.save_dispatch(dispatch).or_general()?;
            host::failpoint::hit("dispatching");
            forge.create_issue(&new).await.or_general()?
        }
    };
    host::failpoint::hit("dispatched");
    dispatch.issue_number = Some(issue.number);
    check_issue(&access, &new, &issue, &request.agent)
}

async fn new_issue(
    access: &ForgeAccess,
    forge: &Forge,
    dispatch: &Dispatch,
) -> Result<NewIssue, Failure> {
    let request = &dispatch.request;
    let account = match &access.bot_login {
        Some(login) => Some(login.clone()),
        None => forge.whoami().await.or_general()?.login,
    };
    let assignee = request.assignee.clone().or_else(|| account.clone()).ok_or_else(|| {
        Failure::usage("the token does not say whose it is; set bot_login or an assignee")
    })?;
    let org = &access.env.org;
    if !access.members.is_member(forge, org, &assignee).await? {
        return Err(Failure::not_found(format!(
            "the account '{assignee}' is not a member of the organisation '{org}'; add it, or name another assignee"
        )));
    }
    let mut labels = vec![agent_label(&request.agent)];
    labels.extend(request.bottles.iter().map(|name| bottle_label(name)));
    Ok(NewIssue {
        title: request.title.clone(),
        body: render_dispatch(&dispatch.id, &request.prompt, &request.origin),
        labels,
        assignees: vec![assignee],
        mark: dispatch_mark(&dispatch.id),
        author: account,
    })
}

/// Refuses an issue that would never be started: some forges leave out labels and assignees without an error.
fn check_issue(
    access: &ForgeAccess,
    new: &NewIssue,
    issue: &Issue,
    agent: &str,
) -> Result<(), Failure> {
    let is_wanted =
        |name: &&String| new.assignees.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
    let assigned: Vec<String> = issue.assignees.iter().filter(is_wanted).cloned().collect();
    match judge_target(&parse_labels(&issue.labels), &assigned, agent, &access.env.org) {
        None => Ok(()),
        Some(why) => {
            let advice = "the token may lack the right to label and assign";
            Err(Failure::not_found(format!("issue #{} is open, but {why}: {advice}", issue.number)))
        }
    }
}

/// The operator replaces the token, and then it continues by itself.
fn is_token_refused(failure: &Failure) -> bool {
    matches!(failure.forge(), Some(ForgeError::Unauthorized { .. } | ForgeError::BadToken { .. }))
}
