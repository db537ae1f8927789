//! Packing of the history of chosen commits, and nothing else, out of a repository.

use std::path::Path;
use std::time::Duration;

use model::id::Sha;

use super::GitError;
use super::call::{Git, GitCall, argv_with};
use super::parse::{excluded, lines_of};

/// Time limit for the whole history of a large repository.
const PACK_LIMIT: Duration = Duration::from_secs(1800);

impl Git {
    /// Writes a pack with everything reachable from `wants` and not from `haves` into the folder `packs`.
    /// Objects are found by reachability, so other branches, stashes and unreachable objects stay behind.
    /// Existing deltas are reused; none are computed, since the copy is short-lived.
    pub async fn pack_into(
        &self,
        packs: &Path,
        wants: &[Sha],
        haves: &[Sha],
    ) -> Result<(), GitError> {
        let words = "pack-objects --revs --quiet --delta-base-offset --window=0";
        let input = render_revisions(wants, haves);
        let call = GitCall::new(argv_with(words, [packs.join("pack")])).within(PACK_LIMIT);
        self.run(call.reading(input.as_bytes())).await
    }
}

fn render_revisions(wants: &[Sha], haves: &[Sha]) -> String {
    let had: String = excluded(haves).map(|line| line + "\n").collect();
    lines_of(wants) + &had
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
