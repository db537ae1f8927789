//! Text of a train's pull request: the steps that are done, what needs a look in each, and the steps to come.

use engine::check::check_words;
use forge::{BODY_MAX_BYTES, NewPull};
use model::id::BranchName;
use model::inert::{inert_cell, inert_code, inert_line, inert_prose};

use super::{CommitLabel, PlannedStep, PullLayout, StepKind, TrainStep, published_branch};
use crate::flow::record::ForkRunRecord;
use crate::rules::conflict_row::conflict_rows;
use crate::rules::point_group::{PointLine, point_sections};
use crate::rules::pull_text::{MARK, cut, render_point, render_row};
use crate::rules::review::{PointKind, ReviewPoint, review_points};
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
    /// The steps before it, in order.
    pub(crate) done: &'a [DoneStep],
    pub(crate) head: &'a BranchName,
    pub(crate) run_path: &'a str,
}

/// A step that is in the train's branch.
#[derive(Debug, Clone)]
pub(crate) enum DoneStep {
    Run(Box<ForkRunRecord>),
    /// A merge that a person made and pushed, or another machine.
    Hand(HandStep),
}

/// A merge in the train's branch of which this machine has no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HandStep {
    /// Number of commits of upstream's main line that it merges.
    pub(crate) commits: usize,
    pub(crate) last: CommitLabel,
}

/// A run with the number of its step in the train's branch.
type NumberedRun<'a> = (usize, &'a ForkRunRecord);

/// Renders title and body.
pub(crate) fn render_train_pull(facts: &TrainPullFacts<'_>) -> NewPull {
    let TrainPullFacts { step, record, done, head, run_path } = *facts;
    let numbered = done.iter().zip(1..);
    let runs = numbered.clone().filter_map(|(step, number)| match step {
        DoneStep::Run(record) => Some((number, record.as_ref())),
        DoneStep::Hand(_) => None,
    });
    let runs: Vec<NumberedRun<'_>> = runs.chain([(done.len() + 1, record)]).collect();
    let mut rows: Vec<String> =
        numbered.filter_map(|(step, number)| done_row(number, step)).collect();
    rows.extend(run_row(done.len() + 1, record));
    let target = inert_line(&cut(&step.target));
    let (number, count) = (step.number, step.count());
    let title = match step.layout {
        PullLayout::Single => format!("Merge upstream {target} (step {number} of {count})"),
        PullLayout::Stack => format!(
            "Merge upstream {target}, step {number} of {count} ({})",
            counted(step.step.commits, "commit")
        ),
    };
    let mut sections =
        vec![Section { head: opening(facts), ..Section::default() }, table("Steps", &rows)];
    sections.extend(review(&runs));
    sections.extend(conflicts(&runs));
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
    let by_hand = by_hand(facts.done);
    let judged = match by_hand.is_empty() {
        true => "each a merge commit that the host judged and checked before the next one",
        false => "each a merge commit",
    };
    let mut text = format!(
        "{MARK}\n\nBrings {branch} up to date with upstream's {target} in steps, {judged}. Merge it with a merge commit: a squash \
         would lose where upstream's history is.\n"
    );
    if !by_hand.is_empty() {
        let (noun, was) = if by_hand.len() == 1 { ("Step", "was") } else { ("Steps", "were") };
        text.push_str(&format!(
            "\n{noun} {} {was} made by a person and not checked here. The host judged and checked each of the others before the \
             next one.\n",
            by_hand.join(", ")
        ));
    }
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

/// Numbers of the steps that people made.
fn by_hand(done: &[DoneStep]) -> Vec<String> {
    let hand = done.iter().zip(1..).filter(|(step, _)| matches!(step, DoneStep::Hand(_)));
    hand.map(|(_, number): (_, usize)| number.to_string()).collect()
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

fn done_row(number: usize, step: &DoneStep) -> Option<String> {
    match step {
        DoneStep::Run(record) => run_row(number, record),
        DoneStep::Hand(HandStep { commits, last }) => {
            Some(row(number, (*commits, last), "–", ("a person", "not checked here")))
        }
    }
}

fn run_row(number: usize, record: &ForkRunRecord) -> Option<String> {
    let step = &record.train.as_ref()?.step;
    let by = match (record.merged_alone, record.resolver.is_some()) {
        (false, _) => inert_code(&record.settings.provider),
        (true, true) => "git and the resolver".to_owned(),
        (true, false) => "git".to_owned(),
    };
    let check = record.check.as_ref().map_or("none".to_owned(), check_words);
    Some(row(number, (step.commits, &step.last), step.kind.words(), (&by, &check)))
}

fn planned_row(number: usize, step: &PlannedStep) -> String {
    row(number, (step.commits, &step.last), step.kind.words(), ("–", "–"))
}

fn row(
    number: usize,
    (commits, last): (usize, &CommitLabel),
    kind: &str,
    (by, check): (&str, &str),
) -> String {
    format!(
        "| {number} | {commits} | `{}` {} | {kind} | {by} | {} |\n",
        last.sha.short(),
        inert_cell(&cut(&last.subject)),
        inert_prose(check)
    )
}

/// Points of all steps, each with the number of its step.
fn review(runs: &[NumberedRun<'_>]) -> Vec<Section> {
    let points = runs.iter().flat_map(|(number, record)| {
        let render = move |point: ReviewPoint| {
            let line = format!("- step {number}: {}", &render_point(&point)[2..]);
            PointLine::new(&point, line)
        };
        review_points(record).into_iter().map(render)
    });
    let named = runs.iter().filter_map(|(number, record)| breaking(*number, record));
    let named = named.map(|line| PointLine { kind: PointKind::Grave, folder: None, line });
    let lines: Vec<PointLine> = named.chain(points).collect();
    if lines.is_empty() { Vec::new() } else { point_sections(lines) }
}

/// The commit that breaks the check, if the step is one.
fn breaking(number: usize, record: &ForkRunRecord) -> Option<String> {
    let train = record.train.as_ref().filter(|train| train.step.kind == StepKind::Break)?;
    Some(format!(
        "- step {number}: `{}` {} breaks the fork's check without a conflict, so the fork was adapted to it\n",
        train.step.last.sha.short(),
        inert_prose(&cut(&train.step.last.subject))
    ))
}

fn conflicts(runs: &[NumberedRun<'_>]) -> Option<Section> {
    let rows = runs.iter().flat_map(|(_, record)| conflict_rows(record));
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
        let (record, done) = (&last, &[DoneStep::Run(Box::new(done))][..]);
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
    fn a_step_that_a_person_made_is_listed_as_one_that_was_not_checked() {
        let mut first = record(&json!({}));
        first.train = Some(train(StepKind::Batch, 1, PullLayout::Single));
        let hand = HandStep { commits: 1, last: crate::rules::train::tests::label(2) };
        let done = [DoneStep::Run(Box::new(first)), DoneStep::Hand(hand)];
        let mut last = record(&json!({}));
        let step = train(StepKind::Batch, 3, PullLayout::Single);
        last.train = Some(step.clone());
        let head = step.branch.clone();
        let facts = TrainPullFacts {
            step: &step,
            record: &last,
            done: &done,
            head: &head,
            run_path: "~/x",
        };
        let body = render_train_pull(&facts).body;
        for words in [
            "| 2 | 1 |",
            "| – | a person | not checked here |",
            "| 3 | 1 |",
            "| 4 | 3 |",
            "Step 2 was made by a person and not checked here.",
        ] {
            assert!(body.contains(words), "{words}: {body}");
        }
        assert!(!body.contains("that the host judged and checked before the next one."), "{body}");
    }

    #[test]
    fn a_stacked_pull_request_names_the_branch_before_it() {
        let NewPull { title, body, head, base, .. } = pull(PullLayout::Stack);
        assert_eq!(title, "Merge upstream tip of main, step 2 of 3 (1 commit)");
        assert!(body.contains("Merge `forklift/train-a-b-step-1` first"), "{body}");
        assert_eq!((head.as_str(), base.as_str()), ("forklift/train-a-b-step-2", "main"));
    }
}
