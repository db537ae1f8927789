//! Forecasts of merges that were made before. Two commits always give the same forecast, so it is made once.

use std::collections::BTreeMap;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::project_dirs::ProjectDirs;
use super::{load_json, make_dir};
use crate::rules::branch_forecast::BranchForecast;

/// Forecasts that are kept; with more, the file is begun again.
const KEPT: usize = 5_000;

/// Known forecasts, by the two commits.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ForecastCache {
    /// The version of the program whose resolver made them.
    version: String,
    forecasts: BTreeMap<String, BranchForecast>,
    #[serde(skip)]
    has_changed: bool,
}

impl ForecastCache {
    /// Reads the file; one that cannot be read, or that another version wrote, is empty.
    pub(crate) fn load(dirs: &ProjectDirs) -> Self {
        let found: Option<Self> = load_json(&Self::path(dirs)).ok().flatten();
        let version = env!("CARGO_PKG_VERSION");
        let empty = || Self { version: version.to_owned(), ..Self::default() };
        found.filter(|found| found.version == version).unwrap_or_else(empty)
    }

    fn path(dirs: &ProjectDirs) -> std::path::PathBuf {
        dirs.state_dir().join(format!("{}.forecasts.json", dirs.project.name))
    }

    pub(crate) fn get(&self, ours: &Sha, theirs: &Sha) -> Option<&BranchForecast> {
        self.forecasts.get(&format!("{ours} {theirs}"))
    }

    pub(crate) fn insert(&mut self, (ours, theirs): &(Sha, Sha), forecast: BranchForecast) {
        if self.forecasts.len() >= KEPT {
            self.forecasts.clear();
        }
        self.forecasts.insert(format!("{ours} {theirs}"), forecast);
        self.has_changed = true;
    }

    /// Writes what is new. A failure is ignored: the forecast is then made again.
    pub(crate) fn save(&self, dirs: &ProjectDirs) {
        if !self.has_changed {
            return;
        }
        let Ok(text) = serde_json::to_vec(self) else { return };
        if make_dir(&dirs.state_dir()).is_ok() {
            host::file::write_transient(&Self::path(dirs), &text, super::SHARED).ok();
        }
    }
}
