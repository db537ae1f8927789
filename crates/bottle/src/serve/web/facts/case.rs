//! A case: the work on an issue, its bottle, or both. The orchestrator's state outranks the bottle's record.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;
use model::id::RunId;
use orchestrator_db::{ForgeState, IssueKey, WorkEvent, WorkItem, WorkRequest, WorkState};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::Web;
use super::super::problem::Problem;
use super::super::rules::case_status::CaseStatus;
use super::super::rules::link::safe_href;
use super::log::last_step;
use super::missing::find_missing;
use super::run::RunSummary;
use crate::flow::bottle::{Bottle, BottleState, Record};
use crate::flow::bottle_summary::load_summary;
use crate::flow::issue_row::issue_key;
use crate::rules::closed_run::is_question;
use crate::rules::forge_env::ForgeEnv;

/// The work on an issue, a bottle, or both.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct Case {
    /// Its status.
    pub(crate) status: CaseStatus,
    /// Reason for the status, for people.
    pub(crate) reason: String,
    /// Its bottle, once there is one.
    pub(crate) slug: Option<String>,
    /// Its issue; a bottle that was started by hand may have none.
    pub(crate) issue: Option<IssueSummary>,
    /// Its pull request, once there is one.
    pub(crate) pull: Option<PullLink>,
    /// The agent.
    pub(crate) agent: String,
    /// The host that has its bottle, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// When its newest state came into the store of bottles, where there is one. What was done since is on its host alone.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) saved_at: Option<Timestamp>,
    /// The sandbox, once there is a bottle.
    pub(crate) backend: Option<String>,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// Time of its last change.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) updated_at: Timestamp,
    /// When it continues, while it waits.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) not_before: Option<Timestamp>,
    /// When its bottle is destroyed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) destroy_at: Option<Timestamp>,
    /// Known cost of all its runs, in dollars.
    pub(crate) cost_usd: Option<f64>,
    /// The question of the agent, while it waits for a person.
    pub(crate) question: Option<String>,
    /// Verdict of its last run that has one.
    pub(crate) verdict: Option<String>,
    /// Progress of its run, while an agent is at work.
    pub(crate) progress: Option<RunProgress>,
    /// Its runs, oldest first.
    pub(crate) runs: Vec<String>,
    /// Whether the orchestrator manages it; a bottle that was started by hand is ended by hand.
    pub(crate) orchestrated: bool,
}

/// Progress of a run at work.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunProgress {
    /// The run.
    pub(crate) run: String,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) started_at: Timestamp,
    /// Work of the host for it.
    pub(crate) doing: &'static str,
    /// The last step of its agent, which is a claim; empty before the first one.
    pub(crate) step: String,
    /// Tokens so far that the proxy counted.
    pub(crate) tokens: Option<u64>,
    /// Its cost so far in dollars, if known.
    pub(crate) cost_usd: Option<f64>,
}

impl RunProgress {
    /// The progress of a run that is not closed.
    fn of(run: &RunSummary, bottle: &Bottle) -> Option<Self> {
        if run.finished_at.is_some() {
            return None;
        }
        let dir = RunId::parse(&run.run).ok().and_then(|id| bottle.run(&id).ok());
        Some(Self {
            run: run.run.clone(),
            started_at: run.started_at,
            doing: run.doing,
            step: dir.map(|dir| last_step(&dir, &run.provider)).unwrap_or_default(),
            tokens: run.tokens,
            cost_usd: run.cost_usd,
        })
    }
}

/// An issue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct IssueSummary {
    /// The repository's owner.
    pub(crate) owner: String,
    /// The repository.
    pub(crate) repo: String,
    /// Its number.
    pub(crate) number: u64,
    /// Its title, if it is known.
    pub(crate) title: String,
    /// Its page.
    pub(crate) url: Option<String>,
}

/// A pull request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PullLink {
    /// Its number.
    pub(crate) number: u64,
    /// Its page.
    pub(crate) url: Option<String>,
}

impl Case {
    /// The issue's title, or the bottle's name.
    pub(crate) fn title(&self) -> String {
        let of_issue = self.issue.as_ref().map(|issue| issue.title.clone());
        of_issue
            .filter(|title| !title.is_empty())
            .or_else(|| self.slug.clone())
            .unwrap_or_else(|| "an issue".to_owned())
    }

    /// Cursor in a list of bottles, which is ordered by it.
    pub(crate) fn cursor(&self) -> String {
        match (&self.slug, &self.issue) {
            (Some(slug), _) => slug.clone(),
            (None, Some(issue)) => issue.cursor(),
            (None, None) => String::new(),
        }
    }
}

impl IssueSummary {
    pub(crate) fn cursor(&self) -> String {
        format!("{}/{}/{:020}", self.owner, self.repo, self.number)
    }

    pub(crate) fn key(&self) -> IssueKey {
        IssueKey { owner: self.owner.clone(), repo: self.repo.clone(), issue_number: self.number }
    }
}

/// All cases: those of the orchestrator by issue, then the other bottles by name.
pub(crate) fn load_cases(web: &Web) -> Result<Vec<Case>, Problem> {
    let store = &web.service.store;
    let states = store.forge_states()?;
    let mut bottles: BTreeMap<_, _> = Bottle::all(&web.service.home)?.into_iter().collect();
    let states: BTreeMap<&IssueKey, &ForgeState> =
        states.iter().map(|state| (&state.key, state)).collect();
    let mut cases = Vec::new();
    for work in store.works()? {
        let bottle = work.slug.as_ref().and_then(|slug| bottles.remove(slug));
        let state = states.get(&work.key).copied();
        let bottle = bottle.and_then(Result::ok);
        cases.push(case_of_work(web, &work, bottle.as_ref(), state));
    }
    cases.extend(bottles.into_iter().map(|(name, opened)| match opened {
        Ok(bottle) => case_of_bottle(web, &bottle),
        // A bottle with an unreadable record needs a person.
        Err(failure) => Case {
            status: CaseStatus::NeedsAttention,
            reason: format!("its record cannot be read: {failure}"),
            slug: Some(name),
            ..Case::default()
        },
    }));
    Ok(cases)
}

/// A bottle with its runs and its events, both oldest first.
pub(crate) struct BottleFacts {
    pub(crate) case: Case,
    pub(crate) record: Record,
    pub(crate) runs: Vec<Arc<RunSummary>>,
    pub(crate) events: Vec<WorkEvent>,
}

pub(crate) fn load_bottle_facts(web: &Web, slug: &str) -> Result<BottleFacts, Problem> {
    let opened = load_bottle(web, slug);
    let (case, bottle, record) = match opened {
        Ok((case, (bottle, record))) => (case, Some(bottle), record),
        Err(problem) => {
            let (case, record) = load_away(web, slug)?.ok_or(problem)?;
            (case, None, record)
        }
    };
    let events = match case.issue.as_ref().filter(|_| case.orchestrated) {
        Some(issue) => web.service.store.work_events(&issue.key())?,
        None => Vec::new(),
    };
    let runs = bottle.map(|bottle| web.closed.of_bottle(&bottle, &record)).unwrap_or_default();
    Ok(BottleFacts { case, record, runs, events })
}

/// The case of a bottle, wherever it is.
pub(crate) fn load_bottle_case(web: &Web, slug: &str) -> Result<Case, Problem> {
    match load_bottle(web, slug) {
        Ok((case, _)) => Ok(case),
        Err(problem) => load_away(web, slug)?.map(|(case, _)| case).ok_or(problem),
    }
}

/// A bottle of another host, by what that host has stored of it; its runs are on that host alone.
fn load_away(web: &Web, slug: &str) -> Result<Option<(Case, Record)>, Problem> {
    let store = &web.service.store;
    let is_it = |state: &ForgeState| {
        let host = state.host.as_ref();
        state.slug == slug
            && state.status != BottleState::Destroyed
            && host.is_some_and(|host| *host != web.service.host)
    };
    let Some(state) = store.forge_states()?.into_iter().find(is_it) else { return Ok(None) };
    let Some(work) = store.work(&state.key)? else { return Ok(None) };
    let Some(summary) = load_summary(&**store, &state.key)? else { return Ok(None) };
    let record = summary.record;
    let question = summary.question.filter(|_| work.state == WorkState::NeedsAttention);
    let case = Case {
        slug: Some(slug.to_owned()),
        backend: Some(record.backend.to_string()),
        question: question.filter(|_| is_question(&work.reason)),
        ..case_of_work(web, &work, None, Some(&state))
    };
    Ok(Some((case, record)))
}

pub(crate) fn load_bottle(web: &Web, slug: &str) -> Result<(Case, (Bottle, Record)), Problem> {
    let bottle = match Bottle::open(&web.service.home, slug) {
        Ok(bottle) => bottle,
        Err(failure) => {
            let problem = Problem::from(failure);
            let missing = match problem.status() {
                StatusCode::NOT_FOUND => find_missing(web, slug)?,
                _ => None,
            };
            return Err(missing.map_or(problem, |missing| Problem::missing(missing.fate)));
        }
    };
    let store = &web.service.store;
    let work = match &bottle.1.forge {
        Some(env) => store.work(&issue_key(env))?,
        None => None,
    };
    // A work item that was just claimed does not have its bottle's name yet.
    let is_ours =
        |work: &WorkItem| work.slug.as_deref().map_or(work.state.is_held(), |known| known == slug);
    let case = match work.filter(is_ours) {
        Some(work) => {
            let state = store.forge_state(&work.key)?;
            case_of_work(web, &work, Some(&bottle), state.as_ref())
        }
        None => case_of_bottle(web, &bottle),
    };
    Ok((case, bottle))
}

pub(crate) fn load_issue(web: &Web, key: &IssueKey) -> Result<Case, Problem> {
    let store = &web.service.store;
    let none = || Problem::missing(format!("there is no work on {key}"));
    let Some(work) = store.work(key)? else {
        // Its work is done with; the bottle's record stays.
        let state = store.forge_state(key)?.ok_or_else(none)?;
        let bottle = Bottle::open(&web.service.home, &state.slug).or(Err(none()))?;
        return Ok(case_of_bottle(web, &bottle));
    };
    let bottle = work.slug.as_ref().and_then(|slug| Bottle::open(&web.service.home, slug).ok());
    let state = store.forge_state(key)?;
    Ok(case_of_work(web, &work, bottle.as_ref(), state.as_ref()))
}

fn case_of_work(
    web: &Web,
    work: &WorkItem,
    bottle: Option<&(Bottle, Record)>,
    state: Option<&ForgeState>,
) -> Case {
    let runs = bottle.map(|(bottle, record)| web.closed.of_bottle(bottle, record));
    let runs = runs.unwrap_or_default();
    let record = bottle.map(|(_, record)| record);
    let agent = match (record, state, &work.request) {
        (Some(record), _, _) => record.agent.clone(),
        (None, _, WorkRequest::Start { agent, .. }) => agent.clone(),
        (None, Some(state), WorkRequest::Resume { .. } | WorkRequest::Wake { .. }) => {
            state.agent_name.clone()
        }
        (None, None, WorkRequest::Resume { .. } | WorkRequest::Wake { .. }) => String::new(),
    };
    let links = Links::of(web, &work.key, record);
    let number = record.and_then(|record| record.pull).or_else(|| {
        let same = |state: &&ForgeState| Some(&state.slug) == work.slug.as_ref();
        state.filter(same).and_then(|state| state.pr_number)
    });
    Case {
        status: CaseStatus::of_work(work.state),
        reason: work.reason.clone(),
        slug: work.slug.clone(),
        issue: Some(links.issue(&work.key, &work.title)),
        pull: number.map(|number| links.pull(number, &runs)),
        agent,
        host: state
            .filter(|state| state.status != BottleState::Destroyed)
            .and_then(|state| state.host.clone())
            .filter(|host| *host != web.service.host),
        saved_at: state
            .filter(|state| state.status != BottleState::Destroyed)
            .and_then(|state| state.saved.as_ref())
            .map(|saved| saved.at),
        backend: record.map(|record| record.backend.to_string()),
        created_at: work.created_at,
        updated_at: work.updated_at,
        not_before: work.not_before,
        destroy_at: work.destroy_at,
        cost_usd: total_cost(&runs),
        question: match work.state {
            WorkState::NeedsAttention if is_question(&work.reason) => {
                runs.last().and_then(|run| run.question.clone())
            }
            _ => None,
        },
        verdict: last_verdict(&runs),
        progress: bottle
            .filter(|_| work.state.is_held())
            .zip(runs.last())
            .and_then(|((bottle, _), run)| RunProgress::of(run, bottle)),
        runs: record.map(run_names).unwrap_or_default(),
        orchestrated: true,
    }
}

fn case_of_bottle(web: &Web, (bottle, record): &(Bottle, Record)) -> Case {
    let runs = web.closed.of_bottle(bottle, record);
    let last = runs.last();
    let key = record.forge.as_ref().map(issue_key);
    let links = key.as_ref().map(|key| Links::of(web, key, Some(record)));
    // The work item of a bottle that is done with is deleted; its events and the text of its issue stay.
    let events = key.as_ref().and_then(|key| web.service.store.work_events(key).ok());
    let event = events.as_ref().and_then(|events| events.last());
    let title = record.text.as_ref().map_or("", |text| text.title.as_str());
    let issue = links.as_ref().zip(key.as_ref()).map(|(links, key)| links.issue(key, title));
    let pull = record.pull.map(|number| match &links {
        Some(links) => links.pull(number, &runs),
        None => PullLink { number, url: None },
    });
    Case {
        status: CaseStatus::of_bottle(record.state),
        reason: match event.filter(|_| record.state == BottleState::Destroyed) {
            Some(event) => event.reason.clone(),
            None => last
                .and_then(|run| run.verdict.as_ref())
                .map(|verdict| verdict.message.clone())
                .unwrap_or_default(),
        },
        slug: Some(record.slug.to_string()),
        issue,
        pull,
        agent: record.agent.clone(),
        backend: Some(record.backend.to_string()),
        created_at: record.created_at,
        updated_at: last.map_or(record.created_at, |run| run.finished_at.unwrap_or(run.started_at)),
        cost_usd: total_cost(&runs),
        verdict: last_verdict(&runs),
        progress: last
            .filter(|_| record.state == BottleState::Running)
            .and_then(|run| RunProgress::of(run, bottle)),
        runs: run_names(record),
        orchestrated: event.is_some() && record.state == BottleState::Destroyed,
        ..Case::default()
    }
}

fn run_names(record: &Record) -> Vec<String> {
    record.runs.iter().map(ToString::to_string).collect()
}

fn last_verdict(runs: &[Arc<RunSummary>]) -> Option<String> {
    let verdicts = runs.iter().rev().filter_map(|run| run.verdict.as_ref());
    verdicts.map(|verdict| verdict.kind.clone()).next()
}

fn total_cost(runs: &[Arc<RunSummary>]) -> Option<f64> {
    let costs: Vec<f64> = runs.iter().filter_map(|run| run.cost_usd).collect();
    (!costs.is_empty()).then(|| costs.iter().sum())
}

/// An issue with the address of its page.
pub(super) fn summarize_issue(web: &Web, key: &IssueKey, title: &str) -> IssueSummary {
    Links::of(web, key, None).issue(key, title)
}

/// Addresses of a repository's pages, from the settings or else from its bottle.
struct Links(Option<ForgeEnv>);

impl Links {
    fn of(web: &Web, key: &IssueKey, record: Option<&Record>) -> Self {
        let served = web.service.repos();
        let served = served.find(&key.owner, &key.repo);
        let served = served.map(|repo| repo.access(key.issue_number, None).env);
        Self(served.or_else(|| record.and_then(|record| record.forge.clone())))
    }

    fn issue(&self, key: &IssueKey, title: &str) -> IssueSummary {
        IssueSummary {
            owner: key.owner.clone(),
            repo: key.repo.clone(),
            number: key.issue_number,
            title: title.to_owned(),
            url: self.0.as_ref().and_then(|env| safe_href(&env.issue_url())),
        }
    }

    /// The address that the forge reported comes first.
    fn pull(&self, number: u64, runs: &[Arc<RunSummary>]) -> PullLink {
        let reported = runs.iter().rev().find(|run| run.pull_number == Some(number));
        let reported = reported.and_then(|run| run.pull_url.clone());
        let known = || self.0.as_ref().and_then(|env| safe_href(&env.pull_url(number)));
        PullLink { number, url: reported.or_else(known) }
    }
}
