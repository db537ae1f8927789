//! Changes of a plan by command: micro-commits are added, moved, renamed and dropped as whole blocks, and every other
//! byte stays.

use model::id::MicroCommitId;

use super::{MicroCommit, PlanError, parse_blocks, parse_plan};
use crate::rules::breakdown::{Breakdown, append_draft};

/// Place of a micro-commit among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanPlace<'a> {
    End,
    Before(&'a MicroCommitId),
    After(&'a MicroCommitId),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlanEditError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("the plan has no {0}")]
    Unknown(MicroCommitId),
    #[error("{0} is done; what is done stays in the plan")]
    Done(MicroCommitId),
    #[error("{0} would be next to itself")]
    Itself(MicroCommitId),
    #[error("{0} is superseded already")]
    Superseded(MicroCommitId),
    #[error(
        "{0} stands in the place of {1}, which would be nobody's then; drop {1} too, or edit the plan"
    )]
    Successor(MicroCommitId, MicroCommitId),
    #[error("the text must be the one block of {0}, with its heading and its Done line")]
    OtherBlock(MicroCommitId),
}

/// Adds a micro-commit with the next number. Returns the text and the new id.
pub(crate) fn add_commit(
    text: &str,
    workstream: &str,
    draft: &Breakdown,
    place: PlanPlace<'_>,
) -> Result<(String, MicroCommitId), PlanEditError> {
    let plan = parse_plan(text)?;
    let added = append_draft(text, &plan, workstream, draft);
    let Some(new) = parse_plan(&added)?.commits.pop() else {
        return Err(PlanError::Heading { line: 1 }.into());
    };
    match place {
        PlanPlace::End => Ok((added, new.id)),
        place => Ok((move_commit(&added, &new.id, place)?, new.id)),
    }
}

/// Moves a micro-commit that is not done.
pub(crate) fn move_commit(
    text: &str,
    id: &MicroCommitId,
    place: PlanPlace<'_>,
) -> Result<String, PlanEditError> {
    if let PlanPlace::Before(other) | PlanPlace::After(other) = place
        && other == id
    {
        return Err(PlanEditError::Itself(id.clone()));
    }
    let commit = find_open(text, id)?;
    let block = text[commit.block.clone()].trim_end().to_owned();
    let rest = cut_block(text, id)?;
    let at = match place {
        PlanPlace::End => rest.len(),
        PlanPlace::Before(other) => find(&rest, other)?.block.start,
        PlanPlace::After(other) => find(&rest, other)?.block.end,
    };
    let (before, after) = (rest[..at].trim_end(), rest[at..].trim_start());
    let gap = if after.is_empty() { "" } else { "\n" };
    let above = if before.is_empty() { String::new() } else { format!("{before}\n\n") };
    Ok(format!("{above}{block}\n{gap}{after}"))
}

/// Drops a micro-commit that is not done.
pub(crate) fn drop_commit(text: &str, id: &MicroCommitId) -> Result<String, PlanEditError> {
    let plan = parse_plan(text)?;
    if let Some(replaced) = plan.replaced_by(id) {
        return Err(PlanEditError::Successor(id.clone(), replaced.id.clone()));
    }
    cut_block(text, id)
}

/// The text without the block of a micro-commit that is not done.
fn cut_block(text: &str, id: &MicroCommitId) -> Result<String, PlanEditError> {
    let commit = find_open(text, id)?;
    let (before, after) = (&text[..commit.block.start], &text[commit.block.end..]);
    let mut rest = before.to_owned();
    if after.is_empty() {
        rest.truncate(before.trim_end().len());
        rest.push('\n');
    }
    rest.push_str(after);
    Ok(rest)
}

/// Marks a micro-commit as superseded: it stays in the plan and is not run. One that is done stays done.
pub(crate) fn supersede_commit(
    text: &str,
    id: &MicroCommitId,
    by: Option<&MicroCommitId>,
    why: &str,
) -> Result<String, PlanEditError> {
    let commit = find(text, id)?;
    if commit.superseded.is_some() {
        return Err(PlanEditError::Superseded(id.clone()));
    }
    if by == Some(id) {
        return Err(PlanEditError::Itself(id.clone()));
    }
    if let Some(by) = by {
        find(text, by)?;
    }
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = match (by, why.is_empty()) {
        (Some(by), true) => format!("by {by}"),
        (Some(by), false) => format!("by {by}: {why}"),
        (None, true) => "not wanted any more".to_owned(),
        (None, false) => why,
    };
    // Above the Done line, whose line begins at the last line break before its mark.
    let at = text[..commit.mark].rfind('\n').map_or(0, |end| end + 1);
    let changed = format!("{}Superseded: {words}\n{}", &text[..at], &text[at..]);
    let is_marked = parse_plan(&changed)?.find(id).is_some_and(|it| it.superseded.is_some());
    if is_marked { Ok(changed) } else { Err(PlanEditError::OtherBlock(id.clone())) }
}

/// Replaces the block of a micro-commit that is not done.
pub(crate) fn replace_commit(
    text: &str,
    id: &MicroCommitId,
    block: &str,
) -> Result<String, PlanEditError> {
    let commit = find_open(text, id)?;
    let plan = parse_plan(block)?;
    let is_it = plan.commits.len() == 1 && plan.commits[0].id == *id;
    if !is_it || plan.commits[0].block.end != block.len() {
        return Err(PlanEditError::OtherBlock(id.clone()));
    }
    let after = &text[commit.block.end..];
    let gap = if after.is_empty() { "" } else { "\n" };
    let changed = format!("{}{}\n{gap}{after}", &text[..commit.block.start], block.trim_end());
    parse_plan(&changed)?;
    Ok(changed)
}

/// The block of a micro-commit with another title.
pub(crate) fn with_title(
    text: &str,
    id: &MicroCommitId,
    title: &str,
) -> Result<String, PlanEditError> {
    let commit = find_open(text, id)?;
    let block = &text[commit.block];
    let rest = block.split_once('\n').map_or("", |(_, rest)| rest);
    let title: Vec<&str> = title.split_whitespace().collect();
    Ok(format!("### {id}: {}\n{rest}", title.join(" ")))
}

/// The block of a micro-commit that is not done.
pub(crate) fn open_block<'a>(text: &'a str, id: &MicroCommitId) -> Result<&'a str, PlanEditError> {
    Ok(&text[find_open(text, id)?.block])
}

fn find(text: &str, id: &MicroCommitId) -> Result<MicroCommit, PlanEditError> {
    let found = parse_blocks(text)?.find(id).cloned();
    found.ok_or_else(|| PlanEditError::Unknown(id.clone()))
}

fn find_open(text: &str, id: &MicroCommitId) -> Result<MicroCommit, PlanEditError> {
    match find(text, id)? {
        commit if commit.is_done => Err(PlanEditError::Done(id.clone())),
        commit => Ok(commit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "# Plan\n\n### COMMIT-A-001: a\n\nDone: [x]\n\n### COMMIT-A-002: b\n\nwords\n\nDone: [ ]\n\n### COMMIT-A-003: c\n\nDone: [ ]\n";

    fn id(number: u32) -> MicroCommitId {
        MicroCommitId::parse(&format!("COMMIT-A-{number:03}")).unwrap()
    }

    fn titles(text: &str) -> Vec<String> {
        parse_plan(text).unwrap().commits.into_iter().map(|commit| commit.title).collect()
    }

    #[test]
    fn a_micro_commit_is_added_where_it_is_wanted() {
        let draft = Breakdown::one("d", "why", &["it runs".to_owned()]);
        let add = |place| add_commit(PLAN, "a", &draft, place).unwrap();
        let (text, new) = add(PlanPlace::End);
        assert_eq!((titles(&text), new), (["a", "b", "c", "d"].map(str::to_owned).to_vec(), id(4)));
        assert!(text.starts_with(PLAN) && text.contains("- it runs"));
        let second = id(2);
        let (text, _) = add(PlanPlace::Before(&second));
        assert_eq!(titles(&text), ["a", "d", "b", "c"]);
        let (text, _) = add(PlanPlace::After(&second));
        assert_eq!(titles(&text), ["a", "b", "d", "c"]);
    }

    #[test]
    fn a_micro_commit_is_moved_and_moved_back() {
        let moved = move_commit(PLAN, &id(3), PlanPlace::Before(&id(2))).unwrap();
        assert_eq!(titles(&moved), ["a", "c", "b"]);
        assert_eq!(move_commit(&moved, &id(3), PlanPlace::End).unwrap(), PLAN);
        assert_eq!(
            move_commit(PLAN, &id(2), PlanPlace::After(&id(2))),
            Err(PlanEditError::Itself(id(2)))
        );
    }

    #[test]
    fn what_is_done_stays() {
        assert_eq!(drop_commit(PLAN, &id(1)), Err(PlanEditError::Done(id(1))));
        assert_eq!(drop_commit(PLAN, &id(9)), Err(PlanEditError::Unknown(id(9))));
        assert_eq!(titles(&drop_commit(PLAN, &id(2)).unwrap()), ["a", "c"]);
        assert_eq!(titles(&drop_commit(PLAN, &id(3)).unwrap()), ["a", "b"]);
    }

    #[test]
    fn what_is_superseded_stays_and_is_not_next() {
        let text = supersede_commit(PLAN, &id(2), Some(&id(3)), "  the API\nchanged ").unwrap();
        assert!(
            text.contains("words\n\nSuperseded: by COMMIT-A-003: the API changed\nDone: [ ]\n")
        );
        let plan = parse_plan(&text).unwrap();
        assert_eq!(plan.next().map(|next| next.id.clone()), Some(id(3)));
        assert_eq!((plan.done_count(), plan.open_count(), plan.wanted_count()), (1, 1, 2));
        let text = supersede_commit(&text, &id(3), None, "").unwrap();
        assert!(parse_plan(&text).unwrap().is_complete());
        // Nothing was done: an empty branch is not complete.
        let text = supersede_commit("### COMMIT-A-001: a\nDone: [ ]\n", &id(1), None, "").unwrap();
        let plan = parse_plan(&text).unwrap();
        assert!(plan.next().is_none() && !plan.is_complete());
        for (of, by, error) in [
            (1, Some(id(1)), PlanEditError::Itself(id(1))),
            (1, Some(id(9)), PlanEditError::Unknown(id(9))),
            (9, None, PlanEditError::Unknown(id(9))),
        ] {
            assert_eq!(supersede_commit(PLAN, &id(of), by.as_ref(), ""), Err(error));
        }
        let done = supersede_commit(PLAN, &id(1), None, "tried").unwrap();
        assert!(done.contains("Superseded: tried\nDone: [x]"));
        assert_eq!(
            supersede_commit(&done, &id(1), None, ""),
            Err(PlanEditError::Superseded(id(1)))
        );
    }

    #[test]
    fn the_work_of_what_is_superseded_is_never_nobodys() {
        let text = supersede_commit(PLAN, &id(2), Some(&id(3)), "").unwrap();
        assert_eq!(drop_commit(&text, &id(3)), Err(PlanEditError::Successor(id(3), id(2))));
        let circle = PlanError::Circle { line: 7, id: id(2) };
        assert_eq!(supersede_commit(&text, &id(3), Some(&id(2)), ""), Err(circle.into()));
        // The same by hand.
        let gone = text.replace("### COMMIT-A-003: c", "### COMMIT-A-004: c");
        let error = PlanError::NoSuccessor { line: 7, id: id(2), by: id(3) };
        assert_eq!(parse_plan(&gone), Err(error));
        assert_eq!(
            titles(&move_commit(&text, &id(3), PlanPlace::Before(&id(2))).unwrap()),
            ["a", "c", "b"]
        );
        assert_eq!(titles(&drop_commit(&text, &id(2)).unwrap()), ["a", "c"]);
        // Somebody said that nobody wants it.
        let unwanted = supersede_commit(&text, &id(3), None, "").unwrap();
        assert!(parse_plan(&unwanted).unwrap().is_complete());
        let done = "### COMMIT-A-001: a\nSuperseded: by COMMIT-A-009\nDone: [x]\n";
        assert!(parse_plan(done).unwrap().is_complete());
    }

    #[test]
    fn a_block_is_replaced_by_itself_only() {
        let block = with_title(PLAN, &id(2), "  better \n words").unwrap();
        let text = replace_commit(PLAN, &id(2), &block).unwrap();
        assert_eq!(titles(&text), ["a", "better words", "c"]);
        assert!(text.contains("\nwords\n"));
        for bad in ["### COMMIT-A-009: x\nDone: [ ]\n", "nothing", "### COMMIT-A-002: b\n"] {
            assert!(replace_commit(PLAN, &id(2), bad).is_err(), "{bad}");
        }
        assert_eq!(open_block(PLAN, &id(3)).unwrap(), "### COMMIT-A-003: c\n\nDone: [ ]\n");
    }
}
