//! Branches: listing, moving and deleting with a check of the expected tip, and the branches of a remote.

use std::ffi::OsString;
use std::time::Duration;

use model::id::{BranchName, RemoteName, Sha};

use super::WorktreeRepo;
use crate::git::call::{GitCall, GitOutput, argv_with};
use crate::git::{GitError, RefName};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteBranch {
    At(Sha),
    Absent,
}

impl WorktreeRepo {
    /// Lists every ref and its object, by name.
    pub async fn refs(&self) -> Result<Vec<(String, Sha)>, GitError> {
        self.list_refs("refs/").await
    }

    /// Lists every branch and its tip, by name.
    pub async fn branches(&self) -> Result<Vec<(String, Sha)>, GitError> {
        let refs = self.list_refs("refs/heads/").await?;
        let short =
            |(name, sha): (String, Sha)| Some((name.strip_prefix("refs/heads/")?.to_owned(), sha));
        Ok(refs.into_iter().filter_map(short).collect())
    }

    async fn list_refs(&self, below: &str) -> Result<Vec<(String, Sha)>, GitError> {
        let argv = argv_with("for-each-ref", ["--format=%(objectname) %(refname)", below]);
        self.git().query(argv).await?.parse(parse_refs, "it is not a list of refs")
    }

    /// Returns the tip of a local branch, and never of a tag of the same name.
    pub async fn branch_tip(&self, branch: &BranchName) -> Result<Option<Sha>, GitError> {
        self.resolve_commit(&branch.full_ref()).await
    }

    /// Returns the tips of these branches, in the order given; `None` for a branch that does not exist.
    pub async fn branch_tips(&self, branches: &[BranchName]) -> Result<Vec<Option<Sha>>, GitError> {
        let names: Vec<RefName> = branches.iter().map(RefName::of_branch).collect();
        self.git().resolve_refs(&names).await
    }

    /// Creates a branch; if there is one of this name, git fails and nothing changes.
    pub async fn create_branch(
        &self,
        branch: &BranchName,
        at: &Sha,
        reason: &str,
    ) -> Result<(), GitError> {
        // No old value means that there must be none.
        let values = [reason, "--end-of-options", &branch.full_ref(), at.as_str(), ""];
        self.git().run(argv_with("update-ref -m", values)).await
    }

    /// Moves a branch from its expected tip; if its tip differs, git fails and nothing changes.
    pub async fn move_branch(
        &self,
        branch: &BranchName,
        to: &Sha,
        seen: &Sha,
        reason: &str,
    ) -> Result<(), GitError> {
        let full = branch.full_ref();
        let values = [reason, "--end-of-options", &full, to.as_str(), seen.as_str()];
        self.git().run(argv_with("update-ref -m", values)).await
    }

    /// Deletes a branch if its tip is still the expected one.
    pub async fn delete_branch(&self, branch: &BranchName, seen: &Sha) -> Result<(), GitError> {
        let values = [&branch.full_ref(), seen.as_str()];
        self.git().run(argv_with("update-ref -d --end-of-options", values)).await
    }

    /// Queries a remote for one branch, without changing anything locally.
    pub async fn remote_branch(
        &self,
        remote: &RemoteName,
        branch: &BranchName,
        timeout: Duration,
    ) -> Result<RemoteBranch, GitError> {
        let call = GitCall::new(argv_ls_remote(remote.as_str(), branch)).within(timeout);
        read_remote_branch(&self.git().query(call).await?, branch)
    }

    /// Pushes a branch to a remote, as a fast-forward only.
    pub async fn push_branch(
        &self,
        remote: &RemoteName,
        branch: &BranchName,
        timeout: Duration,
    ) -> Result<(), GitError> {
        let refspec = format!("{0}:{0}", branch.full_ref());
        let tip = self.branch_tip(branch).await?;
        let wanted = tip.map_or(RemoteBranch::Absent, RemoteBranch::At);
        let pushed = self.push(remote, &refspec, timeout).await;
        self.unless_there(pushed, (remote, branch), &wanted, timeout).await
    }

    pub async fn delete_remote_branch(
        &self,
        remote: &RemoteName,
        branch: &BranchName,
        timeout: Duration,
    ) -> Result<(), GitError> {
        let deleted = self.push(remote, &format!(":{}", branch.full_ref()), timeout).await;
        self.unless_there(deleted, (remote, branch), &RemoteBranch::Absent, timeout).await
    }

    /// Drops the error of a push if the remote is as the push would have left it: the answer was lost, or another push
    /// did the same at that moment.
    async fn unless_there(
        &self,
        pushed: Result<(), GitError>,
        (remote, branch): (&RemoteName, &BranchName),
        wanted: &RemoteBranch,
        timeout: Duration,
    ) -> Result<(), GitError> {
        let Err(error) = pushed else { return Ok(()) };
        // The repository that a remote is pushed to may be another one than it is fetched from, and there may be several.
        let Some(urls) = self.push_urls(remote).await? else { return Err(error) };
        for url in urls.iter() {
            match self.branch_at_url(url, branch, timeout).await {
                Ok(found) if found == *wanted => {}
                Ok(_) | Err(_) => return Err(error),
            }
        }
        Ok(())
    }

    async fn push(
        &self,
        remote: &RemoteName,
        refspec: &str,
        timeout: Duration,
    ) -> Result<(), GitError> {
        self.git().run(GitCall::new(argv_push(remote, refspec)).within(timeout)).await
    }
}

fn argv_push(remote: &RemoteName, refspec: &str) -> Vec<OsString> {
    let words = "push --porcelain --no-follow-tags --no-signed --recurse-submodules=no \
        --no-progress --end-of-options";
    argv_with(words, [remote.as_str(), refspec])
}

/// Builds the query for one branch of a remote, given by its name or URL.
pub(in crate::git) fn argv_ls_remote(remote: &str, branch: &BranchName) -> Vec<OsString> {
    argv_ls_remote_ref(remote, &branch.full_ref())
}

pub(in crate::git) fn argv_ls_remote_ref(remote: &str, full: &str) -> Vec<OsString> {
    let values = [remote, full];
    argv_with("ls-remote --quiet --refs --end-of-options", values)
}

/// Reads the branch. A pattern also matches refs that merely end like it, so the name is compared.
pub(in crate::git) fn read_remote_branch(
    answer: &GitOutput,
    branch: &BranchName,
) -> Result<RemoteBranch, GitError> {
    read_remote_ref(answer, &branch.full_ref())
}

pub(in crate::git) fn read_remote_ref(
    answer: &GitOutput,
    full: &str,
) -> Result<RemoteBranch, GitError> {
    let refs = String::from_utf8_lossy(&answer.stdout).replace('\t', " ");
    let refs = parse_refs(refs.as_bytes()).ok_or_else(|| answer.unreadable("no list of refs"))?;
    let found = refs.into_iter().find(|(name, _)| name == full);
    Ok(found.map_or(RemoteBranch::Absent, |(_, sha)| RemoteBranch::At(sha)))
}

/// Parses lines of an object id, a blank and a name; names have no blanks.
fn parse_refs(bytes: &[u8]) -> Option<Vec<(String, Sha)>> {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| {
        let (sha, name) = line.split_once(' ')?;
        Some((name.to_owned(), Sha::parse(sha).ok()?))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::call::tests::answer;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn a_remote_branch_is_the_one_of_that_whole_name() {
        let branch = BranchName::parse("feat/x").unwrap();
        let read = |text: String| read_remote_branch(&answer(0, text.as_bytes()), &branch).unwrap();
        assert_eq!(read(format!("{A}\trefs/heads/refs/heads/feat/x\n")), RemoteBranch::Absent);
        let found = read(format!("{A}\trefs/heads/feat/x\n"));
        assert_eq!(found, RemoteBranch::At(Sha::parse(A).unwrap()));
        assert_eq!(read(String::new()), RemoteBranch::Absent);
    }

    #[test]
    fn a_push_is_never_forced() {
        let argv = argv_push(&RemoteName::parse("origin").unwrap(), ":refs/heads/x");
        let shown = argv.join(" ".as_ref()).into_string().unwrap();
        assert!(!shown.contains("force") && !shown.contains('+'), "{shown}");
    }
}
