//! A fork with thousands of changed files does not make anybody wait: git is asked a few times for all of them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use host::git::{GitIdentity, ObjectFormat, RefName, SealedRepo};
use jiff::Timestamp;
use merge::clean::{MergeAttempt, MergeOptions, try_merge};
use merge::contract::{
    ContractBounds, ContractEnds, ContractStatus, judge_contract, observe_contract,
};
use merge::entry::MergeChanges;
use merge::pattern::PathPatterns;
use testkit::Hermetic;

const FILES: usize = 2000;

/// More than it takes, and far less than one question for each path would be.
const MOST_QUESTIONS: usize = 30;

#[tokio::test]
async fn two_thousand_changed_paths_are_accounted_for_at_once() {
    let hermetic = Hermetic::new();
    let path = hermetic.root().join("host.git");
    let repo = SealedRepo::init_bare(&path, ObjectFormat::Sha1).await.unwrap();
    repo.fast_import(&history()).await.unwrap();
    let merge_base = repo.resolve_commit("refs/heads/first").await.unwrap().unwrap();
    let base = repo.resolve_commit("refs/heads/fork").await.unwrap().unwrap();
    let upstream = repo.resolve_commit("refs/heads/upstream").await.unwrap().unwrap();
    let identity = GitIdentity { name: "Bot".into(), email: "bot@example.com".into() };
    let name = RefName::parse("refs/heads/merged").unwrap();
    let when = Timestamp::UNIX_EPOCH;
    let wish = MergeOptions { message: "merge\n", identity: &identity, when, name: &name };
    let attempt = try_merge(&repo, &base, &upstream, wish).await.unwrap();
    let MergeAttempt::Clean { commit: tip, .. } = attempt else { panic!("conflicts") };

    let questions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&questions);
    let repo = repo.logged(Arc::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    let ends = ContractEnds { merge_base, base, upstream, tip };
    let bounds = ContractBounds::default();
    let (changes, none) = (MergeChanges::new(&repo, &ends), PathPatterns::default());
    let facts = observe_contract(&changes, &none, bounds).await.unwrap();
    let contract = judge_contract(&facts);
    let asked = questions.load(Ordering::Relaxed);
    assert_eq!((contract.paths.len(), contract.lost), (FILES, false));
    assert!(contract.paths.iter().all(|path| path.state == ContractStatus::Kept));
    assert!((1..=MOST_QUESTIONS).contains(&asked), "{asked} questions");
}

/// All files, then the fork's line at their beginning, and upstream's at their end.
fn history() -> String {
    let mut stream = String::new();
    for (branch, before, after) in
        [("first", "", ""), ("fork", "of the fork\n", ""), ("upstream", "", "of upstream\n")]
    {
        writeln!(stream, "commit refs/heads/{branch}").unwrap();
        stream.push_str("committer A <a@example.com> 1735689600 +0000\ndata 2\nx\n");
        if branch != "first" {
            stream.push_str("from refs/heads/first\n");
        }
        for number in 0..FILES {
            let lines = (0..200).map(|line| format!("this is line {} of a file\n", number + line));
            let text: String =
                [before.to_owned()].into_iter().chain(lines).chain([after.to_owned()]).collect();
            writeln!(stream, "M 100644 inline dir{}/file{number}", number % 50).unwrap();
            writeln!(stream, "data {}\n{text}", text.len()).unwrap();
        }
        stream.push('\n');
    }
    stream
}
