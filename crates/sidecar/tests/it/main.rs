//! The sidecar on a real socket, in front of fake forges, with the people who might use it badly.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod abuse;
mod attachments;
mod done;
mod mcp;
mod protocol;
mod world;
