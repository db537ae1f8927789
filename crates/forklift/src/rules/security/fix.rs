//! A fix that is landed alone: what is asked for, what the record keeps, and the message of its commit.

use jiff::Timestamp;
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

    #[test]
    fn a_request_survives_being_saved() {
        let request = request();
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<FixRequest>(&text).unwrap(), request);
        assert_eq!(request.title(), "Security fix CVE-2024-1234");
    }
}
