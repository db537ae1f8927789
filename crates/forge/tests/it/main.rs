//! A forge over real sockets: what a publisher is promised, whatever the server does. Nothing but loopback is contacted.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod attachments;
mod behind_proxy;
mod detect;
mod forge_contract;
mod habits;
mod lost;
mod place;
mod publishing;
mod scoped;
mod secret;
mod tls;
mod trouble;
mod webhook;
mod world;
