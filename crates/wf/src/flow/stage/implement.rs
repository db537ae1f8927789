//! IMPLEMENT: an agent works on a copy of the branch (5.7).

use std::collections::BTreeMap;

use agent::Provider;
use engine::agent_plan::ResolvedAgent;
use engine::agent_result::AgentClaim;
use sandbox::spec::Access;

use super::mission::{Mission, Told};
use super::session::Memory;
use super::workshop::{WORKSPACE, Workshop};
use super::{AgentEnd, ImplementOrder, StageError};
use crate::disk::run_dir::IMPLEMENT_LOG;
use crate::rules::profile::{Profile, SuiteRunner};
use crate::rules::prompt::{Assignment, render_implement};

impl Workshop {
    /// Lets an agent implement a micro-commit in a copy of the workstream's branch.
    pub(crate) async fn implement(
        &self,
        order: ImplementOrder<'_>,
    ) -> Result<AgentEnd, StageError> {
        if !order.scene.profile.secrets_implement.is_empty() {
            return Err(StageError::Config(
                "SECRETS_IMPLEMENT cannot be granted: nothing secret goes into a box".to_owned(),
            ));
        }
        let (provider, resolved) =
            self.resolve_agent(order.scene.profile, &order.scene.profile.implement).await?;
        self.lay_out(order.scene, order.head, WORKSPACE).await?;
        let id = &order.scene.workstream.meta.id;
        let mut memory = Memory::open(&self.site.agents_dir(id), provider)?;
        let first = self.send(mission(order, provider, &resolved, &memory, "implement")).await?;
        let told = if memory.is_known() && lost_its_thread(&first) {
            self.ui.note("the conversation could not be gone on with; beginning a new one");
            memory.forget();
            self.send(mission(order, provider, &resolved, &memory, "implement-anew")).await?
        } else {
            first
        };
        memory.keep(&told.report)?;
        Ok(AgentEnd { text: told.answer()? })
    }
}

/// An agent that failed before it did anything may not have found its conversation.
fn lost_its_thread(told: &Told) -> bool {
    matches!(told.claim, AgentClaim::Failed { .. }) && told.report.tool_calls.is_empty()
}

fn mission<'a>(
    order: ImplementOrder<'a>,
    provider: Provider,
    resolved: &'a ResolvedAgent,
    memory: &Memory,
    name: &'a str,
) -> Mission<'a> {
    let scene = order.scene;
    Mission {
        scene,
        provider,
        resolved,
        name,
        log: IMPLEMENT_LOG,
        prompt: prompt(order),
        session: memory.wish(),
        used: memory.used(),
        files: BTreeMap::new(),
        workspace: scene.run_dir.join(WORKSPACE),
        access: Access::ReadWrite,
        state: memory.state(),
        deadline_secs: scene.profile.implement_timeout.as_secs(),
    }
}

fn prompt(order: ImplementOrder<'_>) -> String {
    let (profile, meta) = (order.scene.profile, &order.scene.workstream.meta);
    render_implement(&Assignment {
        id: &order.commit.id,
        title: &order.commit.title,
        block: order.block,
        branch: meta.branch.as_str(),
        max_files: profile.max_files,
        max_lines: profile.max_lines,
        allowed: &profile.allowed_paths,
        forbidden: &profile.forbidden_paths,
        expected: &meta.expected_paths,
        tests: &test_lines(profile),
        timeout_secs: profile.implement_timeout.as_secs(),
        history: order.history,
    })
}

fn test_lines(profile: &Profile) -> Vec<String> {
    let line = |how: &SuiteRunner| match how {
        SuiteRunner::Command(argv) => Some(argv.join(" ")),
        SuiteRunner::Make(target) => Some(format!("make {target}")),
        SuiteRunner::Skip(_) => None,
    };
    profile.suites.iter().filter_map(|suite| line(&suite.how)).collect()
}
