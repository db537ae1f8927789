//! Statements about runs that others can verify, offline and without trusting the party that delivers them.
//!
//! A run ends with two in-toto statements about the same subject: SLSA provenance ([`slsa`]) and the facts that SLSA
//! has no field for ([`bottle_run`]). Each travels in a DSSE envelope ([`dsse`]) signed with the host's ed25519 key
//! ([`key`], [`keyring`]); both together are the run's [`bundle`]. Keys change by statements that old and new key sign
//! ([`rotation`]). The runs of a host are linked ([`host_chain`]), so that a missing one is detected.
//! For policy engines there are verification summaries ([`summary`]).
//!
//! The order is always the same: verify the bytes, then parse exactly the bytes that were verified.

pub mod bottle_run;
pub mod bundle;
pub mod dsse;
pub mod host_chain;
pub mod key;
pub mod keyring;
pub mod rotation;
pub mod slsa;
pub mod ssh_signature;
pub mod statement;
pub mod summary;
