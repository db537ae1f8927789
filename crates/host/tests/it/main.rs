//! What `host` promises about the machine, tried on a real one: real git, real processes, real locks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where it stopped")]

mod clock;
mod git_fence;
mod git_forged;
mod git_hostile;
mod git_sealed;
mod git_user;
mod lock;
mod process;
mod process_end;
mod world;
