//! Verification summaries: what a policy engine may ask about a run, judged from its verified statements.

use attest::bottle_run::{BottleRun, ScanStatus};
use attest::bundle::VerifiedBundle;
use attest::statement::{Resource, Statement};
use attest::summary::{FAILED, PolicyCheck, VerificationResult, VerificationSummary, Verifier};
use jiff::Timestamp;

use super::verification::{CheckOutcome, VerificationReport};

/// The policy that `docs/provenance.md` explains.
const POLICY: &str = "https://bottleworks.dev/policy/bottle-run/v1";
/// The provenance exists, is complete and describes how the result was made. Higher levels ask for a hosted builder.
const SLSA_LEVEL: &str = "SLSA_BUILD_LEVEL_1";
/// Our own level: everything that the policy asks for.
const OWN_LEVEL: &str = "BOTTLEWORKS_SEALED_RUN_V1";

/// A verification that has just been made.
pub(crate) struct VerifiedNow<'a> {
    pub(crate) report: &'a VerificationReport,
    pub(crate) verified: &'a VerifiedBundle,
    /// The file of the statements.
    pub(crate) bundle: Resource,
    pub(crate) now: Timestamp,
}

pub(crate) fn summarize(verification: &VerifiedNow<'_>) -> Statement<VerificationSummary> {
    let VerifiedNow { report, verified, bundle, now } = verification;
    let run = &verified.run;
    let checks = judge_policy(report, run);
    let has_passed = checks.iter().all(|check| check.passed);
    let (verification_result, levels) = match has_passed {
        true => (VerificationResult::Passed, vec![SLSA_LEVEL, OWN_LEVEL]),
        false => (VerificationResult::Failed, vec![FAILED]),
    };
    let summary = VerificationSummary {
        verifier: Verifier { id: verified.provenance.predicate.run_details.builder.id.clone() },
        time_verified: *now,
        resource_uri: resource_of(run),
        policy: Resource { uri: Some(POLICY.to_owned()), ..Resource::default() },
        input_attestations: vec![bundle.clone()],
        verification_result,
        verified_levels: levels.into_iter().map(str::to_owned).collect(),
        slsa_version: "1.0".to_owned(),
        checks,
    };
    Statement::new(run.subject.clone(), summary)
}

/// Address of the commit, or the run where there is none.
fn resource_of(run: &Statement<BottleRun>) -> String {
    let uri = run.subject.iter().find_map(|subject| subject.uri.clone());
    uri.unwrap_or_else(|| format!("urn:bottleworks:run:{}", run.predicate.run))
}

fn judge_policy(report: &VerificationReport, run: &Statement<BottleRun>) -> Vec<PolicyCheck> {
    let mut checks: Vec<PolicyCheck> = report
        .checks
        .iter()
        // What could not be checked is not known to hold.
        .map(|check| demand(check.name, check.outcome == CheckOutcome::Passed, &check.words))
        .collect();
    let BottleRun { complete, reasons, verdict, scans, commit_identity, .. } = &run.predicate;
    let has_commit = run.subject.iter().any(|subject| subject.digest.contains_key("gitCommit"));
    let engines = |status: &[ScanStatus]| -> Vec<&str> {
        let found = scans.iter().filter(|scan| status.contains(&scan.status));
        found.map(|scan| scan.engine.as_str()).collect()
    };
    // An engine that is not installed says nothing; one of them must have looked.
    let clean = engines(&[ScanStatus::Clean]);
    let dirty = engines(&[ScanStatus::Findings, ScanStatus::Error]);
    let strangers = commit_identity.as_ref().is_none_or(|identity| !identity.held);
    let verdict = verdict.as_deref().unwrap_or("none");
    checks.extend([
        demand(
            "result",
            has_commit,
            match has_commit {
                true => "a commit came out of the run",
                false => "no commit came out of the run",
            },
        ),
        demand("verdict", verdict == "publish", &format!("the host's verdict is {verdict}")),
        demand(
            "complete",
            *complete,
            &match reasons.as_slice() {
                [] => "nothing is missing in the record".to_owned(),
                some => some.join("; "),
            },
        ),
        demand(
            "secrets",
            !clean.is_empty() && dirty.is_empty(),
            &match (&*clean, &*dirty) {
                ([], []) => "nothing looked for secrets".to_owned(),
                (some, []) => format!("none found by {}", some.join(", ")),
                (_, some) => format!("not clean by {}", some.join(", ")),
            },
        ),
        demand(
            "identity",
            !strangers,
            match strangers {
                false => "the box's own identity made every new commit",
                true => "it is not known that the box's own identity made every new commit",
            },
        ),
    ]);
    checks
}

fn demand(name: &str, passed: bool, message: &str) -> PolicyCheck {
    let (name, message) = (name.to_owned(), message.to_owned());
    PolicyCheck { name, passed, message }
}
