//! Candidates: what an advisory says about the fixes of one project, as commits and releases.

use std::collections::{BTreeMap, BTreeSet};

use model::id::Sha;

use super::advisory::{Advisory, AdvisoryRange, Point, commit_of_url, pull_of_url};
use super::project::ProjectNames;
use super::release::ReleaseSpan;

/// The fixes that one advisory names for the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FixCandidate {
    /// Separate beginnings, each with its fixes.
    pub(crate) beginnings: Vec<Beginning>,
    /// Commits that together are the fix, by addresses of the advisory.
    pub(crate) named: Vec<Sha>,
    /// Numbers of pull requests that are the fix.
    pub(crate) pulls: Vec<u32>,
    /// Separate beginnings in releases of the project's own package.
    pub(crate) releases: Vec<ReleaseSpan>,
}

/// Commits before and at the fix, which lies between them.
pub(crate) type FixedWithin = (Sha, Sha);

/// One beginning of a vulnerability.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// `None` for "always was there".
    pub(crate) introduced: Option<Sha>,
    /// Fixes, each of which is enough, with the range in which a fix that is not known exactly lies. Empty where no fix is known.
    pub(crate) fixed: Vec<(Sha, Option<FixedWithin>)>,
}

/// Commits that advisories name, as git knows them.
pub(crate) struct NamedCommits<'a> {
    /// Those of upstream's.
    pub(crate) known: &'a BTreeSet<Sha>,
    /// Pairs of commits, the first of which is an ancestor of the second.
    pub(crate) ordered: &'a BTreeSet<(Sha, Sha)>,
}

impl FixCandidate {
    /// Reads what an advisory says about the project; `None` if it is about another one. A commit that is one of upstream's
    /// makes an advisory one about upstream, whatever address it gives.
    pub(crate) fn of(
        advisory: &Advisory,
        project: &ProjectNames,
        commits: &NamedCommits<'_>,
    ) -> Option<Self> {
        let mut by_beginning: BTreeMap<Option<Sha>, Beginning> = BTreeMap::new();
        let mut candidate = Self::default();
        let mut is_about = advisory.packages.iter().any(|package| project.has_package(package));
        for range in &advisory.ranges {
            let is_ours = range.repo.as_deref().is_some_and(|repo| project.has_address(repo));
            is_about |= is_ours;
            for beginning in beginnings_of(range, is_ours, commits) {
                let known = by_beginning.entry(beginning.introduced.clone()).or_default();
                known.introduced = beginning.introduced;
                known.fixed.extend(beginning.fixed);
            }
            // The advisory may be about other packages too, whose versions say nothing about ours.
            if range.packages.iter().any(|package| project.has_package(package)) {
                candidate.releases.extend(releases_of(range));
            }
        }
        for url in &advisory.fix_urls {
            let is_ours = project.has_address(url);
            match (commit_of_url(url), pull_of_url(url)) {
                (Some(commit), _) if is_ours || commits.known.contains(&commit) => {
                    candidate.named.push(commit);
                }
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

    /// Releases with the fix.
    pub(crate) fn versions(&self) -> Vec<String> {
        let mut versions: Vec<String> = Vec::new();
        for version in self.releases.iter().flat_map(|span| &span.fixed) {
            if !versions.contains(version) {
                versions.push(version.clone());
            }
        }
        versions
    }
}

/// The beginnings of a range in commits. A fix ends every beginning that it has in its history.
fn beginnings_of(
    range: &AdvisoryRange,
    is_ours: bool,
    commits: &NamedCommits<'_>,
) -> Vec<Beginning> {
    let counts = |commit: &&Sha| is_ours || commits.known.contains(*commit);
    let fixed: Vec<&Sha> = range.fixed.iter().filter_map(Point::commit).filter(counts).collect();
    let begins = range.introduced.iter().map(|begin| begin.as_ref().map(Point::commit));
    let mut begins: Vec<Option<&Sha>> = begins
        .filter_map(|begin| match begin {
            None => Some(None),
            // A beginning that is not here still begins the range of a fix that is.
            Some(Some(commit)) if counts(&commit) || !fixed.is_empty() => Some(Some(commit)),
            Some(Some(_)) => None,
            Some(None) => None,
        })
        .collect();
    if begins.is_empty() {
        begins.push(None);
    }
    let is_only = begins.len() == 1;
    let beginning = |begin: Option<&Sha>| {
        let ends = |fix: &&&Sha| match begin {
            Some(begin) if !is_only => commits.ordered.contains(&(begin.clone(), (**fix).clone())),
            Some(_) | None => true,
        };
        let fixed = fixed.iter().filter(ends).map(|commit| {
            let within = range.fixed_within.clone().filter(|(_, end)| end == *commit);
            ((*commit).clone(), within)
        });
        Beginning { introduced: begin.cloned(), fixed: fixed.collect() }
    };
    let found = begins.into_iter().map(beginning);
    // "Always was there" and no end says nothing that the advisory does not say as a whole.
    found.filter(|it| it.introduced.is_some() || !it.fixed.is_empty()).collect()
}

fn releases_of(range: &AdvisoryRange) -> Vec<ReleaseSpan> {
    let version = |point: &Point| match point {
        Point::Version(version) => Some(version.clone()),
        Point::Commit(_) => None,
    };
    let fixed: Vec<String> = range.fixed.iter().filter_map(version).collect();
    let begins = range.introduced.iter();
    let begins: Vec<Option<String>> = begins
        .filter_map(|begin| match begin {
            None => Some(None),
            Some(point) => version(point).map(Some),
        })
        .collect();
    if fixed.is_empty() && begins.iter().all(Option::is_none) {
        return Vec::new();
    }
    ReleaseSpan::arrange(&begins, &fixed)
}

#[cfg(test)]
mod tests {
    use super::super::osv::{OsvFormat, parse_osv};
    use super::*;

    fn sha(digit: char) -> Sha {
        Sha::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn of(
        advisory: &Advisory,
        names: &ProjectNames,
        known: &[char],
        ordered: &[(char, char)],
    ) -> Option<FixCandidate> {
        let known = known.iter().copied().map(sha).collect();
        let ordered = ordered.iter().map(|(one, other)| (sha(*one), sha(*other))).collect();
        FixCandidate::of(advisory, names, &NamedCommits { known: &known, ordered: &ordered })
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
        let found = of(&advisory, &ProjectNames::new(["https://h/o/n"]), &[], &[]);
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
        let found = of(&advisory, &names, &['b'], &[]);
        assert_eq!(found.expect("about it").beginnings[0].fixed, [(sha('b'), None)]);
        assert_eq!(of(&advisory, &names, &[], &[]), None);
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
        let found = of(&advisory, &names, &[], &[]).expect("about it");
        assert_eq!(found.versions(), ["1.2.3"]);
        assert_eq!((found.named, found.pulls), (vec![sha('a')], vec![7]));
    }

    #[test]
    fn a_fix_ends_the_beginnings_in_its_history_alone() {
        let events = |events: &[(&str, char)]| {
            let event = |(kind, digit): &(&str, char)| match digit {
                '0' => format!(r#"{{"{kind}": "0"}}"#),
                _ => format!(r#"{{"{kind}": "{}"}}"#, sha(*digit)),
            };
            let events: Vec<String> = events.iter().map(event).collect();
            let range = format!(
                r#"{{"type": "GIT", "repo": "https://h/o/n", "events": [{}]}}"#,
                events.join(",")
            );
            advisory(&range, "")
        };
        let names = ProjectNames::new(["https://h/o/n"]);
        let sorted = [("introduced", '0'), ("fixed", 'a'), ("introduced", 'b'), ("fixed", 'c')];
        let mut reversed = sorted;
        reversed.reverse();
        let shape = |advisory: &Advisory, ordered: &[(char, char)]| -> Vec<(bool, usize)> {
            let found = of(advisory, &names, &[], ordered).expect("about it").beginnings;
            found.iter().map(|it| (it.introduced.is_some(), it.fixed.len())).collect()
        };
        for order in [sorted, reversed] {
            assert_eq!(shape(&events(&order), &[('b', 'c')]), [(false, 2), (true, 1)]);
        }
        assert_eq!(shape(&events(&sorted[..3]), &[]), [(false, 1), (true, 0)]);
    }

    #[test]
    fn versions_of_another_package_say_nothing_about_ours() {
        let text = r#"{"id": "X-1", "affected": [
            {"package": {"name": "example.org/else/helper", "ecosystem": "Go"},
             "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.2.0"}]}]},
            {"package": {"name": "github.com/o/n", "ecosystem": "Go"},
             "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.9.0"}]}]}]}"#;
        let advisory = parse_osv(text.as_bytes(), OsvFormat::Json).expect("good");
        let names = ProjectNames::new(["https://github.com/o/n"]);
        let found = of(&advisory, &names, &[], &[]).expect("about it");
        assert_eq!(found.versions(), ["1.9.0"]);
    }
}
