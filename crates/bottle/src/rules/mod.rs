//! Decisions, from facts alone.

pub(crate) mod agent_commit;
pub(crate) mod agent_manifest;
pub(crate) mod attestation;
pub(crate) mod bottle_manifest;
pub(crate) mod bottle_place;
pub(crate) mod budget;
pub(crate) mod check_text;
pub(crate) mod closed_run;
pub(crate) mod code_owners;
pub(crate) mod command;
pub(crate) mod decide;
pub(crate) mod dispatch_text;
pub(crate) mod forge_env;
pub(crate) mod hook;
pub(crate) mod issue_text;
pub(crate) mod judge;
pub(crate) mod leak;
pub(crate) mod lease;
pub(crate) mod mount;
pub(crate) mod order;
pub(crate) mod plan_text;
pub(crate) mod prompt;
pub(crate) mod provenance;
pub(crate) mod prune;
pub(crate) mod pull_template;
pub(crate) mod pull_text;
pub(crate) mod repo_file;
pub(crate) mod session;
pub(crate) mod slug;
pub(crate) mod status_text;
pub(crate) mod target;
#[cfg(test)]
mod tests;
pub(crate) mod trust;
pub(crate) mod verification;
pub(crate) mod verification_summary;
pub(crate) mod wake_text;
