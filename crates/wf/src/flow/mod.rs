//! Observe, decide, act: what the commands have in common and what takes more than one step.

pub(crate) mod archive;
mod artifact;
pub(crate) mod board;
pub(crate) mod create;
pub(crate) mod forecast;
pub(crate) mod forward;
pub(crate) mod gate;
pub(crate) mod interrupted;
pub(crate) mod merge;
pub(crate) mod notify;
mod ownership;
pub(crate) mod product;
pub(crate) mod pull;
pub(crate) mod refresh;
pub(crate) mod remains;
pub(crate) mod reset;
pub(crate) mod resolver;
pub(crate) mod run;
pub(crate) mod stage;
pub(crate) mod suite;
pub(crate) mod update;
