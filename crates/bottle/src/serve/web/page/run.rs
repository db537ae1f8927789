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
use super::super::rules::steps::LogStep;
use super::super::{Web, WebState, query};
use super::diff::{self, Patch};
use super::{Sheet, ago, fact, frame, line, lines, steps};
use crate::exit::OrGeneral;
use crate::flow::attestation::{load_operations, signature_state};
use crate::flow::bottle::agent_box;
use crate::flow::run_record::BottleRunRecord;
use crate::rules::leak::{ScanOutcome, ScanReport};

/// Part of the log that the page shows at first.
const TAIL_MAX_BYTES: usize = 256 << 10;
/// Part of the log in which words are looked for.
const FIND_MAX_BYTES: usize = 8 << 20;
/// Found steps or lines that are shown.
const FOUND_MAX: usize = 200;
const ERRORS_MAX_BYTES: usize = 16 << 10;

struct RunPage {
    found: FoundRun,
    facts: RunSummary,
    output: LogSlice,
    errors: LogSlice,
    runs: bool,
    operations: Vec<Value>,
    style: LogStyle,
    /// Steps of the output, in that style.
    steps: Vec<LogStep>,
    /// Work that has begun and not ended.
    open: String,
    /// Words that the reader looks for.
    find: String,
    signature: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunParams {
    log: LogView,
    find: String,
}

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    Path((slug, run)): Path<(String, String)>,
    wanted: Result<Query<RunParams>, QueryRejection>,
) -> Response {
    let wanted = wanted.map(|Query(wanted)| wanted).unwrap_or_default();
    let loaded = async {
        let loaded = query(&web, move |web| load(web, &slug, &run, wanted)).await?;
        let patch = diff::load(&web, &loaded.found).await?;
        Ok::<_, Problem>((loaded, patch))
    };
    match loaded.await {
        Ok((loaded, patch)) => {
            let sheet = Sheet {
                title: loaded.facts.run.clone(),
                main: render(&loaded, patch.as_ref(), host::clock::now()),
                live: None,
                calls: None,
            };
            frame(&web, Some(&principal), &sheet)
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

fn load(web: &Web, slug: &str, run: &str, wanted: RunParams) -> Result<RunPage, Problem> {
    let found = FoundRun::open(&web.service.home, slug, run)?;
    let runs = found.is_running()?;
    let errors = agent_box(&found.dir)?.stderr();
    let style = LogStyle::of(&found.meta.manifest.provider, wanted.log);
    let find = wanted.find.trim().to_owned();
    let cap = if find.is_empty() { TAIL_MAX_BYTES } else { FIND_MAX_BYTES };
    let output = read_tail(&found.log()?, cap).or_general()?;
    let (steps, open) = match found.steps(style, output.from) {
        Some(mut reader) => (reader.push(&output.text), reader.open()),
        None => (Vec::new(), String::new()),
    };
    Ok(RunPage {
        facts: found.facts(),
        output,
        errors: read_tail(&errors, ERRORS_MAX_BYTES).or_general()?,
        runs,
        operations: load_operations(&found.dir)?,
        signature: signature_state(&web.service.home, &found.dir),
        style,
        steps,
        open,
        find,
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
            @match record {
                Some(record) => (fact("took", &html! { (format::clock(record.wall_ms)) })),
                None if facts.finished_at.is_none() => {
                    (fact("elapsed", &html! { (format::elapsed(facts.started_at, now)) }))
                },
                None => {},
            }
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
            } @else if let Some(tokens) = facts.tokens {
                (fact("tokens", &html! { (format::count(tokens)) " so far" }))
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
    let RunPage { facts, output, errors, runs, style, find, .. } = loaded;
    let page = format!("/runs/{}/{}", facts.slug, facts.run);
    let is_live = *runs && find.is_empty();
    let live = is_live.then(|| format!("{page}/live?after={}&log={}", output.next, style.name()));
    html! {
        section {
            h2 { "Log " @if *runs { span.badge.running data-log-state { "live" } } }
            (log_tools(loaded, &page))
            @match (find.is_empty(), style) {
                (false, _) => (found_in_log(loaded)),
                (true, LogStyle::Steps(_)) => {
                    (steps::render_errors(&loaded.steps))
                    div.scroll-box role="log" aria-label="Steps of the agent" tabindex="0" {
                        ol.steps data-steps=[live] { (steps::render_steps(&loaded.steps)) }
                    }
                    @if *runs {
                        p.hint.now hidden[loaded.open.is_empty()] {
                            "At work on: " span data-now { (line(&loaded.open)) }
                        }
                    }
                },
                (true, _) => pre.log tabindex="0" role="log" aria-label="Output of the agent" data-log=[live] {
                    (lines(&style.render(&output.text)))
                },
            }
            @if output.text.is_empty() && !runs { p.hint { "The agent printed nothing." } }
            @if output.from > 0 {
                p.hint {
                    "This is the end of the log. "
                    a href={ "/api/v1" (page) "/log" } { "Read it from the start" } "."
                }
            }
            @if !errors.text.is_empty() {
                details { summary { "Standard error" } pre.log tabindex="0" { (lines(&errors.text)) } }
            }
        }
    }
}

/// The ways to look at a log: as steps, as text, as it was printed, by words, as a file.
fn log_tools(loaded: &RunPage, page: &str) -> Markup {
    let RunPage { facts, style, find, .. } = loaded;
    let has_steps = LogStyle::of(&facts.provider, LogView::Steps) != LogStyle::Raw;
    let views = [("steps", "Steps"), ("text", "Text"), ("raw", "Raw events")];
    html! {
        form.tools method="get" action=(page) role="search" {
            @if style.name() != "steps" { input type="hidden" name="log" value=(style.name()); }
            label.hidden-label for="find" { "Search in the log" }
            input #find type="search" name="find" value=(line(find)) placeholder="Search in the log" maxlength="200";
            button { "Search" }
            @if !find.is_empty() { a href={ (page) "?log=" (style.name()) } { "Whole log" } }
            @if has_steps {
                @for (name, label) in views {
                    @if name == style.name() { strong { (label) } }
                    @else { a href={ (page) "?log=" (name) } { (label) } }
                }
            }
            a href={ (page) "/log.txt" } download { "Download" }
        }
    }
}

/// The steps or lines with the words that are looked for.
fn found_in_log(loaded: &RunPage) -> Markup {
    let RunPage { output, style, find, .. } = loaded;
    let is_steps = matches!(style, LogStyle::Steps(_));
    let found: Vec<LogStep> = loaded.steps.iter().filter(|step| step.has(find)).cloned().collect();
    let text = if is_steps { String::new() } else { style.render(&output.text) };
    let words = find.to_lowercase();
    let of_text: Vec<&str> =
        text.lines().filter(|line| line.to_lowercase().contains(&words)).collect();
    let (count, unit) = match is_steps {
        true => (found.len(), ["step has", "steps have"]),
        false => (of_text.len(), ["line has", "lines have"]),
    };
    let last = |count: usize| count.saturating_sub(FOUND_MAX);
    html! {
        p.hint role="status" {
            (format::plural(count, unit[0], unit[1])) " \u{201c}" bdi { (line(find)) } "\u{201d}"
            @if output.from > 0 { " in the last " (format::bytes(FIND_MAX_BYTES as u64)) " of the log" }
            @if count > FOUND_MAX { "; the last " (FOUND_MAX) " are shown" }
            "."
        }
        @if is_steps && count > 0 {
            ol.steps { (steps::render_steps(&found[last(count)..])) }
        } @else if count > 0 {
            pre.log tabindex="0" { (lines(&of_text[last(count)..].join("\n"))) }
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
