//! Folders of numbered JSON files with Markdown beside them: questions and acceptance tests.
//!
//! The JSON is authoritative. A Markdown file alone, or JSON that cannot be read, is an entry too: ignoring it would let
//! work pass a gate that it should block.

use std::path::{Path, PathBuf};

use model::id::IdError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::project_dirs::ProjectDirs;
use super::{DiskResult, make_dir, names_in, read_optional, remove_optional, save};
use crate::rules::schema::{Schema, render_json};

/// A question or an acceptance test.
pub(crate) trait Queued: Serialize + DeserializeOwned {
    type Status: Copy + PartialEq + 'static;
    const NOUN: &'static str;
    /// The command that lists the pending ones.
    const LIST: &'static str;
    const PREFIX: &'static str;
    const SCHEMA: Schema;
    /// The folder of each status, relative to the workstream; that of the pending ones comes first.
    const FOLDERS: &'static [(Self::Status, &'static str)];

    fn check_id(text: &str) -> Result<(), IdError>;
    fn id(&self) -> &str;
    fn status(&self) -> Self::Status;
    fn render(&self) -> String;
}

/// An entry that can be read, or the name of its file without the extension and the problem.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueueEntry<T> {
    Good(T),
    Bad { name: String, problem: String },
}

impl<T: Queued> QueueEntry<T> {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Good(value) => value.id(),
            Self::Bad { name, .. } => name,
        }
    }
}

/// Reads the entries of a status, by name. An entry that a killed command left in two folders counts where it was moved
/// to: there its JSON was written first.
pub(crate) fn load_queue<T: Queued>(
    workstream: &Path,
    status: T::Status,
) -> DiskResult<Vec<QueueEntry<T>>> {
    let at = T::FOLDERS.iter().position(|(known, _)| *known == status).unwrap_or(0);
    let has_json = |(_, folder): &(T::Status, &str), name: &str| {
        workstream.join(folder).join(format!("{name}.json")).exists()
    };
    let mut entries = load_folder::<T>(&workstream.join(folder_of::<T>(status)))?;
    entries.retain(|(entry, has_own_json)| {
        let later = T::FOLDERS.iter().skip(at + 1).any(|other| has_json(other, entry.name()));
        let elsewhere = || T::FOLDERS.iter().any(|other| has_json(other, entry.name()));
        !later && (*has_own_json || !elsewhere())
    });
    Ok(entries.into_iter().map(|(entry, _)| entry).collect())
}

pub(crate) fn names_of<T: Queued>(workstream: &Path, status: T::Status) -> DiskResult<Vec<String>> {
    let entries = load_queue::<T>(workstream, status)?;
    Ok(entries.iter().map(|entry| entry.name().to_owned()).collect())
}

/// Reads a folder: each entry, and whether it is a JSON file and not Markdown alone.
fn load_folder<T: Queued>(dir: &Path) -> DiskResult<Vec<(QueueEntry<T>, bool)>> {
    let names = names_in(dir)?;
    let mut entries = Vec::new();
    for name in names.iter().filter(|name| name.starts_with(T::PREFIX)) {
        if let Some(stem) = name.strip_suffix(".json") {
            let bytes = read_optional(&dir.join(name))?.unwrap_or_default();
            let entry = match T::SCHEMA.read(&bytes) {
                Ok(value) => QueueEntry::Good(value),
                Err(error) => QueueEntry::Bad { name: stem.to_owned(), problem: error.to_string() },
            };
            entries.push((entry, true));
        } else if let Some(stem) = name.strip_suffix(".md")
            && !names.contains(&format!("{stem}.json"))
        {
            let problem = "there is no JSON file beside the Markdown".to_owned();
            entries.push((QueueEntry::Bad { name: stem.to_owned(), problem }, false));
        }
    }
    Ok(entries)
}

fn folder_of<T: Queued>(status: T::Status) -> &'static str {
    let found = T::FOLDERS.iter().find(|(known, _)| *known == status);
    found.map_or("", |(_, folder)| folder)
}

pub(crate) fn save_entry<T: Queued>(workstream: &Path, value: &T) -> DiskResult<()> {
    let (dir, id) = (workstream.join(folder_of::<T>(value.status())), value.id());
    make_dir(&dir)?;
    // The JSON first: a page alone is an entry that nobody can read.
    save(&dir.join(format!("{id}.json")), render_json(value).as_bytes())?;
    save(&dir.join(format!("{id}.md")), value.render().as_bytes())
}

pub(crate) fn move_entry<T: Queued>(
    workstream: &Path,
    from: T::Status,
    value: &T,
) -> DiskResult<()> {
    save_entry(workstream, value)?;
    for path in files_of::<T>(workstream, from, value.id()) {
        remove_optional(&path)?;
    }
    Ok(())
}

fn files_of<T: Queued>(workstream: &Path, status: T::Status, id: &str) -> [PathBuf; 2] {
    let dir = workstream.join(folder_of::<T>(status));
    ["json", "md"].map(|kind| dir.join(format!("{id}.{kind}")))
}

/// The next number of the project. Closed workstreams count too, so that no number repeats.
pub(crate) fn next_number<T: Queued>(dirs: &ProjectDirs) -> DiskResult<u32> {
    // Names such as `CLQ-007.json`.
    let number = |name: &String| -> Option<u32> {
        name.strip_prefix(T::PREFIX)?.split('.').next()?.parse().ok()
    };
    let open = dirs.workstream_names()?.into_iter().map(|name| dirs.workstreams_dir().join(name));
    let mut highest = 0;
    for workstream in open.chain(dirs.closed_dirs()?) {
        for (_, folder) in T::FOLDERS {
            let names = names_in(&workstream.join(folder))?;
            highest = names.iter().filter_map(number).fold(highest, u32::max);
        }
    }
    Ok(highest + 1)
}
