//! The nouns of the house: ids that were checked once, the env-file grammar, secrets that print as
//! `***`, commands and their records, verdicts and exit statuses.
//!
//! Nothing here touches the machine: no I/O, no clock, no environment. Whoever holds a value of one
//! of these types may trust it, and whoever decides something from such values can be tested with
//! plain data.

pub mod chain;
pub mod command;
pub mod digest;
pub mod env_file;
pub mod escape;
pub mod exit;
pub mod id;
pub mod redact;
pub mod secret;
pub mod secrets_file;
mod told;
pub mod verdict;
pub mod wire;

pub use told::told;
