//! The text of a bottle's pull request: what the agent says, what was committed, and which issue it is for. Nothing of
//! the run's record is in it; that has a place of its own.

use engine::evidence::NewCommit;

/// More commits are counted and not listed.
const LISTED_MAX: usize = 50;
const TITLE_MAX_CHARS: usize = 120;

/// What the text is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PullFacts<'a> {
    pub(crate) issue: u64,
    pub(crate) issue_title: &'a str,
    /// The agent's own summary, if it gave one.
    pub(crate) summary: Option<&'a str>,
    pub(crate) commits: &'a [NewCommit],
}

/// Title and body.
pub(crate) fn render_pull(facts: &PullFacts<'_>) -> (String, String) {
    let title = facts.issue_title.trim();
    let title = if title.is_empty() { format!("Issue {}", facts.issue) } else { title.to_owned() };
    let title: String = title.chars().filter(|c| !c.is_control()).take(TITLE_MAX_CHARS).collect();
    let mut body = String::new();
    if let Some(summary) = facts.summary.map(str::trim).filter(|text| !text.is_empty()) {
        let quoted: String = summary.lines().map(|line| format!("> {line}\n")).collect();
        body += &format!("What the agent says:\n\n{quoted}\n");
    }
    body += "Commits:\n\n";
    for commit in facts.commits.iter().take(LISTED_MAX) {
        let subject: String =
            commit.subject.chars().filter(|c| !c.is_control()).take(200).collect();
        // In a code span nobody is called and nothing is closed by the subject's words.
        body += &format!("- {} `{}`\n", commit.sha.short(), subject.replace('`', "'"));
    }
    let more = facts.commits.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        body += &format!("- and {more} more\n");
    }
    body += &format!("\nCloses #{}\n", facts.issue);
    (title, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::Sha;

    #[test]
    fn the_issue_is_linked_and_subjects_do_nothing() {
        let sha = Sha::parse(&"a".repeat(40)).expect("a sha");
        let subject = "fix `x`, closes #9 @all".to_owned();
        let commits = [NewCommit { sha, subject, parents: 1 }];
        let facts = PullFacts {
            issue: 3,
            issue_title: "Do\u{7} it",
            summary: Some("done"),
            commits: &commits,
        };
        let (title, body) = render_pull(&facts);
        assert_eq!(title, "Do it");
        assert!(body.ends_with("\nCloses #3\n") && body.contains("> done"), "{body}");
        assert!(body.contains("`fix 'x', closes #9 @all`"), "{body}");
    }
}
