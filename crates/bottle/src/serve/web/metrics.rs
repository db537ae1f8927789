//! `/metrics`: numbers for monitoring and alerts, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use orchestrator_db::HostRow;

use super::facts::case::{Case, load_cases};
use super::facts::spending::{BudgetUse, SpendingReport, load_spending};
use super::problem::Problem;
use super::rules::case_status::CaseStatus;
use super::{STREAMS_MAX, Web, WebState, health, query};
use crate::flow::bottle::Bottle;
use crate::flow::spending::settled_spending;
use crate::rules::budget::day_of;
use crate::serve::Service;
use crate::serve::vitals::{DURATION_BUCKETS, DurationCounts, VitalCounter, Vitals};

/// One number, or one per value of a label.
struct Metric {
    kind: MetricKind,
    name: &'static str,
    help: &'static str,
    label: Option<&'static str>,
    values: Vec<(String, f64)>,
}

#[derive(Debug, Clone, Copy)]
enum MetricKind {
    Gauge,
    /// Counts since the start.
    Counter,
}

pub(crate) async fn show(State(web): State<WebState>) -> Result<impl IntoResponse, Problem> {
    let text =
        query(&web, |web| Ok(render(&gather(web)?) + &render_vitals(&web.service.vitals))).await?;
    Ok((TEXT_FORMAT, text))
}

/// The metrics of a worker: what it does itself. Its login may not see more.
pub(crate) fn render_worker(service: &Service) -> Result<String, Problem> {
    let version = vec![(web_base::asset::VERSION.to_owned(), 1.0)];
    let mut metrics = vec![
        Metric::gauge_by("bot_bottle_info", "Version of the program.", "version", version),
        Metric::gauge("bot_bottle_memory_bytes", "Memory of this process.", own_memory()),
    ];
    let free = host::file::free_space(&service.home.root).ok();
    metrics.extend(free.map(|free| {
        let help = "Free disk space where bottles are stored.";
        Metric::gauge("bot_bottle_disk_free_bytes", help, u64_number(free))
    }));
    metrics.extend(hosts(&service.store.hosts()?, Some(&service.host)));
    metrics.extend(counters(&service.vitals));
    Ok(render(&metrics) + &render_vitals(&service.vitals))
}

/// The format of the text, as a header.
pub(crate) const TEXT_FORMAT: [(HeaderName, &str); 1] =
    [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];

fn own_memory() -> f64 {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    u64_number(host::proc::observe_memory(&[own]).bytes)
}

/// Leases and hosts of the database; hosts only where it is shared.
fn fleet(service: &Service) -> Result<Vec<Metric>, Problem> {
    let leases = service.store.held_leases()?;
    let mut metrics = vec![
        Metric::gauge(
            "bot_bottle_leases_held",
            "Issues that a process works on, over all hosts.",
            u64_number(leases.held),
        ),
        Metric::gauge(
            "bot_bottle_leases_expired",
            "Leases that have expired and are not taken over yet.",
            u64_number(leases.expired),
        ),
        Metric::gauge(
            "bot_bottle_lease_expired_seconds_max",
            "Time since the oldest of them has expired.",
            u64_number(leases.longest_expired_secs),
        ),
        Metric::gauge(
            "bot_bottle_leases_without_host",
            "Issues whose holder does not report itself any more.",
            u64_number(leases.without_host),
        ),
    ];
    metrics.extend(hosts(&service.store.hosts()?, None));
    Ok(metrics)
}

/// Reports of the hosts, or of one of them; nothing where no host reports itself.
fn hosts(rows: &[HostRow], only: Option<&str>) -> Vec<Metric> {
    let rows = || rows.iter().filter(|row| only.is_none_or(|name| row.report.name == name));
    if rows().next().is_none() {
        return Vec::new();
    }
    let (slots, busy) = rows().filter(|row| row.is_live).fold((0, 0), |(slots, busy), row| {
        (slots + u64::from(row.report.slots), busy + u64::from(row.report.busy))
    });
    let up = |row: &HostRow| (row.report.name.clone(), f64::from(u8::from(row.is_live)));
    let states = vec![
        ("busy".to_owned(), u64_number(busy)),
        ("free".to_owned(), u64_number(slots.saturating_sub(busy))),
    ];
    vec![
        Metric::gauge_by(
            "bot_bottle_host_up",
            "1 if the process of the host reports itself.",
            "host",
            rows().map(up).collect(),
        ),
        Metric::gauge_by(
            "bot_bottle_slots",
            "Slots for bottles on the hosts that report themselves.",
            "state",
            states,
        ),
    ]
}

impl Metric {
    fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        let values = vec![(String::new(), value)];
        Self { kind: MetricKind::Gauge, name, help, label: None, values }
    }

    fn gauge_by(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: Vec<(String, f64)>,
    ) -> Self {
        Self { kind: MetricKind::Gauge, name, help, label: Some(label), values }
    }
}

fn gather(web: &Web) -> Result<Vec<Metric>, Problem> {
    let cases = load_cases(web)?;
    let count = |of: CaseStatus| cases.iter().filter(|case| case.status == of).count();
    let cases_by = CaseStatus::ALL.map(|of| (of.name().to_owned(), number(count(of))));
    let mut verdicts: BTreeMap<String, f64> = BTreeMap::new();
    let mut dollars = 0.0;
    for (_, loaded) in Bottle::all(&web.service.home)? {
        let Ok((bottle, record)) = loaded else { continue };
        for run in web.closed.of_bottle(&bottle, &record) {
            let verdict = run.verdict.as_ref().map_or("none", |verdict| &verdict.kind);
            *verdicts.entry(verdict.to_owned()).or_default() += 1.0;
            dollars += run.cost_usd.unwrap_or_default();
        }
    }
    let (labelled, gauge) = (Metric::gauge_by, Metric::gauge);
    let unhandled = web.service.store.count_unhandled()?;
    let verdicts = verdicts.into_iter().collect();
    let streams = STREAMS_MAX - web.streams.available_permits();
    let version = vec![(web_base::asset::VERSION.to_owned(), 1.0)];
    let mut metrics = vec![
        labelled("bot_bottle_info", "Version of the program.", "version", version),
        labelled("bot_bottle_cases", "Issues and bottles, by status.", "state", cases_by.into()),
        gauge(
            "bot_bottle_deliveries_unhandled",
            "Stored webhooks and user actions that are not handled yet.",
            u64_number(unhandled),
        ),
        labelled("bot_bottle_runs", "Recorded runs, by verdict.", "verdict", verdicts),
        gauge("bot_bottle_cost_usd", "Known cost of the recorded runs.", dollars),
        gauge("bot_bottle_streams", "Open event streams.", number(streams)),
        gauge("bot_bottle_memory_bytes", "Memory of this process.", own_memory()),
        Metric {
            values: health::free_bytes(web)
                .map(|free| vec![(String::new(), u64_number(free))])
                .unwrap_or_default(),
            ..gauge("bot_bottle_disk_free_bytes", "Free disk space where bottles are stored.", 0.0)
        },
        gauge(
            "bot_bottle_queue_age_seconds",
            "Time that the oldest queued issue has waited.",
            oldest_queued(&cases),
        ),
        labelled(
            "bot_bottle_repository_up",
            "1 if the forge answers for the repository.",
            "repo",
            repositories(web),
        ),
    ];
    metrics.extend(spending(&load_spending(web, day_of(host::clock::now()))?));
    metrics.extend(fleet(&web.service)?);
    metrics.extend(counters(&web.service.vitals));
    metrics.extend(process_counters());
    Ok(metrics)
}

/// Spending and budgets of today. What nobody counted is in the reserved part.
fn spending(report: &SpendingReport) -> Vec<Metric> {
    let budgets = |part: fn(&BudgetUse) -> u64| {
        let name = |used: &BudgetUse| format!("{} {}", used.of, used.unit.name());
        report.budgets.iter().map(|used| (name(used), u64_number(part(used)))).collect()
    };
    let gauge = Metric::gauge_by;
    let sums = vec![
        ("tokens".to_owned(), u64_number(report.issues.iter().map(|it| it.tokens).sum())),
        ("micro_usd".to_owned(), u64_number(report.issues.iter().map(|it| it.micro_usd).sum())),
    ];
    let limits = budgets(|used| used.limit);
    let used = budgets(|used| used.spent.saturating_add(used.reserved));
    vec![
        gauge("bot_bottle_spent_today", "Counted spending of today, in UTC.", "unit", sums),
        gauge("bot_bottle_budget_limit", "Budgets of a day.", "budget", limits),
        gauge(
            "bot_bottle_budget_used",
            "Spent and reserved parts of the budgets, today.",
            "budget",
            used,
        ),
    ]
}

/// Seconds since the oldest queued case changed last; 0 without one.
fn oldest_queued(cases: &[Case]) -> f64 {
    let queued = cases.iter().filter(|case| case.status == CaseStatus::Queued);
    let oldest = queued.map(|case| case.updated_at).min();
    oldest.map_or(0.0, |at| host::clock::now().duration_since(at).as_secs_f64().max(0.0))
}

fn repositories(web: &Web) -> Vec<(String, f64)> {
    let problems = web.service.vitals.problems();
    let repos = web.service.repos();
    let up = |name: String| {
        let value = if problems.contains_key(&name) { 0.0 } else { 1.0 };
        (name, value)
    };
    repos.all().map(|repo| up(repo.full_name())).collect()
}

fn counters(vitals: &Vitals) -> Vec<Metric> {
    let counter = |name, help, label, of| {
        let values = vitals.counts(of).into_iter();
        let values = values.map(|(label, count)| (label.to_owned(), u64_number(count))).collect();
        Metric { kind: MetricKind::Counter, name, help, label: Some(label), values }
    };
    vec![
        counter(
            "bot_bottle_webhooks_total",
            "Webhooks, by result.",
            "result",
            VitalCounter::Webhooks,
        ),
        counter(
            "bot_bottle_observations_total",
            "Observations of issues, by result.",
            "result",
            VitalCounter::Observations,
        ),
        counter(
            "bot_bottle_forge_errors_total",
            "Failed observations and sweeps, by kind of failure.",
            "kind",
            VitalCounter::ForgeErrors,
        ),
        counter(
            "bot_bottle_claims_total",
            "Claims on issues by this process, by result.",
            "result",
            VitalCounter::Claims,
        ),
        counter(
            "bot_bottle_leases_total",
            "Takeovers by this process, and renewals that failed.",
            "event",
            VitalCounter::Leases,
        ),
        counter(
            "bot_bottle_leases_lost_total",
            "Issues that this process lost while it worked on them, by how.",
            "how",
            VitalCounter::LostLeases,
        ),
    ]
}

/// Counts that belong to the process: forge calls of all its threads, and the spending of the runs that it settled.
fn process_counters() -> Vec<Metric> {
    let kind = MetricKind::Counter;
    let calls = forge::call_counts().map(|(of, count)| (of.name().to_owned(), u64_number(count)));
    let spent = settled_spending();
    let counter = |name, help, value| {
        let values = vec![(String::new(), value)];
        Metric { kind, name, help, label: None, values }
    };
    vec![
        Metric {
            kind,
            name: "bot_bottle_forge_calls_total",
            help: "Requests to forges, each attempt, by result; those of sidecars are not among them.",
            label: Some("result"),
            values: calls.into(),
        },
        counter(
            "bot_bottle_tokens_total",
            "Tokens of the runs that ended since the start.",
            u64_number(spent.tokens),
        ),
        counter(
            "bot_bottle_cost_usd_total",
            "Known cost of the runs that ended since the start.",
            u64_number(spent.micro_usd) / 1_000_000.0,
        ),
        counter(
            "bot_bottle_uncounted_runs_total",
            "Runs that ended since the start and whose tokens nobody counted.",
            u64_number(spent.uncounted_runs),
        ),
    ]
}

fn render_vitals(vitals: &Vitals) -> String {
    let runs = ("bot_bottle_run_seconds", "Durations of runs since the start.");
    let claims = ("bot_bottle_claim_wait_seconds", "Waits of issues for their claim.");
    render_durations(runs, &vitals.runs()) + &render_durations(claims, &vitals.claims())
}

/// Durations as a histogram; each bucket counts the shorter ones too.
fn render_durations((name, help): (&str, &str), durations: &DurationCounts) -> String {
    let mut text = format!("# HELP {name} {help}\n# TYPE {name} histogram\n");
    let mut sum = 0;
    for (end, count) in DURATION_BUCKETS.iter().zip(durations.counts) {
        sum += count;
        writeln!(text, "{name}_bucket{{le=\"{end}\"}} {sum}").ok();
    }
    let DurationCounts { seconds, count, .. } = durations;
    writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}").ok();
    writeln!(text, "{name}_sum {seconds}\n{name}_count {count}").ok();
    text
}

fn render(list: &[Metric]) -> String {
    let mut text = String::new();
    for Metric { kind, name, help, label, values } in list {
        let kind = match kind {
            MetricKind::Gauge => "gauge",
            MetricKind::Counter => "counter",
        };
        // Writing to a text cannot fail.
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
        for (of, value) in values {
            match label {
                Some(label) => writeln!(text, "{name}{{{label}=\"{}\"}} {value}", escape(of)).ok(),
                None => writeln!(text, "{name} {value}").ok(),
            };
        }
    }
    text
}

fn escape(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

fn number(count: usize) -> f64 {
    u64_number(count as u64)
}

#[expect(clippy::cast_precision_loss, reason = "the format has no other numbers")]
fn u64_number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_durations_counts_the_shorter_ones_too() {
        let runs = DurationCounts { counts: [1, 2, 0, 0, 0, 0, 0, 0], count: 4, seconds: 20_000.5 };
        let text = render_durations(("bot_bottle_run_seconds", "Durations."), &runs);
        assert!(text.contains("bot_bottle_run_seconds_bucket{le=\"10\"} 3\n"), "{text}");
        assert!(text.contains("{le=\"+Inf\"} 4\nbot_bottle_run_seconds_sum 20000.5\n"), "{text}");
    }

    #[test]
    fn a_label_cannot_break_out_of_its_quotes() {
        let values = vec![("a\"} 1\nx{y=\"\\".to_owned(), 2.0)];
        let kind = MetricKind::Gauge;
        let metric = Metric { kind, name: "m", help: "Help.", label: Some("l"), values };
        let text = render(&[metric]);
        assert_eq!(text, "# HELP m Help.\n# TYPE m gauge\nm{l=\"a\\\"} 1\\nx{y=\\\"\\\\\"} 2\n");
    }
}
