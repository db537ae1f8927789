//! Gates in front of a merge: conditions, conflicts, the gate test and the review of the whole branch, in this order. What
//! fails becomes a fix micro-commit in the plan.

use host::git::WorktreeRepo;
use merge::resolver::decide::TrustThreshold;
use model::id::Sha;
use serde_json::json;

use super::App;
use super::merge::MergeArgs;
use super::review::review_before_merge;
use super::update::show_update;
use crate::disk::project_dirs::PROFILE_ENV;
use crate::disk::queue::{QueueEntry, load_queue};
use crate::disk::{ProjectDirs, StateFile, Workstream, read_optional};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::fix::{plan_fixes_locked, render_fixes};
use crate::flow::merge::{check_ready, merges_to_head};
use crate::flow::setup_host::WorktreeSetup;
use crate::flow::stage::{SetupUse, StageContext, StageRunError, run_alone};
use crate::flow::suite::{run_build, run_suite};
use crate::flow::update::{OpenConflicts, UpdateOptions, update};
use crate::rules::fix::fix_of_gate;
use crate::rules::manifest::SuiteStatus;
use crate::rules::profile::{Profile, Suite, SuiteRunner};
use crate::rules::run_id::RunTopic;
use crate::rules::uat::{Uat, UatStatus};

/// What every gate needs.
#[derive(Clone, Copy)]
pub(super) struct Gates<'a> {
    pub(super) app: &'a App,
    pub(super) dirs: &'a ProjectDirs,
    pub(super) product: &'a WorktreeRepo,
    pub(super) profile: &'a Profile,
    pub(super) args: &'a MergeArgs,
}

/// End of the gates.
#[derive(Debug)]
pub(super) enum GateEnd {
    /// This commit was judged, and contains the base branch.
    Passed(Sha),
    /// The merge ends with this status; what it means was printed.
    Stopped(WfExit),
}

impl Gates<'_> {
    /// Passes all gates.
    pub(super) async fn pass(&self, workstream: &mut Workstream) -> WfResult<GateEnd> {
        check_ready(self.dirs, self.product, workstream).await?;
        self.warn_changed_since_acceptance(workstream).await?;
        self.include_base(workstream).await?;
        let branch = &workstream.meta.branch;
        let head = self.product.branch_tip(branch).await.or_exit(WfExit::General)?;
        let head = head.ok_or_else(|| {
            Failure::new(WfExit::Implement, format!("{branch} does not exist any more"))
        })?;
        let exit = self.judge(workstream).await?;
        Ok(if exit == WfExit::Success { GateEnd::Passed(head) } else { GateEnd::Stopped(exit) })
    }

    /// Names commits that came after the newest acceptance test was passed: nobody accepted them.
    async fn warn_changed_since_acceptance(&self, workstream: &Workstream) -> WfResult<()> {
        let meta = &workstream.meta;
        let passed = load_queue::<Uat>(&workstream.dir, UatStatus::Passed)?;
        let newest = passed.iter().rev().find_map(|entry| match entry {
            QueueEntry::Good(uat) => Some((uat, Sha::parse(uat.commit.as_deref()?).ok()?)),
            QueueEntry::Bad { .. } => None,
        });
        let Some((uat, accepted)) = newest else { return Ok(()) };
        let head = self.product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
        let Some(head) = head.filter(|head| *head != accepted) else { return Ok(()) };
        let user = self.product.user();
        let is_known = user.resolve_commit(accepted.as_str()).await.or_exit(WfExit::General)?;
        let what = match is_known {
            Some(_) => {
                let count = user.count_commits(&head, &accepted).await.or_exit(WfExit::General)?;
                let ending = if count == 1 { "" } else { "s" };
                format!("{count} commit{ending} came after it; see: git log {accepted}..{head}")
            }
            None => format!("{accepted} is gone"),
        };
        self.app.ui.warn(&format!(
            "{} is not what {} accepted ({}): {what}",
            meta.branch,
            uat.id,
            accepted.short()
        ));
        Ok(())
    }

    async fn judge(&self, workstream: &mut Workstream) -> Outcome {
        let exit = self.test(workstream).await?;
        if exit != WfExit::Success || !self.profile.has_branch_review {
            return Ok(exit);
        }
        if self.args.unreviewed {
            self.app.ui.warn("the whole branch was not reviewed");
            return Ok(WfExit::Success);
        }
        review_before_merge(self.app, self.dirs, self.product, workstream, self.profile).await
    }

    /// Merges the base branch into the workstream if it has other commits: the gates that follow judge what the base branch
    /// will be, not the workstream alone.
    async fn include_base(&self, workstream: &mut Workstream) -> WfResult<()> {
        let meta = &workstream.meta;
        let head = self.product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
        let base = self.product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
        // A branch that is gone is reported by the merge itself.
        let (Some(head), Some(base)) = (head, base) else { return Ok(()) };
        if merges_to_head(self.product, &base, &head).await? {
            return Ok(());
        }
        let open = match self.args.no_agent {
            true => OpenConflicts::Refuse,
            false => OpenConflicts::Agent,
        };
        let (ui, trust) = (&self.app.ui, TrustThreshold::DEFAULT);
        let options = UpdateOptions { ui, profile: self.profile, trust, open };
        let updated = update(self.dirs, self.product, workstream, &options).await?;
        show_update(self.app, workstream, &updated);
        Ok(())
    }

    /// Runs the gate test on the worktree's commit.
    async fn test(&self, workstream: &mut Workstream) -> Outcome {
        let Self { app, dirs, product, profile, .. } = *self;
        let suite = gate_suite(profile);
        let topic = RunTopic::Merge;
        // The set-up may depend on more files than are known, so that of the worktree does not serve either.
        WorktreeSetup::remove(dirs, &workstream.meta.id)?;
        let stage = async |stage: StageContext<'_>| {
            let stage = StageContext { setup: SetupUse::Anew, ..stage };
            match run_build(stage).await? {
                Some(failed) => Ok(failed),
                None => run_suite(stage, &suite).await,
            }
        };
        let (result, run_dir) =
            run_alone(&app.ui, dirs, product, workstream, profile, topic, stage).await?;
        let result = result.map_err(|error| match error {
            StageRunError::Machine(message) => Failure::new(WfExit::General, message),
            error => Failure::new(WfExit::Test, error.to_string()),
        })?;
        let id = workstream.meta.id.clone();
        match result.status {
            SuiteStatus::Passed => {
                // A suite that serves as the gate leaves its artifacts under its own name; its runs said what they saw.
                if profile.merge_gate_target.is_some() && result.is_passed_without_a_test() {
                    app.ui.warn("the gate test passed, and no test was seen in its output");
                }
                Ok(WfExit::Success)
            }
            SuiteStatus::Skipped => {
                let message = format!("no gate test ran: {}", result.reason.unwrap_or_default());
                if self.args.untested {
                    app.ui.warn(&message);
                    return Ok(WfExit::Success);
                }
                let profile = dirs.dir.join(PROFILE_ENV);
                let remedy = format!(
                    "name one in {} (MAKE_TARGET_MERGE_GATE_TEST, MAKE_TARGET_UNIT or TEST_CMD_UNIT), or merge without: wf merge {id} --untested",
                    profile.display()
                );
                Err(Failure::new(WfExit::Test, format!("{message}; {remedy}")))
            }
            SuiteStatus::Failed => {
                let path = run_dir.join("tests").join(&result.name).join("output.log");
                let log = read_optional(&path)?.unwrap_or_default();
                let (gate, line) = match result.name == suite.name {
                    true => ("the gate test", suite.how.line().unwrap_or_default()),
                    false => ("the build", profile.setup.build.join(" ")),
                };
                let fix = fix_of_gate(gate, &line, &String::from_utf8_lossy(&log));
                let ids = plan_fixes_locked(dirs, workstream, &[fix], gate).await?;
                let message = format!("{gate} failed; see {}", path.display());
                app.ui.line(&format!("{id}: {message}"));
                app.ui.line(&format!("  {}", render_fixes(workstream, &ids)));
                app.ui.document(&json!({
                    "workstream": id, "error": message, "planned": ids, "status": workstream.meta.status,
                }));
                Ok(WfExit::Test)
            }
        }
    }
}

fn gate_suite(profile: &Profile) -> Suite {
    let unit = profile.suites.first().map(|suite| suite.how.clone());
    let how = match (&profile.merge_gate_target, &profile.makefile) {
        (Some(target), Some(_)) => SuiteRunner::Make(target.clone()),
        _ => unit.unwrap_or(SuiteRunner::Skip("no suite configured")),
    };
    Suite { name: "merge-gate", how }
}
