//! Candidates: what an advisory says about the fixes of one project, as commits and releases.

use std::collections::BTreeMap;

use model::id::Sha;

use super::advisory::{Advisory, Point, commit_of_url, pull_of_url};
use super::project::ProjectNames;

/// The fixes that one advisory names for the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FixCandidate {
    /// Separate beginnings, each with its fixes.
    pub(crate) beginnings: Vec<Beginning>,
    /// Commits that together are the fix, by addresses of the advisory.
    pub(crate) named: Vec<Sha>,
    /// Numbers of pull requests that are the fix.
    pub(crate) pulls: Vec<u32>,
    /// Releases with the fix.
    pub(crate) versions: Vec<String>,
}

/// Commits before and at the fix, which lies between them.
pub(crate) type FixedWithin = (Sha, Sha);

/// One beginning of a vulnerability.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// `None` for "always was there".
    pub(crate) introduced: Option<Sha>,
    /// Fixes, each of which is enough, with the range in which a fix that is not known exactly lies.
    pub(crate) fixed: Vec<(Sha, Option<FixedWithin>)>,
}

impl FixCandidate {
    /// Reads what an advisory says about the project; `None` if it is about another one. `is_known` says whether a commit is
    /// one of upstream's: such a commit makes an advisory one about upstream, whatever address it gives.
    pub(crate) fn of(
        advisory: &Advisory,
        project: &ProjectNames,
        is_known: impl Fn(&Sha) -> bool,
    ) -> Option<Self> {
        let mut by_beginning: BTreeMap<Option<Sha>, Beginning> = BTreeMap::new();
        let mut candidate = Self::default();
        let is_package = advisory.packages.iter().any(|package| project.has_package(package));
        let mut is_about = is_package;
        for range in &advisory.ranges {
            let is_ours = range.repo.as_deref().is_some_and(|repo| project.has_address(repo));
            is_about |= is_ours;
            for segment in &range.segments {
                let introduced = segment.introduced.as_ref().and_then(Point::commit).cloned();
                for point in &segment.fixed {
                    match point {
                        Point::Commit(commit) if is_ours || is_known(commit) => {
                            let within =
                                range.fixed_within.clone().filter(|(_, end)| end == commit);
                            let beginning = by_beginning.entry(introduced.clone()).or_default();
                            beginning.introduced.clone_from(&introduced);
                            beginning.fixed.push((commit.clone(), within));
                        }
                        Point::Commit(_) => {}
                        Point::Version(version) if is_package => {
                            candidate.versions.push(version.clone());
                        }
                        Point::Version(_) => {}
                    }
                }
            }
        }
        for url in &advisory.fix_urls {
            let is_ours = project.has_address(url);
            match (commit_of_url(url), pull_of_url(url)) {
                (Some(commit), _) if is_ours || is_known(&commit) => candidate.named.push(commit),
                (None, Some(pull)) if is_ours => candidate.pulls.push(pull),
                _ => {}
            }
        }
        candidate.beginnings = by_beginning.into_values().collect();
        candidate.named.dedup();
        is_about |= !candidate.beginnings.is_empty() || !candidate.named.is_empty();
        is_about.then_some(candidate)
    }

    /// Every commit that has to be looked at.
    pub(crate) fn commits(&self) -> impl Iterator<Item = &Sha> {
        let fixed = self.beginnings.iter().flat_map(|it| it.fixed.iter().map(|(commit, _)| commit));
        fixed
            .chain(&self.named)
            .chain(self.beginnings.iter().filter_map(|it| it.introduced.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::osv::{OsvFormat, parse_osv};
    use super::*;

    fn sha(digit: char) -> Sha {
        Sha::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn advisory(ranges: &str, references: &str) -> Advisory {
        let text = format!(
            r#"{{"id": "X-1", "affected": [{{"package": {{"name": "github.com/o/n", "ecosystem": "Go"}},
            "ranges": [{ranges}]}}], "references": [{references}]}}"#
        );
        parse_osv(text.as_bytes(), OsvFormat::Json).expect("good")
    }

    fn git(repo: &str, introduced: &str, fixed: char) -> String {
        let fixed = sha(fixed);
        format!(
            r#"{{"type": "GIT", "repo": "{repo}", "events": [{{"introduced": "{introduced}"}}, {{"fixed": "{fixed}"}}]}}"#
        )
    }

    #[test]
    fn fixes_with_the_same_beginning_are_alternatives() {
        let ranges = [git("https://h/o/n", "0", 'a'), git("https://h/o/n", "0", 'b')].join(",");
        let other = git("https://h/o/n", sha('c').as_str(), 'd');
        let advisory = advisory(&format!("{ranges},{other}"), "");
        let found = FixCandidate::of(&advisory, &ProjectNames::new(["https://h/o/n"]), |_| false);
        let beginnings = found.expect("about it").beginnings;
        let shape: Vec<_> =
            beginnings.iter().map(|it| (it.introduced.is_some(), it.fixed.len())).collect();
        assert_eq!(shape, [(false, 2), (true, 1)]);
    }

    #[test]
    fn a_commit_of_upstreams_is_enough_and_the_commits_of_others_are_left_out() {
        let ranges = [git("https://else/x/y", "0", 'a'), git("https://else/x/y", "0", 'b')];
        let advisory = advisory(&ranges.join(","), "");
        let names = ProjectNames::new(["https://h/q/r"]);
        let found = FixCandidate::of(&advisory, &names, |commit| *commit == sha('b'));
        assert_eq!(found.expect("about it").beginnings[0].fixed, [(sha('b'), None)]);
        assert_eq!(FixCandidate::of(&advisory, &names, |_| false), None);
    }

    #[test]
    fn addresses_name_commits_and_pull_requests_of_the_project_alone() {
        let fix = |url: &str| format!(r#"{{"type": "FIX", "url": "{url}"}}"#);
        let references = [
            fix(&format!("https://github.com/o/n/commit/{}", sha('a'))),
            fix("https://github.com/o/n/pull/7"),
            fix("https://github.com/x/y/pull/8"),
            fix(&format!("https://github.com/x/y/commit/{}", sha('b'))),
        ];
        let range = r#"{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.2.3"}]}"#;
        let advisory = advisory(range, &references.join(","));
        let names = ProjectNames::new(["https://github.com/o/n"]);
        let found = FixCandidate::of(&advisory, &names, |_| false).expect("about it");
        assert_eq!((found.named, found.pulls), (vec![sha('a')], vec![7]));
        assert_eq!(found.versions, ["1.2.3"]);
    }
}
