//! What `merge` promises, tried on real repositories.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where it stopped")]

mod account;
mod clean;
mod contract;
mod forecast;
mod hostile;
mod own;
mod pattern;
mod property;
mod rebase;
mod resolver;
mod small_merge;
mod speed;
mod standing;
mod structure;
mod test_names;
mod verdict;
mod world;
