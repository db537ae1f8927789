//! What `forklift` does, in order: observe, seal, launch, import, judge, publish, record.

mod chores;
pub(crate) mod fork_lock;
pub(crate) mod metadata;
mod notify;
pub(crate) mod observe;
pub(crate) mod preview;
pub(crate) mod publish;
pub(crate) mod pull;
mod regenerate;
mod resolve_target;
pub(crate) mod resolver;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sealed;
pub(crate) mod show;
pub(crate) mod structure;
