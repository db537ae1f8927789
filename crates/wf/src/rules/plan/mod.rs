//! `plan.md`: the micro-commits of a workstream, read as CommonMark and changed by one byte.
//!
//! A micro-commit is a heading `### COMMIT-XX-NNN: title` of the document itself; its block goes on to the next heading
//! of level 3 or higher. Fences, indented code, comments and other HTML mean nothing here. What cannot be
//! meant seriously is an error with its line: a plan that is guessed at is redone for ever or not at all.

pub(crate) mod edit;
mod render;
mod scan;

use std::collections::BTreeMap;
use std::ops::Range;

use model::id::MicroCommitId;

pub(crate) use render::{commit_prefix, render_new_plan};
use scan::{HeadingKind, MarkdownPage};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MicroCommit {
    pub(crate) id: MicroCommitId,
    pub(crate) title: String,
    pub(crate) is_done: bool,
    /// Words about its replacement, if it is not wanted any more.
    pub(crate) superseded: Option<String>,
    /// The line of its heading, counted from 1.
    pub(crate) line: usize,
    /// Its text in the file, heading included.
    pub(crate) block: Range<usize>,
    pub(crate) acceptance: Vec<String>,
    /// Byte position of the mark between the brackets.
    mark: usize,
}

impl MicroCommit {
    /// Reports whether it is to be done.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_done && self.superseded.is_none()
    }

    /// The micro-commit that stands in its place.
    fn successor(&self) -> Option<MicroCommitId> {
        let words = self.superseded.as_deref()?.strip_prefix("by ")?;
        let name = words.split([' ', ':', ',', '.', ';']).next()?;
        MicroCommitId::parse(name).ok()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    pub(crate) commits: Vec<MicroCommit>,
    /// Likely mistakes, by line.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("line {line}: a micro-commit heading must read '### COMMIT-XX-001: title'")]
    Heading { line: usize },
    #[error("line {line}: {id} has no line 'Done: [ ]'; add one")]
    NoDone { line: usize, id: MicroCommitId },
    #[error("line {line}: {id} has a second Done line; keep one")]
    SecondDone { line: usize, id: MicroCommitId },
    #[error("line {line}: {id} was already planned on line {first_line}; give it another number")]
    Duplicate { line: usize, id: MicroCommitId, first_line: usize },
    #[error(
        "line {line}: {id} is superseded by {by}, which the plan does not have; name another one, or take the line 'Superseded:' out"
    )]
    NoSuccessor { line: usize, id: MicroCommitId, by: MicroCommitId },
    #[error(
        "line {line}: {id} is superseded in a circle, so nobody does its work; take one of the lines 'Superseded:' out"
    )]
    Circle { line: usize, id: MicroCommitId },
}

impl Plan {
    pub(crate) fn next(&self) -> Option<&MicroCommit> {
        self.open().next()
    }

    /// Micro-commits that are to be done.
    fn open(&self) -> impl Iterator<Item = &MicroCommit> {
        self.commits.iter().filter(|commit| commit.is_open())
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open().count()
    }

    /// Micro-commits that count: done or to be done.
    pub(crate) fn wanted_count(&self) -> usize {
        self.done_count() + self.open_count()
    }

    pub(crate) fn done_count(&self) -> usize {
        self.commits.iter().filter(|commit| commit.is_done).count()
    }

    /// Reports whether the plan has micro-commits, and all that are wanted are done.
    pub(crate) fn is_complete(&self) -> bool {
        self.done_count() > 0 && self.next().is_none()
    }

    /// The micro-commit whose place another one took.
    fn replaced_by(&self, id: &MicroCommitId) -> Option<&MicroCommit> {
        self.commits
            .iter()
            .find(|commit| !commit.is_done && commit.successor().as_ref() == Some(id))
    }

    pub(crate) fn find(&self, id: &MicroCommitId) -> Option<&MicroCommit> {
        self.commits.iter().find(|commit| commit.id == *id)
    }
}

pub(crate) fn parse_plan(text: &str) -> Result<Plan, PlanError> {
    let plan = parse_blocks(text)?;
    check_successors(&plan)?;
    Ok(plan)
}

/// Parses the micro-commits alone: while one of them is moved, others name one that is not there.
fn parse_blocks(text: &str) -> Result<Plan, PlanError> {
    let page = MarkdownPage::read(text);
    let mut plan = Plan::default();
    let mut lines: BTreeMap<MicroCommitId, usize> = BTreeMap::new();
    for (at, heading) in page.headings.iter().enumerate() {
        let line = page.line_of(heading.start);
        let (id, title) = match &heading.kind {
            HeadingKind::Other => continue,
            HeadingKind::Malformed => return Err(PlanError::Heading { line }),
            HeadingKind::Commit { id, title } => (id.clone(), title.clone()),
        };
        if let Some(&first_line) = lines.get(&id) {
            return Err(PlanError::Duplicate { line, id, first_line });
        }
        lines.insert(id.clone(), line);
        let end = page.headings.get(at + 1).map_or(text.len(), |next| next.start);
        plan.commits.push(read_block(&page, id, title, heading.start..end, &mut plan.warnings)?);
    }
    plan.warnings.extend(page.stray_headings());
    Ok(plan)
}

/// Refuses a plan in which the work of a superseded micro-commit is nobody's: it would be complete without it.
fn check_successors(plan: &Plan) -> Result<(), PlanError> {
    for commit in plan.commits.iter().filter(|commit| !commit.is_done) {
        let (line, mut at) = (commit.line, commit);
        // A chain that is longer than the plan comes back to where it was.
        for step in 0.. {
            let Some(by) = at.successor().filter(|_| !at.is_done) else { break };
            let id = at.id.clone();
            at = plan.find(&by).ok_or(PlanError::NoSuccessor { line: at.line, id, by })?;
            if step > plan.commits.len() {
                return Err(PlanError::Circle { line, id: commit.id.clone() });
            }
        }
    }
    Ok(())
}

fn read_block(
    page: &MarkdownPage<'_>,
    id: MicroCommitId,
    title: String,
    block: Range<usize>,
    warnings: &mut Vec<String>,
) -> Result<MicroCommit, PlanError> {
    let mut done: Option<(usize, bool)> = None;
    let mut superseded = None;
    for (start, line) in page.live_lines(&block) {
        let number = || page.line_of(start);
        match scan::parse_superseded(line) {
            Some("") => warnings.push(format!(
                "line {}: say what stands in its place, as in 'Superseded: by COMMIT-XX-002'",
                number()
            )),
            Some(by) => superseded = superseded.or_else(|| Some(by.to_owned())),
            None => {}
        }
        match (scan::parse_done(line), done) {
            (Some((mark, is_done)), None) => done = Some((start + mark, is_done)),
            (Some(_), Some(_)) => return Err(PlanError::SecondDone { line: number(), id }),
            (None, _) if scan::is_nearly_done(line) => warnings.push(format!(
                "line {}: this is nearly a Done line; it must read 'Done: [ ]' or 'Done: [x]'",
                number()
            )),
            (None, _) => {}
        }
    }
    let line = page.line_of(block.start);
    let Some((mark, is_done)) = done else { return Err(PlanError::NoDone { line, id }) };
    let acceptance = scan::acceptance_bullets(page.live_lines(&block).map(|(_, line)| line));
    Ok(MicroCommit { id, title, is_done, superseded, line, block, acceptance, mark })
}

/// Marks a micro-commit as done, by changing at most one byte; none if the plan has no such micro-commit.
pub(crate) fn mark_done(text: &str, id: &MicroCommitId) -> Result<Option<String>, PlanError> {
    mark(text, id, true)
}

/// Marks a rejected micro-commit as not done, by changing one byte.
pub(crate) fn mark_undone(text: &str, id: &MicroCommitId) -> Result<Option<String>, PlanError> {
    mark(text, id, false)
}

fn mark(text: &str, id: &MicroCommitId, is_done: bool) -> Result<Option<String>, PlanError> {
    let plan = parse_plan(text)?;
    Ok(plan.find(id).map(|commit| {
        let mut changed = text.to_owned();
        if commit.is_done != is_done {
            changed.replace_range(commit.mark..=commit.mark, if is_done { "x" } else { " " });
        }
        changed
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(text: &str) -> Vec<(String, bool)> {
        let plan = parse_plan(text).unwrap();
        plan.commits.iter().map(|commit| (commit.id.to_string(), commit.is_done)).collect()
    }

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let error = parse_plan(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    const TWO: &str = "# Plan\n\n### COMMIT-TF-001: Add it\nDone: [x]\n\n### COMMIT-TF-002:   Use it  \n\nwords\n\nDone: [ ]\n";

    #[test]
    fn the_first_undone_micro_commit_is_next() {
        let plan = parse_plan(TWO).unwrap();
        let next = plan.next().unwrap();
        assert_eq!(
            (next.id.as_str(), next.title.as_str(), next.line),
            ("COMMIT-TF-002", "Use it", 6)
        );
        assert_eq!((plan.done_count(), plan.is_complete()), (1, false));
        assert!(!parse_plan("# nothing\n").unwrap().is_complete());
    }

    #[test]
    fn a_block_ends_at_any_heading_of_its_level_or_above() {
        let text = "### COMMIT-A-001: a\nDone: [ ]\n### Notes\nDone: [x]\n";
        assert_eq!(ids(text), [("COMMIT-A-001".to_owned(), false)]);
        refused("### COMMIT-A-001: a\n## Notes\nDone: [x]\n", "line 1: COMMIT-A-001 has no line");
        assert_eq!(ids("### COMMIT-A-001: a\n#### Detail\nDone: [x]\n").len(), 1);
        refused("### COMMIT-A-001: a\n\nOther\n===\nDone: [x]\n", "no line 'Done: [ ]'");
    }

    #[test]
    fn two_done_lines_or_none_are_errors() {
        refused("### COMMIT-A-001: a\nDone: [ ]\nDone: [x]\n", "line 3: COMMIT-A-001 has a second");
        refused("### COMMIT-A-001: a\nwords\n", "line 1: COMMIT-A-001 has no line");
    }

    #[test]
    fn the_exact_id_is_marked() {
        let text =
            "### COMMIT-A-001-001: not COMMIT-A-001\nDone: [ ]\n### COMMIT-A-001: a\nDone: [ ]\n";
        let id = MicroCommitId::parse("COMMIT-A-001").unwrap();
        let marked = mark_done(text, &id).unwrap().unwrap();
        assert_eq!(
            ids(&marked),
            [("COMMIT-A-001-001".to_owned(), false), ("COMMIT-A-001".to_owned(), true)]
        );
        assert_eq!(mark_done(text, &MicroCommitId::parse("COMMIT-B-001").unwrap()), Ok(None));
        assert_eq!(mark_done(&marked, &id).unwrap().unwrap(), marked);
    }

    #[test]
    fn a_malformed_heading_is_named_by_its_line() {
        for bad in [
            "### COMMIT-A-0001: a",
            "### COMMIT-A-001 a",
            "### COMMIT-A-001:",
            "### COMMIT: a",
            "###COMMIT-A-001: a",
            "### COMMIT-A-٠٠١: a",
        ] {
            refused(&format!("\n{bad}\nDone: [ ]\n"), "line 2: a micro-commit heading");
        }
    }

    #[test]
    fn fences_comments_and_code_are_dead() {
        let text = "<!--\n### COMMIT-X-001: x\nDone: [x]\n-->\n```md\n### COMMIT-X-002: x\n```\n~~~\nDone: [x]\n~~~\n\n    ### COMMIT-X-003: x\n\n### COMMIT-A-001: a\n```\n### COMMIT-X-004: x\nDone: [x]\n```\n<!-- Done: [x] -->\nDone: [ ]\n";
        assert_eq!(ids(text), [("COMMIT-A-001".to_owned(), false)]);
    }

    #[test]
    fn an_id_is_planned_once() {
        refused(
            "### COMMIT-A-001: a\nDone: [ ]\n### COMMIT-A-001: b\nDone: [ ]\n",
            "line 3: COMMIT-A-001 was already planned on line 1",
        );
    }

    #[test]
    fn near_misses_are_warned_about() {
        let plan = parse_plan(
            "## COMMIT-B-001: b\n### COMMIT-A-001: a\n- Done: [ ]\nDone: []\nDone: [ ]\n",
        )
        .unwrap();
        assert_eq!(plan.warnings.len(), 3, "{:?}", plan.warnings);
    }

    #[test]
    fn line_ends_survive_a_mark() {
        let text = "### COMMIT-A-001: a\r\nDone: [ ]\r\n\r\nend without newline";
        let id = MicroCommitId::parse("COMMIT-A-001").unwrap();
        assert_eq!(mark_done(text, &id).unwrap().unwrap(), text.replace("[ ]", "[x]"));
    }

    #[test]
    fn acceptance_bullets_are_found() {
        let text = "### COMMIT-A-001: a\n- not this\n\n**Acceptance criteria:**\n\n- [ ] it runs\n* it stops\n  at once\n\nDone: [ ]\n- nor this\n";
        assert_eq!(
            parse_plan(text).unwrap().commits[0].acceptance,
            ["it runs", "it stops at once"]
        );
    }

    #[test]
    fn a_new_plan_has_no_micro_commit_yet() {
        let text = render_new_plan("user_auth", "Log in");
        assert_eq!(parse_plan(&text).unwrap(), Plan::default());
        assert!(text.contains("COMMIT-UA-001"));
        for (id, prefix) in
            [("tf", "TF"), ("test_framework", "TF"), ("x-1", "X1"), ("user_auth", "UA")]
        {
            assert_eq!(commit_prefix(id), prefix);
        }
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("### COMMIT-A-001: a\n".to_owned()),
            Just("### COMMIT-A-002: b\r\n".to_owned()),
            Just("Done: [ ]\n".to_owned()),
            Just("Done: [x]\n".to_owned()),
            Just("```\n".to_owned()),
            Just("<!-- x\n".to_owned()),
            Just("-->\n".to_owned()),
            Just("## other\n".to_owned()),
            Just("> ".to_owned()),
            Just("- ".to_owned()),
            Just("\n".to_owned()),
            "\\PC{0,12}\n",
        ]
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in any::<String>()) {
            let _read = parse_plan(&text);
        }

        #[test]
        fn a_mark_changes_exactly_one_byte(pieces in prop::collection::vec(piece(), 0..24)) {
            let text = pieces.concat();
            let Ok(plan) = parse_plan(&text) else { return Ok(()) };
            for commit in &plan.commits {
                let marked = mark_done(&text, &commit.id).unwrap().unwrap();
                let differing = text.bytes().zip(marked.bytes()).filter(|(a, b)| a != b).count();
                prop_assert_eq!(text.len(), marked.len());
                prop_assert_eq!(differing, usize::from(!commit.is_done));
                let again = parse_plan(&marked).unwrap();
                prop_assert!(again.find(&commit.id).unwrap().is_done);
                prop_assert_eq!(again.commits.len(), plan.commits.len());
            }
        }
    }
}
