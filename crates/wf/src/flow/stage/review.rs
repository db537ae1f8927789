//! REVIEW: another agent looks at a diff, in a box where it can change nothing.

use std::collections::BTreeMap;

use agent::{SessionRequest, Usage};
use sandbox::spec::MountAccess;

use super::mission::Mission;
use super::runner::{REVIEW_WORKSPACE, StageRunner};
use super::{AgentAnswer, ReviewRequest, StageRunError};
use crate::disk::run_dir::{DIFF, REVIEW_LOG};
use crate::rules::prompt::{ReviewTask, render_review};

impl StageRunner {
    /// Lets an agent review a diff. Every review begins afresh: who remembers having approved something looks less hard.
    pub(crate) async fn review(
        &self,
        request: ReviewRequest<'_>,
    ) -> Result<AgentAnswer, StageRunError> {
        let context = request.context;
        let (provider, resolved) =
            self.resolve_agent(context.profile, &context.profile.review).await?;
        let workspace = self.checkout(context, request.head, REVIEW_WORKSPACE).await?;
        let prompt = render_review(&ReviewTask {
            id: &request.commit.id,
            title: &request.commit.title,
            block: request.block,
            weakened: request.weakened,
        });
        let mission = Mission {
            context,
            provider,
            resolved: &resolved,
            name: "review",
            log: REVIEW_LOG,
            prompt,
            session: SessionRequest::Fresh { id: None },
            used: Usage::default(),
            files: BTreeMap::from([(DIFF.to_owned(), request.patch.to_owned())]),
            workspace,
            access: MountAccess::ReadOnly,
            state: self.blank_state(context)?,
            deadline_secs: context.profile.review_timeout.as_secs(),
        };
        Ok(AgentAnswer { text: self.send(mission).await?.answer()? })
    }
}
