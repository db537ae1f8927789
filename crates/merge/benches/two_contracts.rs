//! What the contract and the account of both sides cost for 300 changed files, beside git's own diffs of the same trees.

use std::fmt::Write as _;
use std::path::Path;

use host::git::{CommitDraft, GitIdentity, NewEntry, ObjectFormat, SealedRepo, TreeEdit};
use jiff::Timestamp;
use merge::account::{DropRules, judge_account, observe_account};
use merge::contract::{ContractBounds, ContractEnds, judge_contract, observe_contract};
use merge::entry::MergeChanges;
use merge::pattern::PathPatterns;
use testkit::Repo;
use testkit::measure::{Cost, compare_costs, cost};

const FILES: usize = 300;
const LINES: usize = 200;
/// One file of so many has a line that both sides changed.
const CONFLICT_EVERY: usize = 10;
const ROUNDS: usize = 11;
/// Calls in each round: the kernel counts time of processors in hundredths of a second.
const REPEATS: usize = 3;
const PROMISED: f64 = 1.5;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("host.git");
    let (_, ends) = runtime.block_on(make_merge(&path));
    // A repository that was just opened knows no merge.
    let ours = || {
        cost(|| {
            for _ in 0..REPEATS {
                let repo = SealedRepo::open(&path, ObjectFormat::Sha1);
                runtime.block_on(judge(&repo, &ends));
            }
        })
    };
    let git = || diff_pairs(&path, &ends);
    let comparison = compare_costs(ROUNDS, ours, git);
    let name = format!("contract and account of {FILES} changed files");
    comparison.print(&name, "git diff-tree -p of the same pairs", PROMISED);
}

async fn judge(repo: &SealedRepo, ends: &ContractEnds) {
    let bounds = ContractBounds::default();
    let none = PathPatterns::default();
    let rules = DropRules::default();
    let changes = MergeChanges::new(repo, ends);
    let account = observe_account(&changes, &rules, bounds);
    let facts = observe_contract(&changes, &none, bounds);
    let (account, mut facts) = tokio::try_join!(account, facts).expect("observed");
    facts.refine(&account, &rules);
    let contract = judge_contract(&facts);
    assert_eq!((contract.paths.len(), contract.lost), (FILES, false));
    assert_eq!(account.conflicts.len(), FILES / CONFLICT_EVERY);
    assert!(judge_account(&account).upstream_dropped.is_empty());
}

/// What each side changed, and what the result changed of each side.
fn diff_pairs(path: &Path, ends: &ContractEnds) -> Cost {
    let repo = Repo::open(path);
    let ContractEnds { merge_base, base, upstream, tip } = ends;
    let pairs = [(merge_base, base), (merge_base, upstream), (base, tip), (upstream, tip)];
    cost(|| {
        for (from, to) in pairs.iter().cycle().take(REPEATS * pairs.len()) {
            repo.git(&["diff-tree", "-p", "-r", from.as_str(), to.as_str()]);
        }
    })
}

async fn make_merge(path: &Path) -> (SealedRepo, ContractEnds) {
    let repo = SealedRepo::init_bare(path, ObjectFormat::Sha1).await.expect("a repository");
    repo.fast_import(&render_history()).await.expect("imported");
    let tip = async |name: &str| repo.resolve_commit(name).await.expect("asked").expect("there");
    let [merge_base, base, upstream] = [
        tip("refs/heads/first").await,
        tip("refs/heads/fork").await,
        tip("refs/heads/upstream").await,
    ];
    let merged = repo.merge_tree(&base, &upstream).await.expect("merged");
    let resolved = (0..FILES).filter(|number| number % CONFLICT_EVERY == 0).map(|number| {
        let bytes = render_file(number, "both").into_bytes();
        TreeEdit {
            path: file_name(number).into_bytes(),
            entry: NewEntry::Content { mode: 0o100_644, bytes },
        }
    });
    let edits: Vec<TreeEdit> = resolved.collect();
    let tree = repo.edit_tree(&merged.tree, &edits).await.expect("edited");
    let identity = GitIdentity { name: "Bot".into(), email: "bot@example.com".into() };
    let draft = CommitDraft {
        tree: &tree,
        parents: &[base.clone(), upstream.clone()],
        identity: &identity,
        when: Timestamp::UNIX_EPOCH,
        message: "merge\n",
    };
    let tip = repo.commit_tree(draft).await.expect("committed");
    (repo, ContractEnds { merge_base, base, upstream, tip })
}

fn file_name(number: usize) -> String {
    format!("dir{}/file{number}", number % 50)
}

/// Files of which the fork changed the beginning, upstream the end, and both a line in the middle of some.
fn render_file(number: usize, branch: &str) -> String {
    let (of_fork, of_upstream) = (branch != "upstream", branch != "fork");
    let changed = branch != "first";
    let line = |at: usize| match at {
        5 if changed && of_fork => format!("the fork has {at} words in file {number}\n"),
        195 if changed && of_upstream => format!("upstream has {at} words in file {number}\n"),
        100 if changed && number.is_multiple_of(CONFLICT_EVERY) => {
            let mut text = String::new();
            if of_fork {
                text.push_str("a line of the fork\n");
            }
            if of_upstream {
                text.push_str("a line of upstream\n");
            }
            text
        }
        _ => format!("this is line {} of a file\n", number + at),
    };
    (0..LINES).map(line).collect()
}

fn render_history() -> String {
    let mut stream = String::new();
    for branch in ["first", "fork", "upstream"] {
        stream.push_str(&format!("commit refs/heads/{branch}\n"));
        stream.push_str("committer A <a@example.com> 1735689600 +0000\ndata 2\nx\n");
        if branch != "first" {
            stream.push_str("from refs/heads/first\n");
        }
        for number in 0..FILES {
            let text = render_file(number, branch);
            let name = file_name(number);
            writeln!(stream, "M 100644 inline {name}\ndata {}\n{text}", text.len())
                .expect("a string takes everything");
        }
    }
    stream
}
