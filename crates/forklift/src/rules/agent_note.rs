//! The agent's notes on the conflicts that it resolved: lines of its answer, shown as claims beside the host's own account.

use super::conflict_row::{ConflictRow, Decider};

/// Request for notes, in the prompt.
pub(crate) const NOTE_REQUEST: &str = "When you are done, end with one line for each conflict that you resolved, in this form: `NOTE path: what you \
     decided and why`.";

const WORD: &str = "NOTE ";

/// Conflicts that the agent decided, each with its note if it left one. Empty if it left none at all: an agent that was not
/// asked, or does not follow, is no reason for a list of gaps.
pub(crate) fn notes_of<'a>(
    rows: &'a [ConflictRow],
    answer: &'a str,
) -> Vec<(&'a str, Option<&'a str>)> {
    let notes: Vec<&str> = answer.lines().filter_map(note_line).collect();
    let is_agents =
        |row: &&ConflictRow| matches!(row.decider, Decider::Agent | Decider::AgentOver(_));
    let found: Vec<_> = rows
        .iter()
        .filter(is_agents)
        .map(|row| (row.path.as_str(), note_for(&notes, &row.path)))
        .collect();
    match found.iter().any(|(_, note)| note.is_some()) {
        true => found,
        false => Vec::new(),
    }
}

/// The last note on a path.
fn note_for<'a>(notes: &[&'a str], path: &str) -> Option<&'a str> {
    let read = |note: &'a str| {
        let rest = note.strip_prefix(path)?.trim_start_matches('`').strip_prefix(':')?.trim();
        (!rest.is_empty()).then_some(rest)
    };
    notes.iter().rev().copied().find_map(read)
}

/// The rest of a line that is a note, whatever list mark or quotation is before its path.
fn note_line(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '-', '*', '`']);
    Some(line.strip_prefix(WORD)?.trim_start().trim_start_matches('`'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, decider: Decider) -> ConflictRow {
        ConflictRow {
            path: path.to_owned(),
            kind: "content".to_owned(),
            decider,
            result: None,
            confidence: None,
            hunk: String::new(),
        }
    }

    #[test]
    fn each_conflict_of_the_agent_has_its_note_or_none() {
        let rows = [
            row("src/a.c", Decider::Agent),
            row("b c.txt", Decider::AgentOver("rule".to_owned())),
            row("gone", Decider::Agent),
            row("auto", Decider::Resolver("rule".to_owned())),
        ];
        let answer = "Done.\nNOTE src/a.c: kept both: the fork needs its limit\n- `NOTE b c.txt`: took upstream's\n\
                      NOTE auto: mine\nNOTE src/a.cpp: other file\nNOTE gone:\n";
        assert_eq!(
            notes_of(&rows, answer),
            [
                ("src/a.c", Some("kept both: the fork needs its limit")),
                ("b c.txt", Some("took upstream's")),
                ("gone", None),
            ]
        );
    }

    #[test]
    fn an_answer_without_notes_makes_no_list() {
        let rows = [row("a", Decider::Agent)];
        assert!(notes_of(&rows, "I merged a and b. NOTE: nothing").is_empty());
    }
}
