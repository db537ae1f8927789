//! Many merges in one process of git: whether each is clean, and nothing else about it.

use model::id::Sha;

use super::call::{GitCall, argv};
use super::merge::MERGE_LIMIT;
use super::{GitError, SealedRepo};

impl SealedRepo {
    /// Merges each pair of commits, touching neither files nor refs, and reports whether the merge is clean. Fails for all of
    /// them where one pair has no ancestor in common.
    pub async fn merge_cleanly(&self, pairs: &[(Sha, Sha)]) -> Result<Vec<bool>, GitError> {
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

/// Parses for each merge a status, the tree and the stages of conflicts; an empty field ends it.
fn parse_merges(bytes: &[u8]) -> Option<Vec<bool>> {
    let mut fields = bytes.split(|&byte| byte == 0);
    let mut found = Vec::new();
    loop {
        match fields.next()? {
            b"1" => found.push(true),
            b"0" => found.push(false),
            b"" => return fields.next().is_none().then_some(found),
            _ => return None,
        }
        while !fields.next()?.is_empty() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_and_conflicting_merges_are_told_apart() {
        let (tree, stage) = ("8d36f6cd", "100644 78981922 1\tf\x001");
        let text = format!("0\0{tree}\0{stage}\0\0\x31\0{tree}\0\0");
        assert_eq!(parse_merges(text.as_bytes()), Some(vec![false, true]));
        assert_eq!(parse_merges(b""), Some(vec![]));
        for wrong in ["1\0tree", "1\0tree\0", "2\0tree\0\0", "1\0tree\0\0x"] {
            assert_eq!(parse_merges(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
