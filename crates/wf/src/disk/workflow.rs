//! The workflow repository: finding it and listing its projects.

use std::path::{Path, PathBuf};

use host::dirs::Dirs;
use model::env_file::EnvFile;

use super::{DiskError, DiskResult, load_env, make_dir, names_in, save};
use crate::rules::project::{Project, parse_project, unknown_keys};

pub(crate) const WORKFLOW_VARIABLE: &str = "AOS_WORKFLOW_REPO";
/// The key that names it in the user's configuration.
const CONFIG_KEY: &str = "WORKFLOW_REPO";
pub(crate) const PROJECT_ENV: &str = "project.env";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workflow {
    root: PathBuf,
}

impl Workflow {
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Searches the environment variable, then the parent directories, then the user's configuration.
    pub(crate) fn find(here: &Path) -> DiskResult<Option<Self>> {
        if let Some(root) = host::env::var_os(WORKFLOW_VARIABLE).filter(|root| !root.is_empty()) {
            let root = PathBuf::from(root);
            if !root.is_absolute() {
                return Err(DiskError::Setting(format!(
                    "{WORKFLOW_VARIABLE} must be an absolute path"
                )));
            }
            return Ok(Some(Self { root }));
        }
        for candidate in here.ancestors().map(|dir| Self { root: dir.to_path_buf() }) {
            if !candidate.project_names()?.is_empty() {
                return Ok(Some(candidate));
            }
        }
        Self::from_config()
    }

    fn from_config() -> DiskResult<Option<Self>> {
        let Some(path) = config_path() else { return Ok(None) };
        let file = load_env(&path)?;
        let root =
            file.as_ref().and_then(|file| file.get(CONFIG_KEY)).filter(|root| !root.is_empty());
        Ok(root.map(|root| Self { root: PathBuf::from(root) }))
    }

    /// Saves the path in the user's configuration unless one is set. Returns the file if it was written.
    pub(crate) fn remember(&self) -> DiskResult<Option<PathBuf>> {
        let Some(path) = config_path() else { return Ok(None) };
        let mut file = load_env(&path)?.unwrap_or_default();
        if file.get(CONFIG_KEY).is_some_and(|root| !root.is_empty()) {
            return Ok(None);
        }
        file.set(CONFIG_KEY, &self.root.to_string_lossy()).map_err(DiskError::in_file(&path))?;
        make_dir(path.parent().unwrap_or(Path::new("/")))?;
        save(&path, file.to_string().as_bytes())?;
        Ok(Some(path))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn project_dir(&self, name: &str) -> PathBuf {
        self.root.join("projects").join(name)
    }

    pub(crate) fn project_names(&self) -> DiskResult<Vec<String>> {
        let dir = self.root.join("projects");
        let mut names = names_in(&dir)?;
        names.retain(|name| dir.join(name).join(PROJECT_ENV).is_file());
        Ok(names)
    }

    /// Reads a project. The warnings name unknown keys.
    pub(crate) fn load_project(&self, name: &str) -> DiskResult<(Project, Vec<String>)> {
        let path = self.project_dir(name).join(PROJECT_ENV);
        let file: EnvFile =
            load_env(&path)?.ok_or_else(|| DiskError::invalid(&path, "there is no such file"))?;
        let project = parse_project(&file, name).map_err(DiskError::in_file(&path))?;
        let unknown = unknown_keys(&file);
        let warnings = unknown.iter().map(|key| format!("{}: unknown key {key}", path.display()));
        Ok((project, warnings.collect()))
    }
}

fn config_path() -> Option<PathBuf> {
    Dirs::from_env().ok().map(|dirs| dirs.config_home().join("wf/config.env"))
}
