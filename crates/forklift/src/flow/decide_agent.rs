//! Choice of the agent for a run that began without one.

use agent::SessionRequest;
use engine::agent_plan::AgentTask;
use engine::run::Product;
use engine::trial::choose_backend;
use sandbox::backend::BackendKind;

use super::resume::{load_args, save_args};
use super::run::ForkRun;
use crate::commands::request::find_agent;
use crate::exit::{Failure, OrExit};

impl ForkRun<'_> {
    /// Chooses the agent, now that one is needed. Without one there is no run: nothing was started, and a run that stays
    /// open would be finished with its own options and not with those that the user adds.
    pub(super) async fn decide_agent(&mut self) -> Result<(), Failure> {
        let decided = self.find_agent().await;
        if decided.is_err() {
            host::file::remove_tree_safely(self.run.dir.path()).or_machine()?;
        }
        decided
    }

    async fn find_agent(&mut self) -> Result<(), Failure> {
        let mut args = load_args(&self.run.dir)?;
        let settings = &self.run.record.settings;
        // A run may have begun without a backend: the message says what to install.
        if settings.backend == BackendKind::Bwrap && host::tool::which("bwrap").is_none() {
            let wanted = args.backend.as_deref().map(str::parse).transpose().or_usage()?;
            choose_backend(wanted, &args.image, &self.places.runs).await.or_usage()?;
        }
        let found = find_agent(self.ui, &args, &self.places).await?;
        let task = AgentTask {
            run: self.run.dir.id(),
            prompt: self.run.plan.instructions.clone(),
            context: self.run.plan.context.clone(),
            session: SessionRequest::Fresh { id: None },
            mcp: Vec::new(),
        };
        let plan = found.agent.plan(task).or_usage()?;
        self.run.record.settings.note_agent(&found.agent);
        // A later run that repeats this one takes the same agent.
        args.provider = Some(found.name);
        save_args(&args, &self.run.dir)?;
        self.run.decide_agent(plan).map_err(Self::failure)
    }
}
