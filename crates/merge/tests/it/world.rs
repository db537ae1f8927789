//! A fork on `main` and its upstream on `up` in one repository, and a sealed repository that can see both.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use host::git::{GitIdentity, ObjectFormat, RefName, SealedRepo};
use jiff::Timestamp;
use merge::account::{DropRules, MergeAccount, observe_account};
use merge::clean::{MergeAttempt, MergeOptions, try_merge};
use merge::contract::{
    Contract, ContractBounds, ContractEnds, ContractStatus, judge_contract, observe_contract,
};
use merge::entry::MergeChanges;
use merge::pattern::PathPatterns;
use model::id::Sha;
use testkit::{Hermetic, Repo};

pub(crate) const FORK: &str = "main";
pub(crate) const UPSTREAM: &str = "up";

pub(crate) struct World {
    pub(crate) hermetic: Hermetic,
    pub(crate) repo: Repo,
}

impl World {
    /// Both sides start from these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let hermetic = Hermetic::new();
        let repo = Repo::init(hermetic.root().join("fork"));
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.commit("first");
        repo.branch(UPSTREAM);
        Self { hermetic, repo }
    }

    pub(crate) fn on(&self, branch: &str) -> &Repo {
        self.repo.git(&["checkout", "--quiet", "--force", branch]);
        &self.repo
    }

    /// Writes one file and commits it.
    pub(crate) fn write(&self, branch: &str, path: &str, text: impl AsRef<[u8]>) -> Sha {
        let sha = self.on(branch).write(path, text).commit(&format!("{branch}: {path}"));
        Sha::parse(&sha).unwrap()
    }

    pub(crate) fn remove(&self, branch: &str, path: &str) {
        self.on(branch).git(&["rm", "--quiet", path]);
        self.repo.commit_index(&format!("{branch}: without {path}"));
    }

    /// A file whose name need not be text.
    pub(crate) fn odd_file(&self, name: &[u8]) -> PathBuf {
        self.repo.dir().join(OsStr::from_bytes(name))
    }

    pub(crate) fn sha(&self, name: &str) -> Sha {
        Sha::parse(&self.repo.sha(name)).unwrap()
    }

    pub(crate) async fn sealed(&self) -> SealedRepo {
        let path = self.hermetic.root().join("host.git");
        if path.exists() {
            return SealedRepo::open(&path, ObjectFormat::Sha1);
        }
        let sealed = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
        sealed.add_alternate(&self.repo.dir().join(".git/objects")).unwrap();
        sealed
    }

    pub(crate) async fn attempt(&self) -> MergeAttempt {
        let identity = GitIdentity { name: "Bot".into(), email: "bot@example.com".into() };
        let name = RefName::parse("refs/merge/attempt").unwrap();
        let wish = MergeOptions {
            message: "Merge upstream\n\nWith a body.\n",
            identity: &identity,
            when: Timestamp::from_second(1_735_700_000).unwrap(),
            name: &name,
        };
        let (base, upstream) = (self.sha(FORK), self.sha(UPSTREAM));
        try_merge(&self.sealed().await, &base, &upstream, wish).await.unwrap()
    }

    /// What git itself makes of a merge, as a commit on a branch of its own.
    pub(crate) fn merged_by_git(&self) -> Sha {
        self.on(FORK).git(&["checkout", "--quiet", "-B", "result"]);
        Sha::parse(&self.repo.merge(UPSTREAM)).unwrap()
    }

    /// A merge whose conflicts are resolved by writing these files; none takes a file away.
    pub(crate) fn merged_by_hand(&self, files: &[(&str, Option<&str>)]) -> Sha {
        self.merged_on(FORK, files)
    }

    /// The same on another branch of the fork.
    pub(crate) fn merged_on(&self, branch: &str, files: &[(&str, Option<&str>)]) -> Sha {
        self.on(branch).git(&["checkout", "--quiet", "-B", "result"]);
        // It may well fail: that is what the hand is for.
        drop(self.repo.try_git(&["merge", "--no-commit", "--no-ff", UPSTREAM]));
        for (path, text) in files {
            match text {
                Some(text) => {
                    self.repo.write(path, text);
                }
                None => drop(fs::remove_file(self.repo.dir().join(path))),
            }
        }
        Sha::parse(&self.repo.commit("merge by hand")).unwrap()
    }

    pub(crate) async fn contract(&self, tip: &Sha, protect: &[&str]) -> Contract {
        let sealed = self.sealed().await;
        let (base, upstream) = (self.sha(FORK), self.sha(UPSTREAM));
        let merge_base = sealed.merge_base(&base, &upstream).await.unwrap().unwrap();
        let ends = ContractEnds { merge_base, base, upstream, tip: tip.clone() };
        let protected = PathPatterns::new(protect);
        let bounds = ContractBounds::default();
        let changes = MergeChanges::new(&sealed, &ends);
        let mut facts = observe_contract(&changes, &protected, bounds).await.unwrap();
        let rules = DropRules::default();
        let account = observe_account(&changes, &rules, bounds).await.unwrap();
        facts.refine(&account, &rules);
        judge_contract(&facts)
    }
}

impl World {
    pub(crate) async fn account(&self, tip: &Sha, rules: &DropRules) -> MergeAccount {
        let sealed = self.sealed().await;
        let (base, upstream) = (self.sha(FORK), self.sha(UPSTREAM));
        let merge_base = sealed.merge_base(&base, &upstream).await.unwrap().unwrap();
        let ends = ContractEnds { merge_base, base, upstream, tip: tip.clone() };
        let changes = MergeChanges::new(&sealed, &ends);
        observe_account(&changes, rules, ContractBounds::default()).await.unwrap()
    }
}

/// The state of a path, and why.
#[track_caller]
pub(crate) fn path_state(contract: &Contract, path: &str) -> (ContractStatus, String) {
    let found = contract.paths.iter().find(|account| account.path.to_string() == path);
    let found = found.unwrap_or_else(|| panic!("{path} is not in {:?}", contract.paths));
    (found.state, found.detail.clone())
}

/// The states of the fork's commits, newest first.
pub(crate) fn commit_states(contract: &Contract) -> Vec<ContractStatus> {
    contract.commits.iter().map(|commit| commit.state).collect()
}
