//! Values: checked ids, the env-file grammar, secrets that print as `***`, commands and their records, verdicts and exit
//! statuses.
//!
//! Nothing here touches the machine: no I/O, no clock, no environment.

pub mod chain;
pub mod command;
pub mod digest;
pub mod env_file;
mod error_chain;
pub mod escape;
pub mod exit;
pub mod id;
pub mod inert;
pub mod redact;
pub mod secret;
pub mod secrets_file;
pub mod sensitive_path;
pub mod verdict;
pub mod wire;

pub use error_chain::error_chain;
