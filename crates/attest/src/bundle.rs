//! The statements of one run in one file, `provenance.json`: an object with two DSSE envelopes, the rotations that lead
//! to the key that signed, and the reason why nobody has signed yet, if nobody has.

use serde::{Deserialize, Serialize};

use crate::bottle_run::BottleRun;
use crate::dsse::{Envelope, EnvelopeFault};
use crate::key::{KeyId, SecretKey};
use crate::rotation::TrustedKeys;
use crate::slsa::Provenance;
use crate::statement::Statement;
use model::digest::sha256;

/// The name of the file in a run directory.
pub const BUNDLE_FILE: &str = "provenance.json";

/// The version of the file's shape.
const VERSION: u32 = 1;

/// The statements of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// The version of the shape.
    pub version: u32,
    /// Which run, for people; what counts is inside the envelopes.
    pub run: String,
    /// Why it is not signed yet.
    pub pending: Option<String>,
    /// SLSA provenance, then the run.
    pub envelopes: [Envelope; 2],
    /// How one gets from an earlier key to the one that signed.
    pub rotations: Vec<Envelope>,
}

/// Why the statements of a run are not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleFault {
    /// It was written by another version of this program.
    #[error("its version is {found}; this program knows {VERSION}")]
    Version {
        /// What the file says.
        found: u32,
    },
    /// Nobody has signed them yet.
    #[error("it is not signed yet: {reason}")]
    Pending {
        /// Why not.
        reason: String,
    },
    /// One of the envelopes.
    #[error("the {which} statement: {fault}")]
    Envelope {
        /// Which of the two.
        which: &'static str,
        /// The cause.
        fault: EnvelopeFault,
    },
    /// They are not about the same.
    #[error("its two statements are not about the same {what}")]
    Apart {
        /// What differs.
        what: &'static str,
    },
    /// The key had been replaced before the run was over.
    #[error("key {keyid} was replaced at {retired}, before this run ended")]
    Retired {
        /// The key.
        keyid: KeyId,
        /// When it was replaced.
        retired: jiff::Timestamp,
    },
}

/// Statements that were verified and then read.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedBundle {
    /// How it was made.
    pub provenance: Statement<Provenance>,
    /// How the run went.
    pub run: Statement<BottleRun>,
    /// Whose signature it was.
    pub keyid: KeyId,
    /// SHA-256 of both payloads.
    pub payloads: Vec<String>,
}

impl Bundle {
    /// Puts statements together. They wait for a signature.
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

    /// Signs both. The payloads stay the bytes that they are.
    pub fn sign(&mut self, key: &SecretKey, rotations: Vec<Envelope>) -> Result<(), EnvelopeFault> {
        for envelope in &mut self.envelopes {
            envelope.signatures.clear();
            envelope.sign(key)?;
        }
        self.rotations = rotations;
        self.pending = None;
        Ok(())
    }

    /// SHA-256 of both payloads, as they stand.
    pub fn payload_digests(&self) -> Result<Vec<String>, EnvelopeFault> {
        self.envelopes.iter().map(|it| Ok(sha256(&it.claimed_bytes()?))).collect()
    }

    /// What this host wrote itself and nobody has signed yet, to be checked against its records before it is signed.
    pub fn claimed_run(&self) -> Option<Statement<BottleRun>> {
        serde_json::from_slice(&self.envelopes[1].claimed_bytes().ok()?).ok()
    }

    /// Verifies both envelopes, then reads them, then holds them against one another.
    pub fn verify(&self, trust: &TrustedKeys) -> Result<VerifiedBundle, BundleFault> {
        if self.version != VERSION {
            return Err(BundleFault::Version { found: self.version });
        }
        if self.envelopes.iter().all(|envelope| envelope.signatures.is_empty()) {
            let reason = self.pending.clone().unwrap_or_else(|| "no reason is given".to_owned());
            return Err(BundleFault::Pending { reason });
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
