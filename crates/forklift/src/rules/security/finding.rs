//! Findings of `forklift security`: one for each fix of upstream, and what the fork has of it.

use std::path::PathBuf;

use jiff::Timestamp;
use merge::likeness::Likeness;
use model::id::{BranchName, Sha};
use serde::Serialize;

use super::advisory::AdvisoryId;
use super::code_place::FileFacts;
use super::presence::{Applies, Presence, State, Sureness, weakness};
use super::severity::Severity;
use crate::rules::words::counted;

/// Says that a fix applies without a conflict.
pub(crate) const APPLIES_CLEANLY: &str = "cleanly";

/// Says that the commits of a fix are alternatives.
pub(crate) const APPLIES_ALONE: &str = "one of them";

/// All findings about one fork.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) fork: PathBuf,
    pub(crate) branch: BranchName,
    /// Address of the fork.
    pub(crate) origin: String,
    pub(crate) upstream: String,
    /// Commit of the fork that was looked at.
    pub(crate) base: Sha,
    pub(crate) target: Sha,
    pub(crate) target_name: String,
    /// Commits of upstream that the fork lacks.
    pub(crate) behind: usize,
    pub(crate) at: Timestamp,
    /// Person who answers for the report.
    pub(crate) author: String,
    pub(crate) databases: Vec<Database>,
    pub(crate) findings: Vec<FixFinding>,
}

/// A source of advisories, as it was read.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Database {
    pub(crate) source: String,
    /// Commit, for a repository.
    pub(crate) commit: Option<Sha>,
    pub(crate) files: usize,
    /// Advisories about the project.
    pub(crate) matching: usize,
    /// Files that could not be read as advisories, with the reason of the first.
    pub(crate) unreadable: usize,
    pub(crate) first_unreadable: Option<String>,
}

impl Database {
    /// Says that advisories may be missing in the list; `None` if all were read.
    pub(crate) fn problem(&self) -> Option<String> {
        let first = self.first_unreadable.as_deref().unwrap_or_default();
        let files = counted(self.unreadable, "file");
        (self.unreadable > 0)
            .then(|| format!("{files} of {} could not be read, such as {first}", self.source))
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct FixFinding {
    pub(crate) id: AdvisoryId,
    pub(crate) aliases: Vec<AdvisoryId>,
    pub(crate) severity: Severity,
    pub(crate) summary: String,
    pub(crate) source: FindingSource,
    pub(crate) state: State,
    pub(crate) sureness: Sureness,
    pub(crate) why: String,
    /// Commits of the fix that decides.
    pub(crate) fixes: Vec<FixCommit>,
    /// Releases that have the fix, as far as the source names them.
    pub(crate) fixed_in: Vec<String>,
}

/// Where a finding comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum FindingSource {
    /// A file of a database.
    Advisory { database: String, file: String },
    /// The message of a commit of upstream.
    Message,
    /// The message of a tag of upstream.
    Tag { name: String },
}

impl FindingSource {
    /// One word, for a table.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Advisory { .. } => "advisory",
            Self::Message => "message",
            Self::Tag { .. } => "tag",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct FixCommit {
    pub(crate) commit: Sha,
    pub(crate) subject: String,
    /// Seconds since 1970.
    pub(crate) seconds: i64,
    pub(crate) state: State,
    pub(crate) sureness: Sureness,
    pub(crate) why: String,
    pub(crate) likeness: Likeness,
    pub(crate) applies: Option<Applies>,
    /// It changes code, or is in the fork's history and was not looked at.
    #[serde(skip)]
    pub(crate) has_code: bool,
    /// Files with code that it changes; the first few.
    pub(crate) paths: Vec<String>,
    #[serde(skip)]
    pub(crate) files: FileFacts,
}

impl FixCommit {
    pub(crate) fn presence(&self) -> Presence {
        Presence::new(self.state, self.sureness, self.why.clone())
    }
}

impl FixFinding {
    pub(crate) fn is_called(&self, id: &str) -> bool {
        self.id.is(id) || self.aliases.iter().any(|alias| alias.is(id))
    }

    /// Returns whether this finding counts rather than another one about the same.
    pub(crate) fn is_weaker_than(&self, other: &Self) -> bool {
        weakness(self.state, self.sureness) < weakness(other.state, other.sureness)
    }

    /// Returns whether it belongs in a list of what a person has to act on or look at: everything but what is certain.
    pub(crate) fn is_listed(&self) -> bool {
        match self.state {
            State::Missing | State::Unclear => true,
            State::Present | State::NotAffected => self.sureness != Sureness::Certain,
        }
    }

    /// The state in a word or two.
    pub(crate) fn state_words(&self) -> String {
        match (self.state, self.sureness) {
            (State::Present | State::NotAffected, Sureness::Likely | Sureness::Unknown) => {
                format!("likely {}", self.state.word())
            }
            _ => self.state.word().to_owned(),
        }
    }

    /// Says in a few words whether the fix applies alone.
    pub(crate) fn applies_words(&self) -> String {
        let open = self.fixes.iter().filter(|fix| fix.state != State::Present);
        let conflicts: usize = open
            .clone()
            .map(|fix| match &fix.applies {
                Some(Applies::Conflicts { paths }) => paths.len(),
                _ => 0,
            })
            .sum();
        match (self.state, conflicts) {
            (State::Present | State::NotAffected, _) => "-".to_owned(),
            _ if open.clone().count() == 0 => "-".to_owned(),
            _ if open.clone().any(|fix| fix.applies.is_none()) => "unknown".to_owned(),
            _ if open.clone().any(|fix| fix.applies == Some(Applies::Excludes)) => {
                APPLIES_ALONE.to_owned()
            }
            _ if open.clone().all(|fix| fix.applies == Some(Applies::Nothing)) => {
                "nowhere".to_owned()
            }
            (_, 0) => APPLIES_CLEANLY.to_owned(),
            (_, 1) => "1 conflict".to_owned(),
            (_, count) => format!("{count} conflicts"),
        }
    }
}

impl Report {
    /// Sorts the findings: open ones first, then by severity, certainty and identifier.
    pub(crate) fn sort(&mut self) {
        self.findings.sort_by(|one, other| {
            let key = |it: &FixFinding| (it.state, it.severity, it.sureness);
            key(one).cmp(&key(other)).then_with(|| one.id.cmp(&other.id))
        });
    }

    /// Reasons why the list may lack advisories.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.databases.iter().filter_map(Database::problem).collect()
    }

    /// Returns whether an advisory is about upstream.
    pub(crate) fn has_matches(&self) -> bool {
        self.databases.iter().any(|database| database.matching > 0)
    }

    /// Numbers of findings by their state in words; what is only likely counts apart, where there is any.
    pub(crate) fn state_counts(&self) -> Vec<(String, usize)> {
        let states = [State::Missing, State::Unclear, State::Present, State::NotAffected];
        let count = |words: &str| {
            self.findings.iter().filter(|finding| finding.state_words() == words).count()
        };
        let counts = states.iter().flat_map(|state| {
            let likely = format!("likely {}", state.word());
            [(likely, true), (state.word().to_owned(), false)]
        });
        let counts = counts.map(|(words, is_likely)| {
            let count = count(&words);
            (words, count, is_likely)
        });
        let shown = counts.filter(|(_, count, is_likely)| *count > 0 || !is_likely);
        shown.map(|(words, count, _)| (words, count)).collect()
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unclear => "unclear",
            Self::NotAffected => "not affected",
            Self::Present => "present",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A finding in this state, whose fix changes one file.
    pub(in crate::rules::security) fn finding(
        id: &str,
        state: State,
        severity: Severity,
    ) -> FixFinding {
        let fix = FixCommit {
            commit: Sha::parse(&"a".repeat(40)).unwrap(),
            subject: "fix".to_owned(),
            seconds: 0,
            state,
            sureness: Sureness::Likely,
            why: "w".to_owned(),
            likeness: Likeness::default(),
            applies: Some(Applies::Cleanly),
            has_code: true,
            paths: vec!["src/a b.c".to_owned()],
            files: FileFacts::default(),
        };
        FixFinding {
            id: AdvisoryId::parse(id).unwrap(),
            aliases: vec![AdvisoryId::parse("CVE-2024-9999").unwrap()],
            severity,
            summary: "s".to_owned(),
            source: FindingSource::Message,
            state,
            sureness: Sureness::Likely,
            why: "why".to_owned(),
            fixes: vec![fix],
            fixed_in: Vec::new(),
        }
    }

    pub(in crate::rules::security) fn report(findings: Vec<FixFinding>) -> Report {
        let sha = |digit: &str| Sha::parse(&digit.repeat(40)).unwrap();
        Report {
            fork: "/src/fork".into(),
            branch: BranchName::parse("main").unwrap(),
            origin: "https://github.com/Me/Fork.git".to_owned(),
            upstream: "https://example.org/them/project".to_owned(),
            base: sha("b"),
            target: sha("c"),
            target_name: "tip of main".to_owned(),
            behind: 3,
            at: Timestamp::UNIX_EPOCH,
            author: "Ada".to_owned(),
            databases: Vec::new(),
            findings,
        }
    }

    #[test]
    fn what_is_open_and_bad_comes_first() {
        let mut report = report(vec![
            finding("A-1", State::Present, Severity::Critical),
            finding("A-2", State::Missing, Severity::Low),
            finding("A-3", State::Unclear, Severity::High),
            finding("A-4", State::Missing, Severity::High),
        ]);
        report.sort();
        let order: Vec<&str> = report.findings.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(order, ["A-4", "A-2", "A-3", "A-1"]);
        assert_eq!(report.count(State::Missing), 2);
        assert!(report.findings[0].is_called("cve-2024-9999"));
    }

    #[test]
    fn whether_it_applies_is_said_for_what_is_open() {
        let mut open = finding("A-1", State::Missing, Severity::Low);
        assert_eq!(open.applies_words(), "cleanly");
        open.fixes[0].applies = Some(Applies::Conflicts { paths: vec!["a".into(), "b".into()] });
        assert_eq!(open.applies_words(), "2 conflicts");
        open.fixes[0].applies = None;
        assert_eq!(open.applies_words(), "unknown");
        open.fixes[0].applies = Some(Applies::Excludes);
        assert_eq!(open.applies_words(), "one of them");
        open.fixes[0].applies = Some(Applies::Nothing);
        assert_eq!(open.applies_words(), "nowhere");
        assert_eq!(finding("A-1", State::Present, Severity::Low).applies_words(), "-");
    }

    #[test]
    fn a_word_of_judgement_stands_alone_only_where_it_is_certain() {
        for state in [State::Present, State::NotAffected] {
            let likely = finding("A-1", state, Severity::Low);
            assert_eq!(likely.state_words(), format!("likely {}", state.word()));
            let certain = FixFinding { sureness: Sureness::Certain, ..likely.clone() };
            assert_eq!(certain.state_words(), state.word());
            assert!(likely.is_listed() && !certain.is_listed());
        }
        assert_eq!(finding("A-1", State::Missing, Severity::Low).state_words(), "missing");
        let counts = report(vec![finding("A-1", State::Present, Severity::Low)]).state_counts();
        let counts: Vec<String> =
            counts.into_iter().map(|(words, count)| format!("{count} {words}")).collect();
        let expected =
            ["0 missing", "0 unclear", "1 likely present", "0 present", "0 not affected"];
        assert_eq!(counts, expected);
    }
}
