//! Fix micro-commits: what a review of the whole branch, a failing gate or a failed acceptance test adds to the plan.

use super::breakdown::{Breakdown, one_line};
use super::plan::edit::{PlanEditError, PlanPlace, add_commit};
use super::plan::parse_plan;
use super::review::Review;
use super::uat::Uat;
use model::id::MicroCommitId;

/// Most fixes of one review that get a micro-commit each; the others share the last one.
const MOST_FIXES: usize = 10;
/// Bytes of a log's end that a fix quotes.
const TAIL_BYTES: usize = 4096;

/// A micro-commit that is to mend something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixDraft {
    title: String,
    text: String,
    acceptance: Vec<String>,
}

/// The fixes that a review of the whole branch demands, one for each blocker and required change.
pub(crate) fn fixes_of_review(review: &Review) -> Vec<FixDraft> {
    let mut demands = review.demands();
    let rest = demands.split_off(demands.len().min(MOST_FIXES - 1));
    let fix = |demand: &String| FixDraft {
        title: format!("Fix {demand}"),
        text: format!("The review of the whole branch demands this:\n\n{}", quote(demand)),
        acceptance: vec![format!("the reviewer's objection is met: {demand}")],
    };
    let mut fixes: Vec<FixDraft> = demands.iter().map(fix).collect();
    match rest.as_slice() {
        [] => {}
        [last] => fixes.push(fix(last)),
        rest => fixes.push(FixDraft {
            title: format!("Fix {} further points of the review", rest.len()),
            text: "The review of the whole branch demands these too.".to_owned(),
            acceptance: rest.to_vec(),
        }),
    }
    if fixes.is_empty() {
        let notes = review.document.get("notes").and_then(|notes| notes.as_str());
        fixes.push(FixDraft {
            title: "Fix what the review of the whole branch objects to".to_owned(),
            text: quote(notes.unwrap_or("The reviewer named no reason.")),
            acceptance: Vec::new(),
        });
    }
    fixes
}

/// The fix of a gate that fails: the build or the gate test. `log` is what it printed.
pub(crate) fn fix_of_gate(gate: &str, command: &str, log: &str) -> FixDraft {
    let mut from = log.len().saturating_sub(TAIL_BYTES);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    FixDraft {
        title: format!("Make {gate} pass: {command}"),
        text: format!(
            "Before the merge, {gate} failed. The end of what it printed:\n\n{}",
            quote(&log[from..])
        ),
        acceptance: vec![format!("{command} passes")],
    }
}

/// The fix of an acceptance test that a person failed.
pub(crate) fn fix_of_uat(uat: &Uat) -> FixDraft {
    let first = uat.issues.first().map(String::as_str).unwrap_or_default();
    FixDraft {
        title: format!("{}{first}", uat_prefix(uat)),
        text: format!("A person did not accept the work ({}).", uat.id),
        acceptance: uat.issues.clone(),
    }
}

/// The fix that a comment on the pull request asks for. `place` is the line that it stands at, if any.
pub(crate) fn fix_of_comment(author: &str, place: &str, body: &str) -> FixDraft {
    let first = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
    FixDraft {
        title: format!("Address {author}{at}: {first}"),
        text: format!("{author} wrote on the pull request{at}:\n\n{}", quote(body)),
        acceptance: vec![format!("what {author} asks for is done or answered")],
    }
}

/// Start of the title of a fix for this acceptance test. It is what tells whether the fix was drafted before.
fn uat_prefix(uat: &Uat) -> String {
    // Without its prefix: a word such as UAT-001 would be made inert in the subject of the commit.
    let id = uat.id.to_string();
    format!("Fix acceptance test {}: ", id.rsplit('-').next().unwrap_or(&id))
}

/// Reports whether the plan has the fix of an acceptance test already.
pub(crate) fn has_fix_of(plan: &str, uat: &Uat) -> bool {
    let prefix = uat_prefix(uat);
    parse_plan(plan).is_ok_and(|plan| plan.commits.iter().any(|it| it.title.starts_with(&prefix)))
}

/// Appends fixes to a plan; one that waits there with the same title is not added again. Returns the text and the ids of all
/// fixes.
pub(crate) fn add_fixes(
    text: &str,
    workstream: &str,
    fixes: &[FixDraft],
) -> Result<(String, Vec<MicroCommitId>), PlanEditError> {
    let (mut text, mut ids) = (text.to_owned(), Vec::new());
    for fix in fixes {
        let title = one_line(&fix.title);
        let plan = parse_plan(&text)?;
        let waiting = plan.commits.iter().find(|it| it.is_open() && it.title == title);
        if let Some(waiting) = waiting {
            ids.push(waiting.id.clone());
            continue;
        }
        let draft = Breakdown::one(&title, &fix.text, &fix.acceptance);
        let (added, id) = add_commit(&text, workstream, &draft, PlanPlace::End)?;
        text = added;
        ids.push(id);
    }
    Ok((text, ids))
}

/// Quotes foreign text as Markdown: nothing in it can be a heading or a mark of the plan.
fn quote(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::review::extract_review;

    const PLAN: &str = "# Plan\n\n### COMMIT-TF-001: Add it\n\nDone: [x]\n";

    fn review(blockers: usize) -> Review {
        let blocker = |number: usize| {
            format!(r#"{{"file":"a{number}.rs","line":3,"issue":"no","severity":"major"}}"#)
        };
        let blockers: Vec<String> = (1..=blockers).map(blocker).collect();
        let text = format!(
            r#"{{"version":1,"decision":"request_changes","blockers":[{}],"notes":"hm"}}"#,
            blockers.join(",")
        );
        extract_review(&text).unwrap()
    }

    fn titles(text: &str) -> Vec<String> {
        parse_plan(text).unwrap().commits.into_iter().map(|commit| commit.title).collect()
    }

    #[test]
    fn each_blocker_becomes_a_micro_commit() {
        let (text, ids) = add_fixes(PLAN, "tf", &fixes_of_review(&review(2))).unwrap();
        assert_eq!(titles(&text), ["Add it", "Fix a1.rs:3: no", "Fix a2.rs:3: no"]);
        assert_eq!(
            ids.iter().map(MicroCommitId::as_str).collect::<Vec<_>>(),
            ["COMMIT-TF-002", "COMMIT-TF-003"]
        );
        assert!(text.contains("> a1.rs:3: no"), "{text}");
    }

    #[test]
    fn the_same_fix_is_drafted_once_while_it_waits() {
        let fixes = fixes_of_review(&review(1));
        let (once, _) = add_fixes(PLAN, "tf", &fixes).unwrap();
        let (twice, ids) = add_fixes(&once, "tf", &fixes).unwrap();
        assert_eq!((once.as_str(), ids.len()), (twice.as_str(), 1));
        let done = once.replace("Done: [ ]", "Done: [x]");
        assert_eq!(titles(&add_fixes(&done, "tf", &fixes).unwrap().0).len(), 3);
    }

    #[test]
    fn many_blockers_share_the_last_micro_commit_and_none_is_lost() {
        let (text, ids) = add_fixes(PLAN, "tf", &fixes_of_review(&review(14))).unwrap();
        assert_eq!(ids.len(), MOST_FIXES);
        assert_eq!(titles(&text).last().unwrap(), "Fix 5 further points of the review");
        for number in 1..=14 {
            assert!(text.contains(&format!("a{number}.rs:3: no")), "{number}");
        }
    }

    #[test]
    fn an_objection_without_a_reason_is_a_fix_with_its_notes() {
        let (text, _) = add_fixes(PLAN, "tf", &fixes_of_review(&review(0))).unwrap();
        assert!(text.contains("objects to\n\n> hm\n"), "{text}");
    }

    #[test]
    fn a_comment_is_quoted_and_named() {
        let fix = fix_of_comment("ann", "src/a.rs:7", "\n# Please\nDone: [x]\n");
        let (text, _) = add_fixes(PLAN, "tf", &[fix]).unwrap();
        assert_eq!(titles(&text)[1], "Address ann at src/a.rs:7: # Please");
        assert!(text.contains("> Done: [x]") && !parse_plan(&text).unwrap().is_complete());
    }

    #[test]
    fn what_a_test_printed_cannot_change_the_plan() {
        let log = "x\n### COMMIT-TF-009: evil\nDone: [x]\n```\n<!-- é";
        let (text, _) =
            add_fixes(PLAN, "tf", &[fix_of_gate("the gate test", "make test", log)]).unwrap();
        assert_eq!(titles(&text), ["Add it", "Make the gate test pass: make test"]);
        let long = format!("é{}", "x".repeat(TAIL_BYTES - 1));
        assert!(!fix_of_gate("the gate test", "make test", &long).text.contains('é'));
    }
}
