//! The fork's own check, run on the result in a box. The command was read from the fork's main branch before the agent
//! started, and the files that define it are those of the fork and of upstream.

use engine::agent_run::BoxLayout;
use engine::box_command::BoxCommandSummary;
use engine::run::Product;
use engine::test_count::{TestCount, parse_junit};
use engine::workspace::MergeBegun;
use host::git::SealedRepo;
use merge::path::TreePath;
use model::exit::ForkliftExit;
use model::id::Sha;
use model::verdict::Ended;
use serde_json::json;

use super::record::ChangedCheck;
use super::resolver::Handover;
use super::run::ForkRun;
use super::scratch::Scratch;
use crate::exit::{Failure, OrExit};
use crate::rules::check_text::{check_words, render_check_page};
use crate::rules::judge::Verdict;
use crate::rules::strategy::Strategy;

/// Page with the output of a check that fails on a merge, in the harness state.
const CHECK_FILE: &str = "check.md";

/// Boxes of the check on a merge that needed no agent.
const MERGE_CHECK: &str = "merge-check";

/// Boxes of the check that decides, and of the same with upstream's hunks where both sides changed its definition.
const CHECKS: [&str; 2] = ["check", "check-upstream"];

/// Boxes of the check with the agent's version of the files that define it.
const CHANGED_CHECK: &str = "check-changed";

/// Largest test report that is read.
const REPORT_CAP: usize = 8 << 20;

/// End of a check, or of the set-up before it.
struct CheckEnd {
    summary: BoxCommandSummary,
    is_set_up: bool,
}

impl CheckEnd {
    /// True if the result is at fault, and not the machine or the fork's set-up.
    fn agent_can_help(&self) -> bool {
        let is_machine =
            matches!(self.summary.ended, Ended::Infra { .. } | Ended::Stopped | Ended::Frozen);
        self.is_set_up && !is_machine
    }
}

impl ForkRun<'_> {
    /// Runs the fork's check on a result that is otherwise good, in a fresh copy of it where no agent has been.
    pub(super) async fn run_check(&mut self) -> Result<(), Failure> {
        let (Some(Verdict::Publish), Some(tip), Some(command)) = (
            &self.run.record.verdict,
            self.run.record.tip(),
            self.run.record.settings.rules.check.clone(),
        ) else {
            return Ok(());
        };
        let summary = match self.run.record.check.take() {
            // A merge that needed no agent was checked when it was made.
            Some(summary) if self.run.record.merged_alone => summary,
            _ => self.check_result(&tip, &command.line).await?,
        };
        if !summary.passed() {
            self.run.record.verdict = Some(Verdict::CheckFailed { how: summary.how() });
        }
        self.run.record.check = Some(summary);
        Ok(())
    }

    /// Checks the agent's result. If it changed files that define the check, both definitions are run and the trusted one
    /// decides; where both sides changed the same lines of it, either side's lines may stand.
    async fn check_result(&mut self, tip: &Sha, line: &str) -> Result<BoxCommandSummary, Failure> {
        let repo = self.run.import_repo(&self.repo);
        self.ui.phase("check", "running the fork's check on the result in a box");
        let Some(trusted) = self.trusted_check(&repo, tip, line).await? else {
            return Ok(self.check_commit(&repo, CHECKS[0], tip).await?.summary);
        };
        let (files, allowed) = (trusted.files, trusted.allowed);
        if trusted.commits.is_empty() {
            self.ui
                .note("the agent changed files that define the check, and --allow-path allows it");
            let summary = self.check_commit(&repo, CHECKS[0], tip).await?.summary;
            let with_agent_files = summary.clone();
            self.run.record.check_changed = Some(ChangedCheck { files, allowed, with_agent_files });
            return Ok(summary);
        }
        self.ui.note("the agent changed files that define the check: it runs with both versions");
        let with_agent_files = self.check_commit(&repo, CHANGED_CHECK, tip).await?.summary;
        self.run.record.check_changed = Some(ChangedCheck { files, allowed, with_agent_files });
        let mut ended = None;
        for (name, commit) in CHECKS.into_iter().zip(&trusted.commits) {
            let summary = self.check_commit(&repo, name, commit).await?.summary;
            let passed = summary.passed();
            ended = Some(summary);
            if passed {
                break;
            }
        }
        ended.ok_or_else(|| Failure::new(ForkliftExit::Internal, "a trusted check has no commit"))
    }

    /// Runs the check on a merge that needed no agent. If it fails, the agent gets that merge and the output of the check.
    pub(super) async fn check_merge(
        &mut self,
        commit: &Sha,
        message: &str,
    ) -> Result<Option<Handover>, Failure> {
        if self.run.record.settings.rules.check.is_none() || self.judge().await? != Verdict::Publish
        {
            return Ok(None);
        }
        self.ui.phase("check", "running the fork's check on the merge in a box");
        let repo = self.run.import_repo(&self.repo);
        let end = self.check_commit(&repo, MERGE_CHECK, commit).await?;
        if end.summary.passed() || !end.agent_can_help() {
            self.run.record.check = Some(end.summary);
            return Ok(None);
        }
        self.ui.note(&format!("the check {}: the agent looks at it", check_words(&end.summary)));
        let strategy = self.run.record.settings.strategy;
        let begun = (strategy == Strategy::Merge).then(|| MergeBegun {
            repo: self.run.dir.repo(),
            prepared: commit.clone(),
            theirs: self.run.record.pins.upstream.clone(),
            stages: Vec::new(),
            message: message.to_owned(),
        });
        let text = render_check_page(&end.summary, strategy);
        let record = &mut self.run.record;
        record.check_on_merge = Some(end.summary);
        record.merged_alone = false;
        (record.evidence, record.contract, record.tests) = (None, None, None);
        Ok(Some(Handover { begun, file: CHECK_FILE, text }))
    }

    /// Runs set-up and check on a commit, in boxes of this name.
    async fn check_commit(
        &self,
        repo: &SealedRepo,
        name: &'static str,
        commit: &Sha,
    ) -> Result<CheckEnd, Failure> {
        let rules = &self.run.record.settings.rules;
        let Some(command) = &rules.check else {
            return Err(Failure::new(ForkliftExit::Internal, "a check without a command"));
        };
        let scratch = Scratch { run: self, prefix: name };
        let setup_name = format!("{name}-setup");
        // A box of an earlier forklift that was killed may work in the folders; then they stay.
        if ![name, setup_name.as_str()]
            .iter()
            .any(|name| self.run.dir.path().join("boxes").join(name).exists())
        {
            scratch.check_out(repo, commit).await?;
        }
        // The agent may have changed what the set-up made in its workspace, so the fresh copy gets its own.
        if let Some(setup) = &rules.setup {
            let layout = scratch.layout(&setup_name, setup.timeout_secs)?;
            let summary = self.run_line(layout, &setup.line).await?;
            if !summary.passed() {
                scratch.remove()?;
                return Ok(CheckEnd { summary, is_set_up: false });
            }
        }
        let layout = scratch.layout(name, command.timeout_secs)?;
        let mut summary = self.run_line(layout, &command.line).await?;
        let reported = self.reported_tests(repo, commit, &scratch).await?;
        // Most runners print what they report.
        let more = |reported: &TestCount| summary.tests.is_none_or(|it| it.ran() < reported.ran());
        summary.tests = reported.filter(more).or(summary.tests);
        scratch.remove()?;
        Ok(CheckEnd { summary, is_set_up: true })
    }

    /// Tests in the JUnit files that the check left. Those of the repository itself report nothing.
    async fn reported_tests(
        &self,
        repo: &SealedRepo,
        commit: &Sha,
        scratch: &Scratch<'_>,
    ) -> Result<Option<TestCount>, Failure> {
        let workspace = scratch.folder("workspace");
        let files = host::safe_read::find_beneath(&workspace, ".xml");
        let paths: Vec<&[u8]> = files.iter().map(String::as_bytes).collect();
        let tracked = repo.entries_at(commit, &paths).await.or_machine()?;
        let counts =
            files.iter().filter(|path| !tracked.contains_key(path.as_bytes())).filter_map(|path| {
                match host::safe_read::read_beneath(&workspace, path, REPORT_CAP) {
                    Ok(Some(file)) if !file.truncated => parse_junit(&file.bytes),
                    Ok(_) | Err(_) => None,
                }
            });
        Ok(counts.reduce(TestCount::with))
    }

    pub(super) async fn run_line(
        &self,
        layout: BoxLayout,
        line: &str,
    ) -> Result<BoxCommandSummary, Failure> {
        let name = layout.name.clone();
        self.refuse_if_stopped()?;
        let summary = self.run.run_line(layout, line).await.map_err(Self::failure)?;
        // A command that a signal ended says nothing about the result.
        self.refuse_if_stopped()?;
        self.ui.event("box_command", &json!({"name": name.as_str(), "ended": summary.ended}));
        Ok(summary)
    }
}

/// Files that define a check, as the fork and upstream have them, in place of the agent's.
#[derive(Default)]
pub(super) struct TrustedCheck {
    pub(super) files: Vec<TreePath>,
    /// Files that a person allowed, so that the agent's version of them stays.
    pub(super) allowed: Vec<TreePath>,
    /// The result with these files: with the fork's lines where both sides changed the same ones, then with upstream's. None
    /// if all files that the agent changed are allowed.
    pub(super) commits: Vec<Sha>,
}
