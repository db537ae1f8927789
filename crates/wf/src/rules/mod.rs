//! Decisions and formats, without touching anything.

pub(crate) mod active;
pub(crate) mod agent_choice;
pub(crate) mod approval;
pub(crate) mod breakdown;
pub(crate) mod build_system;
pub(crate) mod choose;
pub(crate) mod clarification;
pub(crate) mod conflict;
pub(crate) mod constraint;
pub(crate) mod docs;
pub(crate) mod extract;
pub(crate) mod leak;
pub(crate) mod manifest;
pub(crate) mod meta;
pub(crate) mod pipeline;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod project;
pub(crate) mod prompt;
pub(crate) mod protected;
pub(crate) mod prune;
pub(crate) mod pull;
pub(crate) mod qa;
pub(crate) mod recipe;
pub(crate) mod reply;
pub(crate) mod result;
pub(crate) mod review;
pub(crate) mod run_id;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod suggest;
pub(crate) mod test_env;
#[cfg(test)]
mod tests;
pub(crate) mod touched;
pub(crate) mod uat;
pub(crate) mod watch;
