//! The manifest of a freeze: what the stream is made of and how large it is. Pure.

use serde::{Deserialize, Serialize};

use super::garbage::ChunkRef;
use super::head::BottleClaim;
use crate::archive::Owners;

pub(crate) const MANIFEST_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    /// Name of the bottle on that host.
    pub(crate) slug: String,
    /// Number of the freeze among those of the bottle.
    pub(crate) generation: u64,
    pub(crate) claim: BottleClaim,
    /// The bottle's own record, so that another host knows the bottle before it pulls it.
    pub(crate) record: serde_json::Value,
    /// The manifest that counted before.
    pub(crate) previous: Option<String>,
    pub(crate) saved_at: jiff::Timestamp,
    /// The host that saved it.
    pub(crate) host: String,
    /// Users of that host, to whom those of another one correspond.
    pub(crate) owners: Owners,
    pub(crate) totals: ArchiveTotals,
    pub(crate) chunks: Vec<ChunkRef>,
}

/// Size of an archive. It bounds what is unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveTotals {
    /// Bytes of the stream.
    pub(crate) stream_bytes: u64,
    pub(crate) entries: u64,
    /// Bytes of the files, without their holes.
    pub(crate) file_bytes: u64,
    /// Sockets, FIFOs and devices, which stay behind.
    pub(crate) left_out: u64,
}

/// Number of the freeze in the name of a manifest; `None` for an object of another kind.
pub(crate) fn generation_of(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}

pub(crate) fn manifest_name(generation: u64, digest: &str) -> String {
    format!("{generation:08}-{}", digest.get(..16).unwrap_or(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_numbered_by_name() {
        let name = manifest_name(7, "0123456789abcdef0123");
        assert_eq!(name, "00000007-0123456789abcdef");
        assert_eq!(generation_of(&name), Some(7));
        assert_eq!(generation_of("head"), None);
    }
}
