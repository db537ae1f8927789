//! A plan as a page, with the look of a replay's. Pure.

use maud::{Markup, html};

use super::table::{conflict_words, kind_words, summary};
use super::{PlannedStep, StepKind, TrainPlan};
use crate::rules::page::render_frame;

const TRAIN_STYLE: &str = include_str!("page.css");

/// Names of a plan's two ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanEnds<'a> {
    pub(crate) fork: &'a str,
    pub(crate) target: &'a str,
}

pub(crate) fn render_page(plan: &TrainPlan, ends: PlanEnds<'_>) -> String {
    let title = format!("Train of {} to {}", ends.fork, ends.target);
    let body = html! {
        p { (summary(plan)) "." }
        (picture(plan))
        @if let Some(first) = &plan.first_conflict {
            p {
                "The first commit that conflicts is number " (first.position) ": "
                code { (first.commit.sha.short()) } " " (first.commit.subject) "."
            }
        }
        (steps(plan))
        p.small {
            "Batches have at most " (plan.batch) " commits. Every end of a batch was merged in memory; steps after the \
             first conflict are estimates, because its resolution is not known yet."
        }
    };
    render_frame(&title, TRAIN_STYLE, &body)
}

fn class(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Batch => "batch",
        StepKind::Conflict => "conflict",
        StepKind::Break => "break",
    }
}

fn picture(plan: &TrainPlan) -> Markup {
    let span = |step: &PlannedStep| {
        let class =
            format!("{}{}", class(step.kind), if step.is_estimate { " estimate" } else { "" });
        html! { span class=(class) style=(format!("flex-grow: {}", step.commits)) {} }
    };
    html! { div.line aria-hidden="true" { @for step in &plan.steps { (span(step)) } } }
}

fn steps(plan: &TrainPlan) -> Markup {
    html! {
        h2 { "Steps" }
        div.wide {
            table {
                thead {
                    tr { th { "" } th.number { "commits" } th { "up to" } th { "kind" } th { "conflicts" } }
                }
                tbody {
                    @for (at, step) in plan.steps.iter().enumerate() {
                        tr {
                            td { span class=(format!("mark {}", class(step.kind))) { (at + 1) } }
                            td.number data-name="commits" { (step.commits) }
                            td { code { (step.last.sha.short()) } " " (step.last.subject) }
                            td { (kind_words(step)) }
                            td { (conflict_words(step)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::train::table::tests::plan;

    #[test]
    fn a_page_has_every_step_and_loads_nothing() {
        let mut plan = plan();
        plan.steps[0].last.subject = "<script>alert(1)</script>".to_owned();
        let page = render_page(&plan, PlanEnds { fork: "me/fork", target: "tip of main" });
        assert!(page.contains("Train of me/fork to tip of main"));
        assert!(page.contains("src/a.rs (content)") && page.contains("flex-grow: 150"));
        assert!(!page.contains("<script") && !page.contains("http"), "{page}");
        assert_eq!(page.matches("<tr>").count(), plan.steps.len() + 1);
    }
}
