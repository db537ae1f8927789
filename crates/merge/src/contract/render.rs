//! Renders the account: a table for a pull request, lines for a terminal.

use model::escape::escape_line;
use model::inert::{inert_cell, inert_prose};

use super::{Contract, ContractStatus};

/// Most rows; further ones are only counted.
const MOST_ROWS: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractFormat {
    /// For a pull request.
    Markdown,
    /// For a terminal.
    Plain,
}

/// Renders the account: totals first, then everything that is not kept, worst first.
pub fn render_contract(contract: &Contract, format: ContractFormat) -> String {
    let mut text = match format {
        ContractFormat::Markdown => "**Fork contract:** ".to_owned(),
        ContractFormat::Plain => "fork contract: ".to_owned(),
    };
    text.push_str(&render_sum(contract));
    text.push('\n');
    let rows = rows_of(contract);
    if rows.is_empty() {
        return text;
    }
    if format == ContractFormat::Markdown {
        text.push_str("\n| state | what | why |\n|---|---|---|\n");
    }
    for row in rows.iter().take(MOST_ROWS) {
        text.push_str(&render_row(row, format));
    }
    if rows.len() > MOST_ROWS {
        let more = rows.len() - MOST_ROWS;
        text.push_str(&match format {
            ContractFormat::Markdown => format!("\n…and {more} more.\n"),
            ContractFormat::Plain => format!("  …and {more} more\n"),
        });
    }
    text
}

struct ContractRow {
    state: ContractStatus,
    what: String,
    why: String,
}

fn render_sum(contract: &Contract) -> String {
    let commits: Vec<ContractStatus> = contract.commits.iter().map(|one| one.state).collect();
    let paths: Vec<ContractStatus> = contract.paths.iter().map(|one| one.state).collect();
    let mut sum = format!("{}; {}", count(&commits, "commit"), count(&paths, "path"));
    if contract.commits_left_off > 0 {
        sum.push_str(&format!("; {} older commits by path only", contract.commits_left_off));
    }
    sum
}

fn count(states: &[ContractStatus], word: &str) -> String {
    let total = states.len();
    let plural = if total == 1 { "" } else { "s" };
    let of = |state: ContractStatus| states.iter().filter(|one| **one == state).count();
    let parts: Vec<String> = [
        ContractStatus::Kept,
        ContractStatus::Superseded,
        ContractStatus::Changed,
        ContractStatus::Lost,
    ]
    .into_iter()
    .filter(|&state| of(state) > 0)
    .map(|state| format!("{} {}", of(state), state.as_str()))
    .collect();
    match parts.as_slice() {
        [] => format!("no {word}s"),
        parts => format!("{total} {word}{plural} ({})", parts.join(", ")),
    }
}

fn rows_of(contract: &Contract) -> Vec<ContractRow> {
    let commits = contract.commits.iter().map(|commit| ContractRow {
        state: commit.state,
        what: format!("{} {}", commit.sha.short(), escape_line(&commit.subject)),
        why: commit.same_as.as_ref().map_or_else(String::new, |sha| format!("as {}", sha.short())),
    });
    let paths = contract.paths.iter().map(|path| ContractRow {
        state: path.state,
        what: path.path.to_string(),
        why: path.detail.clone(),
    });
    let mut rows: Vec<ContractRow> =
        commits.chain(paths).filter(|row| row.state != ContractStatus::Kept).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.state));
    rows
}

fn render_row(row: &ContractRow, format: ContractFormat) -> String {
    let state = row.state.as_str();
    match format {
        ContractFormat::Markdown => {
            let state = if row.state == ContractStatus::Lost {
                format!("**{state}**")
            } else {
                state.into()
            };
            format!("| {state} | {} | {} |\n", inert_cell(&row.what), inert_prose(&row.why))
        }
        ContractFormat::Plain if row.why.is_empty() => format!("  {state:<10}  {}\n", row.what),
        ContractFormat::Plain => format!("  {state:<10}  {}: {}\n", row.what, row.why),
    }
}

#[cfg(test)]
mod tests {
    use model::id::Sha;

    use super::super::{CommitAccount, PathAccount};
    use super::*;
    use crate::path::TreePath;

    fn contract() -> Contract {
        let commit = |digit: &str, subject: &str, state| CommitAccount {
            sha: Sha::parse(&digit.repeat(40)).unwrap(),
            subject: subject.to_owned(),
            state,
            same_as: None,
        };
        let path = |path: &str, state, detail: &str| PathAccount {
            path: TreePath::new(path),
            state,
            detail: detail.to_owned(),
        };
        Contract {
            commits: vec![
                commit("a", "keep the logo", ContractStatus::Kept),
                commit("b", "a | b `c`\u{1b}[1m @all", ContractStatus::Superseded),
            ],
            commits_left_off: 3,
            paths: vec![
                path("kept.txt", ContractStatus::Kept, ""),
                path("some.txt", ContractStatus::Changed, "1 of 2 lines; now a_b|c"),
                path("gone\n.txt", ContractStatus::Lost, "protected"),
            ],
            lost: true,
        }
    }

    #[test]
    fn a_pull_request_gets_a_table_that_others_cannot_break() {
        insta::assert_snapshot!(render_contract(&contract(), ContractFormat::Markdown), @r"
        **Fork contract:** 2 commits (1 kept, 1 superseded); 3 paths (1 kept, 1 changed, 1 lost); 3 older commits by path only

        | state | what | why |
        |---|---|---|
        | **lost** | `gone\n.txt` | protected |
        | changed | `some.txt` | 1 of 2 lines; now a\_b\|c |
        | superseded | ``bbbbbbbbbbbb a \x7c b `c`\x1b[1m @all`` |  |
        ");
    }

    #[test]
    fn a_terminal_gets_lines() {
        insta::assert_snapshot!(render_contract(&contract(), ContractFormat::Plain), @r"
        fork contract: 2 commits (1 kept, 1 superseded); 3 paths (1 kept, 1 changed, 1 lost); 3 older commits by path only
          lost        gone\n.txt: protected
          changed     some.txt: 1 of 2 lines; now a_b|c
          superseded  bbbbbbbbbbbb a | b `c`\x1b[1m @all
        ");
    }

    #[test]
    fn when_all_is_kept_one_line_says_so() {
        let mut contract = contract();
        contract.commits.truncate(1);
        contract.paths.truncate(1);
        contract.commits_left_off = 0;
        let text = render_contract(&contract, ContractFormat::Plain);
        assert_eq!(text, "fork contract: 1 commit (1 kept); 1 path (1 kept)\n");
        let text = render_contract(&Contract::default(), ContractFormat::Plain);
        assert_eq!(text, "fork contract: no commits; no paths\n");
    }

    #[test]
    fn a_record_is_read_back_as_it_was() {
        let mut contract = contract();
        contract.paths.truncate(2);
        let text = serde_json::to_string(&contract).unwrap();
        assert_eq!(serde_json::from_str::<Contract>(&text).unwrap(), contract);
    }
}
