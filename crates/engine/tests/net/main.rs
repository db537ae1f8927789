//! Boxes with a way out, against real parts: what they reach through the shim, what they do not, and what is written
//! down about it. Everything outside of a box is a server of the test on loopback, but for the registry that
//! `toolchain` asks where there is one.

mod allowed;
mod direct;
mod forbidden;
mod hello;
mod load;
mod merge;
mod model_key;
mod model_route;
mod outing;
mod record;
mod resume;
mod server;
mod silence;
#[expect(dead_code, unused_imports, reason = "shared with the other suite, which uses all of it")]
#[path = "../it/support/mod.rs"]
mod support;
mod toolchain;
mod worker;
