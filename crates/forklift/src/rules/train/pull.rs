//! Text of a train's pull request: the steps that are done, what needs a look in each, and the steps to come.

use engine::check::check_words;
use forge::{BODY_MAX_BYTES, NewPull};
use model::id::BranchName;
use model::inert::{inert_cell, inert_code, inert_line, inert_prose};

use super::{PlannedStep, PullLayout, StepKind, TrainStep, published_branch};
use crate::flow::record::ForkRunRecord;
use crate::rules::conflict_row::conflict_rows;
use crate::rules::pull_text::{MARK, cut, render_point, render_row};
use crate::rules::review::review_points;
use crate::rules::section::{Importance, Section, render_sections};
use crate::rules::words::counted;

/// Steps, points and conflicts; more are counted.
const ROWS: usize = 200;

const TABLE: &str =
    "| step | commits | up to | kind | decided by | check |\n|---|---|---|---|---|---|\n";

/// Facts about a step and those before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainPullFacts<'a> {
    pub(crate) step: &'a TrainStep,
    pub(crate) record: &'a ForkRunRecord,
    /// Records of the steps before it, in order.
    pub(crate) done: &'a [ForkRunRecord],
    pub(crate) head: &'a BranchName,
    pub(crate) run_path: &'a str,
}

/// Renders title and body.
pub(crate) fn render_train_pull(facts: &TrainPullFacts<'_>) -> NewPull {
    let TrainPullFacts { step, record, done, head, run_path } = *facts;
    let steps: Vec<&ForkRunRecord> = done.iter().chain([record]).collect();
    let target = inert_line(&cut(&step.target));
    let (number, count) = (step.number, step.count());
    let title = match step.layout {
        PullLayout::Single => format!("Merge upstream {target} (step {number} of {count})"),
        PullLayout::Stack => format!(
            "Merge upstream {target}, step {number} of {count} ({})",
            counted(step.step.commits, "commit")
        ),
    };
    let mut sections = vec![
        Section { head: opening(facts), ..Section::default() },
        table("Steps", &steps.iter().filter_map(|it| done_row(it)).collect::<Vec<_>>()),
    ];
    sections.extend(review(&steps));
    sections.extend(conflicts(&steps));
    let coming: Vec<String> =
        step.rest.iter().enumerate().map(|(at, it)| planned_row(number + 1 + at, it)).collect();
    if !coming.is_empty() {
        sections.push(table("To come", &coming));
    }
    let run = format!("Run {} in {}.", inert_code(record.run.as_str()), inert_code(run_path));
    sections.push(Section { head: run, ..Section::default() });
    let body = render_sections(sections, BODY_MAX_BYTES);
    NewPull { title, body, head: head.clone(), base: record.fork.branch.clone(), draft: false }
}

fn opening(facts: &TrainPullFacts<'_>) -> String {
    let TrainPullFacts { step, record, .. } = *facts;
    let (branch, target) =
        (inert_code(record.fork.branch.as_str()), inert_code(&cut(&step.target)));
    let mut text = format!(
        "{MARK}\n\nBrings {branch} up to date with upstream's {target} in steps, each a merge commit that the host judged and \
         checked before the next one. Merge it with a merge commit: a squash would lose where upstream's history is.\n"
    );
    if step.layout == PullLayout::Stack && step.number > 1 {
        let before = published_branch(&step.branch, step.layout, step.number - 1);
        text.push_str(&format!(
            "\nIt contains the steps before it. Merge {} first; what is left here is this step alone.\n",
            inert_code(&before)
        ));
    }
    if !step.rest.is_empty() && step.layout == PullLayout::Single {
        text.push_str("\nMore steps follow on this branch.\n");
    }
    text
}

fn table(title: &'static str, rows: &[String]) -> Section {
    let section = Section {
        title,
        head: TABLE.to_owned(),
        items: rows.to_vec(),
        noun: "steps",
        importance: Importance::Conflicts,
        ..Section::default()
    };
    section.at_most(ROWS)
}

fn done_row(record: &ForkRunRecord) -> Option<String> {
    let train = record.train.as_ref()?;
    let by = match (record.merged_alone, record.resolver.is_some()) {
        (false, _) => inert_code(&record.settings.provider),
        (true, true) => "git and the resolver".to_owned(),
        (true, false) => "git".to_owned(),
    };
    let check = record.check.as_ref().map_or("none".to_owned(), check_words);
    Some(row(train.number, &train.step, &by, &check))
}

fn planned_row(number: usize, step: &PlannedStep) -> String {
    row(number, step, "–", "–")
}

fn row(number: usize, step: &PlannedStep, by: &str, check: &str) -> String {
    format!(
        "| {number} | {} | `{}` {} | {} | {by} | {} |\n",
        step.commits,
        step.last.sha.short(),
        inert_cell(&cut(&step.last.subject)),
        step.kind.words(),
        inert_prose(check)
    )
}

/// Points of all steps, each with the number of its step.
fn review(steps: &[&ForkRunRecord]) -> Option<Section> {
    let points = steps.iter().flat_map(|record| {
        let number = record.train.as_ref().map_or(0, |train| train.number);
        let render = move |point| format!("- step {number}: {}", &render_point(&point)[2..]);
        review_points(record).into_iter().map(render)
    });
    let named = steps.iter().filter_map(|record| breaking(record));
    let items: Vec<String> = named.chain(points).collect();
    let section = Section {
        title: "Needs a look",
        items,
        noun: "points",
        importance: Importance::Review,
        ..Section::default()
    };
    (!section.items.is_empty()).then(|| section.at_most(ROWS))
}

/// The commit that breaks the check, if the step is one.
fn breaking(record: &ForkRunRecord) -> Option<String> {
    let train = record.train.as_ref().filter(|train| train.step.kind == StepKind::Break)?;
    Some(format!(
        "- step {}: `{}` {} breaks the fork's check without a conflict, so the fork was adapted to it\n",
        train.number,
        train.step.last.sha.short(),
        inert_prose(&cut(&train.step.last.subject))
    ))
}

fn conflicts(steps: &[&ForkRunRecord]) -> Option<Section> {
    let rows = steps.iter().flat_map(|record| conflict_rows(record));
    let items: Vec<String> = rows.map(|row| render_row(&row)).collect();
    let section = Section {
        title: "Conflicts",
        head: "| path | conflict | decided by | result | sure |\n|---|---|---|---|---|\n"
            .to_owned(),
        items,
        noun: "conflicts",
        importance: Importance::Conflicts,
        ..Section::default()
    };
    (!section.items.is_empty()).then(|| section.at_most(ROWS))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::pull_text::tests::record;
    use crate::rules::train::tests::step;

    fn train(kind: StepKind, number: usize, layout: PullLayout) -> TrainStep {
        TrainStep {
            train: "a-b".to_owned(),
            branch: BranchName::parse("forklift/train-a-b").expect("legal"),
            repo: "/trains".into(),
            layout,
            number,
            step: step(kind, 1, number),
            rest: vec![step(StepKind::Batch, 3, number + 3)],
            target: "tip of main".to_owned(),
        }
    }

    fn pull(layout: PullLayout) -> NewPull {
        let mut done = record(&json!({}));
        done.train = Some(train(StepKind::Batch, 1, layout));
        let mut last = record(&json!({}));
        let mut step = train(StepKind::Break, 2, layout);
        step.step.last.subject = "api: thanks @victim <img src=x> |".to_owned();
        last.train = Some(step.clone());
        let head = BranchName::parse(&step.published_branch()).expect("legal");
        let (record, done) = (&last, &[done][..]);
        render_train_pull(&TrainPullFacts {
            step: &step,
            record,
            done,
            head: &head,
            run_path: "~/x",
        })
    }

    #[test]
    fn one_pull_request_lists_what_is_done_and_what_is_to_come() {
        let NewPull { title, body, .. } = pull(PullLayout::Single);
        assert_eq!(title, "Merge upstream tip of main (step 2 of 3)");
        for words in [
            "### Steps\n",
            "| 1 | 1 |",
            "| 2 | 1 |",
            "breaks the fork's check",
            "### To come",
            "| 3 | 3 |",
            "More steps follow",
        ] {
            assert!(body.contains(words), "{words}: {body}");
        }
        // In code and in words, text of upstream's authors calls nobody and is no markup.
        assert!(body.contains("`api: thanks @victim <img src=x> \\x7c`"), "{body}");
        assert!(body.contains("api: thanks @\u{200b}victim \\<"), "{body}");
    }

    #[test]
    fn a_stacked_pull_request_names_the_branch_before_it() {
        let NewPull { title, body, head, base, .. } = pull(PullLayout::Stack);
        assert_eq!(title, "Merge upstream tip of main, step 2 of 3 (1 commit)");
        assert!(body.contains("Merge `forklift/train-a-b-step-1` first"), "{body}");
        assert_eq!((head.as_str(), base.as_str()), ("forklift/train-a-b-step-2", "main"));
    }
}
