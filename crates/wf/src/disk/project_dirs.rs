//! Directories of one project: its files in the workflow repository and its runtime files in the ops directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host::dirs::Dirs;
use model::env_file::EnvFile;
use model::id::WorkstreamId;
use shell::agent_choice::choose_default;
use shell::config::Config;
use shell::ui::Volume;

use super::workflow::Workflow;
use super::{DiskError, DiskResult, load_env, names_in};
use crate::rules::agent_choice::AgentNames;
use crate::rules::choose::{NoProject, ProjectCandidate, choose_project};
use crate::rules::profile::{Profile, parse_known};
use crate::rules::project::Project;

pub(crate) const OPS_VARIABLE: &str = "AOS_OPS_DIR";
pub(crate) const PROJECT_VARIABLE: &str = "AOS_PROJECT";
const TIMEOUT_VARIABLE: &str = "AOS_LOCK_TIMEOUT";
pub(crate) const LOG_VARIABLE: &str = "AOS_LOG_LEVEL";
const DEFAULT_TIMEOUT_SECS: u64 = 600;
pub(crate) const PROFILE_ENV: &str = "project_profile.env";
pub(crate) const PROFILE_PAGE: &str = "project_profile.md";
pub(crate) const ACTIVE: &str = "ACTIVE_WORKSTREAMS.md";
pub(crate) const CLOSED: &str = "_closed";
/// Folders of workstreams that are being deleted.
const DELETED: &str = "_deleted";
/// Start of the name of a folder that becomes a workstream when it is complete.
const UNFINISHED: &str = "_new-";

#[derive(Debug, Clone)]
pub(crate) struct ProjectDirs {
    pub(crate) project: Project,
    /// Its folder in the workflow repository.
    pub(crate) dir: PathBuf,
    pub(crate) ops: PathBuf,
    pub(crate) warnings: Vec<String>,
}

impl ProjectDirs {
    pub(crate) fn resolve(flag: Option<&str>, here: &Path) -> DiskResult<Self> {
        let workflow = Workflow::find(here)?.ok_or_else(|| {
            let variable = super::workflow::WORKFLOW_VARIABLE;
            DiskError::Setting(format!("{}, or set {variable}", NoProject::NoneRegistered))
        })?;
        let names = workflow.project_names()?;
        let variable = host::env::var(PROJECT_VARIABLE);
        // With an explicit name the other projects need not be read.
        let named = flag.or(variable.as_deref().filter(|name| !name.is_empty()));
        let known = candidates(&workflow, &names, named.is_none(), here)?;
        let name = choose_project(flag, variable.as_deref(), here, &known)
            .map_err(|error| DiskError::Setting(error.to_string()))?;
        let mut dirs = Self::open(&workflow, &name)?;
        let is_inside = known.iter().any(|it| it.folders.iter().any(|dir| here.starts_with(dir)));
        if named.is_none() && !is_inside && in_repository(here) {
            dirs.warnings.push(format!(
                "this repository is not registered, and '{name}' is the only project; register this one: wf init"
            ));
        }
        Ok(dirs)
    }

    pub(crate) fn open(workflow: &Workflow, name: &str) -> DiskResult<Self> {
        let (project, warnings) = workflow.load_project(name)?;
        let ops = ops_of(workflow, &project)?;
        Ok(Self { dir: workflow.project_dir(name), project, ops, warnings })
    }

    pub(crate) fn workstreams_dir(&self) -> PathBuf {
        self.dir.join("workstreams")
    }

    pub(crate) fn closed_dir(&self) -> PathBuf {
        self.workstreams_dir().join(CLOSED)
    }

    pub(crate) fn deleted_dir(&self) -> PathBuf {
        self.workstreams_dir().join(DELETED)
    }

    /// The folder in which a new workstream is put together.
    pub(crate) fn unfinished_dir(&self, id: &WorkstreamId) -> PathBuf {
        self.workstreams_dir().join(format!("{UNFINISHED}{id}"))
    }

    pub(crate) fn workstream_dir(&self, id: &WorkstreamId) -> PathBuf {
        self.workstreams_dir().join(id.as_str())
    }

    pub(crate) fn worktrees_dir(&self) -> PathBuf {
        self.ops.join("worktrees")
    }

    pub(crate) fn worktree(&self, id: &WorkstreamId) -> PathBuf {
        self.worktrees_dir().join(id.as_str())
    }

    pub(crate) fn runs_dir(&self) -> PathBuf {
        self.ops.join("runs")
    }

    pub(crate) fn locks_dir(&self) -> PathBuf {
        self.ops.join("locks")
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.ops.join("state")
    }

    /// The mirror of the product's history, from which workspaces are made.
    pub(crate) fn mirror(&self, id: &WorkstreamId) -> PathBuf {
        self.ops.join("mirrors").join(format!("{}.{id}.git", self.project.name))
    }

    /// The home directories and sessions of a workstream's agents.
    pub(crate) fn agents_dir(&self, id: &WorkstreamId) -> PathBuf {
        self.ops.join("agents").join(format!("{}.{id}", self.project.name))
    }

    pub(crate) fn secrets_dir(&self) -> PathBuf {
        self.ops.join("secrets")
    }

    /// Reads the profile. The warnings name unknown keys.
    pub(crate) fn load_profile(&self) -> DiskResult<(Profile, Vec<String>)> {
        let path = self.dir.join(PROFILE_ENV);
        let file = load_env(&path)?.unwrap_or_default();
        let agents = observe_agents(&file)?;
        let (profile, known) = parse_known(&file, &agents).map_err(DiskError::in_file(&path))?;
        let unknown = file.keys().filter(|key| !known.contains(*key));
        let warnings = unknown.map(|key| format!("{}: unknown key {key}", path.display()));
        Ok((profile, warnings.collect()))
    }

    pub(crate) fn lock_timeout() -> DiskResult<Duration> {
        let Some(text) = host::env::var(TIMEOUT_VARIABLE) else {
            return Ok(Duration::from_secs(DEFAULT_TIMEOUT_SECS));
        };
        let secs = text.parse::<u32>().map_err(|error| {
            DiskError::Setting(format!("{TIMEOUT_VARIABLE} must be a number of seconds: {error}"))
        })?;
        Ok(Duration::from_secs(secs.into()))
    }
}

/// The agents that this profile may name, and those of the stages for which it names none.
pub(crate) fn observe_agents(profile: &EnvFile) -> DiskResult<AgentNames> {
    let setting =
        |error: &(dyn std::error::Error + 'static)| DiskError::Setting(model::error_chain(error));
    let config = Config::load().map_err(|error| setting(&error))?;
    let folder = agents_dir(&Dirs::from_env().map_err(|error| setting(&error))?);
    let choose = |key: &str, usual: String| match profile.get(key) {
        None | Some("") => choose_default(&config, &folder, &usual).unwrap_or(usual),
        Some(_) => usual,
    };
    let AgentNames { implement, review, .. } = AgentNames::default();
    let implement = choose("AGENT_IMPLEMENT", implement);
    let review = choose("AGENT_REVIEW", review);
    Ok(AgentNames { own: config.agents.into_keys().collect(), implement, review })
}

/// The folder of installed agents.
pub(crate) fn agents_dir(dirs: &Dirs) -> PathBuf {
    dirs.data_home().join("bottleworks/agents")
}

/// Volume of what is printed besides results, by the variable.
pub(crate) fn log_volume() -> DiskResult<Volume> {
    match host::env::var(LOG_VARIABLE).as_deref() {
        None | Some("" | "debug" | "info") => Ok(Volume::Normal),
        Some("warn") => Ok(Volume::Warnings),
        Some("error") => Ok(Volume::Errors),
        Some(_) => {
            Err(DiskError::Setting(format!("{LOG_VARIABLE} must be debug, info, warn or error")))
        }
    }
}

fn ops_of(workflow: &Workflow, project: &Project) -> DiskResult<PathBuf> {
    let variable = host::env::var_os(OPS_VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    if variable.as_ref().is_some_and(|dir| !dir.is_absolute()) {
        return Err(DiskError::Setting(format!("{OPS_VARIABLE} must be an absolute path")));
    }
    let above = || workflow.root().parent().unwrap_or(Path::new("/")).to_path_buf();
    Ok(variable.or_else(|| project.ops.clone()).unwrap_or_else(above))
}

/// Lists the projects and their folders. A broken project.env does not hide the other projects.
fn candidates(
    workflow: &Workflow,
    names: &[String],
    with_folders: bool,
    here: &Path,
) -> DiskResult<Vec<ProjectCandidate>> {
    let mut found = Vec::new();
    for name in names {
        let mut folders = Vec::new();
        if with_folders {
            folders.push(real(&workflow.project_dir(name)));
            if let Ok((project, _)) = workflow.load_project(name) {
                folders.push(real(&project.repo));
                folders.extend(worktree_around(workflow, &project, here)?);
            }
        }
        found.push(ProjectCandidate { name: name.clone(), folders });
    }
    Ok(found)
}

/// The worktree of this project that contains `here`. Several projects may keep worktrees in the same folder.
fn worktree_around(
    workflow: &Workflow,
    project: &Project,
    here: &Path,
) -> DiskResult<Option<PathBuf>> {
    let worktrees = real(&ops_of(workflow, project)?.join("worktrees"));
    let Ok(rest) = here.strip_prefix(&worktrees) else { return Ok(None) };
    let Some(id) = rest.components().next() else { return Ok(None) };
    let workstreams = workflow.project_dir(project.name.as_str()).join("workstreams");
    let is_ours = names_in(&workstreams)?.iter().any(|name| id.as_os_str() == name.as_str());
    Ok(is_ours.then(|| worktrees.join(id)))
}

/// Returns whether a folder is in a checkout, by its `.git`.
fn in_repository(here: &Path) -> bool {
    here.ancestors().any(|dir| dir.join(".git").exists())
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
