//! The fork's own check, run on the result in a box. The command was read from the fork's main branch before the agent
//! started, and the files that define it are those of the fork and of upstream.

use engine::agent_run::BoxLayout;
use engine::box_command::BoxCommandSummary;
use engine::check::{CheckCommand, CheckEnd, check_commit, check_words, load_report};
use engine::run::{Product, SetupCommand};
use engine::scratch::Scratch;
use engine::workspace::MergeBegun;
use host::git::SealedRepo;
use merge::pattern::PathPatterns;
use merge::trusted_check::{TrustedCheck, TrustedFacts, find_trusted_check};
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::json;

use super::integrate::host_identity;
use super::record::{ChangedCheck, ForkRecord};
use super::resolver::Handover;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};
use crate::rules::check_text::render_check_page;
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
        let (checked, summary, report) = match self.run.record.check.take() {
            // A merge that needed no agent was checked when it was made.
            Some(summary) if self.run.record.merged_alone => {
                (tip, summary, load_report(&self.scratch(MERGE_CHECK)))
            }
            _ => {
                let (checked, end) = self.check_result(&tip, &command.line).await?;
                (checked, end.summary, end.report)
            }
        };
        if summary.passed() {
            self.run.record.ran_tests = self.compare_ran_tests(&checked, &report).await?;
            let accepts = self.run.record.settings.accept_dropped;
            let lost = self.run.record.ran_tests.iter().find(|ran| ran.lost.count > 0);
            if let Some(ran) = lost.filter(|_| !accepts) {
                let tests = ran.lost.tests.clone();
                self.run.record.verdict = Some(Verdict::TestsNotRun { tests });
            }
        } else {
            self.run.record.verdict = Some(Verdict::CheckFailed { how: summary.how() });
        }
        self.run.record.check = Some(summary);
        Ok(())
    }

    /// Checks the agent's result. If it changed files that define the check, the result has to pass with both definitions;
    /// where both sides changed the same lines of it, either side's lines may stand.
    /// Returns the commit whose check decides with its end.
    async fn check_result(&mut self, tip: &Sha, line: &str) -> Result<(Sha, CheckEnd), Failure> {
        let repo = self.run.import_repo(&self.repo);
        self.ui.phase("check", "running the fork's check on the result in a box");
        let Some(trusted) = self.trusted_check(&repo, tip, line).await? else {
            return Ok((tip.clone(), self.check_commit(&repo, CHECKS[0], tip).await?));
        };
        let TrustedCheck { files, allowed, commits, named } = trusted;
        let name = if commits.is_empty() { CHECKS[0] } else { CHANGED_CHECK };
        match (commits.is_empty(), allowed.is_empty()) {
            (false, _) => self
                .ui
                .note("the agent changed files that define the check: it runs with both versions"),
            (true, false) => self
                .ui
                .note("the agent changed files that define the check, and --allow-path allows it"),
            (true, true) => self.ui.note("the agent changed files that the check's files name"),
        }
        let mut end = self.check_commit(&repo, name, tip).await?;
        let mut checked = tip;
        let with_agent_files = end.summary.clone();
        let changed = ChangedCheck { files, allowed, named, with_agent_files };
        self.run.record.check_changed = Some(changed);
        if !end.summary.passed() {
            return Ok((checked.clone(), end));
        }
        for (name, commit) in CHECKS.into_iter().zip(&commits) {
            (checked, end) = (commit, self.check_commit(&repo, name, commit).await?);
            if end.summary.passed() {
                break;
            }
        }
        Ok((checked.clone(), end))
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
        let may_ask = self.run.record.may_ask_agent();
        if end.summary.passed() || !end.agent_can_help() || !may_ask {
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
    pub(super) async fn check_commit(
        &self,
        repo: &SealedRepo,
        name: &'static str,
        commit: &Sha,
    ) -> Result<CheckEnd, Failure> {
        let rules = &self.run.record.settings.rules;
        let Some(check) = &rules.check else {
            return Err(Failure::new(ForkliftExit::Internal, "a check without a command"));
        };
        let setup = rules.setup.as_ref().map(|setup| SetupCommand {
            line: setup.line.clone(),
            timeout_secs: setup.timeout_secs,
        });
        let (line, timeout_secs) = (check.line.clone(), check.timeout_secs);
        let command = CheckCommand { setup, line, timeout_secs };
        let run_line = async |layout: BoxLayout, line: &str| self.run_line(layout, line).await;
        check_commit::<Self>(&self.scratch(name), repo, commit, &command, run_line).await
    }

    /// Finds the files that define the check and that the agent changed, beside what git merges by itself.
    async fn trusted_check(
        &self,
        repo: &SealedRepo,
        tip: &Sha,
        line: &str,
    ) -> Result<Option<TrustedCheck>, Failure> {
        let pins = &self.run.record.pins;
        let merged = repo.merge_tree(&pins.base, &pins.upstream).await.or_machine()?;
        // What FORK.md allows may be published; only a person's own word lets the agent judge itself.
        let allowed = PathPatterns::new(&self.run.record.settings.allow_paths);
        let facts = TrustedFacts {
            merged: &merged,
            line,
            allowed: &allowed,
            identity: &host_identity(),
            when: self.run.record.started_at,
            message: "the check's files as the fork and upstream have them\n",
        };
        find_trusted_check(repo, tip, facts).await.or_machine()
    }

    /// Scratch folders of this run.
    pub(super) fn scratch(&self, prefix: &'static str) -> Scratch<'_, ForkRecord> {
        Scratch { run: &self.run, prefix, branch: &self.run.record.fork.branch }
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
