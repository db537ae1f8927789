//! Decisions of `forklift`, each a pure function from facts: no I/O, no clock, no environment.

pub(crate) mod claim;
pub(crate) mod judge;
pub(crate) mod model_choice;
pub(crate) mod opencode_env;
pub(crate) mod prompt;
pub(crate) mod pull_text;
pub(crate) mod replay_page;
