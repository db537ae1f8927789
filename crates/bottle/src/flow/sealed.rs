//! The boxes of a run: where they stand and what starts them.

use std::path::PathBuf;

use engine::agent_plan::AgentPlan;
use engine::agent_run::{AgentRun, BoxLayout};
use engine::box_command::BoxCommand;
use engine::launch::Launcher;
use model::exit::BottleExit;
use model::id::BoxName;
use run_store::run_dir::RunDir;
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxUser, MountAccess, Root};
use shell::agent_settings::DEFAULT_IMAGE;

use super::hire::box_limits;
use super::metadata::ChoreSummary;
use super::run::Run;
use crate::exit::{Failure, OrExit};
use crate::rules::bottle_manifest::BottleManifest;

/// The plan in the run directory. Names places of keys and holds none.
const PLAN_FILE: &str = "plan.json";

/// Keeps the plan with the run.
pub(crate) fn save_plan(plan: &AgentPlan, dir: &RunDir) -> Result<(), Failure> {
    let bytes = serde_json::to_vec_pretty(plan).or_exit(BottleExit::Internal)?;
    host::file::write_atomic(&dir.path().join(PLAN_FILE), &bytes, 0o600).or_general()
}

/// Reads the plan of a run.
pub(crate) fn load_plan(dir: &RunDir) -> Result<AgentPlan, Failure> {
    let bytes = std::fs::read(dir.path().join(PLAN_FILE)).or_general()?;
    serde_json::from_slice(&bytes).or_general()
}

/// The file system that a box of this bottle sees.
pub(crate) fn root_of(backend: BackendKind, bottle: &BottleManifest) -> Root {
    let image = bottle.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    backend.root(image, bottle.root.as_deref())
}

impl Run<'_> {
    /// The agent's agent_run.
    pub(super) fn agent_run(&self) -> Result<AgentRun<'_>, Failure> {
        let site = self.site("agent", self.meta.manifest.limits.timeout_secs)?;
        Ok(AgentRun { site, plan: &self.plan })
    }

    /// A box of this run.
    pub(super) fn site(&self, name: &str, deadline_secs: u64) -> Result<BoxLayout, Failure> {
        let name = BoxName::parse(name).or_exit(BottleExit::Internal)?;
        Ok(BoxLayout {
            run: self.dir.id().clone(),
            box_dir: self.dir.box_dir(&name),
            name,
            root: root_of(self.meta.backend, &self.meta.bottle),
            workspace: self.bottle.workspace(),
            access: MountAccess::ReadWrite,
            harness_state: self.bottle.harness_state(),
            user: BoxUser::of_caller(),
            limits: box_limits(&self.meta.manifest.limits),
            deadline_secs,
        })
    }

    pub(super) fn launcher(&self) -> Result<Launcher, Failure> {
        Launcher::of_this_program(self.meta.backend, self.secrets.clone()).or_general()
    }

    /// Runs a line in a box of its own and says how it went.
    pub(super) async fn run_chore(&self, chore: BoxCommand) -> Result<ChoreSummary, Failure> {
        let end = chore.run(&self.launcher()?, self.keeper.cancel).await.or_general()?;
        let tail = end.tail();
        Ok(ChoreSummary { ended: end.record.ended, wall_ms: end.record.wall_ms, tail })
    }

    pub(super) fn mirror(&self) -> PathBuf {
        self.source.mirror(self.keeper.home)
    }
}
