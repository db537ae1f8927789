//! The check of a result before it is published: in a box, on a fresh copy, with the files that define it as the base branch
//! has them. A failing one goes back to the agent as a prompt for the next run.

use engine::agent_run::BoxLayout;
use engine::check::{CheckCommand, CheckEnd, check_commit, is_machine};
use engine::run::{Product, SetupCommand};
use engine::scratch::Scratch;
use engine::workspace::AGENT_IDENTITY;
use host::git::{GitIdentity, MergedTree, SealedRepo};
use merge::pattern::PathPatterns;
use merge::trusted_check::{TrustedCheck, TrustedFacts, find_trusted_check};
use model::id::Sha;

use super::run::BottleRun;
use super::run_record::{BottleRunPart, BottleRunRecord};
use crate::exit::{Failure, OrGeneral};
use crate::rules::check_text::{CheckRecord, render_check_prompt};
use crate::rules::judge::Verdict;
use crate::rules::repo_file::{CheckRules, REPO_FILE, RepoFile, choose_check, parse_repo_file};

/// Boxes of the check that decides, and of the same with the agent's version of the files that define it.
const CHECK: &str = "check";
const CHANGED_CHECK: &str = "check-changed";

const FILE_CAP: usize = 64 << 10;

impl BottleRun<'_> {
    /// Checks a result that is otherwise good. A failing one is not published, until the agent has had its rounds.
    pub(super) async fn run_check(&mut self) -> Result<(), Failure> {
        let (Some(Verdict::Publish), Some(tip)) = (&self.run.record.verdict, self.run.record.tip())
        else {
            return Ok(());
        };
        let repo = self.run.import_repo(&self.source.repo);
        let file = match self.read_repo_file(&repo).await? {
            Ok(file) => file,
            Err(fault) => {
                let reasons = vec![format!("{REPO_FILE} of the base branch: {fault}")];
                self.run.record.verdict = Some(Verdict::Refused { reasons });
                return Ok(());
            }
        };
        let Some(rules) = choose_check(&self.run.record.manifest, &file) else { return Ok(()) };
        self.context.ui.phase("check", "running the check on the result in a box");
        let (end, record) = self.check_result(&repo, &tip, &rules).await?;
        if !record.summary.passed() {
            self.run.record.verdict = Some(self.failed_verdict(&end, &record));
        }
        self.run.record.check = Some(record);
        Ok(())
    }

    fn failed_verdict(&self, end: &CheckEnd, record: &CheckRecord) -> Verdict {
        let how = record.summary.how();
        let is_last = record.rounds_left == 0;
        match end.is_set_up {
            _ if is_machine(&end.summary.ended) => {
                Verdict::Infra { reason: format!("the check did not run: {how}") }
            }
            false => Verdict::SetupFailed {
                how: format!(
                    "in the fresh copy for the check, {how}: {}",
                    record.summary.last_line()
                ),
            },
            true if is_last && self.access.is_some() => Verdict::Draft { how },
            true => Verdict::CheckFailed { how },
        }
    }

    /// Runs the check. If the agent changed files that define it, the result has to pass with both definitions.
    async fn check_result(
        &self,
        repo: &SealedRepo,
        tip: &Sha,
        rules: &CheckRules,
    ) -> Result<(CheckEnd, CheckRecord), Failure> {
        let trusted = self.trusted_files(repo, tip, &rules.line).await?.unwrap_or_default();
        // What the check's files only name is mostly what the agent was asked to change.
        let TrustedCheck { files: replaced, allowed: released, commits, named: _ } = trusted;
        let mut with_agent_files = None;
        let mut end = None;
        if !commits.is_empty() {
            let note = "the agent changed files that define the check: it runs with both versions";
            self.context.ui.note(note);
            let own = self.check_in_box(CHANGED_CHECK, repo, tip, rules).await?;
            with_agent_files = Some(own.summary.clone());
            end = (!own.summary.passed()).then_some(own);
        }
        let end = match end {
            Some(failed) => failed,
            None => {
                let commit = commits.first().unwrap_or(tip);
                self.check_in_box(CHECK, repo, commit, rules).await?
            }
        };
        let summary = end.summary.clone();
        let rounds_left = rules.rounds.saturating_sub(self.run.record.check_round);
        Ok((end, CheckRecord { summary, replaced, released, with_agent_files, rounds_left }))
    }

    async fn check_in_box(
        &self,
        name: &'static str,
        repo: &SealedRepo,
        commit: &Sha,
        rules: &CheckRules,
    ) -> Result<CheckEnd, Failure> {
        let bottle = &self.run.record.bottle;
        let setup = bottle
            .setup_line()
            .map(|line| SetupCommand { line, timeout_secs: bottle.setup_secs() });
        let command =
            CheckCommand { setup, line: rules.line.clone(), timeout_secs: rules.timeout_secs };
        let branch = &self.run.record.pins.branch;
        let scratch: Scratch<'_, BottleRunPart> = Scratch { run: &self.run, prefix: name, branch };
        let run_line = async |layout: BoxLayout, line: &str| {
            self.run.run_line(layout, line).await.map_err(Self::failure)
        };
        check_commit::<Self>(&scratch, repo, commit, &command, run_line).await
    }

    /// Files that define the check and that the agent changed, as the base branch had them where the work parted from it.
    async fn trusted_files(
        &self,
        repo: &SealedRepo,
        tip: &Sha,
        line: &str,
    ) -> Result<Option<TrustedCheck>, Failure> {
        let pins = &self.run.record.pins;
        let parted = repo.merge_base(tip, &pins.base).await.or_general()?;
        let tree = parted.unwrap_or_else(|| pins.base.clone());
        let merged = MergedTree { tree, is_clean: true, stages: Vec::new(), notes: Vec::new() };
        let identity =
            GitIdentity { name: AGENT_IDENTITY.0.to_owned(), email: AGENT_IDENTITY.1.to_owned() };
        let facts = TrustedFacts {
            merged: &merged,
            line,
            allowed: &PathPatterns::new(&self.run.record.manifest.allow_paths),
            identity: &identity,
            when: self.run.record.started_at,
            message: "the check's files as the base branch has them\n",
        };
        find_trusted_check(repo, tip, facts).await.or_general()
    }

    /// The repository's own settings, from the base branch; the inner error is a fault in the file.
    async fn read_repo_file(&self, repo: &SealedRepo) -> Result<Result<RepoFile, String>, Failure> {
        let name = REPO_FILE.as_bytes();
        let base = &self.run.record.pins.base;
        let mut entries = repo.entries_at(base, &[name]).await.or_general()?;
        let Some(entry) = entries.remove(name) else { return Ok(Ok(RepoFile::default())) };
        let blobs = repo.read_blobs(&[entry.id], FILE_CAP).await.or_general()?;
        let Some(blob) = blobs.into_iter().flatten().next() else {
            return Ok(Err("it is not a file, or too large".to_owned()));
        };
        let text = String::from_utf8_lossy(&blob.bytes).into_owned();
        Ok(parse_repo_file(&text).map_err(|fault| fault.to_string()))
    }
}

/// Prompt of the run that repairs what the check found; `None` if the last run needs no repair.
pub(crate) fn repair_prompt(meta: &BottleRunRecord) -> Option<String> {
    let (Some(Verdict::CheckFailed { .. }), Some(check)) = (&meta.verdict, &meta.check) else {
        return None;
    };
    (check.rounds_left > 0).then(|| render_check_prompt(check))
}
