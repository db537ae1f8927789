//! Merging without files: two commits go in, a tree comes out, and a commit can be made of it.
//!
//! Renames are followed as git does by default. A tree cannot bring a merge driver: attributes are off, and
//! the repository has no settings that could name a program.

use std::ffi::OsString;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use model::id::Sha;

use super::call::{Git, GitCall, GitOutput, argv_with};
use super::parse::{header_and_path, parse_id, parse_mode};
use super::{GitError, GitIdentity, SealedRepo};

/// Time limit for large histories with many renames.
pub(super) const MERGE_LIMIT: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedTree {
    /// The tree; with conflicts, files in it have markers.
    pub tree: Sha,
    pub is_clean: bool,
    /// The versions of each path that could not be merged.
    pub stages: Vec<ConflictStage>,
    /// Messages of git about single paths, conflicts and others.
    pub notes: Vec<MergeNote>,
}

/// One version of a path that could not be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictStage {
    /// The mode, such as `0o100644`.
    pub mode: u32,
    pub id: Sha,
    /// 1 is the common ancestor's version, 2 the first commit's, 3 the second's.
    pub stage: u8,
    pub path: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeNote {
    pub paths: Vec<Vec<u8>>,
    /// Git's fixed name for the kind of message, such as `CONFLICT (contents)`.
    pub kind: String,
    pub text: String,
}

/// A merge and the commits that it is of.
#[derive(Debug)]
pub(super) struct LastMerge {
    ours: Sha,
    theirs: Sha,
    merged: MergedTree,
}

/// A commit to be made of a tree that exists.
#[derive(Clone, Copy, Debug)]
pub struct CommitDraft<'a> {
    pub tree: &'a Sha,
    pub parents: &'a [Sha],
    /// Author and committer.
    pub identity: &'a GitIdentity,
    /// The date of both.
    pub when: Timestamp,
    pub message: &'a str,
}

impl SealedRepo {
    /// Merges two commits, touching neither files nor refs. Where they have no ancestor in common, every file counts as added.
    /// The last merge is kept, because two commits always give the same.
    pub async fn merge_tree(&self, ours: &Sha, theirs: &Sha) -> Result<MergedTree, GitError> {
        if let Some(known) = self.last_merge.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            && (&known.ours, &known.theirs) == (ours, theirs)
        {
            return Ok(known.merged.clone());
        }
        let merged = self.git.merge(argv_merge_any(ours, theirs)).await?;
        let made = LastMerge { ours: ours.clone(), theirs: theirs.clone(), merged: merged.clone() };
        *self.last_merge.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(merged)
    }

    /// Creates a commit that nothing points at yet. The same draft always gives the same commit.
    pub async fn commit_tree(&self, draft: CommitDraft<'_>) -> Result<Sha, GitError> {
        self.git.commit_tree(draft).await
    }
}

impl Git {
    pub(super) async fn merge_tree(
        &self,
        ours: &Sha,
        theirs: &Sha,
    ) -> Result<MergedTree, GitError> {
        self.merge(argv_merge_tree(ours, theirs)).await
    }

    async fn merge(&self, argv: Vec<OsString>) -> Result<MergedTree, GitError> {
        read_merge(&self.call(GitCall::new(argv).within(MERGE_LIMIT)).await?)
    }

    pub(super) async fn commit_tree(&self, draft: CommitDraft<'_>) -> Result<Sha, GitError> {
        let mut git = self.clone();
        let date = format!("@{} +0000", draft.when.as_second());
        for role in ["AUTHOR", "COMMITTER"] {
            git.set_env(&format!("GIT_{role}_NAME"), &draft.identity.name);
            git.set_env(&format!("GIT_{role}_EMAIL"), &draft.identity.email);
            git.set_env(&format!("GIT_{role}_DATE"), &date);
        }
        let call = GitCall::new(argv_commit_tree(draft.tree, draft.parents));
        git.query(call.reading(draft.message.as_bytes())).await?.parse_id()
    }
}

fn argv_merge_tree(ours: &Sha, theirs: &Sha) -> Vec<OsString> {
    argv_with("merge-tree --write-tree -z --messages", [ours.as_str(), theirs.as_str()])
}

fn argv_merge_any(ours: &Sha, theirs: &Sha) -> Vec<OsString> {
    let words = "merge-tree --write-tree -z --messages --allow-unrelated-histories";
    argv_with(words, [ours.as_str(), theirs.as_str()])
}

fn argv_commit_tree(tree: &Sha, parents: &[Sha]) -> Vec<OsString> {
    let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
    argv_with("commit-tree --no-gpg-sign", parents.chain(["-F", "-", tree.as_str()]))
}

/// Reads the result. Status 1 means conflicts; any other failure means that git could not merge at all.
fn read_merge(answer: &GitOutput) -> Result<MergedTree, GitError> {
    let is_clean = answer.found()?.is_some();
    let parsed = answer.parse(parse_merge, "it is not what a merge looks like")?;
    Ok(MergedTree { is_clean, ..parsed })
}

/// Parses the tree; then the stages, if any, each `mode id stage`, tab, path; then an empty field and the
/// messages, each a number of paths, the paths, the kind and the text. All fields end with NUL; after the
/// last one git prints advice about submodules, which is ignored.
fn parse_merge(bytes: &[u8]) -> Option<MergedTree> {
    let end = bytes.iter().rposition(|&byte| byte == 0)?;
    let mut fields = bytes[..end].split(|&byte| byte == 0);
    let tree = parse_id(fields.next()?)?;
    let mut stages = Vec::new();
    loop {
        match fields.next()? {
            b"" => break,
            field => stages.push(parse_stage(field)?),
        }
    }
    let mut notes = Vec::new();
    while let Some(count) = fields.next() {
        let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
        let paths: Vec<Vec<u8>> = fields.by_ref().take(count).map(<[u8]>::to_vec).collect();
        let kind = String::from_utf8_lossy(fields.next()?).into_owned();
        let text = String::from_utf8_lossy(fields.next()?).trim_end().to_owned();
        (paths.len() == count).then_some(())?;
        notes.push(MergeNote { paths, kind, text });
    }
    Some(MergedTree { tree, is_clean: stages.is_empty(), stages, notes })
}

fn parse_stage(field: &[u8]) -> Option<ConflictStage> {
    let (header, path) = header_and_path(field)?;
    let &[mode, id, stage] = header.as_slice() else { return None };
    Some(ConflictStage {
        mode: parse_mode(mode)?,
        id: Sha::parse(id).ok()?,
        stage: stage.parse().ok().filter(|stage| (1..=3).contains(stage))?,
        path: path.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn sha(text: &str) -> Sha {
        Sha::parse(text).unwrap()
    }

    #[test]
    fn commits_are_named_by_their_whole_id() {
        let argv = argv_merge_tree(&sha(A), &sha(B)).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"merge-tree --write-tree -z --messages aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
        let argv = argv_commit_tree(&sha(A), &[sha(B), sha(A)]).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"commit-tree --no-gpg-sign -p bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb -p aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -F - aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    }

    #[test]
    fn a_clean_merge_has_a_tree_and_perhaps_notes() {
        let merged = parse_merge(format!("{A}\0\0").as_bytes()).unwrap();
        assert_eq!((merged.tree.as_str(), merged.is_clean, merged.notes.len()), (A, true, 0));
        let text = format!("{A}\0\x001\0f\0Auto-merging\0Auto-merging f\n\0");
        let merged = parse_merge(text.as_bytes()).unwrap();
        assert_eq!(merged.notes[0].kind, "Auto-merging");
        assert_eq!(merged.notes[0].text, "Auto-merging f");
    }

    #[test]
    fn stages_and_notes_keep_the_bytes_of_their_paths() {
        let mut bytes = format!("{A}\x00100644 {A} 1\t").into_bytes();
        bytes.extend_from_slice(b"a\tb\n\xff\0");
        bytes.extend_from_slice(format!("160000 {B} 3\tsub\0\0").as_bytes());
        bytes.extend_from_slice(b"2\0a\tb\n\xff\x003\0CONFLICT (rename/rename)\0words\n\0");
        let merged = parse_merge(&bytes).unwrap();
        assert!(!merged.is_clean);
        assert_eq!(merged.stages[0].path, b"a\tb\n\xff");
        assert_eq!((merged.stages[1].mode, merged.stages[1].stage), (0o160_000, 3));
        assert_eq!(merged.notes[0].paths, [b"a\tb\n\xff".to_vec(), b"3".to_vec()]);
    }

    #[test]
    fn advice_at_the_end_is_no_part_of_the_answer() {
        let text =
            format!("{A}\x00160000 {B} 2\tsub\0\x001\0sub\0CONFLICT (contents)\0x\n\0Recursive\n");
        let merged = parse_merge(text.as_bytes()).unwrap();
        assert_eq!((merged.stages.len(), merged.notes.len()), (1, 1));
    }

    #[test]
    fn half_an_answer_is_no_answer() {
        for text in [
            String::new(),
            A.to_owned(),
            "x\0\0".to_owned(),
            format!("{A}\0"),
            format!("{A}\x00100644 {A} 1\tf\0"),
            format!("{A}\0what\0\0"),
            format!("{A}\x00100644 {A} 4\tf\0\0"),
            format!("{A}\0\x002\0f\0kind\0"),
            format!("{A}\0\x001\0f\0kind\0"),
        ] {
            assert!(parse_merge(text.as_bytes()).is_none(), "{text:?}");
        }
    }
}
