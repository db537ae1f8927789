//! What `forklift` does, in order: observe, seal, launch, import, judge, publish, record.

pub(crate) mod metadata;
pub(crate) mod observe;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod pull;
pub(crate) mod run;
mod sealed;
pub(crate) mod show;
