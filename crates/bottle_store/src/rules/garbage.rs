//! Rule for chunks that are garbage. Pure.
//!
//! A chunk is named by its content and by the epoch, about a day, in which it was put. A freeze uses the chunks of the head that
//! it follows, and those of the epoch in which it began, and is over before a whole epoch has passed. So nothing that a freeze
//! counts on is ever older than the epoch before this one, unless a head has it: what is removed by name needs no lock.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// A piece of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ChunkRef {
    /// Keyed hash of the content, in hexadecimal.
    pub(crate) hash: String,
    /// Epoch in which it was put.
    pub(crate) epoch: u64,
    /// Bytes of the content.
    pub(crate) bytes: u32,
}

impl ChunkRef {
    /// Name of the object.
    pub(crate) fn object(&self) -> String {
        let (hash, epoch) = (&self.hash, self.epoch);
        format!("{CHUNKS}{}/{hash}-{epoch}", hash.get(..2).unwrap_or("00"))
    }
}

/// Folder of the chunks.
pub(crate) const CHUNKS: &str = "chunks/";

/// The epoch of a time in seconds.
pub(crate) fn epoch_at(seconds: i64, epoch_secs: u64) -> u64 {
    u64::try_from(seconds).unwrap_or_default() / epoch_secs.max(1)
}

/// Epoch in the name of a chunk; `None` for an object of another kind.
fn epoch_of(object: &str) -> Option<u64> {
    object.strip_prefix(CHUNKS)?.rsplit_once('-')?.1.parse().ok()
}

/// True if no head and no freeze that is on its way can need this object. An object of an unknown kind is not ours to remove.
pub(crate) fn is_garbage(object: &str, epoch_now: u64, live: &HashSet<String>) -> bool {
    let is_old = epoch_of(object).is_some_and(|epoch| epoch.saturating_add(2) <= epoch_now);
    is_old && !live.contains(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_chunks_that_nothing_names_are_garbage() {
        let object = |epoch| ChunkRef { hash: "abcd".to_owned(), epoch, bytes: 1 }.object();
        assert_eq!(object(7), "chunks/ab/abcd-7");
        let none = HashSet::new();
        for (epoch, expected) in [(10, false), (9, false), (8, true), (0, true), (11, false)] {
            assert_eq!(is_garbage(&object(epoch), 10, &none), expected, "{epoch}");
        }
        let live = HashSet::from([object(3)]);
        assert!(!is_garbage(&object(3), 10, &live));
        for other in ["chunks/ab/abcd", "bottles/x/head", "chunks/ab/abcd-x", "fleet"] {
            assert!(!is_garbage(other, 10, &none), "{other}");
        }
    }

    #[test]
    fn epochs_follow_the_clock() {
        assert_eq!(epoch_at(0, 86_400), 0);
        assert_eq!(epoch_at(86_400, 86_400), 1);
        assert_eq!(epoch_at(-5, 86_400), 0);
    }
}
