//! Verification of the statements about a run: from facts to checks, with their messages.

use std::collections::BTreeMap;

use attest::bottle_run::EventLog;
use attest::bundle::{BundleFault, VerifiedBundle};
use attest::host_chain::{RunChain, RunLink};
use attest::statement::Resource;
use serde::Serialize;

/// More are counted and not named.
const NAMED_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CheckOutcome {
    Passed,
    Failed,
    /// Its facts are not available.
    NotChecked,
}

impl CheckOutcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::NotChecked => "not checked",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct VerificationCheck {
    pub(crate) name: &'static str,
    pub(crate) outcome: CheckOutcome,
    pub(crate) words: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerificationReport {
    /// The run; unverified unless the signature holds.
    pub(crate) run: String,
    pub(crate) keyid: Option<String>,
    pub(crate) checks: Vec<VerificationCheck>,
}

impl VerificationReport {
    /// The signature holds, and nothing that could be checked failed.
    pub(crate) fn is_verified(&self) -> bool {
        let signed = |check: &VerificationCheck| {
            check.name == SIGNATURE && check.outcome == CheckOutcome::Passed
        };
        self.checks.iter().any(signed)
            && !self.checks.iter().any(|check| check.outcome == CheckOutcome::Failed)
    }
}

const SIGNATURE: &str = "signature";

fn passed(name: &'static str, words: impl Into<String>) -> VerificationCheck {
    VerificationCheck { name, outcome: CheckOutcome::Passed, words: words.into() }
}

fn failed(name: &'static str, words: impl Into<String>) -> VerificationCheck {
    VerificationCheck { name, outcome: CheckOutcome::Failed, words: words.into() }
}

pub(crate) fn not_checked(name: &'static str, words: impl Into<String>) -> VerificationCheck {
    VerificationCheck { name, outcome: CheckOutcome::NotChecked, words: words.into() }
}

/// Checks both envelopes; `whose` describes the trusted keys.
pub(crate) fn judge_signature(
    verified: &Result<VerifiedBundle, BundleFault>,
    whose: &str,
) -> VerificationCheck {
    match verified {
        Ok(bundle) => {
            passed(SIGNATURE, format!("both statements, by key {} ({whose})", bundle.keyid))
        }
        Err(fault @ BundleFault::Pending { .. }) => {
            failed(SIGNATURE, format!("{fault}; the next bot-bottle command that can will sign it"))
        }
        Err(fault) => failed(SIGNATURE, fault.to_string()),
    }
}

pub(crate) fn no_key(why: &str) -> VerificationCheck {
    failed(SIGNATURE, format!("there is no key to check with: {why}; or name one with --key"))
}

/// Checks that the operation log is an unbroken chain that ends as signed.
pub(crate) fn judge_events(
    signed: &EventLog,
    found: &Result<EventLog, String>,
) -> VerificationCheck {
    const NAME: &str = "events";
    match found {
        Err(why) => failed(NAME, format!("{}: {why}", signed.file)),
        Ok(found) if found.count < signed.count => failed(
            NAME,
            format!(
                "{} lines were signed and {} are there: its end was cut off",
                signed.count, found.count
            ),
        ),
        Ok(found) if found.head != signed.head || found.count != signed.count => {
            failed(NAME, "the log does not end with the line that was signed")
        }
        Ok(_) => {
            passed(NAME, format!("{} lines, an unbroken chain that ends as signed", signed.count))
        }
    }
}

/// Checks the records and logs beside the statements. In the home that made them all must be there: who changed one could
/// remove it instead. A copy elsewhere may lack some, and is not called whole.
pub(crate) fn judge_files(
    signed: &[Resource],
    found: &BTreeMap<String, Option<String>>,
    is_at_home: bool,
) -> VerificationCheck {
    const NAME: &str = "files";
    let mut changed = Vec::new();
    let mut absent = Vec::new();
    for resource in signed {
        let name = resource.name.clone().unwrap_or_default();
        match found.get(&name).cloned().flatten() {
            None => absent.push(name),
            Some(digest) if resource.sha256() == Some(&digest) => {}
            Some(_) => changed.push(name),
        }
    }
    let held = signed.len() - absent.len() - changed.len();
    match (changed.is_empty(), absent.is_empty()) {
        (false, _) => {
            failed(NAME, format!("changed since they were signed: {}", changed.join(", ")))
        }
        (true, true) => passed(NAME, format!("{held} files, each as it was signed")),
        (true, false) if is_at_home => {
            failed(NAME, format!("removed since they were signed: {}", absent.join(", ")))
        }
        (true, false) if held == 0 => not_checked(NAME, "none of the files is here"),
        (true, false) => not_checked(
            NAME,
            format!("{held} files as they were signed; not here: {}", absent.join(", ")),
        ),
    }
}

/// State of a run that the chain names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkedRun {
    /// Its statements, by the digests of their payloads.
    Statements(Vec<String>),
    /// The directory without statements.
    NoStatements,
    Gone,
}

/// Runs of the home.
pub(crate) struct HomeFacts {
    pub(crate) kept: Vec<LinkedRun>,
    /// Runs that bottles name and whose directories are gone.
    pub(crate) missing: Vec<String>,
    /// Runs with statements that the chain does not name.
    pub(crate) unlinked: Vec<String>,
}

/// Checks the host's chain: this run has its place in it, and no other run is missing.
pub(crate) fn judge_host_chain(
    bundle: &VerifiedBundle,
    chain: &Result<Option<RunChain>, String>,
    home: &HomeFacts,
) -> VerificationCheck {
    const NAME: &str = "host chain";
    let chain = match chain {
        Ok(Some(chain)) => chain,
        Ok(None) => {
            return failed(NAME, "this home has no chain, and the statements name a place in one");
        }
        Err(why) => return failed(NAME, why.clone()),
    };
    let run = &bundle.run.predicate;
    let Some(link) = chain.find(&run.run) else {
        return failed(NAME, format!("{} is not in it: its end was cut off", run.run));
    };
    if chain.host != run.host_chain.host
        || (link.seq, &link.prev) != (run.host_chain.seq, &run.host_chain.prev)
    {
        return failed(NAME, "the run was signed at another place of another chain");
    }
    if link.statements != bundle.payloads || link.events != run.events {
        return failed(NAME, "its line names other statements than these");
    }
    let troubles = home_troubles(&chain.links, home);
    match troubles.is_empty() {
        true => passed(
            NAME,
            format!("run {} of {} on this host, none of them missing", link.seq, chain.links.len()),
        ),
        false => failed(NAME, list(&troubles)),
    }
}

fn home_troubles(links: &[RunLink], home: &HomeFacts) -> Vec<String> {
    let mut troubles = Vec::new();
    for (link, kept) in links.iter().zip(&home.kept) {
        let name = format!("run {} ({})", link.seq, link.run);
        match kept {
            LinkedRun::Statements(digests) if *digests == link.statements => {}
            LinkedRun::Statements(_) => troubles.push(format!("{name} has other statements")),
            LinkedRun::NoStatements => troubles.push(format!("{name} has lost its statements")),
            LinkedRun::Gone => troubles.push(format!("{name} was deleted")),
        }
    }
    let linked = |run: &&String| links.iter().any(|link| link.run == **run);
    let missing = home.missing.iter().filter(|run| !linked(run));
    troubles.extend(missing.map(|run| format!("{run} was deleted, and its line too")));
    troubles.extend(home.unlinked.iter().map(|run| format!("{run} has no line in the chain")));
    troubles
}

fn list(items: &[String]) -> String {
    let named = items[..items.len().min(NAMED_MAX)].join("; ");
    match items.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(count: u64, head: &str) -> EventLog {
        EventLog { file: "operations.jsonl".to_owned(), head: head.to_owned(), count }
    }

    #[test]
    fn a_log_that_is_shorter_than_signed_was_cut() {
        let check = judge_events(&log(3, "c"), &Ok(log(2, "b")));
        assert_eq!(check.outcome, CheckOutcome::Failed);
        assert!(check.words.contains("cut off"), "{}", check.words);
        assert_eq!(judge_events(&log(3, "c"), &Ok(log(3, "x"))).outcome, CheckOutcome::Failed);
        assert_eq!(judge_events(&log(3, "c"), &Ok(log(4, "c"))).outcome, CheckOutcome::Failed);
        assert_eq!(judge_events(&log(3, "c"), &Ok(log(3, "c"))).outcome, CheckOutcome::Passed);
    }

    #[test]
    fn a_changed_file_fails_and_an_absent_one_fails_at_home_and_is_told_of_elsewhere() {
        let signed = ["a", "b"].map(|name| Resource::new(name, "sha256", "11"));
        let check = |a: Option<&str>, b: Option<&str>| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            let found = BTreeMap::from([("a".to_owned(), own(a)), ("b".to_owned(), own(b))]);
            (judge_files(&signed, &found, false), judge_files(&signed, &found, true).outcome)
        };
        let outcomes = |a, b| (check(a, b).0.outcome, check(a, b).1);
        let (passed, failed, open) =
            (CheckOutcome::Passed, CheckOutcome::Failed, CheckOutcome::NotChecked);
        assert_eq!(outcomes(Some("11"), Some("11")), (passed, passed));
        assert!(check(Some("11"), None).0.words.contains("not here: b"));
        assert_eq!(outcomes(Some("11"), None), (open, failed));
        assert_eq!(outcomes(Some("11"), Some("12")), (failed, failed));
        assert_eq!(outcomes(None, None), (open, failed));
    }

    #[test]
    fn what_was_not_checked_does_not_stand_in_for_a_signature() {
        let report = |checks| VerificationReport { run: String::new(), keyid: None, checks };
        assert!(!report(vec![not_checked(SIGNATURE, ""), passed("files", "")]).is_verified());
        assert!(!report(vec![passed(SIGNATURE, ""), failed("files", "")]).is_verified());
        assert!(report(vec![passed(SIGNATURE, ""), not_checked("files", "")]).is_verified());
    }
}
