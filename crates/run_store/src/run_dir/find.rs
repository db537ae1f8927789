//! Lookup of runs: all of them, newest first, or one by its name or a prefix.
//!
//! Names give the order; file times change.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::Path;

use host::file::FileError;
use model::id::RunId;

use super::RunDir;
use crate::error::StoreError;

/// Lists the runs below `runs_root`, newest first. Anything but a run directory is skipped, and a root that does not
/// exist yet has no runs.
pub fn list(runs_root: &Path) -> Result<Vec<RunDir>, StoreError> {
    let entries = match fs::read_dir(runs_root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io("list the runs in", runs_root)(error).into()),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FileError::io("list the runs in", runs_root))?;
        // Other files are no error, and neither is a run that was removed meanwhile.
        if let Ok(run) = RunDir::open(&entry.path()) {
            runs.push(run);
        }
    }
    runs.sort_by(|a, b| age_key(a.id()).cmp(&age_key(b.id())));
    Ok(runs)
}

/// Returns whether a run began after another one, by their names.
pub fn is_newer(run: &RunId, other: &RunId) -> bool {
    age_key(run) < age_key(other)
}

/// Stamp and attempt of the newest run, whatever project it is of.
pub(super) fn newest_age(runs_root: &Path) -> Result<Option<(String, u32)>, StoreError> {
    let runs = list(runs_root)?;
    let newest = runs.first().and_then(|run| split_name(run.id().as_str()));
    Ok(newest.map(|(_, stamp, attempt)| (stamp.to_owned(), attempt)))
}

/// Finds the run with this name, or else the only one whose name, or the part of it after the project, has this prefix.
pub fn find(runs_root: &Path, name_or_prefix: &str) -> Result<RunDir, StoreError> {
    let mut matching = list(runs_root)?;
    if let Some(exact) = matching.iter().position(|run| run.id().as_str() == name_or_prefix) {
        return Ok(matching.swap_remove(exact));
    }
    let wanted = name_or_prefix.to_owned();
    matching.retain(|run| has_prefix(run.id().as_str(), name_or_prefix));
    match matching.len() {
        0 => Err(StoreError::NoSuchRun { root: runs_root.to_path_buf(), wanted }),
        1 => Ok(matching.swap_remove(0)),
        _ => {
            let candidates = matching.iter().map(|run| run.id().to_string()).collect();
            Err(StoreError::Ambiguous { wanted, candidates })
        }
    }
}

fn has_prefix(name: &str, prefix: &str) -> bool {
    let after_project = split_name(name).map(|(project, ..)| &name[project.len() + 1..]);
    name.starts_with(prefix) || after_project.is_some_and(|rest| rest.starts_with(prefix))
}

/// Parses a directory name as a run id, if it has the shape of one.
pub(super) fn parse_run_name(name: &str) -> Option<RunId> {
    split_name(name)?;
    RunId::parse(name).ok()
}

/// Returns the day and time in the name of a run, without its project and number.
pub fn stamp_of(id: &RunId) -> &str {
    split_name(id.as_str()).map_or("", |(_, stamp, _)| stamp)
}

/// Sorts newer runs first; of one second, the later attempt first.
fn age_key(id: &RunId) -> (Reverse<(&str, u32)>, &str) {
    let (project, stamp, attempt) = split_name(id.as_str()).unwrap_or((id.as_str(), "", 0));
    (Reverse((stamp, attempt)), project)
}

/// Splits `<project>_<YYYYMMDD_HHMMSS>[-n]` from the end: a project may hold any of these characters.
fn split_name(name: &str) -> Option<(&str, &str, u32)> {
    let (rest, time) = name.rsplit_once('_')?;
    let (project, day) = rest.rsplit_once('_')?;
    let (time, attempt) = match time.split_once('-') {
        Some((time, attempt)) => (time, attempt.parse().ok().filter(|&n| n >= 2)?),
        None => (time, 1),
    };
    let is_number = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
    if project.is_empty() || !is_number(day, 8) || !is_number(time, 6) {
        return None;
    }
    // The stamp is one piece of the name: day, underscore, time.
    let stamp = &name[project.len() + 1..project.len() + 16];
    Some((project, stamp, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_name_is_taken_apart_from_the_end() {
        let stamp = "20250115_120000";
        assert_eq!(split_name("app_20250115_120000"), Some(("app", stamp, 1)));
        assert_eq!(split_name("my_app-2_20250115_120000-12"), Some(("my_app-2", stamp, 12)));
        let of_two = "a_20240101_000000_20250115_120000";
        assert_eq!(split_name(of_two), Some(("a_20240101_000000", stamp, 1)));
    }

    #[test]
    fn a_prefix_may_leave_out_the_project() {
        for prefix in ["app", "app_2025", "2025", "20250115_12", "20250115_120000-2"] {
            assert!(has_prefix("app_20250115_120000-2", prefix), "{prefix}");
        }
        for other in ["pp", "120000", "0115", "app_2026"] {
            assert!(!has_prefix("app_20250115_120000-2", other), "{other}");
        }
    }

    #[test]
    fn other_names_are_strangers() {
        for name in [
            "",
            "app",
            "app_20250115",
            "_20250115_120000",
            "app_20250115_12000",
            "app_2025011x_120000",
            "app_20250115_120000-",
            "app_20250115_120000-x",
            "app_20250115_120000-1",
            "app_20250115_120000.tmp",
            "app_２0250115_120000",
        ] {
            assert_eq!(parse_run_name(name), None, "{name}");
        }
    }
}
