//! The check on the fork and on upstream as they were pinned, to compare the tests that ran with those of the result.
//!
//! Each tree is checked once: what its reports say is kept in the cache. A result is refused only by reports of this run, since
//! the machine may have changed after the others were made.

use std::path::{Path, PathBuf};

use engine::check::is_machine;
use engine::test_report::TestReport;
use host::git::SealedRepo;
use merge::trusted_check::is_check_file;
use model::digest::short_sha256;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::observe::fork_key;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};
use crate::rules::ran_tests::{RanTests, SideRuns, TreeRun, compare_ran};

/// Boxes of the checks on other trees than the result's. A box that the machine ended, or a signal, says nothing, and there is
/// another.
const FORK_BOXES: [&str; 3] = ["fork-check", "fork-check-2", "fork-check-3"];
const UPSTREAM_BOXES: [&str; 3] = ["upstream-check", "upstream-check-2", "upstream-check-3"];
const BASE_BOXES: [&str; 3] = ["base-check", "base-check-2", "base-check-3"];

/// Trees of a fork whose reports are kept.
const KEPT_TREES: usize = 20;

/// Kept in place of a report when the check leaves none. It holds for as long as the fork's files that define how tests are
/// run stay as they are.
const NO_REPORTS: &str = "no-reports";

/// The check on a tree, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TreeCheck {
    passed: bool,
    /// Its exit in a few words.
    how: String,
    report: TestReport,
    /// It was made by an earlier run.
    #[serde(skip)]
    is_kept: bool,
}

impl TreeCheck {
    /// The check on the result, which passed.
    fn passed_with(report: &TestReport) -> Self {
        Self { passed: true, how: String::new(), report: report.clone(), is_kept: false }
    }
}

/// A tree to check.
struct Tree<'a> {
    commit: &'a Sha,
    boxes: [&'static str; 3],
    what: &'static str,
}

/// Use of the reports of earlier runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Counts,
    MadeAgain,
}

impl ForkRun<'_> {
    /// Compares the tests that the check ran on the result with those of both sides; `None` if it leaves no reports.
    pub(super) async fn compare_ran_tests(
        &self,
        checked: &Sha,
        result: &TestReport,
    ) -> Result<Option<RanTests>, Failure> {
        if self.run.record.settings.rules.compare_tests == Some(false) {
            return Ok(None);
        }
        let repo = self.run.import_repo(&self.repo);
        self.keep_result(&repo, checked, result).await?;
        let has_reports = result.count.is_some() || result.is_cut;
        let definition = definition_digest(&repo, &self.run.record.pins.base).await?;
        let marker = self.kept_file(&format!("{NO_REPORTS}-{definition}"));
        if !has_reports && marker.exists() {
            return Ok(None);
        }
        let found = self.compare_with_sides(&repo, checked, result, Kept::Counts).await?;
        let Some((found, is_by_kept)) = found else {
            keep(&marker, b"{}")?;
            forget_old(&marker);
            return Ok(None);
        };
        let is_accepted = self.run.record.settings.accept_dropped;
        if found.lost.count == 0 || !is_by_kept || is_accepted {
            return Ok(Some(found));
        }
        let again = self.compare_with_sides(&repo, checked, result, Kept::MadeAgain).await?;
        Ok(Some(again.map_or_else(RanTests::default, |(found, _)| found)))
    }

    /// Keeps what the check said about a result that passed: merged as it is, it is the fork of the next run.
    async fn keep_result(
        &self,
        repo: &SealedRepo,
        checked: &Sha,
        result: &TestReport,
    ) -> Result<(), Failure> {
        let trees = repo.trees_of(std::slice::from_ref(checked)).await.or_machine()?;
        let Some(tree) = trees.into_iter().flatten().next() else { return Ok(()) };
        if result.is_cut && result.count.is_none() {
            return Ok(());
        }
        let check = TreeCheck::passed_with(result);
        keep(&self.kept_file(tree.as_str()), &serde_json::to_vec(&check).or_machine()?)
    }

    /// The comparison, and whether reports of earlier runs are part of it; `None` if no tree has reports.
    async fn compare_with_sides(
        &self,
        repo: &SealedRepo,
        checked: &Sha,
        result: &TestReport,
        kept: Kept,
    ) -> Result<Option<(RanTests, bool)>, Failure> {
        let pins = &self.run.record.pins;
        let (base, upstream) = (&pins.base, &pins.upstream);
        let commits = [checked.clone(), base.clone(), upstream.clone()];
        let trees = repo.trees_of(&commits).await.or_machine()?;
        let is_results = |at: usize| trees[at].is_some() && trees[at] == trees[0];
        let own = || TreeCheck::passed_with(result);
        let fork = Tree { commit: base, boxes: FORK_BOXES, what: "the fork as it was" };
        let fork = match is_results(1) {
            true => Some(own()),
            false => self.check_tree(repo, fork, kept).await?,
        };
        let has_reports = |check: &Option<TreeCheck>| {
            check.as_ref().is_some_and(|check| check.report.count.is_some())
        };
        if result.count.is_none() && !result.is_cut && !has_reports(&fork) {
            return Ok(None);
        }
        let theirs = Tree { commit: upstream, boxes: UPSTREAM_BOXES, what: "upstream" };
        let theirs = match is_results(2) {
            true => Some(own()),
            false => self.check_tree(repo, theirs, kept).await?,
        };
        let sides = |merge_base| SideRuns {
            fork: tree_run(fork.as_ref()),
            upstream: tree_run(theirs.as_ref()),
            merge_base,
        };
        let mut found = compare_ran(result, sides(TreeRun::Unknown));
        let mut merge_base = None;
        if found.needs_merge_base() {
            if let Some(commit) = repo.merge_base(base, upstream).await.or_machine()? {
                let tree = Tree { commit: &commit, boxes: BASE_BOXES, what: "the common ancestor" };
                merge_base = self.check_tree(repo, tree, kept).await?;
            }
            found = compare_ran(result, sides(tree_run(merge_base.as_ref())));
        }
        let sides = [("the fork as it was", &fork), ("upstream", &theirs)];
        for (side, check) in sides {
            found.not_checked.extend(check.is_none().then(|| side.to_owned()));
            found.unknown.extend(unknown(side, check));
        }
        let is_by_kept = [&fork, &theirs, &merge_base].into_iter().flatten().any(|it| it.is_kept);
        Ok(Some((found, is_by_kept)))
    }

    /// The check on a tree, from the cache or in boxes; `None` if the machine could not run it.
    async fn check_tree(
        &self,
        repo: &SealedRepo,
        tree: Tree<'_>,
        kept: Kept,
    ) -> Result<Option<TreeCheck>, Failure> {
        let id = repo.trees_of(std::slice::from_ref(tree.commit)).await.or_machine()?;
        let Some(id) = id.into_iter().flatten().next() else { return Ok(None) };
        let file = self.kept_file(id.as_str());
        if kept == Kept::Counts {
            let known = std::fs::read(&file).ok().and_then(|it| serde_json::from_slice(&it).ok());
            if let Some(known) = known {
                return Ok(Some(TreeCheck { is_kept: true, ..known }));
            }
        }
        let message = format!("running the fork's check on {} in a box, for its tests", tree.what);
        self.ui.phase("check", &message);
        for name in tree.boxes {
            let end = self.check_commit(repo, name, tree.commit).await?;
            if is_machine(&end.summary.ended) {
                continue;
            }
            let (passed, how) = (end.summary.passed(), end.summary.how());
            let how = if end.is_set_up { how } else { format!("set-up: {how}") };
            let check = TreeCheck { passed, how, report: end.report, is_kept: false };
            keep(&file, &serde_json::to_vec(&check).or_machine()?)?;
            forget_old(&file);
            return Ok(Some(check));
        }
        Ok(None)
    }

    /// File for what is kept about a tree under the fork's check of today.
    fn kept_file(&self, name: &str) -> PathBuf {
        let settings = &self.run.record.settings;
        let (setup, check) = (&settings.rules.setup, &settings.rules.check);
        let how = format!("{setup:?} {check:?} {:?} {:?}", settings.backend, settings.image);
        let name = format!("{name}-{}.json", short_sha256(how.as_bytes(), 8));
        self.cache.join("checks").join(fork_key(&self.repo)).join(name)
    }
}

/// Digest of the files of a commit that define how tests are run.
async fn definition_digest(repo: &SealedRepo, commit: &Sha) -> Result<String, Failure> {
    let mut paths = repo.list_paths(commit).await.or_machine()?;
    // Workflows of a forge change often, and the check does not run them.
    paths.retain(|path| is_check_file(path) && !path.starts_with(b".github/"));
    let asked: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
    let entries = repo.entries_at(commit, &asked).await.or_machine()?;
    let ids: Vec<&str> = entries.values().map(|entry| entry.id.as_str()).collect();
    Ok(short_sha256(ids.join(" ").as_bytes(), 8))
}

fn tree_run(check: Option<&TreeCheck>) -> TreeRun<'_> {
    match check {
        Some(TreeCheck { report, passed, .. }) if report.count.is_some() => {
            TreeRun::Ran { report, passed: *passed }
        }
        Some(_) | None => TreeRun::Unknown,
    }
}

/// A sentence about a side whose tests are not known.
fn unknown(side: &str, check: &Option<TreeCheck>) -> Option<String> {
    match check {
        None => Some(format!("the check could not be run on {side}")),
        Some(check) if check.report.count.is_none() => {
            Some(format!("on {side} the check left no reports ({})", check.how))
        }
        Some(check) if check.report.is_cut => {
            Some(format!("the reports of the check on {side} are not whole ({})", check.how))
        }
        Some(_) => None,
    }
}

fn keep(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if let Some(folder) = file.parent() {
        host::file::create_dirs(folder).or_machine()?;
    }
    host::file::write_transient(file, bytes, 0o600).or_machine()
}

/// Removes the oldest reports beside this one. One that stays by mistake does no harm.
fn forget_old(file: &Path) {
    let Some(entries) = file.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return;
    };
    let time = |path: &PathBuf| std::fs::metadata(path).and_then(|it| it.modified()).ok();
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort_by_key(time);
    for old in files.iter().rev().skip(KEPT_TREES) {
        std::fs::remove_file(old).ok();
    }
}
