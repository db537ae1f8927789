//! Many merges in one process of git: the paths in which each conflicts, and nothing else about it.

use std::collections::BTreeSet;

use model::id::Sha;

use super::call::{GitCall, argv};
use super::merge::MERGE_LIMIT;
use super::{GitError, SealedRepo};

impl SealedRepo {
    /// Merges each pair of commits, touching neither files nor refs, and reports whether the merge is clean. Fails for all of
    /// them where one pair has no ancestor in common.
    pub async fn merge_cleanly(&self, pairs: &[(Sha, Sha)]) -> Result<Vec<bool>, GitError> {
        let merges = self.conflicting_paths(pairs).await?;
        Ok(merges.iter().map(BTreeSet::is_empty).collect())
    }

    /// Same as [`merge_cleanly`](Self::merge_cleanly) with the paths in which each merge conflicts; none for a clean one.
    pub async fn conflicting_paths(
        &self,
        pairs: &[(Sha, Sha)],
    ) -> Result<Vec<BTreeSet<Vec<u8>>>, GitError> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let lines: String =
            pairs.iter().map(|(ours, theirs)| format!("{ours} {theirs}\n")).collect();
        let call = GitCall::new(argv("merge-tree --write-tree --no-messages --stdin"));
        let answer = self.git.query(call.reading(lines.as_bytes()).within(MERGE_LIMIT)).await?;
        let parse = |bytes| parse_merges(bytes).filter(|found| found.len() == pairs.len());
        answer.parse(parse, "it does not answer for every merge")
    }
}

/// Parses for each merge a status, the tree and the stages of conflicts; an empty field ends it. A merge with a conflict that
/// has no stage is one in a path without a name.
fn parse_merges(bytes: &[u8]) -> Option<Vec<BTreeSet<Vec<u8>>>> {
    let mut fields = bytes.split(|&byte| byte == 0);
    let mut found = Vec::new();
    loop {
        let is_clean = match fields.next()? {
            b"1" => true,
            b"0" => false,
            b"" => return fields.next().is_none().then_some(found),
            _ => return None,
        };
        fields.next().filter(|tree| !tree.is_empty())?;
        let mut paths = BTreeSet::new();
        loop {
            match fields.next()? {
                b"" => break,
                stage => {
                    let tab = stage.iter().position(|&byte| byte == b'\t')?;
                    paths.insert(stage[tab + 1..].to_vec());
                }
            }
        }
        if !is_clean && paths.is_empty() {
            paths.insert(Vec::new());
        }
        found.push(if is_clean { BTreeSet::new() } else { paths });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_and_conflicting_merges_are_told_apart() {
        let (tree, stage) = ("8d36f6cd", "100644 78981922 1\tf");
        let text = format!("0\0{tree}\0{stage}\0\0\x31\0{tree}\0\0");
        let expected = [BTreeSet::from([b"f".to_vec()]), BTreeSet::new()];
        assert_eq!(parse_merges(text.as_bytes()).as_deref(), Some(&expected[..]));
        assert_eq!(parse_merges(b""), Some(vec![]));
        for wrong in ["1\0tree", "1\0tree\0", "2\0tree\0\0", "1\0tree\0\0x"] {
            assert_eq!(parse_merges(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
