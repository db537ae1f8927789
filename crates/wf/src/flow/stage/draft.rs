//! Drafting a plan: an agent breaks a story down, in a box where it can change nothing.

use std::collections::BTreeMap;

use agent::{SessionRequest, Usage};
use model::id::Sha;
use sandbox::spec::MountAccess;

use super::mission::Mission;
use super::runner::{REVIEW_WORKSPACE, StageRunner};
use super::{AgentAnswer, StageContext, StageRunError};
use crate::rules::prompt::render_breakdown;

/// The log of a draft, in its run's directory.
const PLAN_LOG: &str = "plan.log";

impl StageRunner {
    /// Lets an agent draft micro-commits for a story.
    pub(crate) async fn draft(
        &self,
        context: StageContext<'_>,
        head: &Sha,
        plan: &str,
        story: &str,
    ) -> Result<AgentAnswer, StageRunError> {
        let profile = context.profile;
        let (provider, resolved) = self.resolve_agent(profile, &profile.plan).await?;
        let workspace = self.checkout(context, head, REVIEW_WORKSPACE).await?;
        let title = &context.workstream.meta.title;
        let mission = Mission {
            context,
            provider,
            resolved: &resolved,
            name: "plan",
            log: PLAN_LOG,
            prompt: render_breakdown(title, plan, story, profile.max_files, profile.max_lines),
            session: SessionRequest::Fresh { id: None },
            used: Usage::default(),
            files: BTreeMap::new(),
            workspace,
            access: MountAccess::ReadOnly,
            state: self.blank_state(context)?,
            deadline_secs: profile.breakdown_timeout.as_secs(),
        };
        Ok(AgentAnswer { text: self.send(mission).await?.answer()? })
    }
}
