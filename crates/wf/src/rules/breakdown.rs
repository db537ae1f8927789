//! Draft of micro-commits that an agent made from a story, rendered as text for the plan.

use serde::Deserialize;
use serde_json::Value;

use super::extract::last_object;
use super::plan::{Plan, commit_prefix};

const MOST_COMMITS: usize = 50;
const TITLE_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Breakdown {
    commits: Vec<DraftCommit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct DraftCommit {
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    acceptance: Vec<String>,
}

impl Breakdown {
    /// A draft of one micro-commit, by a person.
    pub(crate) fn one(title: &str, description: &str, acceptance: &[String]) -> Self {
        let commit = DraftCommit {
            title: title.to_owned(),
            description: description.to_owned(),
            acceptance: acceptance.to_vec(),
        };
        Self { commits: vec![commit] }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BreakdownError {
    #[error("the agent gave no JSON object with commits")]
    Absent,
    #[error("the draft cannot be used: {0}")]
    Invalid(String),
}

pub(crate) fn extract_breakdown(text: &str) -> Result<Breakdown, BreakdownError> {
    let found = last_object(text, |value: &Value| value.get("commits").is_some());
    let value = found.ok_or(BreakdownError::Absent)?;
    let draft: Breakdown = serde_json::from_value(value)
        .map_err(|error| BreakdownError::Invalid(error.to_string()))?;
    let invalid = |words: &str| Err(BreakdownError::Invalid(words.to_owned()));
    match draft.commits.len() {
        0 => invalid("it has no micro-commits"),
        count if count > MOST_COMMITS => invalid("it has more than 50 micro-commits"),
        _ if draft.commits.iter().any(|commit| one_line(&commit.title).is_empty()) => {
            invalid("a micro-commit has no title")
        }
        _ => Ok(draft),
    }
}

/// Appends the draft to the plan. Numbers continue after the highest existing one; headings and Done lines in the agent's
/// text are quoted, so that the agent cannot plan anything that is not visible as such.
pub(crate) fn append_draft(text: &str, plan: &Plan, workstream: &str, draft: &Breakdown) -> String {
    let number = |id: &str| id.rsplit('-').next().and_then(|tail| tail.parse::<u32>().ok());
    let highest = plan.commits.iter().filter_map(|commit| number(commit.id.as_str())).max();
    let prefix = commit_prefix(workstream);
    let mut out = text.trim_end().to_owned();
    out.push('\n');
    for (commit, number) in draft.commits.iter().zip(highest.unwrap_or(0) + 1..) {
        out.push_str(&format!("\n### COMMIT-{prefix}-{number:03}: {}\n", one_line(&commit.title)));
        if !commit.description.trim().is_empty() {
            out.push_str(&format!("\n{}\n", harmless(commit.description.trim())));
        }
        let bullets = commit.acceptance.iter().map(|words| one_line(words));
        let bullets: Vec<String> = bullets.filter(|words| !words.is_empty()).collect();
        if !bullets.is_empty() {
            out.push_str("\nAcceptance:\n");
            bullets.iter().for_each(|words| out.push_str(&format!("- {words}\n")));
        }
        out.push_str("\nDone: [ ]\n");
    }
    out
}

/// A title as the plan has it: one line, cut at its limit.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(TITLE_MAX).collect()
}

/// Quotes every line that has a meaning in a plan.
fn harmless(text: &str) -> String {
    let means_something = |line: &str| {
        let line = line.trim_start();
        ["#", "Done", "```", "~~~", "<", "===", "---"].iter().any(|mark| line.starts_with(mark))
    };
    let quote = |line: &str| {
        if means_something(line) { format!("> {}", line.trim_start()) } else { line.to_owned() }
    };
    text.lines().map(quote).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::parse_plan;

    fn append(text: &str, answer: &str) -> String {
        let draft = extract_breakdown(answer).unwrap();
        append_draft(text, &parse_plan(text).unwrap(), "tf", &draft)
    }

    #[test]
    fn numbers_go_on_and_the_plan_stays_one() {
        let before = "# Plan\n\n### COMMIT-TF-007: Old\n\nDone: [x]\n";
        let after = append(
            before,
            r#"Here: {"commits": [{"title": "Add x", "description": "d", "acceptance": ["a"]}, {"title": "Add y"}]}"#,
        );
        let plan = parse_plan(&after).unwrap();
        let ids: Vec<&str> = plan.commits.iter().map(|commit| commit.id.as_str()).collect();
        assert_eq!(ids, ["COMMIT-TF-007", "COMMIT-TF-008", "COMMIT-TF-009"]);
        assert_eq!(plan.commits[1].acceptance, ["a"]);
        assert!(after.starts_with(before));
    }

    #[test]
    fn an_agent_cannot_smuggle_in_commits_or_marks() {
        let after = append(
            "",
            r####"{"commits": [{"title": "A\n### COMMIT-TF-099: evil", "description": "### COMMIT-TF-050: evil\nDone: [x]\n```\n<!--"}]}"####,
        );
        let plan = parse_plan(&after).unwrap();
        assert_eq!(plan.commits.len(), 1, "{after}");
        assert!(!plan.commits[0].is_done);
    }

    #[test]
    fn what_is_no_draft_is_refused() {
        assert_eq!(extract_breakdown("no"), Err(BreakdownError::Absent));
        for bad in
            [r#"{"commits": []}"#, r#"{"commits": [{}]}"#, r#"{"commits": [{"title": " "}]}"#]
        {
            assert!(matches!(extract_breakdown(bad), Err(BreakdownError::Invalid(_))), "{bad}");
        }
    }
}
