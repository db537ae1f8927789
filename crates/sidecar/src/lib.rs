//! The forge as an agent in a box sees it: six methods on a Unix socket, and no token.
//!
//! The same six are offered twice, as JSON-RPC 2.0 (`POST /`) and as MCP tools (`/mcp`), and both go through one
//! [`Desk`]: it checks, counts, asks the [`forge::ScopedForge`], and writes every call down, allowed or refused. What the
//! record is made of belongs to somebody else, so it is handed in as a [`Journal`].
//!
//! - `call` what can be asked, strictly read
//! - `desk` what is done about it
//! - `journal` what is written down
//! - `queue` the word that the work is done, for whoever waits outside
//! - `rpc`, `mcp` the two ways to ask
//! - `server` the socket, with limits on everything
//! - `rules` how much may be asked

mod call;
mod desk;
mod journal;
mod mcp;
mod queue;
mod rpc;
mod rules;
mod server;

pub use call::{DoneStatus, Method};
pub use desk::{Desk, Limits};
pub use journal::{Entry, EntryOutcome, Journal, JournalError};
pub use queue::{DoneEvent, DoneQueue, QueueError, load_events};
pub use server::{ServeError, serve};
