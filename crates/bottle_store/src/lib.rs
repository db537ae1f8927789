//! Frozen bottles in an object store, so that another host goes on with them.
//!
//! A bottle's folder becomes one stream of tar, which is cut into chunks by its content; each chunk is named by its keyed hash,
//! compressed, sealed with the fleet's key and put if it is absent. A manifest for each freeze lists the chunks, and the
//! bottle's head names the newest manifest. The head moves by compare-and-set, and never back to an older claim.
//!
//! ```text
//! fleet                         proof of the key
//! chunks/ab/<hash>-<epoch>      content, sealed
//! bottles/<id>/head             which manifest counts, and under which claim
//! bottles/<id>/<n>-<hash>       manifests
//! ```
//!
//! `rules` decides, `object` reaches the store, `archive` is the stream. What is done with it: `save`, `pull`, `collect`,
//! `check`.

mod archive;
mod check;
mod chunk;
mod collect;
mod error;
mod known;
mod object;
mod pull;
mod rules;
mod save;
mod seal;
mod store;

pub use archive::{AGENT_PARTS, HOST_PARTS, Owners};
pub use check::StoreHealth;
pub use collect::{CollectOptions, Collected};
pub use error::BottleStoreError;
pub use known::FolderMark;
pub use object::StoreOptions;
pub use pull::{PullOptions, PulledBottle};
pub use rules::head::{BottleClaim, BottleId, BottleKey, HeadState};
pub use save::{SaveRequest, SavedBottle};
pub use seal::FleetKey;
pub use store::{BottleStore, Transfer};

#[cfg(test)]
mod tests;
