//! The egress of a run over real sockets: what must not get out, what must, and the model route.
//! Nothing but loopback is ever contacted.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod allowed;
mod behind_proxy;
mod cloud;
mod echo;
mod forbidden;
mod limits;
mod model;
mod quota;
mod record;
mod server;
mod spend;
mod world;
