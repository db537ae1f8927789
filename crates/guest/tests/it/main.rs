//! The real program, started as the host starts it.

#![expect(
    clippy::disallowed_methods,
    reason = "the program under test is not started through `host`"
)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod boxed;
mod forge;
mod outside;
mod play;
