//! The forge as an agent in a box sees it: a few methods on a Unix socket, and no token.
//!
//! They are offered twice, as JSON-RPC 2.0 (`POST /`) and as MCP tools (`/mcp`), and both go through one
//! [`Dispatcher`]: it checks, counts, calls the [`forge::ScopedForge`], and records every call, allowed or refused. The log
//! belongs to the run, so it is passed in as a [`CallLog`].
//!
//! - `call` the methods and their parameters, strictly parsed
//! - `attachment` files of the issue, as a call returns them
//! - `dispatcher` performs a call
//! - `call_log` the interface of the log
//! - `queue` the signal that the work is done, for the waiting host
//! - `rpc`, `mcp` the two protocols
//! - `server` the socket, with limits on everything
//! - `rules` the budget of calls

mod attachment;
mod call;
mod call_log;
mod dispatcher;
mod mcp;
mod queue;
mod rpc;
mod rules;
mod server;

pub use call::{DoneStatus, ForgeMethod};
pub use call_log::{CallLog, CallLogError, CallOutcome, CallRecord};
pub use dispatcher::{CallLimits, Dispatcher};
pub use queue::{DoneEvent, DoneQueue, QueueError, load_events};
pub use server::{ServeError, serve};
