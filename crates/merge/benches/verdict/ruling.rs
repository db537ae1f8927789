//! What the host says of a result: refusals, and what a person is shown first.

use host::git::{CommitDraft, GitError, GitIdentity, SealedRepo};
use jiff::Timestamp;
use merge::account::{DropRules, SideChange, judge_account, observe_account};
use merge::contract::{
    CommitAccount, Contract, ContractBounds, ContractEnds, ContractStatus, ForkCommit,
    judge_contract, observe_contract,
};
use merge::entry::MergeChanges;
use merge::path::TreePath;
use merge::pattern::PathPatterns;
use merge::test_names::{self, TestAccount};
use model::id::Sha;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ruling {
    /// Reasons why the result is refused.
    pub(crate) refusals: Vec<String>,
    pub(crate) shown: Vec<Shown>,
    /// True if the result is one side's tree although the other side has changes.
    pub(crate) is_whole_side: bool,
    /// Number of paths that git could not merge.
    pub(crate) conflicts: usize,
    /// Dropped changes of both sides, with their figures.
    pub(crate) dropped: Vec<String>,
    /// The fork's commits, which are the same for every result of a merge.
    pub(crate) commits: Vec<ForkCommit>,
}

/// A path that a person is asked to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) path: TreePath,
    pub(crate) words: String,
}

impl Ruling {
    /// Words about any of these paths.
    pub(crate) fn words_about(&self, paths: &[Vec<u8>]) -> Vec<&str> {
        let is_about = |shown: &&Shown| paths.iter().any(|path| path == shown.path.as_bytes());
        let about = self.shown.iter().filter(is_about).map(|shown| shown.words.as_str());
        about.filter(|words| !words.is_empty()).collect()
    }
}

/// Judges a result. Each judge adds what it has to say. Reading the fork's commits takes most of the time, so a second
/// result of the same merge is judged with those of the first.
pub(crate) async fn rule(
    repo: &SealedRepo,
    ends: &ContractEnds,
    known: Option<&[ForkCommit]>,
) -> Result<Ruling, GitError> {
    let mut bounds = ContractBounds::default();
    let mut ruling = Ruling::default();
    let rules = DropRules::default();
    let changes = MergeChanges::new(repo, ends);
    let account = observe_account(&changes, &rules, bounds).await?;
    if known.is_some() {
        bounds.commits = 0;
    }
    let mut facts = observe_contract(&changes, &PathPatterns::default(), bounds).await?;
    if let Some(known) = known {
        facts.commits = known.to_vec();
    }
    facts.refine(&account, &rules);
    add_contract(&mut ruling, &judge_contract(&facts));
    for (side, changes) in [("fork", &account.fork), ("upstream", &account.upstream)] {
        let dropped = changes.changes.iter().filter(|change| change.dropped > 0);
        ruling.dropped.extend(dropped.map(|change| {
            let SideChange { path, dropped, dropped_clean, detail, .. } = change;
            format!(
                "{side} {path}: {dropped} dropped, {dropped_clean} that git could merge: {detail}"
            )
        }));
    }
    let judged = judge_account(&account);
    ruling.refusals.extend(judged.upstream_dropped);
    ruling.refusals.extend(judged.fork_dropped);
    let looks = judged.looks.into_iter();
    ruling.shown.extend(looks.map(|look| Shown { path: look.path, words: look.what }));
    add_tests(&mut ruling, test_names::observe(&changes).await?);
    ruling.commits = facts.commits;
    ruling.conflicts = account.conflicts.len();
    ruling.is_whole_side = account.whole.is_some();
    Ok(ruling)
}

fn add_contract(ruling: &mut Ruling, contract: &Contract) {
    for row in &contract.paths {
        let words = format!("{}: {}", row.state.as_str(), row.detail);
        match row.state {
            ContractStatus::Lost if contract.lost => {
                ruling.refusals.push(format!("{words} ({})", row.path));
            }
            ContractStatus::Lost => ruling.shown.push(Shown { path: row.path.clone(), words }),
            // Further down in a pull request.
            ContractStatus::Changed | ContractStatus::Kept | ContractStatus::Superseded => {}
        }
    }
    let is_lost = |commit: &&CommitAccount| contract.lost && commit.state == ContractStatus::Lost;
    let lost = contract.commits.iter().filter(is_lost);
    ruling.refusals.extend(lost.map(|commit| {
        format!("lost: a commit of the fork ({} {})", commit.sha.short(), commit.subject)
    }));
}

/// Lost tests are refused, weakened ones shown. A file whose tests could not be read tells nothing about what happened
/// to them.
fn add_tests(ruling: &mut Ruling, account: TestAccount) {
    let TestAccount { missing, skipped, weakened, unread: _ } = account;
    for (kind, findings) in [("missing", missing), ("skipped", skipped)] {
        ruling.refusals.extend(findings.into_iter().map(|finding| {
            format!("{kind} test: {} ({}; {})", finding.name, finding.note, finding.path)
        }));
    }
    ruling.shown.extend(weakened.into_iter().map(|finding| Shown {
        words: format!("weakened test: {} ({})", finding.name, finding.note),
        path: finding.path,
    }));
}

/// Makes a merge commit of a variant's tree.
pub(crate) async fn commit_variant(
    repo: &SealedRepo,
    ends: &ContractEnds,
    tree: &Sha,
) -> Result<Sha, GitError> {
    let identity = GitIdentity { name: "Bot".into(), email: "bot@example.com".into() };
    let parents = [ends.base.clone(), ends.upstream.clone()];
    let when = Timestamp::UNIX_EPOCH;
    let message = "merge\n";
    repo.commit_tree(CommitDraft { tree, parents: &parents, identity: &identity, when, message })
        .await
}
