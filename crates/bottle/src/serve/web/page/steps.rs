//! Steps of a run as markup: a call folds around its output, and a failed one can be jumped to.

use engine::agent_log::LogCall;
use maud::{Markup, html};

use super::super::rules::format;
use super::super::rules::steps::{LogStep, LogStepKind};
use super::{line, lines};

/// Lines of plain output that are shown without folding them.
const OPEN_LINES_MAX: usize = 4;
/// Failed steps with a link of their own.
const ERRORS_MAX: usize = 20;

pub(crate) fn render_steps(steps: &[LogStep]) -> Markup {
    html! { @for step in steps { (render_step(step)) } }
}

fn render_step(step: &LogStep) -> Markup {
    match &step.kind {
        LogStepKind::Message(text) => html! { li.said { (lines(text)) } },
        LogStepKind::Call(call) => html! {
            li.call.failed[call.is_failed] id=[call.is_failed.then(|| anchor(step))] { (render_call(call)) }
        },
        LogStepKind::Retry(reason) => {
            html! { li.retry { "asking the model again: " (line(reason)) } }
        }
        LogStepKind::Lines(text) => html! { li.output { (render_lines(text)) } },
    }
}

fn render_call(call: &LogCall) -> Markup {
    let head = html! {
        (line(&call.action))
        @if let Some(result) = &call.result { " → " strong { (line(result)) } }
        @if let Some(took) = call.took() { " " span.took { (took) } }
    };
    html! {
        @if call.output.trim().is_empty() { (head) } @else {
            details open[call.is_failed] {
                summary { (head) }
                pre tabindex="0" { (lines(&call.output)) }
            }
        }
    }
}

fn render_lines(text: &str) -> Markup {
    let count = text.lines().count();
    let body = html! { pre tabindex="0" { (lines(text.trim_end())) } };
    html! {
        @if count <= OPEN_LINES_MAX { (body) } @else {
            details { summary { (format::plural(count, "line", "lines")) " of output" } (body) }
        }
    }
}

/// Links to the failed steps. The script of the page renews them.
pub(super) fn render_errors(steps: &[LogStep]) -> Markup {
    let failed: Vec<&LogStep> = steps.iter().filter(|step| step.is_failed()).collect();
    html! {
        nav.errors data-errors aria-label="Failed steps" hidden[failed.is_empty()] {
            @for (index, step) in failed.iter().take(ERRORS_MAX).enumerate() {
                a href={ "#" (anchor(step)) } { "Error " (index + 1) } " "
            }
            @if failed.len() > ERRORS_MAX { "and " (failed.len() - ERRORS_MAX) " more" }
        }
    }
}

fn anchor(step: &LogStep) -> String {
    format!("step-{}", step.place)
}
