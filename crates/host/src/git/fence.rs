//! A fence at a forge: a ref that moves in the same atomic push as a branch, so that the forge itself refuses whoever was
//! taken over, however late its push arrives.

use std::ffi::OsString;
use std::time::Duration;

use model::id::Sha;

use super::call::{Git, GitCall, argv, argv_with};
use super::push::PushRefusal;
use super::worktree_repo::{RemoteBranch, argv_ls_remote_ref, read_remote_ref};
use super::{GitError, SealedRepo, UserEnv, UserRepo};
use crate::file::FileError;

/// Where the refs of fences are: no branch and no tag, so that a forge shows none of them.
const REFS: &str = "refs/bottleworks/fence/";

/// A fence that moved while it was raised is read again this often.
const TRIES: usize = 5;

/// Bytes of a fence that are read.
const CAP: usize = 200;

/// Value of a fence: the claim that holds the issue, and how often it has written. It moves with each push, because git
/// sends no ref that stays, and compares none that it does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FenceValue {
    pub claim: u64,
    pub write: u64,
}

/// Condition of a push: the fence of this issue has this value, and gets the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushFence {
    pub issue: u64,
    pub value: FenceValue,
}

/// Result of [`SealedRepo::raise_fence`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RaisedFence {
    /// The fence has the asked claim, and this value.
    Held(FenceValue),
    /// A newer claim has it.
    Newer(FenceValue),
    /// The forge does not take such a ref.
    Rejected { reason: String },
}

/// A fence as the forge has it.
#[derive(Debug)]
struct RemoteFence {
    id: Sha,
    value: FenceValue,
}

impl FenceValue {
    fn first(claim: u64) -> Self {
        Self { claim, write: 0 }
    }

    pub(super) fn next(self) -> Self {
        Self { write: self.write + 1, ..self }
    }

    fn render(self) -> String {
        format!("claim {} write {}\n", self.claim, self.write)
    }

    fn parse(text: &str) -> Option<Self> {
        let (claim, write) = text.strip_prefix("claim ")?.trim_end().split_once(" write ")?;
        Some(Self { claim: claim.parse().ok()?, write: write.parse().ok()? })
    }
}

pub(super) fn fence_ref(issue: u64) -> String {
    format!("{REFS}{issue}")
}

impl UserRepo {
    /// Brings the fence of an issue at this address to a claim, unless a newer one has it. The checkout stays as it is.
    pub async fn raise_fence(
        &self,
        url: &str,
        claim: (u64, u64),
        env: UserEnv,
        timeout: Duration,
    ) -> Result<RaisedFence, GitError> {
        let dir = tempfile::tempdir().map_err(|source| {
            let path = std::env::temp_dir();
            let source = FileError::io("create a folder in", &path)(source);
            GitError::Prepare { path, source }
        })?;
        let repo =
            SealedRepo::init_bare(&dir.path().join("fence.git"), self.object_format()).await?;
        repo.raise_fence(url, claim, env, timeout).await
    }
}

impl SealedRepo {
    /// Brings the fence of an issue to a claim, unless a newer one has it.
    pub async fn raise_fence(
        &self,
        url: &str,
        (issue, claim): (u64, u64),
        env: UserEnv,
        timeout: Duration,
    ) -> Result<RaisedFence, GitError> {
        let git = self.git_of_user(env, url).await?;
        let mut refusal = String::new();
        for _ in 0..TRIES {
            let found = self.read_fence(&git, url, issue, timeout).await?;
            if let Some(fence) = &found
                && fence.value.claim >= claim
            {
                return Ok(match fence.value.claim == claim {
                    true => RaisedFence::Held(fence.value),
                    false => RaisedFence::Newer(fence.value),
                });
            }
            let first = FenceValue::first(claim);
            let (new, name) = (self.write_fence(first).await?, fence_ref(issue));
            let old = found.as_ref().map_or("", |fence| fence.id.as_str());
            let call = GitCall::new(argv_raise(url, &name, old, &new)).within(timeout);
            match PushRefusal::of_ref(&git.call(call).await?, &name)? {
                None => return Ok(RaisedFence::Held(first)),
                Some(PushRefusal { reason }) => refusal = reason,
            }
        }
        Ok(RaisedFence::Rejected { reason: refusal })
    }

    /// Writes the value as an object; its id follows from the value alone.
    pub(super) async fn write_fence(&self, value: FenceValue) -> Result<Sha, GitError> {
        let call = GitCall::new(argv("hash-object -w --stdin"));
        self.git.query(call.reading(value.render().as_bytes())).await?.parse_id()
    }

    async fn read_fence(
        &self,
        git: &Git,
        url: &str,
        issue: u64,
        timeout: Duration,
    ) -> Result<Option<RemoteFence>, GitError> {
        let name = fence_ref(issue);
        let call = GitCall::new(argv_ls_remote_ref(url, &name)).within(timeout);
        let RemoteBranch::At(id) = read_remote_ref(&git.query(call).await?, &name)? else {
            return Ok(None);
        };
        git.run(GitCall::new(argv_fetch(url, &name)).within(timeout)).await?;
        let blob =
            self.read_blobs(std::slice::from_ref(&id), CAP).await?.into_iter().flatten().next();
        let text = blob.map(|blob| String::from_utf8_lossy(&blob.bytes).into_owned());
        match text.as_deref().and_then(FenceValue::parse) {
            Some(value) => Ok(Some(RemoteFence { id, value })),
            None => Err(GitError::Parse {
                args: format!("fetch {name}"),
                problem: "the fence of the issue has no value that this version can read"
                    .to_owned(),
            }),
        }
    }
}

/// Builds the arguments. An empty expectation means that the ref must not exist.
fn argv_raise(url: &str, name: &str, old: &str, new: &Sha) -> Vec<OsString> {
    let rest = [
        format!("--force-with-lease={name}:{old}"),
        "--end-of-options".to_owned(),
        url.to_owned(),
        format!("{new}:{name}"),
    ];
    let words = "push --porcelain --no-verify --no-follow-tags --no-signed --recurse-submodules=no --no-progress";
    argv_with(words, rest)
}

fn argv_fetch(url: &str, name: &str) -> Vec<OsString> {
    let rest = [url.to_owned(), format!("+{name}:{name}")];
    let words = "fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance \
        --no-recurse-submodules --end-of-options";
    argv_with(words, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_as_it_was_written_and_nothing_else_reads() {
        let value = FenceValue { claim: 12, write: 3 };
        assert_eq!(FenceValue::parse(&value.render()), Some(value));
        assert_eq!(value.next(), FenceValue { claim: 12, write: 4 });
        for bad in ["", "claim 1", "claim -1 write 0", "claim 1 write x", "Claim 1 write 0"] {
            assert_eq!(FenceValue::parse(bad), None, "{bad}");
        }
    }

    /// A plus before the refspec would switch the comparison off.
    #[test]
    fn a_fence_is_compared_and_never_forced() {
        let new = Sha::parse(&"b".repeat(40)).unwrap();
        let show = |argv: Vec<OsString>| argv.join(" ".as_ref()).into_string().unwrap();
        let argv = show(argv_raise("-evil", &fence_ref(7), "", &new));
        assert!(!argv.contains('+'), "{argv}");
        insta::assert_snapshot!(argv, @"push --porcelain --no-verify --no-follow-tags --no-signed --recurse-submodules=no --no-progress --force-with-lease=refs/bottleworks/fence/7: --end-of-options -evil bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:refs/bottleworks/fence/7");
    }
}
