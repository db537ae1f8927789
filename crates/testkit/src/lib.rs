//! Shared parts of the tests of every crate. A dev-dependency only: nothing here is part of a product.
//!
//! - [`hermetic`] an environment of its own for every test, and output fit for snapshots
//! - [`repo`] real git repositories whose SHAs repeat, forks in every state, hostile workspaces
//! - [`abuse`] what a bad agent tries inside a box
//! - [`model_server`] a model that plays scripts, for real agents to talk to
//! - [`fake_forge`] forges of every kind that keep a repository in memory and fail on demand
//! - [`shell_promises`] what the three programs promise alike on a command line
//! - [`refusal`] wrong command lines in one table
//! - [`slow_remote`] a remote whose pack comes in two parts
//! - [`demo`] the demo of a program, and its folder
//! - [`container`] a real container engine, and what the three programs promise alike on it
//! - [`browser`] a real Chromium to look at pages with
//! - [`s3`] a real server of S3
//! - [`screen`] a terminal to look at and to type into
//! - [`tree`] whole trees, and whether something is hidden in them
//! - [`part`] tests that need a program or an engine say so by name
//!
//! Everything here panics when it fails: a fixture that could not be built is a failed test.

pub mod abuse;
pub mod browser;
pub mod connect_proxy;
pub mod container;
pub mod demo;
pub mod fake_forge;
pub mod hermetic;
pub mod hook_receiver;
mod http;
pub mod measure;
pub mod model_server;
pub mod part;
pub mod postgresql;
mod program;
pub mod refusal;
pub mod repo;
pub mod s3;
pub mod screen;
pub mod shell_promises;
pub mod slow_remote;
pub mod tree;
pub mod wait;

pub use hermetic::{Hermetic, Output, redact_snapshot};
pub use model_server::{ModelScript, ModelServer, Turn};
pub use repo::{Fork, Repo};
