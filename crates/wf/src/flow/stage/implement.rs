//! IMPLEMENT: an agent works on a copy of the branch.

use std::collections::BTreeMap;

use agent::Provider;
use engine::agent_plan::ResolvedAgent;
use engine::agent_result::AgentClaim;
use sandbox::spec::MountAccess;

use super::mission::{Mission, Told};
use super::runner::{StageRunner, WORKSPACE};
use super::session::AgentMemory;
use super::{AgentAnswer, ImplementRequest, StageRunError};
use crate::disk::run_dir::IMPLEMENT_LOG;
use crate::rules::profile::{Profile, SuiteRunner};
use crate::rules::prompt::{ImplementTask, render_implement};

impl StageRunner {
    /// Lets an agent implement a micro-commit in a copy of the workstream's branch.
    pub(crate) async fn implement(
        &self,
        request: ImplementRequest<'_>,
    ) -> Result<AgentAnswer, StageRunError> {
        if !request.context.profile.secrets_implement.is_empty() {
            return Err(StageRunError::Config(
                "SECRETS_IMPLEMENT cannot be granted: nothing secret goes into a box".to_owned(),
            ));
        }
        let (provider, resolved) =
            self.resolve_agent(request.context.profile, &request.context.profile.implement).await?;
        self.checkout(request.context, request.head, WORKSPACE).await?;
        let id = &request.context.workstream.meta.id;
        let mut memory = AgentMemory::open(&self.dirs.agents_dir(id), provider)?;
        let first = self.send(mission(request, provider, &resolved, &memory, "implement")).await?;
        let told = if memory.is_known() && lost_its_thread(&first) {
            self.ui.status("the conversation could not be gone on with; beginning a new one");
            memory.forget();
            self.send(mission(request, provider, &resolved, &memory, "implement-anew")).await?
        } else {
            first
        };
        memory.keep(&told.report)?;
        Ok(AgentAnswer { text: told.answer()? })
    }
}

/// An agent that failed before it did anything may not have found its conversation.
fn lost_its_thread(told: &Told) -> bool {
    matches!(told.claim, AgentClaim::Failed { .. }) && told.report.tool_calls.is_empty()
}

fn mission<'a>(
    request: ImplementRequest<'a>,
    provider: Provider,
    resolved: &'a ResolvedAgent,
    memory: &AgentMemory,
    name: &'a str,
) -> Mission<'a> {
    let context = request.context;
    Mission {
        context,
        provider,
        resolved,
        name,
        log: IMPLEMENT_LOG,
        prompt: prompt(request),
        session: memory.next_session(),
        used: memory.used(),
        files: BTreeMap::new(),
        workspace: context.run_dir.join(WORKSPACE),
        access: MountAccess::ReadWrite,
        state: memory.state(),
        deadline_secs: context.profile.implement_timeout.as_secs(),
    }
}

fn prompt(request: ImplementRequest<'_>) -> String {
    let (profile, meta) = (request.context.profile, &request.context.workstream.meta);
    render_implement(&ImplementTask {
        id: &request.commit.id,
        title: &request.commit.title,
        block: request.block,
        branch: meta.branch.as_str(),
        max_files: profile.max_files,
        max_lines: profile.max_lines,
        allowed: &profile.allowed_paths,
        forbidden: &profile.forbidden_paths,
        expected: &meta.expected_paths,
        tests: &test_lines(profile),
        timeout_secs: profile.implement_timeout.as_secs(),
        history: request.history,
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
