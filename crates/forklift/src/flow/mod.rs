//! Effects of `forklift`, in order: observe, seal, launch, import, judge, publish, record.

mod check;
mod decide_agent;
pub(crate) mod earlier;
pub(crate) mod fork_lock;
mod integrate;
mod message;
mod notify;
pub(crate) mod observe;
pub(crate) mod past;
pub(crate) mod preview;
pub(crate) mod progress;
mod publish;
pub(crate) mod publish_run;
pub(crate) mod pull;
mod ran_tests;
pub(crate) mod record;
mod regenerate;
mod resolve_target;
pub(crate) mod resolver;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod structure;
pub(crate) mod withdraw;
