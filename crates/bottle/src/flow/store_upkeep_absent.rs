//! Upkeep of a store of bottles, in a build without the feature `postgres`: there is none.

use std::path::PathBuf;
use std::sync::Arc;

use orchestrator_db::Store;

use super::home::Home;
use crate::exit::Failure;

pub(crate) struct OldFolder {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) kept_because: Option<String>,
}

pub(crate) fn spawn_upkeep(_home: &Home, _store: Arc<dyn Store>, _host: &str, _holder: &str) {}

pub(crate) fn find_old_folders(_home: &Home) -> Result<Vec<OldFolder>, Failure> {
    Ok(Vec::new())
}
