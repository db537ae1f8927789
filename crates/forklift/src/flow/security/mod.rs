//! Security fixes of upstream: advisories in, findings out, and one fix landed by a run.
//!
//! - `source`: reads advisories from folders and repositories
//! - `facts`: what git knows about commits of fixes
//! - `compare`: the code of a fix beside the files of the fork
//! - `scan`: joins both into findings
//! - `judge`: decides about one advisory
//! - `run`: what such a run does differently
//! - `survey`: a fork as a whole
//! - `land`: prepares a run that lands one fix

mod compare;
pub(crate) mod facts;
mod judge;
pub(crate) mod land;
pub(super) mod run;
pub(crate) mod scan;
pub(crate) mod source;
pub(crate) mod survey;
