//! What people said about an assignment, read by the host for the agent's prompt.

use forge::{Comment, Forge, Issue, Thread};
use jiff::Timestamp;

use super::access::ForgeAccess;
use crate::exit::{Failure, OrExit};
use crate::rules::prompt::Said;
use crate::rules::target::{judge_target, parse_labels};

/// An assignment as the forge has it now.
pub(crate) struct Assignment {
    pub(crate) issue: Issue,
    /// The bottle that a label names, in the place of the agent's own.
    pub(crate) bottles: Vec<String>,
    pub(crate) pull: Option<u64>,
    pub(crate) thread: Vec<Said>,
}

/// Reads the issue, finds its pull request, and gathers the whole conversation; what came after `since` is new.
pub(crate) async fn read_assignment(
    access: &ForgeAccess,
    known_pull: Option<u64>,
    since: Option<Timestamp>,
) -> Result<Assignment, Failure> {
    let forge = access.open().await?;
    let number = access.env.issue;
    let issue = forge.read_issue(number).await.or_general()?;
    let pull = match access.env.pull.or(known_pull) {
        Some(pull) => Some(pull),
        None => forge.get_pr_for_issue(number).await.or_general()?,
    };
    let place = format!("issue #{number}");
    let mut thread = vec![Said {
        author: issue.author.clone(),
        at: "when it was opened".to_owned(),
        body: format!("{}\n\n{}", issue.title, issue.body),
        is_new: since.is_none(),
        place: place.clone(),
    }];
    let comments = forge.read_comments(Thread::Issue(number)).await.or_general()?;
    thread.extend(comments.iter().map(|comment| said(comment, &place, since)));
    if let Some(pull) = pull {
        let place = format!("pull request #{pull}");
        let comments = forge.read_comments(Thread::Pull(pull)).await.or_general()?;
        thread.extend(comments.iter().map(|comment| said(comment, &place, since)));
    }
    let bottles = parse_labels(&issue.labels).bottles;
    Ok(Assignment { issue, bottles, pull, thread })
}

fn said(comment: &Comment, place: &str, since: Option<Timestamp>) -> Said {
    let is_new = match (since, comment.created_at) {
        (Some(since), Some(at)) => at > since,
        (Some(_) | None, _) => since.is_none(),
    };
    Said {
        place: place.to_owned(),
        author: comment.author.clone(),
        at: comment.created_at.map_or_else(|| "undated".to_owned(), |at| at.to_string()),
        body: comment.body.clone(),
        is_new,
    }
}

/// Refuses an issue that nobody of the organisation gave to this agent.
pub(crate) async fn check_target(
    access: &ForgeAccess,
    issue: &Issue,
    agent: &str,
) -> Result<(), Failure> {
    let forge = access.open().await?;
    let members = members_of(&forge, &access.env.org, &issue.assignees).await?;
    match judge_target(&parse_labels(&issue.labels), &members, agent, &access.env.org) {
        None => Ok(()),
        Some(why) => {
            let words = format!("issue #{} is not for the agent '{agent}': {why}", issue.number);
            Err(Failure::not_found(words))
        }
    }
}

async fn members_of(forge: &Forge, org: &str, users: &[String]) -> Result<Vec<String>, Failure> {
    let mut members = Vec::new();
    for user in users {
        if forge.is_org_member(org, user).await.or_general()? {
            members.push(user.clone());
        }
    }
    Ok(members)
}
