//! Metadata of a run: its task and its end, in a type of the product that runs.
//!
//! It is a JSON file: two spaces, keys in the order of the type, a line break at the end. It is replaced whole, so a
//! reader never sees half of it.

use std::fs;
use std::path::Path;

use host::file::{FileError, write_atomic, write_transient};
use model::redact::Redactor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::StoreError;
use crate::json::redact_json;
use crate::run_dir::RunDir;

/// File name of the metadata in a run directory.
pub const METADATA: &str = "metadata.json";

const MODE: u32 = 0o600;

/// Replaces the metadata of a run that is not closed.
pub fn save_metadata<T: Serialize>(
    run: &RunDir,
    redactor: &Redactor,
    metadata: &T,
) -> Result<(), StoreError> {
    write(run, redactor, metadata, MODE, write_atomic)
}

/// Same as [`save_metadata`] without waiting for the disk, for marks on the way to the agent's start. The successor of a
/// killed process finds them; after a power failure there is no agent and no work that they could refer to.
pub fn save_mark<T: Serialize>(
    run: &RunDir,
    redactor: &Redactor,
    metadata: &T,
) -> Result<(), StoreError> {
    write(run, redactor, metadata, MODE, write_transient)
}

/// Reads the metadata of a run.
pub fn load_metadata<T: DeserializeOwned>(run: &RunDir) -> Result<T, StoreError> {
    let path = run.metadata_path();
    let text = fs::read(&path).map_err(FileError::io("read", &path))?;
    serde_json::from_slice(&text).map_err(StoreError::json(&path))
}

/// Reads the metadata of a run after `upgrade` has brought the JSON of an earlier version to the present one.
pub fn load_upgraded<T: DeserializeOwned>(
    run: &RunDir,
    upgrade: impl FnOnce(&mut Map<String, Value>),
) -> Result<T, StoreError> {
    let mut fields: Map<String, Value> = load_metadata(run)?;
    upgrade(&mut fields);
    serde_json::from_value(Value::Object(fields)).map_err(StoreError::json(&run.metadata_path()))
}

/// Writes the metadata with these permission bits; closing gives the last ones.
pub(crate) fn write<T: Serialize>(
    run: &RunDir,
    redactor: &Redactor,
    metadata: &T,
    mode: u32,
    replace: fn(&Path, &[u8], u32) -> Result<(), FileError>,
) -> Result<(), StoreError> {
    run.ensure_open()?;
    let path = run.metadata_path();
    let mut text = serde_json::to_string_pretty(metadata)
        .and_then(|plain| redact_json(redactor, &plain))
        .map_err(StoreError::json(&path))?;
    text.push('\n');
    replace(&path, text.as_bytes(), mode)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use model::id::ProjectName;
    use model::secret::Secret;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        version: u32,
        note: String,
        branch: Vec<String>,
    }

    fn sample(note: &str) -> Sample {
        Sample { version: 1, note: note.to_owned(), branch: vec!["main".to_owned()] }
    }

    fn check(promise: impl FnOnce(&RunDir, &Redactor)) {
        let root = tempfile::tempdir().unwrap();
        let project = ProjectName::parse("app").unwrap();
        let run = RunDir::create(root.path(), &project, "2025-01-15T12:00:00Z".parse().unwrap());
        promise(&run.unwrap(), &Redactor::new([Secret::new("hunter2-hunter2")]));
    }

    #[test]
    fn metadata_is_json_of_two_spaces_in_the_order_of_the_type() {
        check(|run, redactor| {
            save_metadata(run, redactor, &sample("hi")).unwrap();
            let text = fs::read_to_string(run.metadata_path()).unwrap();
            assert_eq!(
                text,
                "{\n  \"version\": 1,\n  \"note\": \"hi\",\n  \"branch\": [\n    \"main\"\n  ]\n}\n"
            );
        });
    }

    #[test]
    fn what_was_saved_last_is_loaded() {
        check(|run, redactor| {
            save_metadata(run, redactor, &sample("one")).unwrap();
            save_metadata(run, redactor, &sample("two")).unwrap();
            assert_eq!(load_metadata::<Sample>(run).unwrap(), sample("two"));
            assert_eq!(fs::metadata(run.metadata_path()).unwrap().mode() & 0o777, 0o600);
        });
    }

    #[test]
    fn no_secret_reaches_the_disk() {
        check(|run, redactor| {
            save_metadata(run, redactor, &sample("key hunter2-hunter2")).unwrap();
            assert_eq!(load_metadata::<Sample>(run).unwrap(), sample("key ***"));
            run.close(redactor, &sample("last hunter2-hunter2")).unwrap();
            assert_eq!(load_metadata::<Sample>(run).unwrap(), sample("last ***"));
        });
    }

    #[test]
    fn a_closed_run_keeps_its_metadata() {
        check(|run, redactor| {
            run.close(redactor, &sample("the end")).unwrap();
            let error = save_metadata(run, redactor, &sample("more")).unwrap_err();
            assert!(matches!(error, StoreError::Closed { .. }), "{error}");
            assert_eq!(load_metadata::<Sample>(run).unwrap(), sample("the end"));
        });
    }

    #[test]
    fn metadata_of_another_shape_names_the_file() {
        check(|run, redactor| {
            save_metadata(run, redactor, &[1, 2]).unwrap();
            let error = load_metadata::<Sample>(run).unwrap_err().to_string();
            assert!(error.ends_with("metadata.json is not the JSON that was expected"), "{error}");
        });
    }
}
