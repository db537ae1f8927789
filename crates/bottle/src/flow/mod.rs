//! What is observed and done: one bottle, one run, step by step.

pub(crate) mod access;
pub(crate) mod attend;
pub(crate) mod bottle;
pub(crate) mod desk;
pub(crate) mod end;
pub(crate) mod hire;
pub(crate) mod home;
pub(crate) mod keeper;
pub(crate) mod leaks;
pub(crate) mod metadata;
pub(crate) mod mounts;
pub(crate) mod news;
pub(crate) mod observe;
pub(crate) mod open;
pub(crate) mod opening;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod run;
pub(crate) mod sealed;
pub(crate) mod show;
pub(crate) mod sidecar;
pub(crate) mod standing;
pub(crate) mod thread;
