//! One run, from its metadata. A closed run never changes, so its summary is cached.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::agent_log::LogText;
use engine::launch::{self, BoxStatus};
use jiff::Timestamp;
use model::id::RunId;
use run_store::run_dir::RunDir;
use sandbox::spec::BoxOutput;
use serde::Serialize;
use serde_json::json;
use sidecar::DoneStatus;
use utoipa::ToSchema;

use super::super::rules::format::after;
use super::super::rules::link::safe_href;
use super::super::rules::log_style::LogStyle;
use super::super::rules::steps::StepReader;
use crate::exit::{Failure, OrGeneral};
use crate::flow::bottle::{Bottle, Record, agent_box};
use crate::flow::home::Home;
use crate::flow::run_record::{BottleRunRecord, load_run};
use crate::flow::spending::{UsageSoFar, usage_so_far};

/// A run in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunSummary {
    /// The bottle.
    pub(crate) slug: String,
    /// The run.
    pub(crate) run: String,
    /// The agent.
    pub(crate) agent: String,
    /// Its kind.
    pub(crate) provider: String,
    /// Its model, where the manifest names one.
    pub(crate) model: Option<String>,
    /// The sandbox.
    pub(crate) backend: String,
    /// The last phase that it completed.
    pub(crate) phase: String,
    /// The current activity.
    pub(crate) doing: &'static str,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) started_at: Timestamp,
    /// When its record was closed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) finished_at: Option<Timestamp>,
    /// The host's verdict.
    pub(crate) verdict: Option<VerdictSummary>,
    /// Exit status of a headless run.
    pub(crate) exit_status: Option<u8>,
    /// Whether it ended without a report of its agent.
    pub(crate) watchdog_fired: bool,
    /// Number of its new commits.
    pub(crate) commits: usize,
    /// Its cost so far in dollars, if known.
    pub(crate) cost_usd: Option<f64>,
    /// Whether the host measured the cost or the agent claimed it.
    pub(crate) cost_source: Option<CostSource>,
    /// Tokens so far that the proxy counted; null where nobody counts them.
    pub(crate) tokens: Option<u64>,
    /// Its pull request.
    pub(crate) pull_number: Option<u64>,
    /// Address of the pull request.
    pub(crate) pull_url: Option<String>,
    /// The run that it resumes.
    pub(crate) parent: Option<String>,
    /// The agent's question, if it waits for a person.
    pub(crate) question: Option<String>,
}

/// A verdict, for machines and for people.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct VerdictSummary {
    /// One word.
    pub(crate) kind: String,
    /// A sentence for people.
    pub(crate) message: String,
}

/// Source of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CostSource {
    /// The proxy counted it.
    Measured,
    /// The agent claimed it.
    Claimed,
}

/// Cache of closed runs, by bottle and run.
#[derive(Debug, Default)]
pub(crate) struct ClosedRuns {
    known: Mutex<HashMap<(String, RunId), Arc<RunSummary>>>,
}

impl ClosedRuns {
    pub(crate) fn facts(&self, slug: &str, dir: &RunDir) -> Result<Arc<RunSummary>, Failure> {
        let key = (slug.to_owned(), dir.id().clone());
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        // Read before the file is read: a run that is closed in between is read again next time.
        let closed = dir.is_closed();
        let meta = load_run(dir)?;
        let facts = Arc::new(facts_of(dir, &meta));
        if closed {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(key, Arc::clone(&facts));
        }
        Ok(facts)
    }

    /// The facts of all runs of a bottle, oldest first. One that cannot be read yet (it is being made) is left out.
    pub(crate) fn of_bottle(&self, bottle: &Bottle, record: &Record) -> Vec<Arc<RunSummary>> {
        let slug = bottle.slug().as_str();
        let load = |run: &RunId| self.facts(slug, &bottle.run(run).ok()?).ok();
        record.runs.iter().filter_map(load).collect()
    }
}

#[derive(Debug)]
pub(crate) struct FoundRun {
    pub(crate) dir: RunDir,
    pub(crate) meta: BottleRunRecord,
}

impl FoundRun {
    /// Finds a run of a bottle. Both names are checked: they become parts of a path.
    pub(crate) fn open(home: &Home, slug: &str, run: &str) -> Result<Self, Failure> {
        let none = || Failure::not_found(format!("the bottle '{slug}' has no run '{run}'"));
        let (bottle, record) = Bottle::open(home, slug)?;
        let id = record.runs.iter().find(|id| id.as_str() == run).ok_or_else(none)?;
        let dir = bottle.run(id)?;
        let meta = load_run(&dir)?;
        Ok(Self { dir, meta })
    }

    pub(crate) fn facts(&self) -> RunSummary {
        facts_of(&self.dir, &self.meta)
    }

    /// The log of the agent's box.
    pub(crate) fn log(&self) -> Result<PathBuf, Failure> {
        Ok(agent_box(&self.dir)?.stdout(BoxOutput::Log { cap: 0 }))
    }

    /// A reader of its steps from an offset of its log on; `None` in a style without steps.
    pub(crate) fn steps(&self, style: LogStyle, offset: u64) -> Option<StepReader> {
        let LogStyle::Steps(provider) = style else { return None };
        let mut log = LogText::new(provider);
        if let Ok(place) = agent_box(&self.dir) {
            log.read_times(&place);
        }
        Some(StepReader::new(log, offset))
    }

    /// True if its box runs, or is about to be started.
    pub(crate) fn is_running(&self) -> Result<bool, Failure> {
        Ok(match launch::box_status(&agent_box(&self.dir)?).or_general()? {
            BoxStatus::Running => true,
            BoxStatus::NeverStarted => !self.dir.is_closed(),
            BoxStatus::Ended(_) | BoxStatus::Orphaned => false,
        })
    }
}

fn facts_of(dir: &RunDir, meta: &BottleRunRecord) -> RunSummary {
    let usage = usage_of(dir, meta);
    let cost = cost_of(usage, meta);
    let pull = meta.publication.as_ref().and_then(|sent| sent.pull.as_ref());
    RunSummary {
        slug: meta.slug.to_string(),
        run: meta.run.to_string(),
        agent: meta.agent.clone(),
        provider: meta.manifest.provider.clone(),
        model: meta.manifest.model.clone(),
        backend: meta.backend.to_string(),
        phase: json!(meta.phase).as_str().unwrap_or_default().to_owned(),
        doing: after(meta.phase),
        started_at: meta.started_at,
        finished_at: meta.finished_at,
        verdict: meta
            .verdict
            .as_ref()
            .map(|verdict| VerdictSummary { kind: verdict.kind(), message: verdict.words() }),
        exit_status: meta.exit_status,
        watchdog_fired: meta.watchdog.is_some(),
        commits: meta.evidence.as_ref().map_or(0, |evidence| evidence.new_commits.len()),
        cost_usd: cost.map(|(usd, _)| usd),
        cost_source: cost.map(|(_, source)| source),
        tokens: usage.map(|usage| usage.tokens),
        pull_number: pull.map(|pull| pull.number),
        pull_url: pull.and_then(|pull| safe_href(&pull.url)),
        parent: meta.parent.as_ref().map(ToString::to_string),
        question: meta
            .done
            .as_ref()
            .filter(|done| done.status == DoneStatus::Blocked)
            .map(|done| done.summary.clone()),
    }
}

/// Counts of the proxy: of a box that has ended from its report, of one at work from its log.
fn usage_of(dir: &RunDir, meta: &BottleRunRecord) -> Option<UsageSoFar> {
    match &meta.agent_box {
        Some(record) => {
            let usage = &record.egress.as_ref()?.usage;
            let (calls, tokens, usd) = (usage.requests, usage.tokens(), usage.usd);
            (calls > 0).then_some(UsageSoFar { calls, tokens, usd })
        }
        None => usage_so_far(dir).filter(|usage| usage.calls > 0),
    }
}

/// The measured cost outranks the agent's claim.
fn cost_of(usage: Option<UsageSoFar>, meta: &BottleRunRecord) -> Option<(f64, CostSource)> {
    let claimed = meta.agent_result.as_ref().and_then(|result| result.cost_usd);
    usage
        .map(|usage| usage.usd)
        .filter(|usd| *usd > 0.0)
        .map(|usd| (usd, CostSource::Measured))
        .or_else(|| claimed.map(|usd| (usd, CostSource::Claimed)))
}
