//! Withdrawal of a publication: the pull request is closed and the branch deleted, in a run of its own. A process that was
//! killed is continued like any other run, and what is gone already counts as done.

use std::time::Duration;

use engine::run::{Phase, Product, create, load_plan};
use forge::{Forge, Thread};
use host::git::{DeleteOutcome, RemoteBranch, SealedRepo, UserEnv, UserRepo};
use model::exit::ForkliftExit;
use model::id::RunId;
use run_store::run_dir::RunDir;
use shell::pull::logged;

use super::earlier::StoredRun;
use super::observe::{find_push_urls, project_of};
use super::pull::{ForgePlan, open_pulls_forge};
use super::record::{BranchEnd, ForkRecord, ForkRunRecord, PullEnd, Withdrawal};
use super::resume::{load_args, save_args};
use super::run::ForkRun;
use crate::commands::ForkliftDirs;
use crate::exit::{Failure, OrExit};
use crate::rules::judge::Verdict;

const LIMIT: Duration = Duration::from_secs(120);

/// Creates the run that takes back what `run` published.
pub(crate) async fn create_withdraw_run(
    places: &ForkliftDirs,
    run: &StoredRun,
    repo: &UserRepo,
) -> Result<RunDir, Failure> {
    let StoredRun { dir, meta } = run;
    let sent = meta.publication.as_ref().filter(|sent| sent.pushed);
    let Some(sent) = sent else {
        let text = format!("{} published nothing to withdraw; see: forklift runs", dir.id());
        return Err(Failure::usage(text));
    };
    let new = RunDir::create(&places.runs, &project_of(&meta.fork.path), host::clock::now());
    let new = new.or_machine()?;
    let fork = meta.fork.pushing_to(find_push_urls(repo, &meta.fork.remotes.origin).await?);
    let settings = meta.settings.clone();
    let mut product = ForkRecord::new(fork, meta.pins.clone(), settings);
    product.withdraws = Some(Withdrawal {
        run: dir.id().clone(),
        branch: sent.branch.clone(),
        commit: sent.commit.clone(),
        pull: sent.pull.clone(),
        pull_end: None,
        branch_end: None,
    });
    let mut record = ForkRunRecord::new(new.id().clone(), product);
    record.phase = Phase::Checked;
    record.verdict = Some(Verdict::Withdrawn { run: dir.id().clone() });
    let plan = load_plan(dir).map_err(ForkRun::failure)?;
    let mut secrets = plan.key.values().unwrap_or_default();
    secrets.extend(ForgePlan::find(&meta.fork.forge, places)?.token);
    save_args(&load_args(dir)?, &new)?;
    create::<ForkRun<'_>>(&new, &record, &plan, &secrets).map_err(ForkRun::failure)?;
    Ok(new)
}

impl ForkRun<'_> {
    /// Closes the pull request, then deletes the branch: a forge closes the pull request of a deleted branch by itself, and
    /// then nothing says why.
    pub(super) async fn withdraw(&mut self, mut withdrawal: Withdrawal) -> Result<(), Failure> {
        self.ui.phase("withdraw", &format!("withdrawing {}", withdrawal.branch));
        if let Some(pull) = &withdrawal.pull {
            withdrawal.pull_end = Some(self.close_pull(pull.number, &withdrawal.run).await?);
        }
        withdrawal.branch_end = Some(self.delete_branch(&withdrawal).await?);
        self.run.record.withdraws = Some(withdrawal);
        Ok(())
    }

    async fn close_pull(&self, number: u64, run: &RunId) -> Result<PullEnd, Failure> {
        let forge = open_pulls_forge(&self.forge).await?;
        let pull = forge.read_pr(number).await.or_exit(ForkliftExit::PublishFailed)?;
        if !pull.is_open() {
            return Ok(PullEnd::WasClosed);
        }
        let log = self.run.operations().or_machine()?;
        let target = format!("#{number}");
        let closing = async {
            say_why(&forge, number, run).await?;
            forge.close_pull(number).await.or_exit(ForkliftExit::PublishFailed)
        };
        logged(&log, "close-pull", &target, closing).await??;
        host::failpoint::hit("pull-closed");
        Ok(PullEnd::Closed)
    }

    /// Deletes the branch at every address; the end at the first one counts, because questions go there.
    async fn delete_branch(&self, withdrawal: &Withdrawal) -> Result<BranchEnd, Failure> {
        let fork = &self.run.record.fork;
        for url in &fork.more_push_urls {
            self.delete_branch_at(url, withdrawal).await?;
        }
        self.delete_branch_at(fork.push_url(), withdrawal).await
    }

    async fn delete_branch_at(
        &self,
        url: &str,
        withdrawal: &Withdrawal,
    ) -> Result<BranchEnd, Failure> {
        let Withdrawal { branch, commit, .. } = withdrawal;
        let at = self
            .repo
            .branch_at_url(url, branch, LIMIT)
            .await
            .or_exit(ForkliftExit::PublishFailed)?;
        match at {
            RemoteBranch::Absent => return Ok(BranchEnd::WasGone),
            RemoteBranch::At(at) if at != *commit => return Ok(BranchEnd::Moved),
            RemoteBranch::At(_) => {}
        }
        let (path, format) = (self.run.dir.repo(), self.repo.object_format());
        let repo = match path.is_dir() {
            true => SealedRepo::open(&path, format),
            false => SealedRepo::init_bare(&path, format).await.or_machine()?,
        };
        let log = self.run.operations().or_machine()?;
        let target = format!("{branch} {commit}");
        let deleting = async {
            let env = UserEnv::from_env();
            let deleted = repo.delete_branch(url, branch, commit, env, LIMIT).await;
            match deleted.or_exit(ForkliftExit::PublishFailed)? {
                DeleteOutcome::Deleted => Ok(()),
                DeleteOutcome::Rejected { reason } => {
                    let text = format!("origin did not delete {branch}: {reason}");
                    Err(Failure::new(ForkliftExit::PublishFailed, text))
                }
            }
        };
        logged(&log, "delete-branch", &target, deleting).await??;
        host::failpoint::hit("branch-deleted");
        Ok(BranchEnd::Deleted)
    }
}

/// Posts the reason, unless a process that was killed has done so.
async fn say_why(forge: &Forge, number: u64, run: &RunId) -> Result<(), Failure> {
    let (thread, text) = (Thread::Pull(number), format!("Withdrawn: `forklift withdraw {run}`."));
    let comments = forge.read_comments(thread).await.or_exit(ForkliftExit::PublishFailed)?;
    if !comments.iter().any(|comment| comment.body == text) {
        forge.post_comment(thread, &text).await.or_exit(ForkliftExit::PublishFailed)?;
    }
    Ok(())
}
