//! Four ways to make git say that upstream was merged when it was not.
//!
//! The naive question is `git merge-base --is-ancestor upstream/main HEAD`, asked in a repository that the agent
//! owned. Each forgery makes the answer yes without any merge.

use std::fs;
use std::path::Path;

use super::{Repo, commit_graph};

/// Way to fake the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgery {
    /// Upstream's ref points at an older commit, which is merged.
    MovedRef,
    /// A replacement object for HEAD has upstream as another parent.
    Replace,
    /// `info/grafts` gives HEAD upstream as another parent.
    Graft,
    /// A commit-graph file gives a commit just below HEAD upstream as another parent. Two empty commits are made
    /// first: git reads the commit that it is asked about from its object, and only those below it from the file.
    CommitGraph,
}

impl Forgery {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::MovedRef, Self::Replace, Self::Graft, Self::CommitGraph];
}

/// Makes the repository claim that HEAD contains upstream. Returns the commit that upstream really is at.
///
/// # Panics
/// When the repository has no ref of upstream ([`upstream_refs`]) or HEAD is a merge commit already.
pub fn forge_merge(path: &Path, how: Forgery) -> String {
    let repo = Repo::open(path);
    let refs = upstream_refs(&repo);
    let upstream = repo.sha(refs.first().expect("a ref of upstream"));
    let head = repo.head();
    // From the object itself: an earlier forgery would be believed by everything else.
    let commit = repo.git(&["--no-replace-objects", "cat-file", "commit", &head]);
    let header = commit.lines().take_while(|line| !line.is_empty());
    let parents: Vec<&str> = header.filter_map(|line| line.strip_prefix("parent ")).collect();
    assert!(parents.len() < 2, "HEAD is a merge commit already");
    match how {
        Forgery::MovedRef => {
            let older = repo.try_git(&["merge-base", &head, &upstream]).unwrap_or(head);
            for name in &refs {
                repo.git(&["update-ref", name, &older]);
            }
        }
        Forgery::Replace => {
            repo.git(
                &[&["replace", "--force", "--graft", &head], &parents[..], &[&upstream]].concat(),
            );
        }
        Forgery::Graft => {
            let info = repo.git_dir().join("info");
            fs::create_dir_all(&info).expect("the info folder");
            let line = [&[head.as_str()], &parents[..], &[&upstream]].concat().join(" ");
            fs::write(info.join("grafts"), format!("{line}\n")).expect("the grafts");
        }
        Forgery::CommitGraph => {
            let claim = repo.commit_index("Merge upstream");
            let tip = repo.commit_index("Check the merge");
            let info = repo.git_dir().join("objects/info");
            fs::create_dir_all(&info).expect("the info folder");
            let file = commit_graph::forge(&repo, &tip, &claim, &upstream);
            fs::write(info.join("commit-graph"), file).expect("the commit-graph");
        }
    }
    upstream
}

/// The refs whose name says that they are upstream's (`refs/remotes/upstream/main`, `refs/upstream/main`, ...).
pub fn upstream_refs(repo: &Repo) -> Vec<String> {
    let refs = repo.git(&["for-each-ref", "--format=%(refname)"]);
    let is_upstream =
        |name: &&str| name.split('/').any(|part| part == "upstream") && !name.ends_with("/HEAD");
    refs.lines().filter(is_upstream).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hermetic::Hermetic;
    use crate::repo::Fork;

    const BY_NAME: &str = "refs/remotes/upstream/main";

    #[test]
    fn an_honest_repository_says_no() {
        let (_hermetic, repo, upstream) = unmerged();
        assert!(!contains(&repo, &[], BY_NAME));
        assert!(!contains(&repo, &[], &upstream));
        assert_eq!(lacking(&repo, &[], &upstream), 1);
    }

    #[test]
    fn a_moved_ref_fools_who_asks_by_name() {
        let (_hermetic, repo, upstream) = unmerged();
        assert_eq!(forge_merge(repo.dir(), Forgery::MovedRef), upstream);
        assert!(contains(&repo, &[], BY_NAME));
        assert!(!contains(&repo, &[], &upstream));
    }

    #[test]
    fn a_replacement_fools_who_knows_the_sha() {
        let (_hermetic, repo, upstream) = unmerged();
        forge_merge(repo.dir(), Forgery::Replace);
        assert!(contains(&repo, &[], &upstream));
        assert!(!contains(&repo, &["--no-replace-objects"], &upstream));
    }

    #[test]
    fn a_graft_fools_who_knows_the_sha() {
        let (_hermetic, repo, upstream) = unmerged();
        forge_merge(repo.dir(), Forgery::Graft);
        assert!(contains(&repo, &[], &upstream));
        fs::remove_file(repo.git_dir().join("info/grafts")).unwrap();
        assert!(!contains(&repo, &[], &upstream));
    }

    #[test]
    fn a_commit_graph_fools_who_knows_the_sha() {
        let (_hermetic, repo, upstream) = unmerged();
        forge_merge(repo.dir(), Forgery::CommitGraph);
        assert!(contains(&repo, &[], &upstream));
        assert_eq!(lacking(&repo, &[], &upstream), 0);
        let honest = ["-c", "core.commitGraph=false"];
        assert!(!contains(&repo, &honest, &upstream));
        assert_eq!(lacking(&repo, &honest, &upstream), 1);
    }

    /// The file is whole: what git finds wrong is the lie, not the checksum or the layout.
    #[test]
    fn the_forged_commit_graph_is_wrong_only_about_the_parents() {
        let (_hermetic, repo, _) = unmerged();
        forge_merge(repo.dir(), Forgery::CommitGraph);
        let claim = repo.sha("HEAD~1");
        let complaint = repo.try_git(&["commit-graph", "verify"]).unwrap_err();
        assert!(complaint.contains("parent"), "{complaint}");
        assert!(complaint.lines().all(|line| line.contains(&claim)), "{complaint}");
    }

    fn unmerged() -> (Hermetic, Repo, String) {
        let hermetic = Hermetic::new();
        let fork = Fork::new(&hermetic).clean_merge();
        fork.checkout.git(&["fetch", "--quiet", "upstream"]);
        let upstream = fork.upstream.sha("main");
        (hermetic, fork.checkout, upstream)
    }

    fn contains(repo: &Repo, options: &[&str], upstream: &str) -> bool {
        let question = ["merge-base", "--is-ancestor", upstream, "HEAD"];
        repo.try_git(&[options, &question].concat()).is_ok()
    }

    fn lacking(repo: &Repo, options: &[&str], upstream: &str) -> u32 {
        let question = ["rev-list", "--count", upstream, "^HEAD"];
        repo.git(&[options, &question].concat()).parse().unwrap()
    }
}
