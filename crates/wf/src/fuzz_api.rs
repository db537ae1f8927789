//! Entry points of the parsers for fuzz targets and benches. Each accepts any input and panics if a promise is broken.

use crate::rules::plan::{mark_done, parse_plan};
use crate::rules::review::extract_review;

/// Parses a plan and marks every micro-commit; each mark changes at most one byte. Returns the number of micro-commits.
///
/// # Panics
/// When a promise of the plan parser is broken.
pub fn plan(text: &str) -> usize {
    let Ok(plan) = parse_plan(text) else { return 0 };
    for commit in plan.commits.iter().take(8) {
        let marked = mark_done(text, &commit.id)
            .expect("a plan that was read can be marked")
            .expect("a micro-commit that was read is found");
        let differing = text.bytes().zip(marked.bytes()).filter(|(old, new)| old != new).count();
        assert_eq!(text.len(), marked.len());
        assert_eq!(differing, usize::from(!commit.is_done));
    }
    plan.commits.len()
}

/// Parses a plan and returns the number of micro-commits.
pub fn parse(text: &str) -> usize {
    parse_plan(text).map_or(0, |plan| plan.commits.len())
}

/// Extracts a review from a text and returns whether there is one.
pub fn review(text: &str) -> bool {
    extract_review(text).is_ok()
}
