//! Changes of a plan by command: micro-commits are added, moved, renamed and dropped as whole blocks, and every other
//! byte stays.

use model::id::MicroCommitId;

use super::{MicroCommit, PlanError, parse_plan};
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
    let rest = drop_commit(text, id)?;
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
    let found = parse_plan(text)?.find(id).cloned();
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
