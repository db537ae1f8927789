//! Errors of the store.

use std::error::Error;
use std::path::PathBuf;

use host::file::FileError;
use thiserror::Error;

use crate::rules::head::BottleClaim;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BottleStoreError {
    #[error("{address} is no address of a store: {rule}")]
    Address { address: String, rule: &'static str },
    #[error("the key of the fleet is 64 hexadecimal digits, as of: openssl rand -hex 32")]
    Key,
    #[error("{store} was written with another key than this one")]
    OtherKey { store: String },
    /// The store cannot be reached, or fails; later it may not.
    #[error("could not {action} in {store}")]
    Unreachable { action: &'static str, store: String, source: Box<dyn Error + Send + Sync> },
    /// The store refuses what was asked; asking again changes nothing.
    #[error("{store} refused to {action}")]
    Refused { action: &'static str, store: String, source: Box<dyn Error + Send + Sync> },
    #[error("{object} is not in {store}")]
    Missing { object: String, store: String },
    #[error("{object} in {store} is damaged: {why}")]
    Damaged { object: String, store: String, why: String },
    #[error("the archive has an entry that is not unpacked: '{path}': {why}")]
    Hostile { path: String, why: &'static str },
    /// The archive is not what its manifest says.
    #[error("the archive is not what its manifest says: {why}")]
    Archive { why: String },
    #[error("the bottle '{bottle}' was saved under the claim {held}, and this is the claim {came}")]
    Overtaken { bottle: String, held: BottleClaim, came: BottleClaim },
    #[error("the bottle '{bottle}' was saved by another host since this folder was")]
    Diverged { bottle: String },
    #[error("the bottle '{bottle}' is destroyed in the store")]
    Destroyed { bottle: String },
    #[error("the upload took longer than {hours} hours; it begins again")]
    TooSlow { hours: u64 },
    #[error("{path} changed while it was being saved", path = path.display())]
    Changed { path: PathBuf },
    #[error("there is room for {free} bytes at {path}, and the bottle has {needed}", path = path.display())]
    NoRoom { path: PathBuf, free: u64, needed: u64 },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the kernel gave no random bytes")]
    Random(#[from] host::random::RandomError),
    #[error("could not start a thread")]
    Thread(#[source] std::io::Error),
}

impl BottleStoreError {
    /// True if the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TooSlow { .. })
    }

    /// True if what is in the store cannot be used, so that an older state may be.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Damaged { .. }
                | Self::Hostile { .. }
                | Self::Archive { .. }
        )
    }
}
