//! The statements of one run in one file, `provenance.json`: an object with two DSSE envelopes, the rotations
//! that lead to the signing key, and the reason why they are not signed yet, if they are not.

use serde::{Deserialize, Serialize};

use crate::bottle_run::BottleRun;
use crate::dsse::{Envelope, EnvelopeFault};
use crate::key::{KeyId, SecretKey};
use crate::rotation::TrustedKeys;
use crate::slsa::Provenance;
use crate::statement::Statement;
use model::digest::sha256;

pub const BUNDLE_FILE: &str = "provenance.json";

const VERSION: u32 = 1;

/// The statements of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    pub version: u32,
    /// Run id, for display; the envelopes are authoritative.
    pub run: String,
    pub pending: Option<String>,
    /// SLSA provenance, then the run.
    pub envelopes: [Envelope; 2],
    /// Rotations from an earlier key to the signing one.
    pub rotations: Vec<Envelope>,
}

/// A bundle that does not verify.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleFault {
    #[error("its version is {found}; this program knows {VERSION}")]
    Version { found: u32 },
    #[error("it is not signed yet: {reason}")]
    Pending { reason: String },
    #[error("the {which} statement: {fault}")]
    Envelope { which: &'static str, fault: EnvelopeFault },
    #[error("its two statements are not about the same {what}")]
    Apart { what: &'static str },
    #[error("key {keyid} was replaced at {retired}, before this run ended")]
    Retired { keyid: KeyId, retired: jiff::Timestamp },
}

/// Verified and parsed statements.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedBundle {
    pub provenance: Statement<Provenance>,
    pub run: Statement<BottleRun>,
    pub keyid: KeyId,
    /// SHA-256 of both payloads.
    pub payloads: Vec<String>,
}

impl Bundle {
    pub fn new(
        provenance: &Statement<Provenance>,
        run: &Statement<BottleRun>,
        reason: &str,
    ) -> serde_json::Result<Self> {
        Ok(Self {
            version: VERSION,
            run: run.predicate.run.clone(),
            pending: Some(reason.to_owned()),
            envelopes: [
                Envelope::unsigned(&provenance.to_bytes()?),
                Envelope::unsigned(&run.to_bytes()?),
            ],
            rotations: Vec::new(),
        })
    }

    /// Signs both statements. The payload bytes stay unchanged.
    pub fn sign(&mut self, key: &SecretKey, rotations: Vec<Envelope>) -> Result<(), EnvelopeFault> {
        for envelope in &mut self.envelopes {
            envelope.signatures.clear();
            envelope.sign(key)?;
        }
        self.rotations = rotations;
        self.pending = None;
        Ok(())
    }

    pub fn payload_digests(&self) -> Result<Vec<String>, EnvelopeFault> {
        self.envelopes.iter().map(|it| Ok(sha256(&it.claimed_bytes()?))).collect()
    }

    /// Parses this host's own unsigned statement, to be checked against its records before it is signed.
    pub fn claimed_run(&self) -> Option<Statement<BottleRun>> {
        serde_json::from_slice(&self.envelopes[1].claimed_bytes().ok()?).ok()
    }

    pub fn pending_fault(&self) -> BundleFault {
        let reason = self.pending.clone().unwrap_or_else(|| "no reason is given".to_owned());
        BundleFault::Pending { reason }
    }

    /// Verifies both envelopes, then parses them, then compares them with one another.
    pub fn verify(&self, trust: &TrustedKeys) -> Result<VerifiedBundle, BundleFault> {
        if self.version != VERSION {
            return Err(BundleFault::Version { found: self.version });
        }
        if self.envelopes.iter().all(|envelope| envelope.signatures.is_empty()) {
            return Err(self.pending_fault());
        }
        let fault = |which| move |fault| BundleFault::Envelope { which, fault };
        let [first, second] = &self.envelopes;
        let first = first.verify(trust.keys()).map_err(fault("provenance"))?;
        let second = second.verify(trust.keys()).map_err(fault("bottle-run"))?;
        let provenance = Statement::<Provenance>::read(&first).map_err(fault("provenance"))?;
        let run = Statement::<BottleRun>::read(&second).map_err(fault("bottle-run"))?;
        let invocation = &provenance.predicate.run_details.metadata;
        if provenance.subject != run.subject {
            return Err(BundleFault::Apart { what: "subject" });
        }
        if invocation.invocation_id != run.predicate.run || self.run != run.predicate.run {
            return Err(BundleFault::Apart { what: "run" });
        }
        if first.keyid() != second.keyid() {
            return Err(BundleFault::Apart { what: "key" });
        }
        let keyid = first.keyid().clone();
        match (trust.retired_at(&keyid), invocation.finished_on) {
            (Some(retired), Some(finished)) if finished > retired => {
                return Err(BundleFault::Retired { keyid, retired });
            }
            _ => {}
        }
        let payloads = vec![sha256(first.bytes()), sha256(second.bytes())];
        Ok(VerifiedBundle { provenance, run, keyid, payloads })
    }
}
