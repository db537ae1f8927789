//! Filter and grouping of the cases on the first page, as the query of its address has them.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde::Deserialize;

use super::super::facts::case::Case;
use super::line;

/// Value of a case that has no repository, agent or verdict.
const NONE: &str = "none";

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CaseFilter {
    /// Empty for all, as are the next two.
    repo: String,
    agent: String,
    verdict: String,
    pub(super) group: CaseGrouping,
}

/// What the cases are grouped by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CaseGrouping {
    #[default]
    Status,
    Repo,
    Agent,
    Verdict,
}

impl CaseGrouping {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Status, "status", "status"),
        (Self::Repo, "repo", "repository"),
        (Self::Agent, "agent", "agent"),
        (Self::Verdict, "verdict", "verdict"),
    ];

    /// The group of a case.
    pub(super) fn key_of(self, case: &Case) -> String {
        match self {
            Self::Status => case.status.name().to_owned(),
            Self::Repo => repo_of(case),
            Self::Agent => or_none(&case.agent),
            Self::Verdict => or_none(case.verdict.as_deref().unwrap_or_default()),
        }
    }
}

impl CaseFilter {
    pub(super) fn is_set(&self) -> bool {
        ![&self.repo, &self.agent, &self.verdict].into_iter().all(String::is_empty)
    }

    pub(super) fn matches(&self, case: &Case) -> bool {
        let fits = |wanted: &str, by: CaseGrouping| wanted.is_empty() || by.key_of(case) == wanted;
        fits(&self.repo, CaseGrouping::Repo)
            && fits(&self.agent, CaseGrouping::Agent)
            && fits(&self.verdict, CaseGrouping::Verdict)
    }

    /// The form that sets it. Where every case is alike there is nothing to choose.
    pub(super) fn form(&self, cases: &[Case]) -> Markup {
        let values = |by: CaseGrouping| -> BTreeSet<String> {
            cases.iter().map(|case| by.key_of(case)).collect()
        };
        let choices = [
            ("repo", "Repository", &self.repo, values(CaseGrouping::Repo)),
            ("agent", "Agent", &self.agent, values(CaseGrouping::Agent)),
            ("verdict", "Verdict", &self.verdict, values(CaseGrouping::Verdict)),
        ];
        if !self.is_set() && choices.iter().all(|(_, _, _, values)| values.len() < 2) {
            return Markup::default();
        }
        html! {
            form.filter method="get" action="/" {
                @for (name, label, chosen, values) in &choices {
                    label { (label) " "
                        select name=(name) {
                            option value="" selected[chosen.is_empty()] { "all" }
                            @for value in values {
                                option value=(value) selected[value == *chosen] { (line(value)) }
                            }
                        }
                    }
                }
                label { "Group by "
                    select name="group" {
                        @for (by, value, words) in CaseGrouping::ALL {
                            option value=(value) selected[by == self.group] { (words) }
                        }
                    }
                }
                button { "Show" }
                @if self.is_set() { a href="/" { "Show all" } }
            }
        }
    }
}

fn repo_of(case: &Case) -> String {
    let named = case.issue.as_ref().map(|issue| format!("{}/{}", issue.owner, issue.repo));
    named.unwrap_or_else(|| NONE.to_owned())
}

fn or_none(value: &str) -> String {
    if value.is_empty() { NONE.to_owned() } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(agent: &str, verdict: Option<&str>) -> Case {
        Case { agent: agent.to_owned(), verdict: verdict.map(str::to_owned), ..Case::default() }
    }

    #[test]
    fn a_filter_names_what_is_shown_and_none_is_a_value() {
        let filter = |agent: &str, verdict: &str| CaseFilter {
            agent: agent.to_owned(),
            verdict: verdict.to_owned(),
            ..CaseFilter::default()
        };
        let worker = case("worker", Some("publish"));
        assert!(CaseFilter::default().matches(&worker) && !CaseFilter::default().is_set());
        assert!(filter("worker", "publish").matches(&worker));
        assert!(!filter("worker", "none").matches(&worker));
        assert!(filter("", "none").matches(&case("", None)));
        assert!(!filter("other", "").matches(&worker));
    }
}
