//! Observation of one issue: the facts of the forge, the database and the bottle, gathered once and handed on.

use forge::{Forge, ForgeError, ThreadState};
use orchestrator_db::{BottleState, ForgeStateStore, IssueKey, WorkItem};

use crate::exit::{Failure, OrGeneral};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::{Bottle, Record};
use crate::flow::thread::{members_of, read_assignment};
use crate::rules::decide::{IssueState, PullState, WorkFacts};
use crate::rules::target::parse_labels;
use crate::serve::Service;

pub(super) struct IssueObservation {
    pub(super) state: IssueState,
    pub(super) title: String,
    pub(super) work: Option<WorkItem>,
    pub(super) bottle: Option<(Bottle, Record)>,
}

/// Observes an issue. One that was deleted, moved or is a pull request counts as closed and unlabelled.
pub(super) async fn observe_issue(
    service: &Service,
    key: &IssueKey,
) -> Result<IssueObservation, Failure> {
    let repo = service.repos.of(key)?;
    let work = service.store.work(key).or_general()?;
    let bottle = match &work {
        Some(work) => find_bottle(service, work)?,
        None => None,
    };
    let record = bottle.as_ref().map(|(_, record)| record);
    let access = repo.shared_access(key.issue_number, record.and_then(|record| record.pull));
    let facts = work.as_ref().map(|work| WorkFacts {
        state: work.state,
        has_bottle: work.slug.is_some(),
        retires: work.destroy_at.is_some(),
    });
    let (mut state, title) = observe_state(&access, record).await?;
    state.work = facts;
    Ok(IssueObservation { state, title, work, bottle })
}

/// Observes an issue and its title. Without a bottle the comments do not matter, and most issues never get one.
async fn observe_state(
    access: &ForgeAccess,
    record: Option<&Record>,
) -> Result<(IssueState, String), Failure> {
    let read = async {
        let Some(record) = record else {
            let issue = access.open().await?.read_issue(access.env.issue).await.or_general()?;
            return Ok((issue, None, 0));
        };
        let read = read_assignment(access, record.pull, Some(&record.seen_comments)).await?;
        let new_comments = read.new_comments();
        Ok((read.issue, read.pull, new_comments))
    };
    let Some((issue, pull, new_comments)) = found(read.await)? else {
        return Ok(Default::default());
    };
    let forge = access.open().await?;
    let labels = parse_labels(&issue.labels);
    let has_member = match labels.agents.is_empty() {
        true => false,
        false => !members_of(&forge, &access.env.org, &issue.assignees).await?.is_empty(),
    };
    let pull = match pull {
        Some(number) => observe_pull(&forge, number).await?,
        None => None,
    };
    let state = IssueState {
        is_open: issue.state == ThreadState::Open,
        agents: labels.agents,
        bottles: labels.bottles,
        has_member,
        pull,
        new_comments,
        work: None,
    };
    Ok((state, issue.title))
}

async fn observe_pull(forge: &Forge, number: u64) -> Result<Option<PullState>, Failure> {
    let pull = found(forge.read_pr(number).await.or_general())?;
    Ok(pull.map(|pull| PullState { number, is_open: pull.is_open(), is_merged: pull.merged }))
}

/// Turns "not found" into `None`.
fn found<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Err(failure) if matches!(failure.forge(), Some(ForgeError::NotFound { .. })) => Ok(None),
        other => other.map(Some),
    }
}

/// The bottle of a work item, if its record can be read. A claimed item does not have the bottle's name yet; then the
/// forge state has it.
pub(super) fn find_bottle(
    service: &Service,
    work: &WorkItem,
) -> Result<Option<(Bottle, Record)>, Failure> {
    let slug = match &work.slug {
        Some(slug) => Some(slug.clone()),
        None => {
            let known = service.store.get(&work.key).or_general()?;
            known.filter(|it| it.status != BottleState::Destroyed).map(|it| it.slug)
        }
    };
    Ok(slug.and_then(|slug| Bottle::open(&service.home, &slug).ok()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use orchestrator_db::{ForgeState, SqliteForgeStateStore, WorkNote, WorkRequest};
    use tokio::sync::Notify;

    use super::*;
    use crate::flow::home::Home;
    use crate::serve::inbox::Inbox;
    use crate::serve::repos::Repos;
    use crate::serve::settings::ServeSettings;

    fn service(folder: &std::path::Path) -> Service {
        let home = Home::at(folder);
        std::fs::write(&home.token_file, "a-token").expect("written");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&home.token_file, private).expect("private");
        let text = "[[forge]]\nkind = \"gitea\"\nurl = \"https://git.example\"\nrepos = [\"acme/widget\"]\n";
        let settings = ServeSettings::parse(text).expect("settings");
        let store = || SqliteForgeStateStore::open(&home.database).expect("a database");
        let arrived = Arc::new(Notify::new());
        let inbox = Inbox::open(store(), Arc::clone(&arrived));
        let repos = Repos::load(&settings, &home).expect("repositories");
        let store = store();
        Service { home, settings, repos, store, inbox, arrived }
    }

    /// The worker writes the row, then the folder's record. An observation in between must not take the bottle for a
    /// leftover and remove it.
    #[test]
    fn a_bottle_that_is_being_made_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let service = service(folder.path());
        let repo = service.repos.find("acme", "widget").expect("it is served");
        let key = repo.issue(3);
        let request = WorkRequest::Start { agent: "worker".to_owned(), bottles: Vec::new() };
        let note = WorkNote::because("labelled");
        let work = service.store.add_work(&key, "Sort", &request, &note).expect("queued");
        let bottle = Bottle::create(&service.home, "worker-issue-3").expect("a folder");
        let row = ForgeState {
            key: key.clone(),
            slug: bottle.slug().to_string(),
            agent_name: "worker".to_owned(),
            bottle_names: Vec::new(),
            backend_name: "bwrap".to_owned(),
            agent_git_user: String::new(),
            pr_number: None,
            status: BottleState::Running,
            last_checkin_at: host::clock::now(),
        };
        service.store.upsert(&row).expect("stored");
        assert!(find_bottle(&service, &work).expect("no failure").is_none());
        assert!(bottle.path().exists(), "the folder stays");
        assert!(service.store.get(&key).expect("a row").is_some(), "the row stays");
    }
}
