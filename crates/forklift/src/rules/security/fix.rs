//! A fix that is landed alone: what is asked for, what the record keeps, and the message of its commit.

use jiff::Timestamp;
use merge::likeness::Likeness;
use model::id::Sha;
use model::inert::inert_line;
use serde::{Deserialize, Serialize};

use super::advisory::AdvisoryId;
use super::severity::Severity;

/// The fix that a run is to land. It is kept with the arguments of the run, so that `retry` repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FixRequest {
    pub(crate) id: AdvisoryId,
    #[serde(default)]
    pub(crate) aliases: Vec<AdvisoryId>,
    pub(crate) summary: String,
    pub(crate) severity: Severity,
    /// Where the fix is known from, in words.
    pub(crate) source: String,
    /// Commits of upstream, in the order in which they are applied.
    pub(crate) commits: Vec<Sha>,
}

/// The fix of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FixRecord {
    pub(crate) request: FixRequest,
    /// The fork's branch before the run. The run's own base has its files, and the state before the fix as an ancestor.
    pub(crate) fork_tip: Sha,
    /// Date of the commits that the host makes, so that a process that continues makes the same ones.
    pub(crate) made_at: Timestamp,
    /// The commit to publish, once the result is verified: the result's files on top of `fork_tip`.
    #[serde(default)]
    pub(crate) commit: Option<Sha>,
    /// Count of its lines in the result, once there is one.
    #[serde(default)]
    pub(crate) landing: Option<FixLanding>,
}

/// Maker of the result that has a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FixMaker {
    /// Git, without a conflict and without any change.
    Git,
    /// The fork's rules and its past decided conflicts.
    Resolver,
    Agent,
}

/// A fix in a result: how it came there, and how many of its lines are there. That they stand in the files does not say that
/// they work, so only what git applied unchanged is upstream's fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FixLanding {
    pub(crate) maker: FixMaker,
    pub(crate) added: usize,
    pub(crate) added_found: usize,
    pub(crate) removed: usize,
    pub(crate) removed_found: usize,
}

impl FixLanding {
    pub(crate) fn new(maker: FixMaker, likeness: Likeness) -> Self {
        let Likeness { added, added_found, removed, removed_found } = likeness;
        Self { maker, added, added_found, removed, removed_found }
    }

    /// Returns whether the result lacks most of what the fix changes.
    fn lacks_most(self) -> bool {
        let is_adapted = self.maker != FixMaker::Git;
        is_adapted && (2 * self.added_found < self.added || 2 * self.removed_found > self.removed)
    }

    fn lines(self) -> String {
        let Self { added, added_found, removed, removed_found, .. } = self;
        let mut parts = Vec::new();
        if added > 0 {
            parts.push(format!("{added_found} of its {added} new lines are there"));
        }
        if removed > 0 {
            parts.push(format!("{} of its {removed} old lines are gone", removed - removed_found));
        }
        match parts.is_empty() {
            true => "it has no line that can be looked for".to_owned(),
            false => parts.join(", "),
        }
    }

    fn maker_words(self) -> &'static str {
        match self.maker {
            FixMaker::Git => "git",
            FixMaker::Resolver => "the fork's rules and its past",
            FixMaker::Agent => "the agent",
        }
    }
}

impl FixRecord {
    /// The verdict on a result that may be published, in words. Of an adapted fix the host knows lines alone.
    pub(crate) fn verdict(&self) -> String {
        let id = &self.request.id;
        match self.landing {
            Some(landing) if landing.maker == FixMaker::Git => {
                format!("verified: git applied the fix of {id} unchanged")
            }
            Some(landing) => format!(
                "adapted: {} fitted the fix of {id} in, and a person has to judge it; {}",
                landing.maker_words(),
                landing.lines()
            ),
            None => {
                format!("verified: the fix of {id} is in the history; its lines were not compared")
            }
        }
    }

    /// Returns whether anything but git made the result, so that a person has to judge it.
    pub(crate) fn is_adapted(&self) -> bool {
        self.landing.is_some_and(|landing| landing.maker != FixMaker::Git)
    }

    /// Point about an adapted fix for a person to look at.
    pub(crate) fn look(&self) -> Option<String> {
        let landing = self.landing.filter(|_| self.is_adapted())?;
        Some(format!(
            "the fix was adapted by {}, and whether it still closes the hole is not known: {}",
            landing.maker_words(),
            landing.lines()
        ))
    }

    /// The reason why the fix counts as dropped.
    pub(crate) fn dropped(&self) -> Option<String> {
        let landing = self.landing.filter(|landing| landing.lacks_most())?;
        let (id, lines) = (&self.request.id, landing.lines());
        Some(format!("most of the fix of {id} is not in the result: {lines}"))
    }
}

/// Most bytes of upstream's message that the commit keeps.
const MESSAGE_BYTES: usize = 16 << 10;

impl FixRequest {
    /// Message of the commit that lands the fix: upstream's own, made inert, with where it comes from.
    pub(crate) fn commit_message(&self, upstream: &str, trailers: &[String]) -> String {
        let end = upstream.char_indices().map(|(at, _)| at).find(|at| *at >= MESSAGE_BYTES);
        let upstream = &upstream[..end.unwrap_or(upstream.len())];
        let mut lines = upstream.trim_end().lines().map(inert_line);
        let subject = lines.next().unwrap_or_else(|| format!("Security fix {}", self.id));
        let body = lines.fold(String::new(), |body, line| body + &line + "\n");
        let mut text = format!("{subject}\n{body}");
        if !text.ends_with("\n\n") {
            text.push('\n');
        }
        for commit in &self.commits {
            text.push_str(&format!("(cherry picked from commit {commit})\n"));
        }
        text.push_str(&format!("\nSecurity-fix: {}\n", self.id));
        for trailer in trailers {
            text.push_str(&format!("{trailer}\n"));
        }
        text
    }

    /// Title of the pull request.
    pub(crate) fn title(&self) -> String {
        match self.summary.is_empty() {
            true => format!("Security fix {}", self.id),
            false => format!("Security fix {}: {}", self.id, inert_line(&self.summary)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> FixRequest {
        FixRequest {
            id: AdvisoryId::parse("CVE-2024-1234").unwrap(),
            aliases: Vec::new(),
            summary: String::new(),
            severity: Severity::High,
            source: "x".to_owned(),
            commits: vec![Sha::parse(&"a".repeat(40)).unwrap()],
        }
    }

    #[test]
    fn the_message_says_where_the_fix_comes_from() {
        let text = request()
            .commit_message("les: check length\n\nBody.\n", &["Signed-off-by: A <a@b>".to_owned()]);
        let picked = format!("(cherry picked from commit {})", "a".repeat(40));
        assert_eq!(
            text,
            format!(
                "les: check length\n\nBody.\n\n{picked}\n\nSecurity-fix: CVE-2024-1234\nSigned-off-by: A <a@b>\n"
            )
        );
        let bare = request().commit_message("", &[]);
        assert!(bare.starts_with("Security fix CVE-2024-1234\n\n(cherry picked"), "{bare}");
    }

    #[test]
    fn upstreams_words_do_not_act_on_the_fork() {
        let text = request().commit_message("x\n\nFixes #12\n@someone look", &[]);
        assert!(!text.contains("#12\n") && !text.contains("\n@someone"), "{text}");
    }

    fn landed(maker: FixMaker, added: (usize, usize), removed: (usize, usize)) -> FixRecord {
        let likeness = Likeness {
            added_found: added.0,
            added: added.1,
            removed_found: removed.0,
            removed: removed.1,
        };
        FixRecord {
            request: request(),
            fork_tip: Sha::parse(&"b".repeat(40)).unwrap(),
            made_at: Timestamp::UNIX_EPOCH,
            commit: None,
            landing: Some(FixLanding::new(maker, likeness)),
        }
    }

    #[test]
    fn only_what_git_applied_unchanged_is_verified() {
        let unchanged = landed(FixMaker::Git, (3, 3), (0, 1));
        assert_eq!(unchanged.verdict(), "verified: git applied the fix of CVE-2024-1234 unchanged");
        assert_eq!((unchanged.look(), unchanged.dropped()), (None, None));
        for maker in [FixMaker::Agent, FixMaker::Resolver] {
            // All of its lines may stand behind a return or in a comment.
            let adapted = landed(maker, (3, 3), (0, 1));
            let words = adapted.verdict();
            assert!(words.starts_with("adapted: ") && words.contains("a person"), "{words}");
            assert!(
                words.ends_with("3 of its 3 new lines are there, 1 of its 1 old lines are gone")
            );
            assert!(adapted.look().is_some() && adapted.dropped().is_none());
        }
    }

    #[test]
    fn a_result_without_most_of_the_fix_counts_as_without_it() {
        let dropped = |added, removed| landed(FixMaker::Agent, added, removed).dropped();
        for (added, removed) in [((1, 3), (0, 1)), ((3, 3), (1, 1)), ((0, 1), (0, 0))] {
            assert!(dropped(added, removed).is_some(), "{added:?} {removed:?}");
        }
        for (added, removed) in [((2, 3), (0, 1)), ((1, 2), (0, 0)), ((0, 0), (0, 0))] {
            assert_eq!(dropped(added, removed), None, "{added:?} {removed:?}");
        }
    }

    #[test]
    fn a_request_survives_being_saved() {
        let request = request();
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<FixRequest>(&text).unwrap(), request);
        assert_eq!(request.title(), "Security fix CVE-2024-1234");
    }
}
