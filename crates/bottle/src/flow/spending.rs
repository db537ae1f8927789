//! Spending of the orchestrator's runs: reserved in the database before a run starts, settled from the run's record. The
//! record outlives every process, so whoever comes next settles what a killed one could not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use egress::model_route::Spend;
use egress::record::EgressEntry;
use engine::run::SavedRun;
use model::exit::BottleExit;
use model::id::RunId;
use orchestrator_db::{Amount, BudgetRefusal, BudgetUnit, IssueKey, Spending, Store};
use run_store::run_dir::RunDir;

use super::bottle::{Bottle, agent_box};
use super::context::RunContext;
use super::home::Home;
use super::run_record::BottleRunPart;
use crate::exit::{Failure, OrGeneral};
use crate::rules::agent_manifest::{AgentManifest, SpendTable};
use crate::rules::budget::{
    BudgetReason, BudgetSettings, SpendingFacts, UnlimitedRun, explain_refusal, lower_limits,
    micro_usd, spent_amount, usd_of, with_unlimited,
};

/// Budgets of the runs of one claim.
#[derive(Debug)]
pub(crate) struct RunBudget {
    settings: BudgetSettings,
    refused: Mutex<Option<BudgetReason>>,
}

impl RunBudget {
    pub(crate) fn new(settings: BudgetSettings) -> Self {
        Self { settings, refused: Mutex::default() }
    }

    /// Limits a run to the most that it reserves. An agent whose dollars nobody could count is refused.
    pub(crate) fn cap(&self, agent: &str, manifest: &mut AgentManifest) -> Result<(), Failure> {
        self.settings.check_agent(agent, manifest).map_err(Failure::usage)?;
        let spend = &mut manifest.spend;
        let most = self.settings.most(spend);
        (spend.max_tokens, spend.max_usd) = (most.tokens, most.micro_usd.map(usd_of));
        Ok(())
    }

    /// Reserves the most of a run that is about to start. The caller holds the bottle's lock, so no other run of the issue
    /// is at work, and what earlier ones left is settled first.
    pub(crate) fn reserve(
        &self,
        context: RunContext<'_>,
        key: &IssueKey,
        run: &NewRun<'_>,
    ) -> Result<(), Failure> {
        let RunContext { home, rows, .. } = context;
        settle_issue(home, &rows.host()?, &*rows.store()?, key)?;
        let now = host::clock::now();
        let mut request = self.settings.reservation(key, run.agent, run.spend, now);
        let unlimited = unlimited_runs(home, &rows.host()?, &*rows.store()?, &self.settings)?;
        lower_limits(&mut request, key, &unlimited);
        let name = run_name(run.slug, run.id);
        let Some(refusal) = rows.reserve(key, &name, &request)? else {
            host::failpoint::hit("reserved");
            return Ok(());
        };
        let held = (&self.settings, unlimited.as_slice());
        Err(self.refuse(&with_unlimited(&refusal, key, request.day, held), key))
    }

    fn refuse(&self, refusal: &BudgetRefusal, key: &IssueKey) -> Failure {
        let reason = explain_refusal(&self.settings, refusal, key, host::clock::now());
        let failure = Failure::new(BottleExit::General, reason.text.clone());
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        failure
    }

    /// Reason why a run of this claim was not started, if a budget was.
    pub(crate) fn refused(&self) -> Option<BudgetReason> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A run that is about to start.
pub(crate) struct NewRun<'a> {
    pub(crate) slug: &'a str,
    pub(crate) id: &'a RunId,
    pub(crate) agent: &'a str,
    pub(crate) spend: &'a SpendTable,
}

/// Name of a run in the database: its bottle and its id.
fn run_name(slug: &str, run: &RunId) -> String {
    format!("{slug}/{run}")
}

/// Settles the runs of an issue that have ended. None of them may be about to start.
pub(crate) fn settle_issue(
    home: &Home,
    host: &str,
    store: &dyn Store,
    key: &IssueKey,
) -> Result<(), Failure> {
    let rows = store.spending_of(key).or_general()?;
    rows.iter().filter(|row| row.spent.is_none()).try_for_each(|row| settle(home, host, store, row))
}

/// Settles a run of this host if it has ended; what cannot be read stays reserved.
pub(crate) fn settle(
    home: &Home,
    host: &str,
    store: &dyn Store,
    row: &Spending,
) -> Result<(), Failure> {
    // The record of another host's run is on its disk alone.
    if row.host.as_deref().is_some_and(|other| other != host) {
        return Ok(());
    }
    let Some((slug, run)) = row.run.as_deref().and_then(|name| name.split_once('/')) else {
        return Ok(());
    };
    match observe_spent(home, slug, run) {
        Ok(RunSpent::Ended(spent)) => {
            store.settle_spending(row.seq, &spent).or_general()?;
            count_settled(&spent);
            Ok(())
        }
        Ok(RunSpent::NeverBegan) => store.release_spending(row.seq).or_general(),
        Ok(RunSpent::Open) => Ok(()),
        Err(failure) => {
            tracing::warn!(slug, run, %failure, "what a run spent is not known yet");
            Ok(())
        }
    }
}

/// Spending of the runs that this process has settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SettledSpending {
    pub(crate) tokens: u64,
    pub(crate) micro_usd: u64,
    /// Runs whose tokens nobody counted.
    pub(crate) uncounted_runs: u64,
}

/// In the order of the fields.
static SETTLED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

fn count_settled(spent: &Amount) {
    let counts = [
        spent.tokens.unwrap_or_default(),
        spent.micro_usd.unwrap_or_default(),
        u64::from(spent.tokens.is_none()),
    ];
    for (sum, count) in SETTLED.iter().zip(counts) {
        sum.fetch_add(count, Ordering::Relaxed);
    }
}

pub(crate) fn settled_spending() -> SettledSpending {
    let [tokens, micro_usd, uncounted_runs] =
        [0, 1, 2].map(|at: usize| SETTLED[at].load(Ordering::Relaxed));
    SettledSpending { tokens, micro_usd, uncounted_runs }
}

/// Runs of this host that are at work without a limit in a unit in which runs are limited now, with what they have spent so
/// far.
pub(crate) fn unlimited_runs(
    home: &Home,
    host: &str,
    store: &dyn Store,
    settings: &BudgetSettings,
) -> Result<Vec<UnlimitedRun>, Failure> {
    let most = settings.most(&SpendTable::default());
    let rows = store.unsettled_spending().or_general()?;
    let is_unlimited = |row: &Spending| {
        let lacks = |unit| most.of(unit).is_some() && row.reserved.of(unit).is_none();
        BudgetUnit::ALL.into_iter().any(lacks)
    };
    let is_here = |row: &Spending| row.host.as_deref().is_none_or(|of| of == host);
    let unlimited = rows.into_iter().filter(|row| is_unlimited(row) && is_here(row));
    Ok(unlimited
        .map(|Spending { seq, key, day, reserved, run, .. }| {
            let spent = run.and_then(|name| usage_of_run(home, &name)).unwrap_or_default();
            let spent = Amount {
                tokens: Some(spent.tokens),
                // Without prices the proxy counts no dollars.
                micro_usd: (spent.usd > 0.0).then(|| micro_usd(spent.usd)),
            };
            UnlimitedRun { seq, key, day, reserved, spent }
        })
        .collect())
}

fn usage_of_run(home: &Home, name: &str) -> Option<UsageSoFar> {
    let (slug, run) = name.split_once('/')?;
    let (bottle, record) = Bottle::open(home, slug).ok()?;
    let id = record.runs.iter().find(|id| id.as_str() == run)?;
    usage_so_far(&bottle.run(id).ok()?)
}

/// Usage of a run that the proxy has logged until now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct UsageSoFar {
    pub(crate) calls: u64,
    pub(crate) tokens: u64,
    pub(crate) usd: f64,
}

/// Usage of a box that is at work; `None` before its proxy has a log. An incomplete line does not count.
pub(crate) fn usage_so_far(dir: &RunDir) -> Option<UsageSoFar> {
    let text = std::fs::read_to_string(agent_box(dir).ok()?.egress_log()).ok()?;
    let entries = text.lines().filter_map(|line| serde_json::from_str::<EgressEntry>(line).ok());
    let spends = entries.filter_map(|entry| entry.spend);
    Some(spends.fold(UsageSoFar::default(), |sum, Spend { tokens, usd, .. }| UsageSoFar {
        calls: sum.calls + 1,
        tokens: sum.tokens + tokens.input + tokens.output + tokens.cache_read + tokens.cache_write,
        usd: sum.usd + usd,
    }))
}

/// Knowledge about what a run spent.
enum RunSpent {
    /// It may spend more.
    Open,
    Ended(Amount),
    /// The process that reserved it was killed before the run was written down. Another run may get its name.
    NeverBegan,
}

fn observe_spent(home: &Home, slug: &str, run: &str) -> Result<RunSpent, Failure> {
    // A run is reserved after its bottle's record was written: a record that is absent is lost, or its disk is not mounted.
    if !home.bottles.join(slug).join("record.json").exists() {
        return Ok(RunSpent::Open);
    }
    let (bottle, record) = Bottle::open(home, slug)?;
    // A run is written down before its box starts.
    match record.runs.iter().find(|id| id.as_str() == run) {
        Some(id) => spent_by(bottle.run(id)?),
        None => Ok(RunSpent::NeverBegan),
    }
}

fn spent_by(dir: RunDir) -> Result<RunSpent, Failure> {
    let saved = SavedRun::<BottleRunPart>::load(dir).or_general()?;
    let exit = saved.record.agent_box.as_ref();
    if exit.is_none() && !saved.dir.is_closed() {
        return Ok(RunSpent::Open);
    }
    Ok(RunSpent::Ended(spent_amount(&SpendingFacts {
        egress: saved.plan.egress.as_ref(),
        has_log: agent_box(&saved.dir)?.egress_log().exists(),
        usage: exit.and_then(|exit| exit.egress.as_ref()).map(|report| &report.usage),
    })))
}
