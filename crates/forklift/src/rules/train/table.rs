//! A plan in the terminal: a line of marks, one for each commit or a few of them, and the rows of a table.

use super::{PlannedStep, StepKind, TrainPlan};
use crate::rules::words::counted;

/// Marks of the picture at most.
const WIDTH: usize = 72;

/// Paths of a conflict that a row names.
const PATHS: usize = 3;

pub(crate) const HEAD: [&str; 5] = ["STEP", "COMMITS", "UP TO", "KIND", "CONFLICTS"];

/// Mark of a step in the picture.
fn mark(kind: StepKind) -> char {
    match kind {
        StepKind::Batch => '=',
        StepKind::Conflict => 'x',
        StepKind::Break => '!',
    }
}

/// Renders the picture: each step has at least one mark, and a long step as many as its share of the commits.
pub(crate) fn render_picture(plan: &TrainPlan) -> String {
    let room = WIDTH.saturating_sub(2 * plan.steps.len()).max(1);
    let cell = |step: &PlannedStep| {
        let share = step.commits * room / plan.commits.max(1);
        let marks = if step.kind == StepKind::Batch { share.clamp(1, step.commits) } else { 1 };
        mark(step.kind).to_string().repeat(marks)
    };
    let cells: Vec<String> = plan.steps.iter().map(cell).collect();
    format!("[{}]", cells.join("|"))
}

/// Legend of the marks that the picture has.
pub(crate) fn render_legend(plan: &TrainPlan) -> String {
    let kinds = [StepKind::Batch, StepKind::Conflict, StepKind::Break];
    let used = kinds.into_iter().filter(|kind| plan.steps.iter().any(|step| step.kind == *kind));
    let words: Vec<String> = used.map(|kind| format!("{} {}", mark(kind), kind.words())).collect();
    words.join(", ")
}

/// Rows of the table; the first step has the number `first`.
pub(crate) fn rows(plan: &TrainPlan, first: usize) -> Vec<Vec<String>> {
    let row = |(at, step): (usize, &PlannedStep)| {
        vec![
            (first + at).to_string(),
            step.commits.to_string(),
            step.last.words(),
            kind_words(step),
            conflict_words(step),
        ]
    };
    plan.steps.iter().enumerate().map(row).collect()
}

pub(crate) fn kind_words(step: &PlannedStep) -> String {
    let estimate = if step.is_estimate { " (estimate)" } else { "" };
    format!("{}{estimate}", step.kind.words())
}

pub(crate) fn conflict_words(step: &PlannedStep) -> String {
    let more = step.conflicts.len().saturating_sub(PATHS);
    let mut words: Vec<String> = step.conflicts.iter().take(PATHS).cloned().collect();
    words.extend((more > 0).then(|| format!("and {more} more")));
    words.extend(step.passes.iter().take(PATHS).map(|commit| {
        format!("passes {}, which conflicts alone and was undone", commit.sha.short())
    }));
    words.join(", ")
}

/// Sums up a plan in one sentence.
pub(crate) fn summary(plan: &TrainPlan) -> String {
    let asking = match plan.asking() {
        0 => "none needs a decision".to_owned(),
        1 => "1 needs a decision".to_owned(),
        many => format!("{many} need a decision"),
    };
    let (steps, commits) = (counted(plan.steps.len(), "step"), counted(plan.commits, "commit"));
    format!("{commits} in {steps}; {asking}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rules::train::FirstConflict;
    use crate::rules::train::tests::{label, step};

    pub(crate) fn plan() -> TrainPlan {
        let mut last = step(StepKind::Batch, 40, 192);
        last.is_estimate = true;
        last.passes = vec![label(160)];
        TrainPlan {
            commits: 192,
            batch: 150,
            first_conflict: Some(FirstConflict { commit: label(151), position: 151 }),
            steps: vec![
                step(StepKind::Batch, 150, 150),
                step(StepKind::Conflict, 1, 151),
                step(StepKind::Break, 1, 152),
                last,
            ],
            merges: 9,
        }
    }

    #[test]
    fn a_plan_is_a_picture_a_sentence_and_rows() {
        let plan = plan();
        let picture = render_picture(&plan);
        assert!(picture.len() <= WIDTH + 2, "{picture}");
        assert_eq!(picture.split('|').count(), 4);
        assert!(picture.contains("=|x|!|=") && picture.starts_with("[=="), "{picture}");
        assert_eq!(render_legend(&plan), "= clean, x conflict, ! breaks the check");
        assert_eq!(summary(&plan), "192 commits in 4 steps; 2 need a decision");
        let rows = rows(&plan, 3);
        assert_eq!(rows[1][0], "4");
        assert_eq!(rows[1][4], "src/a.rs (content)");
        assert_eq!(rows[3][3], "clean (estimate)");
        assert!(rows[3][4].contains("was undone"), "{:?}", rows[3]);
    }

    #[test]
    fn a_picture_of_many_steps_has_a_mark_for_each() {
        let mut plan = plan();
        plan.steps = (1..=100).map(|at| step(StepKind::Conflict, 1, at)).collect();
        assert_eq!(render_picture(&plan).matches('x').count(), 100);
    }
}
