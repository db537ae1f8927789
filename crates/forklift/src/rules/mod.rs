//! Decisions of `forklift`, each a pure function from facts: no I/O, no clock, no environment.

pub(crate) mod fork_file;
pub(crate) mod image;
pub(crate) mod judge;
pub(crate) mod opencode_env;
pub(crate) mod prompt;
pub(crate) mod pull_text;
pub(crate) mod strategy;
pub(crate) mod target;
