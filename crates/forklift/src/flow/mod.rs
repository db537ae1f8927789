//! What `forklift` does, in order: observe, seal, launch, import, judge, publish, record.

pub(crate) mod again;
mod aim;
mod chores;
pub(crate) mod ladder;
pub(crate) mod metadata;
mod notify;
pub(crate) mod observe;
pub(crate) mod preview;
pub(crate) mod publish;
pub(crate) mod pull;
mod regenerate;
pub(crate) mod run;
pub(crate) mod sealed;
pub(crate) mod show;
pub(crate) mod structure;
pub(crate) mod turn;
