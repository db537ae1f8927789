//! The state on a real disk: one list of promises for every engine, and what only SQLite has to keep.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod conformance;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
#[cfg(feature = "postgres")]
mod worker_role;
