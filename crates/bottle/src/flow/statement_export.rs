//! Statements about a run in forms that others know, made from its verified statements and signed now with this home's key.

use attest::bundle::{BUNDLE_FILE, VerifiedBundle};
use attest::dsse::Envelope;
use attest::statement::{Predicate, Resource, Statement};
use egress::record::read_log;
use host::digest::sha256_file;
use model::exit::BottleExit;
use run_store::run_dir::RunDir;
use serde_json::json;

use super::attestation::load_bundle;
use super::bottle::agent_box;
use super::home::Home;
use super::run_record::load_run;
use super::verification::{run_of, verify};
use crate::exit::{Failure, OrExit, OrGeneral, if_found};
use crate::rules::agent_commit::{AgentCommitFacts, render_agent_commit};
use crate::rules::verification::VerificationReport;
use crate::rules::verification_summary::{VerifiedNow, summarize};

/// A form that others know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportForm {
    /// SLSA provenance with the build type for commits of agents
    AgentCommit,
    /// A verification summary (VSA) for policy engines
    Vsa,
}

/// Makes the statement about a run, and signs it.
pub(crate) fn export(home: &Home, name: &str, form: ExportForm) -> Result<Envelope, Failure> {
    let dir = run_of(home, name)?;
    let report = verify(home, &dir.path().to_string_lossy(), None)?;
    let verified = load_verified(home, &dir, &report)?;
    let bundle = describe_bundle(&dir)?;
    match form {
        ExportForm::AgentCommit => {
            require_verified(&report)?;
            let meta = load_run(&dir)?;
            let log = if_found(std::fs::read(agent_box(&dir)?.egress_log()))?.unwrap_or_default();
            let egress = read_log(dir.id().as_str(), &log).or_general()?.lines;
            let facts = AgentCommitFacts {
                meta: &meta,
                provenance: &verified.provenance,
                egress: &egress,
                bundle,
            };
            sign(home, &render_agent_commit(&facts))
        }
        ExportForm::Vsa => {
            let now = host::clock::now();
            let verification = VerifiedNow { report: &report, verified: &verified, bundle, now };
            sign(home, &summarize(&verification))
        }
    }
}

/// Nothing is said about statements that this home's key did not sign: a stranger could have written all of them.
fn load_verified(
    home: &Home,
    dir: &RunDir,
    report: &VerificationReport,
) -> Result<VerifiedBundle, Failure> {
    let unsigned = || {
        require_verified(report)
            .err()
            .unwrap_or_else(|| Failure::not_found(format!("{} has no {BUNDLE_FILE}", dir.id())))
    };
    let bundle = load_bundle(dir)?.ok_or_else(unsigned)?;
    let trust = home.keyring().trust().or_general()?;
    bundle.verify(&trust).or(Err(unsigned()))
}

/// Refuses a run whose records are not as they were signed.
fn require_verified(report: &VerificationReport) -> Result<(), Failure> {
    if report.is_verified() {
        return Ok(());
    }
    let message = format!("the statements about {} do not hold", report.run);
    let remedy = format!("see what does not: bot-bottle provenance verify {}", report.run);
    Err(Failure::new(BottleExit::General, message).with_remedy(remedy))
}

fn describe_bundle(dir: &RunDir) -> Result<Resource, Failure> {
    let (digest, size) = sha256_file(&dir.path().join(BUNDLE_FILE)).or_general()?;
    let bundle = Resource::new(BUNDLE_FILE, "sha256", &digest).with("size", json!(size));
    let bundle = bundle.with("run", json!(dir.id()));
    Ok(Resource { media_type: Some("application/json".to_owned()), ..bundle })
}

fn sign<P: Predicate>(home: &Home, statement: &Statement<P>) -> Result<Envelope, Failure> {
    let key = home.keyring().load().or_exit(BottleExit::NotFound)?;
    let bytes = statement.to_bytes().or_exit(BottleExit::Internal)?;
    let mut envelope = Envelope::unsigned(&bytes);
    envelope.sign(&key).or_exit(BottleExit::Internal)?;
    Ok(envelope)
}
