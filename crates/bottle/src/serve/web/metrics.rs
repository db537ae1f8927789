//! `/metrics`: numbers for monitoring and alerts, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::facts::case::load_cases;
use super::problem::Problem;
use super::rules::case_status::CaseStatus;
use super::{STREAMS_MAX, Web, WebState, health, query};
use crate::flow::bottle::Bottle;

/// A gauge: one number, or one per value of a label.
struct Metric {
    name: &'static str,
    help: &'static str,
    label: Option<&'static str>,
    values: Vec<(String, f64)>,
}

pub(crate) async fn show(State(web): State<WebState>) -> Result<impl IntoResponse, Problem> {
    let text = query(&web, |web| Ok(render(&gather(web)?))).await?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
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
    let labelled = |name, help, label, values| Metric { name, help, label: Some(label), values };
    let one = |value: f64| vec![(String::new(), value)];
    let gauge = |name, help, values| Metric { name, help, label: None, values };
    let unhandled = web.service.store.count_unhandled()?;
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let memory = host::proc::observe_memory(&[own]).bytes;
    let verdicts = verdicts.into_iter().collect();
    let streams = STREAMS_MAX - web.streams.available_permits();
    let version = vec![(super::asset::VERSION.to_owned(), 1.0)];
    Ok(vec![
        labelled("bot_bottle_info", "Version of the program.", "version", version),
        labelled("bot_bottle_cases", "Issues and bottles, by status.", "state", cases_by.into()),
        gauge(
            "bot_bottle_deliveries_unhandled",
            "Stored webhooks and user actions that are not handled yet.",
            one(u64_number(unhandled)),
        ),
        labelled("bot_bottle_runs", "Recorded runs, by verdict.", "verdict", verdicts),
        gauge("bot_bottle_cost_usd", "Known cost of the recorded runs.", one(dollars)),
        gauge("bot_bottle_streams", "Open event streams.", one(number(streams))),
        gauge("bot_bottle_memory_bytes", "Memory of this process.", one(u64_number(memory))),
        gauge(
            "bot_bottle_disk_free_bytes",
            "Free disk space where bottles are stored.",
            health::free_bytes(web).map(|free| one(u64_number(free))).unwrap_or_default(),
        ),
    ])
}

fn render(list: &[Metric]) -> String {
    let mut text = String::new();
    for Metric { name, help, label, values } in list {
        // Writing to a text cannot fail.
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge").ok();
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
    fn a_label_cannot_break_out_of_its_quotes() {
        let values = vec![("a\"} 1\nx{y=\"\\".to_owned(), 2.0)];
        let metric = Metric { name: "m", help: "Help.", label: Some("l"), values };
        let text = render(&[metric]);
        assert_eq!(text, "# HELP m Help.\n# TYPE m gauge\nm{l=\"a\\\"} 1\\nx{y=\\\"\\\\\"} 2\n");
    }
}
