//! Looks for the bottle of an issue: its row says on which host it is, and this disk whether it is here.

use std::fs;
use std::path::Path;

use orchestrator_db::{BottleState, ForgeState, IssueKey, Store};

use super::home::Home;
use super::travel;
use crate::exit::{Failure, OrGeneral, if_found};
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
    let place = place_of_row(home, own_host, &known)?;
    Ok(Some((known.slug, place)))
}

/// Where the bottle of a row is.
pub(crate) fn place_of_row(
    home: &Home,
    own_host: &str,
    row: &ForgeState,
) -> Result<BottlePlace, Failure> {
    let folder = observe_folder(&home.bottles.join(&row.slug))?;
    let saved = row.saved.as_ref().map(|saved| saved.name.as_str());
    let saved = match saved {
        Some(name) if travel::has_store(home)? => Some(name),
        Some(_) | None => None,
    };
    let row_host = row.host.as_deref();
    Ok(place_bottle(PlaceFacts { row_host, own_host, saved, folder: &folder }))
}

fn observe_folder(folder: &Path) -> Result<FolderState, Failure> {
    if folder.join("record.json").try_exists().or_general()? {
        return Ok(FolderState::HasRecord { mark: travel::saved_mark(folder)? });
    }
    let Some(entries) = if_found(fs::read_dir(folder))? else { return Ok(FolderState::Absent) };
    for entry in entries {
        // A file that begins with a dot is a record that was being written.
        if !entry.or_general()?.file_name().as_encoded_bytes().starts_with(b".") {
            return Ok(FolderState::NoRecord);
        }
    }
    Ok(FolderState::Empty)
}
