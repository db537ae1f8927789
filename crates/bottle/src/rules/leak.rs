//! Secrets in outgoing commits: the built-in scan, and the result of another scanner. A scan that did not happen is never
//! clean.

use std::collections::BTreeSet;

use model::redact::Redactor;
use serde::{Deserialize, Serialize};

/// More are counted and not listed.
const LISTED_MAX: usize = 20;
/// Part of a line that is enough to find it.
const SHOWN_CHARS: usize = 120;

/// Result of one scanner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScanReport {
    pub(crate) engine: String,
    pub(crate) version: Option<String>,
    /// Digest of its program, which contains its rules.
    pub(crate) program_sha256: Option<String>,
    #[serde(flatten)]
    pub(crate) status: ScanOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(crate) enum ScanOutcome {
    Clean,
    /// The listed lines are redacted.
    Findings {
        count: usize,
        listed: Vec<String>,
    },
    /// It could not scan everything.
    Error {
        reason: String,
    },
    /// It did not scan, which is not clean.
    NotRun {
        reason: String,
    },
}

impl ScanReport {
    /// Objection against publishing. A scanner that is not installed does not block: the built-in one always runs.
    pub(crate) fn objection(&self) -> Option<String> {
        match &self.status {
            ScanOutcome::Clean | ScanOutcome::NotRun { .. } => None,
            ScanOutcome::Findings { count, listed } => {
                let first = listed.first().map_or_else(String::new, |line| format!(": {line}"));
                let noun = if *count == 1 { "secret" } else { "secrets" };
                Some(format!("{} found {count} {noun}{first}", self.engine))
            }
            ScanOutcome::Error { reason } => {
                Some(format!("{} could not look at everything: {reason}", self.engine))
            }
        }
    }
}

/// An outgoing line with its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddedLine {
    pub(crate) place: String,
    pub(crate) line: Vec<u8>,
}

/// The built-in scan: well-known forms of tokens, and the secrets of this run. Private keys span lines, so their first
/// line counts.
pub(crate) fn scan(lines: &[AddedLine], redactor: &Redactor) -> ScanOutcome {
    let found = |added: &&AddedLine| redactor.redact_bytes(&added.line) != added.line;
    // One line in many places of a commit is one finding.
    let hits: BTreeSet<&AddedLine> = lines.iter().filter(found).collect();
    if hits.is_empty() {
        return ScanOutcome::Clean;
    }
    let show = |added: &&AddedLine| {
        let line = redactor.redact_bytes(&added.line);
        let line: String =
            String::from_utf8_lossy(&line).trim().chars().take(SHOWN_CHARS).collect();
        format!("{}: {}", added.place, line.escape_debug())
    };
    let listed = hits.iter().take(LISTED_MAX).map(show).collect();
    ScanOutcome::Findings { count: hits.len(), listed }
}

/// The lines that a patch adds. Headers stand before the first hunk of each file; in a hunk every plus is an addition.
pub(crate) fn added_lines(patch: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut in_hunk = false;
    let mut added = BTreeSet::new();
    for line in patch.split(|byte| *byte == b'\n') {
        match line.first() {
            Some(b'@') => in_hunk = true,
            Some(b'd') => in_hunk = false,
            Some(b'+') if in_hunk && line.len() > 1 => {
                added.insert(line[1..].to_vec());
            }
            _ => {}
        }
    }
    added
}

/// Reads the status and the report of gitleaks: 0 is clean, the status `asked` is findings, and any other is a failed
/// scan.
pub(crate) fn read_gitleaks(exit: Option<i32>, asked: i32, report: &str) -> ScanOutcome {
    let findings: Vec<serde_json::Value> = match serde_json::from_str(report) {
        Ok(list) => list,
        Err(_) if exit == Some(0) && report.trim().is_empty() => Vec::new(),
        Err(error) => return ScanOutcome::Error { reason: format!("its report: {error}") },
    };
    match exit {
        Some(0) if findings.is_empty() => ScanOutcome::Clean,
        Some(code) if code == 0 || code == asked => {
            let rule = |finding: &serde_json::Value| {
                finding["RuleID"]
                    .as_str()
                    .unwrap_or("a rule without a name")
                    .chars()
                    .take(80)
                    .collect()
            };
            let listed = findings.iter().take(LISTED_MAX).map(rule).collect();
            ScanOutcome::Findings { count: findings.len().max(1), listed }
        }
        Some(code) => ScanOutcome::Error { reason: format!("it ended with status {code}") },
        None => ScanOutcome::Error { reason: "it was ended by a signal or the clock".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::secret::Secret;

    fn added(lines: &[&str]) -> Vec<AddedLine> {
        let make =
            |line: &&str| AddedLine { place: "a1".to_owned(), line: line.as_bytes().to_vec() };
        lines.iter().map(make).collect()
    }

    #[test]
    fn known_shapes_and_the_runs_own_secrets_are_found_and_never_shown() {
        let redactor = Redactor::new([Secret::new("canary-secret-1234")]);
        let shaped = format!("key = \"ghp_{}\"", "aB3dE6gH9jK2mN5pQ8sT");
        let lines = added(&["plain", &shaped, &shaped, "x canary-secret-1234 y"]);
        let ScanOutcome::Findings { count, listed } = scan(&lines, &redactor) else {
            panic!("findings")
        };
        assert_eq!(count, 2);
        assert!(listed.iter().all(|line| line.contains("***") && !line.contains("canary")));
        assert_eq!(scan(&added(&["plain"]), &redactor), ScanOutcome::Clean);
    }

    #[test]
    fn what_a_patch_adds_is_read_without_its_headers() {
        let patch =
            b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n+++ sum\n same\n";
        let lines: Vec<_> = added_lines(patch).into_iter().collect();
        assert_eq!(lines, [b"++ sum".to_vec(), b"new".to_vec()]);
    }

    #[test]
    fn not_run_is_never_clean_and_an_error_blocks() {
        let report = |status| ScanReport {
            engine: "gitleaks".to_owned(),
            version: None,
            program_sha256: None,
            status,
        };
        assert_eq!(read_gitleaks(Some(0), 3, "[]"), ScanOutcome::Clean);
        let found = read_gitleaks(Some(3), 3, r#"[{"RuleID":"aws","Secret":"s3cr3t"}]"#);
        assert_eq!(found, ScanOutcome::Findings { count: 1, listed: vec!["aws".to_owned()] });
        assert!(report(found).objection().is_some());
        for broken in [
            read_gitleaks(Some(1), 3, "[]"),
            read_gitleaks(None, 3, "[]"),
            read_gitleaks(Some(0), 3, "{"),
        ] {
            assert!(matches!(broken, ScanOutcome::Error { .. }), "{broken:?}");
            assert!(report(broken).objection().is_some());
        }
        let absent = report(ScanOutcome::NotRun { reason: "not installed".to_owned() });
        assert_eq!(absent.objection(), None);
        assert!(serde_json::to_string(&absent).expect("JSON").contains("\"status\":\"not_run\""));
    }
}
