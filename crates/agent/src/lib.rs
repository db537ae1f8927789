//! Agents: what to start in the box, and what its event lines say afterwards.
//!
//! Everything here is pure. Starting the command is the engine's work, and whether the agent's
//! claims are true is for the host to find out: a report made from event lines is never evidence.

pub mod provider;
pub mod scripted;
