//! Changes of single commits: the paths they touch, the lines they add, and a patch id that stays the same
//! when the commit is rebased.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use model::chain::whole_lines;
use model::id::Sha;

use super::call::{GitCall, GitOutput, argv, argv_with};
use super::parse::{excluded, lines_of, nul_fields, parse_id};
use super::{GitError, SealedRepo};

/// Time limit for comparing thousands of commits with their parents.
const PATCH_LIMIT: Duration = Duration::from_secs(300);

/// The paths that a commit touched; a rename touches two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPaths {
    pub sha: Sha,
    /// Its paths, sorted by their bytes.
    pub paths: Vec<Vec<u8>>,
}

/// The change that a commit made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPatch {
    pub sha: Sha,
    /// Patch id. `None` for a change that is not all text: such changes have the same id whatever they
    /// contain.
    pub patch_id: Option<Sha>,
    /// The lines that it added, in all files.
    pub added: Vec<Vec<u8>>,
}

impl SealedRepo {
    /// Lists commits reachable from `tip` and from none of `exclude`, merges left out, newest first, at most
    /// `limit`.
    pub async fn plain_commits(
        &self,
        tip: &Sha,
        exclude: &[Sha],
        limit: usize,
    ) -> Result<Vec<Sha>, GitError> {
        self.git.query(argv_plain_commits(tip, exclude, limit)).await?.parse_ids()
    }

    /// Same as [`plain_commits`](Self::plain_commits) for the commits that touch one of these paths.
    pub async fn plain_commits_at(
        &self,
        tip: &Sha,
        exclude: &[Sha],
        paths: &[&[u8]],
        limit: usize,
    ) -> Result<Vec<Sha>, GitError> {
        let start = argv_plain_commits(tip, exclude, limit).into_iter();
        let paths = paths.iter().map(|path| OsStr::from_bytes(path).to_owned());
        self.git.query(GitCall::new(start.chain(paths).collect())).await?.parse_ids()
    }

    /// Returns the paths that each commit touched, in the order given.
    pub async fn commit_paths(&self, commits: &[Sha]) -> Result<Vec<CommitPaths>, GitError> {
        let input = lines_of(commits);
        let call = GitCall::new(argv(PATHS)).reading(input.as_bytes()).within(PATCH_LIMIT);
        self.git.query(call).await?.parse(parse_paths, "it is not a list of changed paths")
    }

    /// Returns the change of each commit, in the order given. Commits whose changes lie beyond the first
    /// `cap` bytes are left out.
    pub async fn commit_patches(
        &self,
        commits: &[Sha],
        cap: usize,
    ) -> Result<Vec<CommitPatch>, GitError> {
        let input = lines_of(commits);
        let call = GitCall::new(argv(PATCHES)).reading(input.as_bytes()).within(PATCH_LIMIT);
        let answer = self.git.query(call.cut_after(cap)).await?;
        // An incomplete last line would not parse.
        let whole = if answer.truncated { whole_lines(&answer.stdout) } else { &answer.stdout };
        let mut patches =
            parse_patches(whole).ok_or_else(|| answer.unreadable("it is not a list of patches"))?;
        if answer.truncated {
            patches.pop();
        }
        let call = GitCall::new(argv("patch-id --stable")).reading(whole);
        let ids = read_patch_ids(&self.git.query(call.within(PATCH_LIMIT)).await?)?;
        Ok(patches
            .into_iter()
            .map(|Parsed { sha, added, is_text }| CommitPatch {
                patch_id: ids.get(&sha).filter(|_| is_text).cloned(),
                sha,
                added,
            })
            .collect())
    }
}

fn argv_plain_commits(tip: &Sha, exclude: &[Sha], limit: usize) -> Vec<OsString> {
    let start = [format!("--max-count={limit}"), tip.to_string()];
    let values = start.into_iter().chain(excluded(exclude)).chain(["--".to_owned()]);
    argv_with("rev-list --no-merges --topo-order", values)
}

const PATHS: &str = "diff-tree --stdin --root --always -r -z --raw --no-renames \
    --ignore-submodules=none";

/// Query of patches. Whole ids, since shortened ones depend on the other objects of the repository.
const PATCHES: &str = "diff-tree --stdin --root --always -r -p --no-renames --full-index \
    --no-ext-diff --no-textconv --no-color --ignore-submodules=none";

/// Parses commits: each is its id and then its changes, each a header that begins with a colon and a path.
/// The header keeps a path from passing for an id.
fn parse_paths(bytes: &[u8]) -> Option<Vec<CommitPaths>> {
    let mut commits: Vec<CommitPaths> = Vec::new();
    let mut fields = nul_fields(bytes)?.into_iter();
    while let Some(field) = fields.next() {
        if field.starts_with(b":") {
            commits.last_mut()?.paths.push(fields.next()?.to_vec());
        } else {
            commits.push(CommitPaths { sha: parse_id(field)?, paths: Vec::new() });
        }
    }
    Some(commits)
}

struct Parsed {
    sha: Sha,
    added: Vec<Vec<u8>>,
    is_text: bool,
}

/// Parses patches. Lines are counted by the hunk headers, so that no line of a file passes for a header.
fn parse_patches(bytes: &[u8]) -> Option<Vec<Parsed>> {
    let mut commits: Vec<Parsed> = Vec::new();
    let (mut old_left, mut new_left, mut file_has_hunk) = (0usize, 0usize, true);
    for line in bytes.split(|&byte| byte == b'\n') {
        if old_left + new_left > 0 {
            match line.first() {
                Some(b'+') => {
                    new_left = new_left.checked_sub(1)?;
                    commits.last_mut()?.added.push(line[1..].to_vec());
                }
                Some(b'-') => old_left = old_left.checked_sub(1)?,
                Some(b' ') => {
                    (old_left, new_left) = (old_left.checked_sub(1)?, new_left.checked_sub(1)?);
                }
                // A note about a missing line break at the end of the file, or the place where long output
                // was cut.
                Some(_) | None => {}
            }
        } else if let Some(rest) = line.strip_prefix(b"@@ ") {
            (old_left, new_left) = parse_hunk(rest)?;
            file_has_hunk = true;
        } else if let Some(sha) = parse_id(line) {
            close_file(&mut commits, file_has_hunk);
            file_has_hunk = true;
            commits.push(Parsed { sha, added: Vec::new(), is_text: true });
        } else if line.starts_with(b"diff --git ") {
            close_file(&mut commits, file_has_hunk);
            file_has_hunk = false;
        }
    }
    close_file(&mut commits, file_has_hunk);
    Some(commits)
}

/// Ends a file. One without hunks is binary, or changed only its mode.
fn close_file(commits: &mut [Parsed], has_hunk: bool) {
    if let Some(commit) = commits.last_mut() {
        commit.is_text &= has_hunk;
    }
}

/// Parses `-1,2 +3,4 @@ …`; a missing count is one.
fn parse_hunk(rest: &[u8]) -> Option<(usize, usize)> {
    let end = rest.windows(3).position(|part| part == b" @@")?;
    let (old, new) = std::str::from_utf8(&rest[..end]).ok()?.split_once(' ')?;
    let count = |text: &str| match text.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((count(old.strip_prefix('-')?)?, count(new.strip_prefix('+')?)?))
}

/// Reads lines of a patch id and a commit id.
fn read_patch_ids(answer: &GitOutput) -> Result<BTreeMap<Sha, Sha>, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    let pair = |line: &str| {
        let (patch, commit) = line.split_once(' ')?;
        Some((Sha::parse(commit).ok()?, Sha::parse(patch).ok()?))
    };
    text.lines()
        .map(|line| pair(line).ok_or_else(|| answer.unreadable(format!("strange line {line:?}"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn nothing_outside_git_takes_part_in_a_patch() {
        let argv = argv(PATCHES).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"diff-tree --stdin --root --always -r -p --no-renames --full-index --no-ext-diff --no-textconv --no-color --ignore-submodules=none");
        let sha = |text| Sha::parse(text).unwrap();
        let argv = argv_plain_commits(&sha(A), &[sha(B)], 7).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"rev-list --no-merges --topo-order --max-count=7 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ^bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
    }

    #[test]
    fn paths_belong_to_the_commit_before_them() {
        let mut bytes = format!("{A}\0:1 2 x y M\0{B}\0:1 2 x y A\0").into_bytes();
        bytes.extend_from_slice(b"x\n\xff z\0");
        bytes.extend_from_slice(format!("{B}\0").as_bytes());
        let commits = parse_paths(&bytes).unwrap();
        assert_eq!(commits[0].paths, [B.into(), b"x\n\xff z".to_vec()]);
        assert!(commits[1].paths.is_empty());
        assert_eq!(parse_paths(b"").unwrap(), []);
        assert!(parse_paths(b"x\0").is_none());
        assert!(parse_paths(A.as_bytes()).is_none());
    }

    #[test]
    fn added_lines_that_look_like_headers_are_lines() {
        let text = format!(
            "{A}\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1,3 @@ fn\n-old\n\
             +++ b/g\n+{B}\n+@@ -1 +1 @@\n\\ No newline at end of file\n{B}\n"
        );
        let commits = parse_patches(text.as_bytes()).unwrap();
        assert_eq!(commits.len(), 2);
        let expected = [b"++ b/g".to_vec(), B.into(), b"@@ -1 +1 @@".to_vec()];
        assert_eq!(commits[0].added, expected);
        assert!(commits[0].is_text && commits[1].is_text);
    }

    #[test]
    fn a_change_that_is_not_all_text_is_known() {
        let binary = "diff --git a/b b/b\nindex 1..2 100644\nBinary files a/b and b/b differ\n";
        let text = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n";
        for (patch, expected) in [
            (format!("{A}\n{text}"), true),
            (format!("{A}\n{binary}"), false),
            (format!("{A}\n{binary}{text}"), false),
            (format!("{A}\n{text}{binary}"), false),
        ] {
            assert_eq!(parse_patches(patch.as_bytes()).unwrap()[0].is_text, expected, "{patch}");
        }
    }

    #[test]
    fn a_patch_that_was_cut_is_read_up_to_there() {
        let text = format!("{A}\ndiff --git a/f b/f\n@@ -0,0 +1,2 @@ x\n+one\n+two\n{B}\n");
        for end in 0..text.len() {
            assert!(parse_patches(whole_lines(&text.as_bytes()[..end])).is_some(), "{end}");
        }
        assert!(parse_patches(b"@@ -0,0 +1 @@\n+x\n").is_none());
    }
}
