//! The engine against real parts: a real shim, real boxes, real git.

mod abuse;
mod contract;
mod evidence;
mod support;
mod workspace;
