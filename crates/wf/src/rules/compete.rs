//! Competition: several agents on one micro-commit, of which the best result is kept.

use serde::Serialize;

use super::agent_choice::{AgentChoice, parse_agent};
use super::profile::{Keys, ProfileError};

/// Most agents that work on one micro-commit.
const MOST: usize = 4;

/// An agent of a competition, by its name in `COMPETE`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Competitor {
    pub(crate) name: String,
    pub(crate) agent: AgentChoice,
}

/// Parses `COMPETE`. The settings of the agent `fast` are `AGENT_FAST` and so on; a name that is an agent's needs none.
pub(super) fn parse_compete(keys: &Keys<'_>) -> Result<Vec<Competitor>, ProfileError> {
    let text = keys.text("COMPETE", "");
    let names: Vec<&str> = text.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    let rule = "two to four different names, such as codex,claude";
    let wrong = || ProfileError { key: "COMPETE".to_owned(), rule };
    let mut found: Vec<Competitor> = Vec::new();
    for name in &names {
        let is_known = found.iter().any(|other| other.name == *name);
        if !is_name(name) || is_known {
            return Err(wrong());
        }
        let agent = parse_agent(keys, &name.to_ascii_uppercase(), None, name)?;
        if !keys.agents.has(&agent.provider) {
            let key = format!("AGENT_{}", name.to_ascii_uppercase());
            return Err(ProfileError { key, rule: super::agent_choice::PROVIDER_RULE });
        }
        found.push(Competitor { name: (*name).to_owned(), agent });
    }
    if found.len() == 1 || found.len() > MOST { Err(wrong()) } else { Ok(found) }
}

/// Names become parts of paths and keys; those of the stages mean something else.
fn is_name(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    is_plain
        && name.len() <= 16
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !["implement", "review", "plan"].contains(&name)
}

/// Result of one competitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompetitorResult {
    pub(crate) name: String,
    pub(crate) outcome: CompetitorOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompetitorOutcome {
    /// There is nothing to keep.
    Failed(String),
    Judged(CandidateScore),
}

/// Measures by which results are compared, the most important first: less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CandidateScore {
    pub(crate) failed_suites: usize,
    /// No suite ran.
    pub(crate) is_untested: bool,
    /// It removes checks from tests or from the recipes that run them, so that its passed suites say less.
    pub(crate) is_weakened: bool,
    /// The reviewer requested changes, or gave no review that can be read.
    pub(crate) is_refused: bool,
    pub(crate) blockers: usize,
    pub(crate) lines: u64,
}

/// Chooses the best result by its place; of equal ones the first. None if nobody has a result.
pub(crate) fn choose_best(results: &[CompetitorResult]) -> Option<usize> {
    let judged = results.iter().enumerate().filter_map(|(at, result)| match result.outcome {
        CompetitorOutcome::Judged(score) => Some((score, at)),
        CompetitorOutcome::Failed(_) => None,
    });
    judged.min().map(|(_, at)| at)
}

impl CompetitorResult {
    pub(crate) fn words(&self) -> String {
        let words = match &self.outcome {
            CompetitorOutcome::Failed(reason) => reason.clone(),
            CompetitorOutcome::Judged(score) => score.words(),
        };
        format!("{}: {words}", self.name)
    }
}

impl CandidateScore {
    fn words(self) -> String {
        let tests = match (self.failed_suites, self.is_untested) {
            (0, true) => "untested".to_owned(),
            (0, false) => "tests passed".to_owned(),
            (1, _) => "1 suite failed".to_owned(),
            (count, _) => format!("{count} suites failed"),
        };
        let review = match (self.is_refused, self.blockers) {
            (false, _) => "approved".to_owned(),
            (true, 0) => "not approved".to_owned(),
            (true, 1) => "1 blocker".to_owned(),
            (true, count) => format!("{count} blockers"),
        };
        let lines = if self.lines == 1 { "line" } else { "lines" };
        let weakened = if self.is_weakened { " (weakened)" } else { "" };
        format!("{tests}{weakened}, {review}, {} {lines}", self.lines)
    }
}

#[cfg(test)]
mod tests {
    use model::env_file::EnvFile;

    use super::*;
    use crate::rules::profile::parse_profile;

    fn names(text: &str) -> Result<Vec<(String, String)>, String> {
        let profile = parse_profile(&EnvFile::parse(text).unwrap()).map_err(|it| it.to_string())?;
        Ok(profile.compete.into_iter().map(|it| (it.name, it.agent.provider)).collect())
    }

    #[test]
    fn competitors_have_names_and_settings_of_their_own() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(names(""), Ok(vec![]));
        assert_eq!(
            names("COMPETE=codex,claude\n"),
            Ok(vec![pair("codex", "codex"), pair("claude", "claude")])
        );
        assert_eq!(
            names("COMPETE=\"fast, slow\"\nAGENT_FAST=pi\nAGENT_SLOW=codex\n"),
            Ok(vec![pair("fast", "pi"), pair("slow", "codex")])
        );
    }

    #[test]
    fn wrong_competitions_are_refused_by_key() {
        let rule = "COMPETE must be two to four different names, such as codex,claude";
        for text in [
            "COMPETE=codex\n",
            "COMPETE=codex,codex\n",
            "COMPETE=codex,../x\n",
            "COMPETE=codex,review\n",
            "COMPETE=Codex,claude\n",
        ] {
            assert_eq!(names(text), Err(rule.to_owned()), "{text}");
        }
        assert_eq!(
            names("COMPETE=codex,fast\n"),
            Err("AGENT_FAST must be codex, claude, opencode, pi, scripted, command or a name of config.toml".to_owned())
        );
    }

    fn judged(name: &str, score: [u64; 5]) -> CompetitorResult {
        let [failed, untested, refused, blockers, lines] = score;
        weakened(name, [failed, untested, 0, refused, blockers, lines])
    }

    fn weakened(name: &str, score: [u64; 6]) -> CompetitorResult {
        let [failed, untested, weakened, refused, blockers, lines] = score;
        let score = CandidateScore {
            failed_suites: usize::try_from(failed).unwrap(),
            is_untested: untested == 1,
            is_weakened: weakened == 1,
            is_refused: refused == 1,
            blockers: usize::try_from(blockers).unwrap(),
            lines,
        };
        CompetitorResult { name: name.to_owned(), outcome: CompetitorOutcome::Judged(score) }
    }

    #[test]
    fn suites_come_before_the_review_and_that_before_size() {
        let failed = CompetitorResult {
            name: "x".to_owned(),
            outcome: CompetitorOutcome::Failed("no commit was created".to_owned()),
        };
        for (results, best) in [
            (vec![failed.clone()], None),
            (vec![failed.clone(), judged("a", [2, 0, 1, 3, 9])], Some(1)),
            (vec![judged("a", [1, 0, 0, 0, 1]), judged("b", [0, 0, 1, 2, 99])], Some(1)),
            (vec![judged("a", [0, 1, 0, 0, 1]), judged("b", [0, 0, 0, 0, 99])], Some(1)),
            (vec![judged("a", [0, 0, 1, 1, 1]), judged("b", [0, 0, 0, 0, 99])], Some(1)),
            (vec![weakened("a", [0, 0, 1, 0, 0, 1]), judged("b", [0, 0, 1, 3, 99])], Some(1)),
            (vec![weakened("a", [0, 0, 1, 0, 0, 1]), judged("b", [1, 0, 0, 0, 1])], Some(0)),
            (vec![judged("a", [0, 0, 0, 0, 10]), judged("b", [0, 0, 0, 0, 9])], Some(1)),
            (vec![judged("a", [0, 0, 0, 0, 9]), judged("b", [0, 0, 0, 0, 9])], Some(0)),
        ] {
            assert_eq!(choose_best(&results), best, "{results:?}");
        }
        assert_eq!(failed.words(), "x: no commit was created");
        assert_eq!(judged("a", [2, 0, 1, 1, 9]).words(), "a: 2 suites failed, 1 blocker, 9 lines");
        let cheat = weakened("d", [0, 0, 1, 0, 0, 2]).words();
        assert_eq!(cheat, "d: tests passed (weakened), approved, 2 lines");
        assert_eq!(judged("b", [0, 0, 0, 0, 1]).words(), "b: tests passed, approved, 1 line");
        assert_eq!(judged("c", [0, 1, 1, 0, 3]).words(), "c: untested, not approved, 3 lines");
    }
}
