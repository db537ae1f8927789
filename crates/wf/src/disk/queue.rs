//! Folders of numbered JSON files with Markdown beside them: questions and acceptance tests.
//!
//! The JSON is authoritative. A Markdown file alone, or JSON that cannot be read, is an entry too: ignoring it would let
//! work pass a gate that it should block.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{DiskError, make_dir, names_in, read_optional, remove_optional, save};
use crate::rules::schema::{Schema, render_json};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueueEntry<T> {
    Good(T),
    /// The file's name without its extension, and the problem.
    Bad {
        name: String,
        problem: String,
    },
}

/// Reads a folder of a queue, by name.
pub(crate) fn load_folder<T: DeserializeOwned>(
    dir: &Path,
    prefix: &str,
    schema: Schema,
) -> Result<Vec<QueueEntry<T>>, DiskError> {
    let names = names_in(dir)?;
    let mut entries = Vec::new();
    for name in names.iter().filter(|name| name.starts_with(prefix)) {
        if let Some(stem) = name.strip_suffix(".json") {
            let bytes = read_optional(&dir.join(name))?.unwrap_or_default();
            entries.push(match schema.read(&bytes) {
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

/// Writes an entry and its page.
pub(crate) fn save_entry(
    dir: &Path,
    id: &str,
    value: &impl Serialize,
    page: &str,
) -> Result<(), DiskError> {
    make_dir(dir)?;
    // The page first: the entry exists once its JSON does.
    save(&dir.join(format!("{id}.md")), page.as_bytes())?;
    save(&dir.join(format!("{id}.json")), render_json(value).as_bytes())
}

/// Removes an entry from the folder where it was.
pub(crate) fn remove_entry(dir: &Path, id: &str) -> Result<(), DiskError> {
    remove_optional(&dir.join(format!("{id}.json")))?;
    remove_optional(&dir.join(format!("{id}.md")))
}

/// The highest number in a folder's names such as `CLQ-007.json`.
pub(crate) fn highest_number(dir: &Path, prefix: &str) -> Result<u32, DiskError> {
    let number = |name: &String| -> Option<u32> {
        name.strip_prefix(prefix)?.split('.').next()?.parse().ok()
    };
    Ok(names_in(dir)?.iter().filter_map(number).max().unwrap_or(0))
}

/// The highest number over several folders of several workstreams.
pub(crate) fn highest_in(
    workstreams: &[PathBuf],
    folders: &[&str],
    prefix: &str,
) -> Result<u32, DiskError> {
    let mut highest = 0;
    for workstream in workstreams {
        for folder in folders {
            highest = highest.max(highest_number(&workstream.join(folder), prefix)?);
        }
    }
    Ok(highest)
}
