//! Decisions of `forklift`, each a pure function from facts: no I/O, no clock, no environment.

pub(crate) mod agent_note;
pub(crate) mod aggregate_status;
pub(crate) mod branch_pair;
pub(crate) mod brief;
pub(crate) mod check_text;
pub(crate) mod conflict_row;
pub(crate) mod delta;
pub(crate) mod earlier;
pub(crate) mod fork_file;
pub(crate) mod fork_list;
pub(crate) mod image;
pub(crate) mod judge;
pub(crate) mod message;
mod moved_test;
pub(crate) mod next_step;
pub(crate) mod opencode_env;
pub(crate) mod page;
mod point_group;
pub(crate) mod prompt;
pub(crate) mod prune;
pub(crate) mod publish_mode;
pub(crate) mod pull_text;
pub(crate) mod ran_tests;
pub(crate) mod replay_page;
pub(crate) mod replay_summary;
pub(crate) mod review;
pub(crate) mod run_facts;
pub(crate) mod search;
mod section;
pub(crate) mod security;
pub(crate) mod shell_words;
pub(crate) mod strategy;
pub(crate) mod summary;
pub(crate) mod sync_attempt;
pub(crate) mod sync_health;
pub(crate) mod target;
pub(crate) mod test_gate;
pub(crate) mod train;
pub(crate) mod upstream_action;
pub(crate) mod words;

/// The agent's note, in the root of the workspace.
pub(crate) const STUCK_FILE: &str = "STUCK.md";
