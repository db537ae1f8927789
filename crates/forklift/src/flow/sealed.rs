//! The box of a run: where it stands and what starts it.

use std::path::PathBuf;

use engine::agent_plan::AgentPlan;
use engine::agent_run::{AgentRun, BoxLayout};
use engine::launch::Launcher;
use model::exit::ForkliftExit;
use model::id::BoxName;
use run_store::run_dir::RunDir;
use sandbox::spec::{BoxLimits, BoxUser, MountAccess};

use super::observe::fork_key;
use super::run::Run;
use crate::exit::{Failure, OrExit};

/// The plan in the run directory.
const PLAN_FILE: &str = "plan.json";

/// Keeps the plan with the run.
pub(crate) fn save_plan(plan: &AgentPlan, dir: &RunDir) -> Result<(), Failure> {
    let bytes = serde_json::to_vec_pretty(plan).or_exit(ForkliftExit::Internal)?;
    host::file::write_transient(&dir.path().join(PLAN_FILE), &bytes, 0o600)
        .or_exit(ForkliftExit::Machine)
}

/// Reads the plan of a run.
pub(crate) fn load_plan(dir: &RunDir) -> Result<AgentPlan, Failure> {
    let path = dir.path().join(PLAN_FILE);
    let bytes = std::fs::read(&path)
        .map_err(|error| Failure::usage(format!("{} has no plan: {error}", dir.id())))?;
    serde_json::from_slice(&bytes).or_exit(ForkliftExit::Machine)
}

impl Run<'_> {
    /// The agent's agent_run.
    pub(super) fn agent_run(&self) -> Result<AgentRun<'_>, Failure> {
        let site = self.site("agent", self.meta.settings.timeout_secs)?;
        Ok(AgentRun { site, plan: &self.plan })
    }

    /// A box of this run.
    pub(super) fn site(&self, name: &str, deadline_secs: u64) -> Result<BoxLayout, Failure> {
        let settings = &self.meta.settings;
        let root = settings.backend.root(settings.image.as_deref().unwrap_or_default(), None);
        let name = BoxName::parse(name).or_exit(ForkliftExit::Internal)?;
        Ok(BoxLayout {
            run: self.dir.id().clone(),
            box_dir: self.dir.box_dir(&name),
            name,
            root,
            workspace: self.dir.workspace(),
            access: MountAccess::ReadWrite,
            harness_state: self.dir.harness_state(),
            user: BoxUser::of_caller(),
            limits: BoxLimits::default(),
            deadline_secs,
        })
    }

    pub(super) fn launcher(&self) -> Result<Launcher, Failure> {
        let backend = self.meta.settings.backend;
        Launcher::of_this_program(backend, self.secrets.clone()).or_exit(ForkliftExit::Machine)
    }

    /// Removes folders of the run directory in which boxes may have been at work.
    pub(super) fn remove_folders(&self, names: &[&str]) -> Result<(), Failure> {
        names.iter().try_for_each(|name| {
            host::file::remove_tree_safely(&self.dir.path().join(name))
                .or_exit(ForkliftExit::Machine)
        })
    }

    pub(super) fn mirror(&self) -> PathBuf {
        self.cache.join("mirrors").join(format!("{}.git", fork_key(&self.repo)))
    }
}
