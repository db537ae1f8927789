//! The run store: the directory of a run and the records in it.
//!
//! A run directory is created once, never reused, and closed for ever at the end ([`run_dir`]). Its records are the
//! metadata ([`metadata`]), the commands that were run ([`commands_log`]), the installed tools ([`env_snapshot`]) and
//! the effects on the world ([`operation_log`]). Each writer takes the redactor, so that every byte of a record passes it.

pub mod commands_log;
pub mod env_snapshot;
mod error;
mod json;
pub mod metadata;
pub mod operation_log;
pub mod run_dir;

pub use error::StoreError;
