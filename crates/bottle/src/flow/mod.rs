//! Observations and effects: one bottle, one run, step by step.

pub(crate) mod access;
pub(crate) mod attend;
pub(crate) mod attestation;
pub(crate) mod bottle;
pub(crate) mod checkup;
pub(crate) mod context;
pub(crate) mod end;
pub(crate) mod home;
pub(crate) mod hooks;
pub(crate) mod issue_row;
pub(crate) mod leaks;
pub(crate) mod mounts;
pub(crate) mod news;
pub(crate) mod observe;
pub(crate) mod open;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod resolve;
pub(crate) mod run;
pub(crate) mod run_record;
pub(crate) mod seal;
pub(crate) mod show;
pub(crate) mod sidecar;
pub(crate) mod sidecar_main;
pub(crate) mod thread;
pub(crate) mod verification;
