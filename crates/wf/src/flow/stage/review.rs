//! REVIEW: another agent looks at a diff, in a box where it can change nothing (5.9).

use std::collections::BTreeMap;

use agent::{SessionWish, Usage};
use sandbox::spec::Access;

use super::mission::Mission;
use super::workshop::{REVIEW_WORKSPACE, Workshop};
use super::{AgentEnd, ReviewOrder, StageError};
use crate::disk::run_dir::{DIFF, REVIEW_LOG};
use crate::rules::prompt::{Inspection, render_review};

impl Workshop {
    /// Lets an agent review a diff. Every review begins afresh: who remembers having approved something looks less hard.
    pub(crate) async fn review(&self, order: ReviewOrder<'_>) -> Result<AgentEnd, StageError> {
        let scene = order.scene;
        let (provider, resolved) = self.resolve_agent(scene.profile, &scene.profile.review).await?;
        let workspace = self.lay_out(scene, order.head, REVIEW_WORKSPACE).await?;
        let prompt = render_review(&Inspection {
            id: &order.commit.id,
            title: &order.commit.title,
            block: order.block,
            weakened: order.weakened,
        });
        let mission = Mission {
            scene,
            provider,
            resolved: &resolved,
            name: "review",
            log: REVIEW_LOG,
            prompt,
            session: SessionWish::Fresh { id: None },
            used: Usage::default(),
            files: BTreeMap::from([(DIFF.to_owned(), order.patch.to_owned())]),
            workspace,
            access: Access::ReadOnly,
            state: self.blank_state(scene)?,
            deadline_secs: scene.profile.review_timeout.as_secs(),
        };
        Ok(AgentEnd { text: self.send(mission).await?.answer()? })
    }
}
