//! Upkeep of a store of bottles, in a build without the feature `postgres`: there is none.

use std::sync::Arc;

use orchestrator_db::Store;

use super::home::Home;
use crate::exit::Failure;
use crate::rules::prune::OldFolder;

pub(crate) fn spawn_upkeep(_home: &Home, _store: Arc<dyn Store>, _host: &str, _holder: &str) {}

pub(crate) fn find_old_folders(_home: &Home) -> Result<Vec<OldFolder>, Failure> {
    Ok(Vec::new())
}
