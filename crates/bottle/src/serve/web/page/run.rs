//! `/runs/<slug>/<run>`: one run with its verdict, log, changes, connections and operations.

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::super::auth::Principal;
use super::super::facts::log::{LogSlice, read_tail};
use super::super::facts::run::{CostSource, FoundRun, RunSummary};
use super::super::facts::timeline;
use super::super::problem::Problem;
use super::super::rules::format;
use super::super::rules::log_style::{LogStyle, LogView};
use super::super::{Web, WebState, query};
use super::diff::{self, Patch};
use super::{Sheet, ago, fact, frame, line, lines};
use crate::exit::OrGeneral;
use crate::flow::attestation::{load_operations, signature_state};
use crate::flow::bottle::agent_box;
use crate::flow::run_record::BottleRunRecord;
use crate::rules::leak::{ScanOutcome, ScanReport};

/// Part of the log that the page shows at first.
const TAIL_MAX_BYTES: usize = 256 << 10;
const ERRORS_MAX_BYTES: usize = 16 << 10;

struct RunPage {
    found: FoundRun,
    facts: RunSummary,
    output: LogSlice,
    errors: LogSlice,
    runs: bool,
    operations: Vec<Value>,
    style: LogStyle,
    signature: Value,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RunParams {
    #[serde(default)]
    log: LogView,
}

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    Path((slug, run)): Path<(String, String)>,
    wanted: Result<Query<RunParams>, QueryRejection>,
) -> Response {
    let view = wanted.map(|Query(wanted)| wanted.log).unwrap_or_default();
    let loaded = async {
        let loaded = query(&web, move |web| load(web, &slug, &run, view)).await?;
        let patch = diff::load(&web, &loaded.found).await?;
        Ok::<_, Problem>((loaded, patch))
    };
    match loaded.await {
        Ok((loaded, patch)) => {
            let sheet = Sheet {
                title: loaded.facts.run.clone(),
                main: render(&loaded, patch.as_ref(), host::clock::now()),
                live: None,
            };
            frame(&web, Some(&principal), &sheet)
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

fn load(web: &Web, slug: &str, run: &str, view: LogView) -> Result<RunPage, Problem> {
    let found = FoundRun::open(&web.service.home, slug, run)?;
    let runs = found.is_running()?;
    let errors = agent_box(&found.dir)?.stderr();
    Ok(RunPage {
        facts: found.facts(),
        output: read_tail(&found.log()?, TAIL_MAX_BYTES).or_general()?,
        errors: read_tail(&errors, ERRORS_MAX_BYTES).or_general()?,
        runs,
        operations: load_operations(&found.dir)?,
        signature: signature_state(&web.service.home, &found.dir),
        style: LogStyle::of(&found.meta.manifest.provider, view),
        found,
    })
}

fn render(loaded: &RunPage, patch: Option<&Patch>, now: Timestamp) -> Markup {
    let RunPage { facts, found, .. } = loaded;
    let meta = &found.meta;
    html! {
        p.path {
            a href="/" { "Bottles" } " / "
            a href={ "/bottles/" (facts.slug) } { (facts.slug) } " / " (facts.run)
        }
        div.head.big {
            h1 {
                @match &facts.verdict {
                    Some(verdict) => (line(&verdict.message)),
                    None => (facts.doing),
                }
            }
            @match &facts.verdict {
                Some(verdict) => span class={ "badge " (verdict.kind) } { (verdict.kind) },
                None => span.badge.running { "running" },
            }
        }
        @if facts.watchdog_fired {
            p.notice.bad { "The agent did not report its result; this record may be incomplete." }
        }
        (details(loaded, now))
        (log(loaded))
        @if let Some(answer) = meta.agent_result.as_ref().and_then(|result| result.answer.as_ref()) {
            section { h2 { "The agent's answer" } blockquote { (lines(answer)) } }
        }
        (commits(meta))
        @if let Some(patch) = patch { section { h2 { "Changes" } (diff::render(patch)) } }
        (egress(meta))
        (operations(&loaded.operations, facts))
        section { h2 { "Events" } (super::timeline(&timeline::of_run(meta), now)) }
    }
}

fn details(loaded: &RunPage, now: Timestamp) -> Markup {
    let (facts, meta) = (&loaded.facts, &loaded.found.meta);
    let record = meta.agent_box.as_ref();
    let result = meta.agent_result.as_ref();
    let usage = record.and_then(|record| record.egress.as_ref()).map(|report| &report.usage);
    html! {
        dl.grid {
            (fact("agent", &html! { (line(&facts.agent)) " · " (line(&facts.provider)) }))
            @if let Some(model) = &facts.model { (fact("model", &html! { (line(model)) })) }
            (fact("sandbox", &html! { (facts.backend) }))
            (fact("began", &ago(facts.started_at, now)))
            @if let Some(record) = record { (fact("took", &html! { (format::clock(record.wall_ms)) })) }
            @if let Some(cost) = facts.cost_usd {
                (fact("cost", &html! {
                    (format::dollars(cost))
                    @if facts.cost_source == Some(CostSource::Claimed) { " " small { "claimed by the agent" } }
                }))
            }
            @if let Some(usage) = usage.filter(|usage| usage.requests > 0) {
                (fact("tokens", &html! {
                    (format::count(usage.input + usage.cache_read + usage.cache_write)) " read, "
                    (format::count(usage.output)) " written"
                }))
                (fact("model calls", &html! { (format::count(usage.requests)) }))
            }
            @if let Some(result) = result { (fact("tool calls", &html! { (result.tool_calls) })) }
            @if let Some(peak) = record.and_then(|record| record.peak_memory_bytes) {
                (fact("memory", &html! { (format::bytes(peak)) }))
            }
            @if let Some(status) = facts.exit_status { (fact("status", &html! { (status) })) }
            @if let Some(number) = facts.pull_number {
                (fact("pull request", &super::link(facts.pull_url.as_ref(), &format!("#{number}"))))
            }
            @for scan in &meta.scans {
                (fact(&format!("secrets, {}", scan.engine), &html! { (line(&render_scan(scan))) }))
            }
            // A run is signed when it is closed.
            @if let Some(state) = loaded.signature["state"].as_str().filter(|_| facts.finished_at.is_some()) {
                (fact("signature", &html! { (line(state)) }))
            }
            (fact("as JSON", &html! {
                a href={ "/api/v1/runs/" (facts.slug) "/" (facts.run) "/provenance" } { "provenance" } ", "
                a href={ "/api/v1/runs/" (facts.slug) "/" (facts.run) } { "run" }
            }))
        }
    }
}

fn render_scan(scan: &ScanReport) -> String {
    match &scan.status {
        ScanOutcome::Clean => "none found".to_owned(),
        ScanOutcome::Findings { count, .. } => format::plural(*count, "finding", "findings"),
        ScanOutcome::Error { reason } | ScanOutcome::NotRun { reason } => {
            format!("not scanned: {reason}")
        }
    }
}

fn log(loaded: &RunPage) -> Markup {
    let RunPage { facts, output, errors, runs, style, .. } = loaded;
    let page = format!("/runs/{}/{}", facts.slug, facts.run);
    let is_text = matches!(style, LogStyle::Text(_));
    let has_text = matches!(LogStyle::of(&facts.provider, LogView::Text), LogStyle::Text(_));
    let live = runs.then(|| {
        let view = if is_text { "text" } else { "raw" };
        format!("{page}/live?after={}&log={view}", output.next)
    });
    html! {
        section {
            h2 { "Log " @if *runs { span.badge.running data-log-state { "live" } } }
            pre.log tabindex="0" role="log" aria-label="Output of the agent" data-log=[live] {
                (lines(&style.render(&output.text)))
            }
            @if output.text.is_empty() && !runs { p.hint { "The agent printed nothing." } }
            @if output.from > 0 || has_text {
                p.hint {
                    @if is_text { "Events as text. " a href={ (page) "?log=raw" } { "Raw events" } ". " }
                    @else if has_text { "Raw events. " a href=(page) { "As text" } ". " }
                    @if output.from > 0 {
                        "This is the end of the log. "
                        a href={ "/api/v1" (page) "/log" } { "Read it from the start" } "."
                    }
                }
            }
            @if !errors.text.is_empty() {
                details { summary { "Standard error" } pre.log tabindex="0" { (lines(&errors.text)) } }
            }
        }
    }
}

fn commits(meta: &BottleRunRecord) -> Markup {
    let list = meta.evidence.iter().flat_map(|evidence| &evidence.new_commits);
    let list: Vec<_> = list.collect();
    html! {
        @if !list.is_empty() {
            section {
                h2 { "Commits " span.count { (list.len()) } }
                ul.plain { @for commit in list { li { code { (commit.sha.short()) } " " (line(&commit.subject)) } } }
            }
        }
    }
}

fn egress(meta: &BottleRunRecord) -> Markup {
    let report = meta.agent_box.as_ref().and_then(|record| record.egress.as_ref());
    let Some(summary) = report.map(|report| &report.summary) else { return html! {} };
    html! {
        section {
            h2 { "Connections " span.count { (summary.per_host.len()) } }
            @if summary.per_host.is_empty() { p.hint { "It made no connections outside its box." } }
            @else {
                div.scroll { table {
                    thead { tr { th { "host" } th.n { "allowed" } th.n { "refused" } th.n { "out" } th.n { "in" } } }
                    tbody { @for host in &summary.per_host {
                        tr {
                            td { (line(&host.host)) }
                            td.n { (host.allowed) }
                            td.n class=[(host.denied > 0).then_some("warn")] { (host.denied) }
                            td.n { (format::bytes(host.bytes_up)) }
                            td.n { (format::bytes(host.bytes_down)) }
                        }
                    } }
                } }
            }
            @if !summary.complete { p.notice.bad { "The log of connections is incomplete." } }
        }
    }
}

fn operations(list: &[Value], facts: &RunSummary) -> Markup {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    html! {
        @if !list.is_empty() {
            section {
                h2 { "Operations " span.count { (list.len()) } }
                ol.operations { @for entry in list {
                    @let outcome = text(&entry["outcome"]);
                    li class=(line(&outcome)) {
                        span.outcome { (line(&outcome)) }
                        span {
                            @match entry.pointer("/detail/sentence") {
                                Some(sentence) => (line(&text(sentence))),
                                None => { (line(&text(&entry["op"]))) " " code { (line(&text(&entry["target"]))) } },
                            }
                        }
                    }
                } }
                p.hint { a href={ "/api/v1/runs/" (facts.slug) "/" (facts.run) "/operations" } { "As JSON" } }
            }
        }
    }
}
