//! Folders of numbered JSON files with Markdown beside them: questions and acceptance tests.
//!
//! The JSON is authoritative. A Markdown file alone, or JSON that cannot be read, is an entry too: ignoring it would let
//! work pass a gate that it should block.

use std::path::Path;

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

/// Reads the entries of a status, by name. An entry whose pending file survived a crash after its verdict is not pending.
pub(crate) fn load_queue<T: Queued>(
    workstream: &Path,
    status: T::Status,
) -> DiskResult<Vec<QueueEntry<T>>> {
    let mut entries = load_folder(&workstream.join(folder_of::<T>(status)))?;
    if let [(pending, _), settled @ ..] = T::FOLDERS
        && *pending == status
    {
        entries.retain(|entry: &QueueEntry<T>| {
            let file = format!("{}.json", entry.name());
            !settled.iter().any(|(_, folder)| workstream.join(folder).join(&file).exists())
        });
    }
    Ok(entries)
}

pub(crate) fn names_of<T: Queued>(workstream: &Path, status: T::Status) -> DiskResult<Vec<String>> {
    let entries = load_queue::<T>(workstream, status)?;
    Ok(entries.iter().map(|entry| entry.name().to_owned()).collect())
}

fn load_folder<T: Queued>(dir: &Path) -> DiskResult<Vec<QueueEntry<T>>> {
    let names = names_in(dir)?;
    let mut entries = Vec::new();
    for name in names.iter().filter(|name| name.starts_with(T::PREFIX)) {
        if let Some(stem) = name.strip_suffix(".json") {
            let bytes = read_optional(&dir.join(name))?.unwrap_or_default();
            entries.push(match T::SCHEMA.read(&bytes) {
                Ok(value) => QueueEntry::Good(value),
                Err(error) => QueueEntry::Bad { name: stem.to_owned(), problem: error.to_string() },
            });
        } else if let Some(stem) = name.strip_suffix(".md")
            && !names.contains(&format!("{stem}.json"))
        {
            let problem = "there is no JSON file beside the Markdown".to_owned();
            entries.push(QueueEntry::Bad { name: stem.to_owned(), problem });
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
    // The page first: the entry exists once its JSON does.
    save(&dir.join(format!("{id}.md")), value.render().as_bytes())?;
    save(&dir.join(format!("{id}.json")), render_json(value).as_bytes())
}

pub(crate) fn move_entry<T: Queued>(
    workstream: &Path,
    from: T::Status,
    value: &T,
) -> DiskResult<()> {
    save_entry(workstream, value)?;
    let (dir, id) = (workstream.join(folder_of::<T>(from)), value.id());
    remove_optional(&dir.join(format!("{id}.json")))?;
    remove_optional(&dir.join(format!("{id}.md")))
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
