//! Drafting a plan: an agent breaks a story down, in a box where it can change nothing.

use std::collections::BTreeMap;

use agent::{SessionWish, Usage};
use model::id::Sha;
use sandbox::spec::Access;

use super::mission::Mission;
use super::workshop::{REVIEW_WORKSPACE, Workshop};
use super::{AgentEnd, Scene, StageError};
use crate::rules::prompt::render_breakdown;

/// The log of a draft, in its run's directory.
const PLAN_LOG: &str = "plan.log";

impl Workshop {
    /// Lets an agent draft micro-commits for a story.
    pub(crate) async fn draft(
        &self,
        scene: Scene<'_>,
        head: &Sha,
        plan: &str,
        story: &str,
    ) -> Result<AgentEnd, StageError> {
        let profile = scene.profile;
        let (provider, resolved) = self.resolve_agent(profile, &profile.plan).await?;
        let workspace = self.lay_out(scene, head, REVIEW_WORKSPACE).await?;
        let title = &scene.workstream.meta.title;
        let mission = Mission {
            scene,
            provider,
            resolved: &resolved,
            name: "plan",
            log: PLAN_LOG,
            prompt: render_breakdown(title, plan, story, profile.max_files, profile.max_lines),
            session: SessionWish::Fresh { id: None },
            used: Usage::default(),
            files: BTreeMap::new(),
            workspace,
            access: Access::ReadOnly,
            state: self.blank_state(scene)?,
            deadline_secs: profile.breakdown_timeout.as_secs(),
        };
        Ok(AgentEnd { text: self.send(mission).await?.answer()? })
    }
}
