//! Packing of the history of chosen commits, and nothing else, out of a repository.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use model::id::Sha;

use super::call::{Git, GitCall, args};
use super::{GitError, SealedRepo, UserRepo};

/// Time limit for the whole history of a large repository.
const PACK_LIMIT: Duration = Duration::from_secs(1800);

impl UserRepo {
    /// Writes a pack with everything reachable from `wants` and not from `haves` into the folder `packs`.
    /// Objects are found by reachability, so other branches, stashes and unreachable objects stay behind.
    /// Existing deltas are reused; none are computed, since the copy is short-lived.
    pub async fn pack_into(
        &self,
        packs: &Path,
        wants: &[Sha],
        haves: &[Sha],
    ) -> Result<(), GitError> {
        self.git.pack_into(packs, wants, haves).await
    }
}

impl SealedRepo {
    /// Same as [`UserRepo::pack_into`], for a sealed repository.
    pub async fn pack_into(
        &self,
        packs: &Path,
        wants: &[Sha],
        haves: &[Sha],
    ) -> Result<(), GitError> {
        self.git.pack_into(packs, wants, haves).await
    }
}

impl Git {
    async fn pack_into(&self, packs: &Path, wants: &[Sha], haves: &[Sha]) -> Result<(), GitError> {
        let call = GitCall::new(args_pack(packs)).within(PACK_LIMIT);
        let input = render_revisions(wants, haves);
        self.ask(call.reading(input.as_bytes())).await?.success()?;
        Ok(())
    }
}

fn args_pack(packs: &Path) -> Vec<OsString> {
    let mut words =
        args(["pack-objects", "--revs", "--quiet", "--delta-base-offset", "--window=0"]);
    words.push(packs.join("pack").into());
    words
}

fn render_revisions(wants: &[Sha], haves: &[Sha]) -> String {
    let wanted = wants.iter().map(|sha| format!("{sha}\n"));
    let had = haves.iter().map(|sha| format!("^{sha}\n"));
    wanted.chain(had).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_already_is_left_out() {
        let (a, b) = (Sha::parse(&"a".repeat(40)).unwrap(), Sha::parse(&"b".repeat(40)).unwrap());
        let text = render_revisions(std::slice::from_ref(&a), std::slice::from_ref(&b));
        assert_eq!(text, format!("{a}\n^{b}\n"));
    }
}
