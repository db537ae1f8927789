//! Every JSON file that wf writes keeps the schema that ships with it.

use std::path::Path;

use serde_json::Value;

use crate::play::{APPROVE, GOOD, REJECT, person_with_one};
use crate::support::{Person, read};

/// Reads a file as the conventions want it and checks it against its schema.
#[track_caller]
fn keeps(path: &Path, schema: &str) {
    let text = read(path);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let pretty = serde_json::to_string_pretty(&value).expect("text") + "\n";
    assert_eq!(text.lines().count(), pretty.lines().count(), "two blanks of indentation");
    assert!(text.ends_with("}\n"), "{path:?} ends with a newline");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let schema: Value = serde_json::from_str(&read(&folder.join(schema))).expect("a schema");
    let errors: Vec<String> = jsonschema::validator_for(&schema)
        .expect("a schema")
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{path:?}: {errors:?}");
}

fn run_keeps(person: &Person) {
    let run = person.last_run();
    for (file, schema) in [
        ("result.json", "result.schema.json"),
        ("claude_review.json", "claude_review.schema.json"),
        ("test_manifest.json", "test_manifest.schema.json"),
    ] {
        if file == "result.json" || run.join(file).exists() {
            keeps(&run.join(file), schema);
        }
    }
}

#[test]
fn what_is_written_keeps_its_schema() {
    let Some(person) = person_with_one() else { return };
    let dir = person.workstream_dir("tf");
    let ask = "[[step]]\nask = { question = \"Which?\", options = [\"a\"] }\n";
    person.cast(ask, APPROVE);
    person.run_once(8);
    run_keeps(&person);
    keeps(&dir.join("clarifications/pending/CLQ-001.json"), "clarification.schema.json");
    person.ok(&["clarify", "answer", "CLQ-001", "1"]);
    keeps(&dir.join("clarifications/answered/CLQ-001.json"), "clarification.schema.json");
    person.cast(GOOD, REJECT);
    person.run_once(6);
    run_keeps(&person);
    person.cast(GOOD, APPROVE);
    person.run_once(0);
    run_keeps(&person);
    keeps(&dir.join("uat/pending/UAT-001.json"), "uat.schema.json");
    person.ok(&["uat", "fail", "UAT-001", "--issues", "too slow"]);
    keeps(&dir.join("uat/failed/UAT-001.json"), "uat.schema.json");
}
