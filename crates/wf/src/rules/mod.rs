//! Decisions and formats, without touching anything.

pub(crate) mod active;
pub(crate) mod choose;
pub(crate) mod clarification;
pub(crate) mod conflict;
pub(crate) mod constraint;
pub(crate) mod docs;
pub(crate) mod extract;
pub(crate) mod manifest;
pub(crate) mod meta;
pub(crate) mod pipeline;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod project;
pub(crate) mod qa;
pub(crate) mod reply;
pub(crate) mod result;
pub(crate) mod review;
pub(crate) mod run_id;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod suggest;
pub(crate) mod touched;
pub(crate) mod uat;
