//! Budgets of `serve`: what a run may spend, which budgets it is held against, and the words for one without room.

use std::collections::BTreeMap;

use egress::{EgressConfig, ModelUsage};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use orchestrator_db::{
    Amount, BudgetLimit, BudgetRefusal, BudgetScope, BudgetUnit, IssueKey, RunReservation,
};
use serde::Deserialize;

use super::agent_manifest::{AgentManifest, SpendTable};

/// Largest number of tokens in a budget; sums of them stay exact.
const TOKENS_MAX: u64 = 1_000_000_000_000_000;
/// Largest number of dollars in a budget.
const USD_MAX: f64 = 1e9;

/// Budgets. Those of repositories, organisations and the host are for one day, in UTC; that of an issue is for all days.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetSettings {
    pub(crate) run: BudgetTable,
    pub(crate) issue: BudgetTable,
    pub(crate) repository: BudgetTable,
    pub(crate) organisation: BudgetTable,
    pub(crate) host: BudgetTable,
    /// Budgets of single repositories, in place of `repository`.
    pub(crate) repositories: BTreeMap<String, BudgetTable>,
    /// Budgets of single organisations, in place of `organisation`.
    pub(crate) organisations: BTreeMap<String, BudgetTable>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetTable {
    pub(crate) tokens: Option<u64>,
    pub(crate) usd: Option<f64>,
}

impl BudgetTable {
    fn amount(&self) -> Amount {
        Amount { tokens: self.tokens, micro_usd: self.usd.map(micro_usd) }
    }

    fn is_set(&self) -> bool {
        self.tokens.is_some() || self.usd.is_some()
    }
}

impl BudgetSettings {
    /// Refuses what cannot be meant. `repos` are the served repositories.
    pub(crate) fn check(&self, repos: &[&str]) -> Result<(), String> {
        for (name, table) in self.tables() {
            if table.tokens.is_some_and(|tokens| tokens > TOKENS_MAX) {
                return Err(format!("{name}.tokens cannot be more than {TOKENS_MAX}"));
            }
            if table.usd.is_some_and(|usd| !(0.0..=USD_MAX).contains(&usd)) {
                return Err(format!("{name}.usd is a number of dollars, up to {USD_MAX}"));
            }
            for (unit, is_needed, has_run) in [
                ("tokens", table.tokens.is_some(), self.run.tokens.is_some()),
                ("usd", table.usd.is_some(), self.run.usd.is_some()),
            ] {
                if is_needed && !has_run {
                    return Err(format!(
                        "{name}.{unit} needs budget.run.{unit}: a run reserves its most before it starts"
                    ));
                }
            }
        }
        if self.run.tokens == Some(0) || self.run.usd == Some(0.0) {
            return Err("budget.run cannot be 0: no run could start".to_owned());
        }
        for name in self.repositories.keys() {
            // `acme/*` stands for all repositories of acme.
            let has = |repo: &str| match repo.strip_suffix("/*") {
                Some(owner) => {
                    name.rsplit_once('/').is_some_and(|it| it.0.eq_ignore_ascii_case(owner))
                }
                None => repo.eq_ignore_ascii_case(name),
            };
            if !repos.iter().any(|repo| has(repo)) {
                return Err(format!("budget.repositories: '{name}' is not served"));
            }
        }
        for name in self.organisations.keys() {
            if !repos.iter().any(|repo| organisation_of(repo).eq_ignore_ascii_case(name)) {
                return Err(format!("budget.organisations: no repository of '{name}' is served"));
            }
        }
        Ok(())
    }

    /// Refuses an agent whose dollars are limited and cannot be counted.
    pub(crate) fn check_agent(&self, agent: &str, manifest: &AgentManifest) -> Result<(), String> {
        match self.run.usd {
            Some(_) if manifest.uses_model() && !manifest.spend.has_price() => Err(format!(
                "the agent '{agent}' has no price, and budget.run.usd limits its dollars; set input_price and \
                 output_price below [spend] in its manifest"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Every table with its key in the configuration.
    fn tables(&self) -> Vec<(String, BudgetTable)> {
        let plain = [
            ("run", self.run),
            ("issue", self.issue),
            ("repository", self.repository),
            ("organisation", self.organisation),
            ("host", self.host),
        ];
        let named = |kind: &str, tables: &BTreeMap<String, BudgetTable>| -> Vec<_> {
            tables.iter().map(|(name, table)| (format!("budget.{kind}.{name:?}"), *table)).collect()
        };
        let mut all: Vec<_> =
            plain.into_iter().map(|(name, table)| (format!("budget.{name}"), table)).collect();
        all.extend(named("repositories", &self.repositories));
        all.extend(named("organisations", &self.organisations));
        all
    }

    /// The most that one run can spend: its manifest's limit or the budget's, whichever is less.
    pub(crate) fn most(&self, spend: &SpendTable) -> Amount {
        let run = self.run.amount();
        let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Amount {
            tokens: least(run.tokens, spend.max_tokens),
            micro_usd: least(run.micro_usd, spend.max_usd.map(micro_usd)),
        }
    }

    /// Budgets that a run for an issue is held against. That of the issue comes first: it does not open by itself.
    pub(crate) fn limits(&self, owner: &str, repo: &str) -> Vec<BudgetLimit> {
        let full_name = format!("{owner}/{repo}");
        let organisation = organisation_of(owner);
        [
            (BudgetScope::Issue, self.issue),
            (BudgetScope::Host, self.host),
            (
                BudgetScope::Organisation,
                find(&self.organisations, organisation).unwrap_or(self.organisation),
            ),
            (
                BudgetScope::Repository,
                find(&self.repositories, &full_name).unwrap_or(self.repository),
            ),
        ]
        .into_iter()
        .filter(|(_, table)| table.is_set())
        .map(|(scope, table)| BudgetLimit { scope, most: table.amount() })
        .collect()
    }

    /// Key of a budget in the configuration.
    fn key_of(&self, scope: BudgetScope, key: &IssueKey) -> String {
        let full_name = format!("{}/{}", key.owner, key.repo);
        let organisation = organisation_of(&key.owner);
        match scope {
            BudgetScope::Issue => "budget.issue".to_owned(),
            BudgetScope::Repository if find(&self.repositories, &full_name).is_some() => {
                format!("budget.repositories.{full_name:?}")
            }
            BudgetScope::Repository => "budget.repository".to_owned(),
            BudgetScope::Organisation if find(&self.organisations, organisation).is_some() => {
                format!("budget.organisations.{organisation:?}")
            }
            BudgetScope::Organisation => "budget.organisation".to_owned(),
            BudgetScope::Host => "budget.host".to_owned(),
        }
    }

    /// Reservation for a run that would start at `now`.
    pub(crate) fn reservation(
        &self,
        key: &IssueKey,
        agent: &str,
        spend: &SpendTable,
        now: Timestamp,
    ) -> RunReservation {
        RunReservation {
            agent: agent.to_owned(),
            most: self.most(spend),
            limits: self.limits(&key.owner, &key.repo),
            day: day_of(now),
        }
    }

    /// Budgets into which not even one run of an agent fits, in words.
    pub(crate) fn never_fitting(
        &self,
        repos: &[&str],
        agent: &str,
        spend: &SpendTable,
    ) -> Vec<String> {
        let most = self.most(spend);
        let mut found = Vec::new();
        for repo in repos {
            let (owner, name) = repo.rsplit_once('/').unwrap_or(("", repo));
            let key = IssueKey { owner: owner.to_owned(), repo: name.to_owned(), issue_number: 0 };
            for limit in self.limits(owner, name) {
                for unit in BudgetUnit::ALL {
                    let (Some(limited), Some(wanted)) = (limit.most.of(unit), most.of(unit)) else {
                        continue;
                    };
                    if wanted > limited {
                        let name = match limit.scope {
                            BudgetScope::Issue => "an issue".to_owned(),
                            scope => name_scope(scope, &key),
                        };
                        let words = format!(
                            "a run of '{agent}' reserves {}, more than the whole budget of {name}, {}",
                            words_of(unit, wanted),
                            words_of(unit, limited)
                        );
                        if !found.contains(&words) {
                            found.push(words);
                        }
                    }
                }
            }
        }
        found
    }
}

/// A run at work that has no limit in some unit, because it was started before a budget asked for one. The store counts it as
/// the most of the run that wants to start; what it has spent beyond that is added here.
#[derive(Debug, Clone)]
pub(crate) struct UnlimitedRun {
    /// Its row in the store.
    pub(crate) seq: u64,
    pub(crate) key: IssueKey,
    pub(crate) day: Date,
    pub(crate) reserved: Amount,
    /// Spent so far.
    pub(crate) spent: Amount,
}

impl UnlimitedRun {
    /// The amount that it has spent beyond `most`, in a budget that covers it.
    fn beyond(&self, scope: BudgetScope, held: &HeldRun<'_>, unit: BudgetUnit) -> u64 {
        let (own, other) = (held.key, &self.key);
        let same_repository = own.owner == other.owner && own.repo == other.repo;
        let is_covered = match scope {
            BudgetScope::Issue => own == other,
            BudgetScope::Repository => same_repository && self.day == held.day,
            BudgetScope::Organisation => {
                organisation_of(&own.owner) == organisation_of(&other.owner) && self.day == held.day
            }
            BudgetScope::Host => self.day == held.day,
        };
        match (self.reserved.of(unit), self.spent.of(unit), held.most.of(unit)) {
            (None, Some(spent), Some(most)) if is_covered => spent.saturating_sub(most),
            _ => 0,
        }
    }
}

/// The run that wants to start.
struct HeldRun<'a> {
    key: &'a IssueKey,
    day: Date,
    most: Amount,
}

/// Lowers the limits of a reservation by what runs without a limit have spent and the store does not know.
pub(crate) fn lower_limits(request: &mut RunReservation, key: &IssueKey, runs: &[UnlimitedRun]) {
    let held = HeldRun { key, day: request.day, most: request.most };
    for limit in &mut request.limits {
        let scope = limit.scope;
        let beyond = |unit| runs.iter().map(|run| run.beyond(scope, &held, unit)).sum();
        limit.most = Amount {
            tokens: limit.most.tokens.map(|most| most.saturating_sub(beyond(BudgetUnit::Tokens))),
            micro_usd: limit
                .most
                .micro_usd
                .map(|most| most.saturating_sub(beyond(BudgetUnit::MicroUsd))),
        };
    }
}

/// The refusal of a reservation with lowered limits, in the numbers of the budget.
pub(crate) fn with_unlimited(
    refusal: &BudgetRefusal,
    key: &IssueKey,
    day: Date,
    (settings, runs): (&BudgetSettings, &[UnlimitedRun]),
) -> BudgetRefusal {
    let BudgetRefusal { scope, unit, .. } = *refusal;
    let limits = settings.limits(&key.owner, &key.repo);
    let limit = limits.iter().find(|limit| limit.scope == scope);
    let Some(limit) = limit.and_then(|limit| limit.most.of(unit)) else { return *refusal };
    let most = match unit {
        BudgetUnit::Tokens => Amount { tokens: Some(refusal.wanted), micro_usd: None },
        BudgetUnit::MicroUsd => Amount { tokens: None, micro_usd: Some(refusal.wanted) },
    };
    let held = HeldRun { key, day, most };
    let beyond: u64 = runs.iter().map(|run| run.beyond(scope, &held, unit)).sum();
    BudgetRefusal { limit, reserved: refusal.reserved.saturating_add(beyond), ..*refusal }
}

/// Table of a name; like forges, it ignores case.
fn find(tables: &BTreeMap<String, BudgetTable>, name: &str) -> Option<BudgetTable> {
    tables.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, table)| *table)
}

/// The outermost group of an owner, or of a repository's full name.
pub(crate) fn organisation_of(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// Reason for which a run does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BudgetReason {
    /// The part that stays the same while the same budget is the reason.
    pub(crate) head: String,
    pub(crate) text: String,
    /// Time at which the budget opens, if it does by itself.
    pub(crate) opens: Option<Timestamp>,
    /// True if a run that is at work may leave room for it.
    pub(crate) may_fit_soon: bool,
}

/// Explains a refusal on a day. Amounts change, so they come with their time.
pub(crate) fn explain_refusal(
    settings: &BudgetSettings,
    refusal: &BudgetRefusal,
    key: &IssueKey,
    now: Timestamp,
) -> BudgetReason {
    let BudgetRefusal { scope, unit, limit, spent, reserved, wanted } = *refusal;
    let (name, setting, day) = (name_scope(scope, key), settings.key_of(scope, key), day_of(now));
    let amount = |amount| words_of(unit, amount);
    let is_daily = scope != BudgetScope::Issue;
    if wanted > limit {
        let head = format!(
            "a run reserves {}, more than the whole budget of {name}, {}",
            amount(wanted),
            amount(limit)
        );
        let text = format!("{head}; raise {setting}, or lower budget.run");
        return BudgetReason { head, text, opens: None, may_fit_soon: false };
    }
    let on = if is_daily { format!(" on {day}") } else { String::new() };
    let at = now.strftime("%H:%M UTC");
    let may_fit_soon = spent.saturating_add(wanted) <= limit;
    let state = match (may_fit_soon, spent >= limit) {
        (true, _) => "is reserved by runs at work",
        (false, true) => "is spent",
        (false, false) => "has no room for another run",
    };
    let head = format!("the budget of {name}{on}, {}, {state}", amount(limit));
    let numbers = format!(
        "at {at} {} are spent and {} reserved, and a run reserves {}",
        amount(spent),
        amount(reserved),
        amount(wanted)
    );
    let mut ways = Vec::new();
    if may_fit_soon {
        ways.push("when a run ends with less".to_owned());
    }
    if is_daily {
        ways.push("at 00:00 UTC".to_owned());
    }
    ways.push(format!("when {setting} is raised"));
    let text = format!("{head}: {numbers}; it goes on {}", ways.join(", or "));
    let midnight = day.tomorrow().ok().and_then(|next| next.to_zoned(TimeZone::UTC).ok());
    let opens = midnight.filter(|_| is_daily && !may_fit_soon).map(|at| at.timestamp());
    BudgetReason { head, text, opens, may_fit_soon }
}

/// Name of the runs that a budget covers.
pub(crate) fn name_scope(scope: BudgetScope, key: &IssueKey) -> String {
    match scope {
        BudgetScope::Issue => format!("issue {}", key.issue_number),
        BudgetScope::Repository => format!("repository {}/{}", key.owner, key.repo),
        BudgetScope::Organisation => format!("organisation {}", organisation_of(&key.owner)),
        BudgetScope::Host => "this host".to_owned(),
    }
}

fn words_of(unit: BudgetUnit, amount: u64) -> String {
    match unit {
        BudgetUnit::Tokens => format!("{} tokens", group_digits(amount)),
        BudgetUnit::MicroUsd => render_usd(amount),
    }
}

/// Dollars, in cents unless that hides them.
pub(crate) fn render_usd(micro_usd: u64) -> String {
    let (dollars, rest) = (micro_usd / 1_000_000, micro_usd % 1_000_000);
    match rest % 10_000 {
        0 => format!("{}.{:02} dollars", group_digits(dollars), rest / 10_000),
        _ => format!("{}.{:06} dollars", group_digits(dollars), rest),
    }
}

/// A number in groups of three digits.
pub(crate) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// Millionths of dollars, rounded up: a fraction of one is not free.
#[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates")]
#[expect(clippy::cast_sign_loss, reason = "no amount is negative")]
pub(crate) fn micro_usd(usd: f64) -> u64 {
    // A product of a decimal fraction leaves a rest that is no amount.
    (usd * 1e6 - 1e-3).ceil().max(0.0) as u64
}

/// Dollars of a cap.
#[expect(clippy::cast_precision_loss, reason = "budgets end far below 2^52")]
pub(crate) fn usd_of(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

/// The day of a time, in UTC.
pub(crate) fn day_of(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

/// Amount that a run spent, as far as somebody counted it.
pub(crate) fn spent_amount(facts: &SpendingFacts<'_>) -> Amount {
    match facts {
        // Without egress there is no way to a model, and without a log the proxy never began.
        SpendingFacts { egress: None, .. } | SpendingFacts { has_log: false, .. } => Amount::ZERO,
        SpendingFacts { egress: Some(EgressConfig { model: Some(model), .. }), usage, .. } => usage
            .map_or_else(Amount::default, |usage| {
                let is_priced = !model.prices.is_empty() || usage.tokens() == 0;
                Amount {
                    tokens: Some(usage.tokens()),
                    micro_usd: is_priced.then(|| micro_usd(usage.usd)),
                }
            }),
        // The agent may reach a model by itself.
        SpendingFacts { egress: Some(EgressConfig { model: None, .. }), .. } => Amount::default(),
    }
}

/// Facts about the spending of a run that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpendingFacts<'a> {
    /// Egress of its plan.
    pub(crate) egress: Option<&'a EgressConfig>,
    /// True if the proxy opened its log.
    pub(crate) has_log: bool,
    /// Usage in the proxy's report; `None` without a report.
    pub(crate) usage: Option<&'a ModelUsage>,
}
