//! A look at an issue: what the forge says about it now, put beside what is known here.

use forge::{Forge, ForgeError};
use orchestrator_db::{IssueKey, WorkItem};

use super::Service;
use crate::exit::{Failure, OrExit};
use crate::flow::bottle::Bottle;
use crate::flow::thread::{members_of, read_assignment};
use crate::rules::lookout::{PullSight, Sight, WorkSight};
use crate::rules::target::parse_labels;

/// What was seen, with the words for people that go with it.
pub(crate) struct Seen {
    pub(crate) sight: Sight,
    pub(crate) title: String,
}

/// Looks. An issue that is not there, or not any more, is nobody's.
pub(crate) async fn look(service: &Service, key: &IssueKey) -> Result<Seen, Failure> {
    let repo = service.repos.of(key)?;
    let work = service.store.work(key).or_general()?;
    let record = work
        .as_ref()
        .and_then(|work| work.slug.as_deref())
        .and_then(|slug| Bottle::open(&service.home, slug).ok())
        .map(|(_, record)| record);
    let known_pull = record.as_ref().and_then(|record| record.pull);
    let access = repo.shared_access(key.issue_number, known_pull);
    let forge = access.open().await?;
    let heard = record.as_ref().map(|record| &record.heard);
    // Until there is a bottle nobody's comments matter, and most issues never get one.
    let (issue, pull, news) = match heard {
        Some(heard) => {
            let seen = read_assignment(&access, known_pull, Some(heard)).await;
            let Some(seen) = found(seen)? else { return Ok(gone(work.as_ref())) };
            let news = seen.news();
            (seen.issue, seen.pull, news)
        }
        None => {
            let read = forge.read_issue(key.issue_number).await.or_general();
            let Some(issue) = found(read)? else { return Ok(gone(work.as_ref())) };
            (issue, None, 0)
        }
    };
    let labels = parse_labels(&issue.labels);
    let has_member = match labels.agents.is_empty() {
        true => false,
        false => !members_of(&forge, &access.env.org, &issue.assignees).await?.is_empty(),
    };
    let sight = Sight {
        is_open: issue.state == forge::ThreadState::Open,
        agents: labels.agents,
        bottles: labels.bottles,
        has_member,
        pull: match pull {
            Some(number) => look_at_pull(&forge, number).await?,
            None => None,
        },
        news,
        work: work.as_ref().map(work_sight),
    };
    Ok(Seen { sight, title: issue.title })
}

async fn look_at_pull(forge: &Forge, number: u64) -> Result<Option<PullSight>, Failure> {
    let pull = found(forge.read_pr(number).await.or_general())?;
    Ok(pull.map(|pull| PullSight { number, is_open: pull.is_open(), is_merged: pull.merged }))
}

/// What is not there is no failure here.
fn found<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Err(failure) if matches!(failure.forge(), Some(ForgeError::NotFound { .. })) => Ok(None),
        other => other.map(Some),
    }
}

/// An issue that was deleted, moved away or is a pull request.
fn gone(work: Option<&WorkItem>) -> Seen {
    let sight = Sight {
        is_open: false,
        agents: Vec::new(),
        bottles: Vec::new(),
        has_member: false,
        pull: None,
        news: 0,
        work: work.map(work_sight),
    };
    Seen { sight, title: String::new() }
}

fn work_sight(work: &WorkItem) -> WorkSight {
    WorkSight {
        state: work.state,
        has_bottle: work.slug.is_some(),
        retires: work.destroy_at.is_some(),
    }
}
