//! Looks for the bottle of an issue: its row says on which host it is, and this disk whether it is here.

use std::fs;
use std::io;
use std::path::Path;

use orchestrator_db::{BottleState, IssueKey, Store};

use super::home::Home;
use crate::exit::{Failure, OrGeneral};
use crate::rules::bottle_place::{BottlePlace, FolderState, PlaceFacts, place_bottle};

/// The name of an issue's bottle, and where it is; `None` if the issue has none.
pub(crate) fn place_of_issue(
    home: &Home,
    own_host: &str,
    store: &dyn Store,
    key: &IssueKey,
) -> Result<Option<(String, BottlePlace)>, Failure> {
    let known = store.forge_state(key).or_general()?;
    let Some(known) = known.filter(|known| known.status != BottleState::Destroyed) else {
        return Ok(None);
    };
    let folder = observe_folder(&home.bottles.join(&known.slug)).or_general()?;
    let facts = PlaceFacts { row_host: known.host.as_deref(), own_host, folder };
    let place = place_bottle(facts);
    Ok(Some((known.slug, place)))
}

fn observe_folder(folder: &Path) -> io::Result<FolderState> {
    if folder.join("record.json").try_exists()? {
        return Ok(FolderState::HasRecord);
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FolderState::Absent),
        entries => entries?,
    };
    for entry in entries {
        // A file that begins with a dot is a record that was being written.
        if !entry?.file_name().as_encoded_bytes().starts_with(b".") {
            return Ok(FolderState::NoRecord);
        }
    }
    Ok(FolderState::Empty)
}
