//! The text of a bottle's pull request: the agent's summary, the commits, what was checked, the size of the change, and the
//! issue, with a line about the run for reviewers. The signed record stays behind the API; the text only links to it.
//!
//! The text is a section between two invisible marks. Each run rewrites that section; text of people around it, and a title
//! that they changed, stay.

use engine::evidence::NewCommit;
use model::inert::{inert_code, inert_line, inert_markdown};

use super::check_text::{CheckRecord, render_check};

/// More commits are counted and not listed.
const LISTED_MAX: usize = 50;
const TITLE_MAX_CHARS: usize = 120;
const SUBJECT_MAX_CHARS: usize = 200;

/// The marks, which explain the section to people who edit the text.
const BEGIN: &str =
    "<!-- bot-bottle: each run writes anew what stands from here to the end mark -->";
const END: &str = "<!-- bot-bottle: end -->";

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PullTextFacts<'a> {
    pub(crate) issue: u64,
    pub(crate) issue_title: &'a str,
    pub(crate) summary: Option<&'a str>,
    /// Commits of the branch that its base lacks.
    pub(crate) commits: &'a [NewCommit],
    pub(crate) check: Option<&'a CheckRecord>,
    pub(crate) size: Option<ChangeSize>,
    pub(crate) run: Option<RunLine<'a>>,
}

/// Size of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeSize {
    pub(crate) files: usize,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

impl ChangeSize {
    /// Counts the lines of a patch.
    pub(crate) fn of_patch(patch: &[u8]) -> Self {
        let mut size = Self { files: 0, added: 0, removed: 0 };
        let mut in_hunk = false;
        for line in patch.split(|byte| *byte == b'\n') {
            if line.starts_with(b"diff --git ") {
                (size.files, in_hunk) = (size.files + 1, false);
            } else if line.starts_with(b"@@ ") {
                in_hunk = true;
            } else if in_hunk && line.starts_with(b"+") {
                size.added += 1;
            } else if in_hunk && line.starts_with(b"-") {
                size.removed += 1;
            }
        }
        size
    }

    fn words(self) -> String {
        let Self { files, added, removed } = self;
        let noun =
            |count, one: &'static str, more: &'static str| if count == 1 { one } else { more };
        let (file, line) = (noun(files, "file", "files"), noun(added, "line", "lines"));
        format!("{files} {file}, {added} {line} added, {removed} removed")
    }
}

/// Facts about the run for reviewers; unknown ones are left out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunLine<'a> {
    pub(crate) agent: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) took: Option<&'a str>,
    pub(crate) cost: Option<&'a str>,
    /// Page of the run, with its signed record.
    pub(crate) page: Option<&'a str>,
}

impl RunLine<'_> {
    fn render(&self) -> String {
        let model = self.model.map(|model| format!("with {}", inert_code(model)));
        let took = self.took.map(|took| format!("in {}", inert_line(took)));
        let cost = self.cost.map(|cost| format!("for {}", inert_line(cost)));
        let parts: Vec<String> = [model, took, cost].into_iter().flatten().collect();
        let page = self
            .page
            .map_or_else(String::new, |page| format!(" [The run and its record]({page})."));
        let parts = if parts.is_empty() { String::new() } else { format!(" {}", parts.join(", ")) };
        format!("Made by the agent {}{parts}.{page}", inert_code(self.agent))
    }
}

pub(crate) fn render_title(facts: &PullTextFacts<'_>) -> String {
    let title = facts.issue_title.trim();
    let title = if title.is_empty() { format!("Issue {}", facts.issue) } else { title.to_owned() };
    let title: String = title.chars().filter(|c| !c.is_control()).take(TITLE_MAX_CHARS).collect();
    inert_line(&title)
}

/// The text between the marks. The agent's text cannot look like a mark: it begins no HTML.
pub(crate) fn render_section(facts: &PullTextFacts<'_>) -> String {
    let mut section = String::new();
    let failed = facts.check.filter(|check| !check.summary.passed());
    section.extend(failed.map(|check| format!("{}\n", render_check(check))));
    if let Some(summary) = facts.summary.map(str::trim).filter(|text| !text.is_empty()) {
        let summary = inert_markdown(summary, Some(facts.issue));
        let quoted: String = summary.lines().map(|line| format!("> {line}\n")).collect();
        section += &format!("What the agent says:\n\n{quoted}\n");
    }
    section += "Commits:\n\n";
    for commit in facts.commits.iter().take(LISTED_MAX) {
        let subject: String = commit.subject.chars().take(SUBJECT_MAX_CHARS).collect();
        section += &format!("- {} {}\n", commit.sha.short(), inert_code(&subject));
    }
    let more = facts.commits.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        section += &format!("- and {more} more\n");
    }
    let passed = facts.check.filter(|check| check.summary.passed());
    section.extend(passed.map(|check| format!("\n{}", render_check(check))));
    let size = facts.size.map(|size| format!("Size: {}.", size.words()));
    let about: Vec<String> = size.into_iter().chain(facts.run.map(|run| run.render())).collect();
    if !about.is_empty() {
        section += &format!("\n{}\n", about.join("\n"));
    }
    // Text of others in a code span may still spell a mark.
    section = section.replace("<!--", "<! --");
    section + &format!("\nCloses #{}\n", facts.issue)
}

/// The whole text of a new pull request.
pub(crate) fn wrap_section(section: &str) -> String {
    format!("{BEGIN}\n{section}{END}\n")
}

/// Link to the issue in the text outside our section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IssueLink {
    Kept,
    Lost,
}

/// The text with a new section; `None` if people removed the section and kept the link to the issue. Without the link the
/// section is appended, because the pull request must belong to its issue.
pub(crate) fn renew_body(current: &str, section: &str, link: IssueLink) -> Option<String> {
    let begin = current.find(BEGIN);
    let end = begin.and_then(|at| current[at..].find(END).map(|length| at + length + END.len()));
    match (begin.zip(end), link) {
        (Some((begin, end)), IssueLink::Kept | IssueLink::Lost) => {
            let section = wrap_section(section);
            Some([&current[..begin], section.trim_end(), &current[end..]].concat())
        }
        (None, IssueLink::Kept) => None,
        (None, IssueLink::Lost) => {
            Some(format!("{}\n\n{}", current.trim_end(), wrap_section(section)))
        }
    }
}

/// The title: ours, unless people changed it.
pub(crate) fn choose_title<'a>(current: &'a str, before: Option<&str>, now: &'a str) -> &'a str {
    if before == Some(current) { now } else { current }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::Sha;

    fn commit(subject: &str) -> NewCommit {
        let sha = Sha::parse(&"a".repeat(40)).expect("a sha");
        NewCommit { sha, subject: subject.to_owned(), parents: 1 }
    }

    fn facts<'a>(commits: &'a [NewCommit], summary: &'a str) -> PullTextFacts<'a> {
        PullTextFacts {
            issue: 3,
            issue_title: "Do\u{7} it",
            summary: Some(summary),
            commits,
            ..PullTextFacts::default()
        }
    }

    #[test]
    fn the_issue_is_linked_and_subjects_do_nothing() {
        let commits = [commit("fix `x`, closes #9 @all")];
        let facts = facts(&commits, "done");
        assert_eq!(render_title(&facts), "Do it");
        let section = render_section(&facts);
        assert!(section.ends_with("\nCloses #3\n") && section.contains("> done"), "{section}");
        assert!(section.contains("``fix `x`, closes #\u{200b}9 @all``"), "{section}");
    }

    #[test]
    fn size_and_run_are_one_line_each() {
        let patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n++c\ndiff --git a/y b/y\n";
        let size = ChangeSize::of_patch(patch);
        assert_eq!(size, ChangeSize { files: 2, added: 2, removed: 1 });
        let run = RunLine {
            agent: "worker",
            model: Some("acme/x"),
            took: Some("3 min 5 s"),
            cost: None,
            page: Some("https://bottles.example/runs/a/b"),
        };
        let facts = PullTextFacts {
            issue: 3,
            size: Some(size),
            run: Some(run),
            ..PullTextFacts::default()
        };
        let section = render_section(&facts);
        let expected = "\nSize: 2 files, 2 lines added, 1 removed.\nMade by the agent `worker` with `acme/x`, in 3 min 5 s. \
                        [The run and its record](https://bottles.example/runs/a/b).\n\nCloses #3\n";
        assert!(section.ends_with(expected), "{section}");
    }

    #[test]
    fn what_people_write_around_the_section_stays() {
        let first = wrap_section("one\n");
        let edited = format!("Reviewed by Carol.\n\n{first}\n- [ ] try it\n");
        let renewed = renew_body(&edited, "two\n", IssueLink::Kept).expect("renewed");
        assert_eq!(renewed, edited.replace("one\n", "two\n"));
        assert_eq!(renew_body(&first, "one\n", IssueLink::Kept), Some(first));
    }

    #[test]
    fn a_section_that_was_taken_out_comes_back_only_for_the_link() {
        assert_eq!(renew_body("My own words. Closes #3", "two\n", IssueLink::Kept), None);
        let back = renew_body("My own words.\n", "two\n", IssueLink::Lost).expect("renewed");
        assert_eq!(back, format!("My own words.\n\n{}", wrap_section("two\n")));
        let half = format!("{BEGIN}\nno end");
        assert!(renew_body(&half, "two\n", IssueLink::Lost).expect("renewed").starts_with(&half));
    }

    #[test]
    fn an_agents_words_are_never_a_mark() {
        let commits = [commit(END)];
        let words = format!("{END}\n{BEGIN}");
        let body = wrap_section(&render_section(&facts(&commits, &words)));
        assert_eq!((body.matches(BEGIN).count(), body.matches(END).count()), (1, 1), "{body}");
    }

    #[test]
    fn a_title_is_renewed_as_long_as_it_is_ours() {
        assert_eq!(choose_title("old", Some("old"), "new"), "new");
        assert_eq!(choose_title("Carol's", Some("old"), "new"), "Carol's");
        assert_eq!(choose_title("old", None, "new"), "old");
    }
}
