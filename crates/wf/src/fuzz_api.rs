//! The parsers, for fuzz targets and benches: each takes whatever it is given and holds its promises or panics.

use crate::rules::plan::{mark_done, parse_plan};
use crate::rules::review::extract_review;

/// Reads a plan and marks every micro-commit; each mark changes one byte or none. Tells how many there are.
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

/// Reads a plan and nothing else. Tells how many micro-commits there are.
pub fn parse(text: &str) -> usize {
    parse_plan(text).map_or(0, |plan| plan.commits.len())
}

/// Takes a review out of a text. Tells whether there is one.
pub fn review(text: &str) -> bool {
    extract_review(text).is_ok()
}
