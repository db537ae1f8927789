//! A plan as a comment on the issue, posted once and edited when the plan changes.

use forge::{Comment, ForgeError, Thread};
use run_store::operation_log::{Operation, OperationOutcome};

use super::access::ForgeAccess;
use super::bottle::PlanStage;
use super::context::TransientFailure;
use super::run::BottleRun;
use crate::exit::{Failure, OrGeneral};
use crate::rules::plan_text::{PLAN_MARK, render_plan};

impl BottleRun<'_> {
    /// Writes the agent's plan to the issue. A forge that is down is waited for, as with a pull request.
    pub(super) async fn propose_plan(&mut self) -> Result<(), Failure> {
        let (Some(access), Some(done)) = (&self.access, &self.run.record.done) else {
            return Ok(());
        };
        let plan = self.run.redactor.redact(&done.summary).into_owned();
        let text = render_plan(access.env.issue, &plan);
        let log = self.run.operations().or_general()?;
        let target = format!("#{}", access.env.issue);
        let note = |outcome| log.append(&Operation::new("plan", &target, outcome)).or_general();
        self.context.rows.check_lease()?;
        note(OperationOutcome::Intended)?;
        match write_plan(access, self.record.plan.as_ref(), &text).await {
            Ok(comment) => {
                note(OperationOutcome::Done)?;
                drop(log);
                self.record.plan = Some(PlanStage::Proposed { comment });
                self.bottle.save(&self.record)
            }
            Err(failure) => {
                note(OperationOutcome::Failed)?;
                match self.context.transient {
                    TransientFailure::Wait if failure.is_transient() => Err(failure),
                    TransientFailure::Wait | TransientFailure::Close => {
                        self.context.ui.warn(&format!("the plan could not be posted: {failure}"));
                        Ok(())
                    }
                }
            }
        }
    }
}

/// Edits the comment of an earlier plan, or posts one. A comment that a killed process posted is found by its mark.
async fn write_plan(
    access: &ForgeAccess,
    stage: Option<&PlanStage>,
    text: &str,
) -> Result<u64, Failure> {
    let forge = access.open().await?;
    let thread = Thread::Issue(access.env.issue);
    let known = match stage {
        Some(PlanStage::Proposed { comment }) => Some(*comment),
        _ => {
            let bot = match &access.bot_login {
                Some(login) => Some(login.clone()),
                None => forge.whoami().await.or_general()?.login,
            };
            let is_ours = |comment: &Comment| {
                comment.body.starts_with(PLAN_MARK)
                    && bot.as_ref().is_none_or(|bot| bot.eq_ignore_ascii_case(&comment.author))
            };
            let comments = forge.read_plain_comments(thread).await.or_general()?;
            comments.iter().find(|comment| is_ours(comment)).map(|comment| comment.id)
        }
    };
    if let Some(id) = known {
        match forge.edit_comment(thread, id, text).await {
            Ok(()) => return Ok(id),
            // A person deleted it; the plan needs a comment all the same.
            Err(ForgeError::NotFound { .. }) => {}
            Err(error) => return Err(error).or_general(),
        }
    }
    Ok(forge.post_comment(thread, text).await.or_general()?.id)
}
