//! Shared parts of the pages of `bot-bottle serve` and `wf serve`: the socket with its limits, logins and sessions, tokens of forms,
//! checks of origin and host name, security headers, and the look.
//!
//! Nothing here knows what a page shows.

pub mod asset;
pub mod auth;
pub mod header;
pub mod listen;
pub mod origin;
pub mod session;
