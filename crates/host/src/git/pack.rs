//! Packing of the history of chosen commits, and nothing else, out of a repository.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::id::Sha;

use super::GitError;
use super::call::{Git, GitCall, argv, argv_with};
use super::parse::{excluded, lines_of, quoted};
use crate::file::{FileError, remove_tree_safely};

/// Time limit for the whole history of a large repository.
const PACK_LIMIT: Duration = Duration::from_secs(1800);
/// Folder inside that of the packs in which git writes a pack before it renames it.
const INCOMING: &str = "incoming";
const ALTERNATES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

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
        let incoming = packs.join(INCOMING);
        let packed = self.pack_by_way_of(&incoming, packs, wants, haves).await;
        let removed = remove_tree_safely(&incoming);
        packed?;
        removed.map_err(|source| GitError::Prepare { path: incoming, source })
    }

    /// Packs with `incoming` as git's own object directory. Git writes a pack there first and renames it to its place,
    /// which works only on one file system; and the repository that is read from stays as it is.
    async fn pack_by_way_of(
        &self,
        incoming: &Path,
        packs: &Path,
        wants: &[Sha],
        haves: &[Sha],
    ) -> Result<(), GitError> {
        std::fs::create_dir_all(incoming).map_err(|error| GitError::Prepare {
            path: incoming.to_path_buf(),
            source: FileError::io("create", incoming)(error),
        })?;
        let mut git = self.clone();
        git.set_env(ALTERNATES, self.all_objects().await?);
        git.set_env("GIT_OBJECT_DIRECTORY", incoming);
        let words = "pack-objects --revs --quiet --delta-base-offset --window=0";
        let input = render_revisions(wants, haves);
        let call = GitCall::new(argv_with(words, [packs.join("pack")])).within(PACK_LIMIT);
        git.run(call.reading(input.as_bytes())).await
    }

    /// Lists the object directories of this repository as the variable for alternates has them.
    async fn all_objects(&self) -> Result<OsString, GitError> {
        let answer = self.query(argv("rev-parse --git-path objects")).await?;
        let path = answer.stdout.strip_suffix(b"\n").unwrap_or(&answer.stdout).to_vec();
        let path = self.cwd.join(PathBuf::from(OsString::from_vec(path)));
        let mut list = quoted(path.as_os_str().as_bytes());
        if let Some((_, more)) = self.env.iter().find(|(name, _)| name == ALTERNATES) {
            list.push(b':');
            list.extend_from_slice(more.as_bytes());
        }
        Ok(OsString::from_vec(list))
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
