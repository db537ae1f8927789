//! The JSON schemas, compiled once. Every document is validated when it is read.

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// `result.json`
    Result,
    /// `claude_review.json`
    Review,
    /// `test_manifest.json`
    TestManifest,
    /// `CLQ-xxx.json`
    Clarification,
    /// `UAT-xxx.json`
    Uat,
    /// `docs_manifest.json`
    DocsManifest,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("not valid JSON: {0}")]
    Syntax(String),
    #[error("{title} at {place}: {problem}")]
    Shape { title: &'static str, place: String, problem: String },
}

impl Schema {
    /// The file that the schema ships as, without its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Review => "claude_review",
            Self::TestManifest => "test_manifest",
            Self::Clarification => "clarification",
            Self::Uat => "uat",
            Self::DocsManifest => "docs_manifest",
        }
    }

    /// Validates a document and returns the first fault.
    pub(crate) fn check(self, value: &Value) -> Result<(), SchemaError> {
        let Err(fault) = self.validator().validate(value) else { return Ok(()) };
        let place = fault.instance_path.to_string();
        Err(SchemaError::Shape {
            title: self.name(),
            place: if place.is_empty() { "/".to_owned() } else { place },
            problem: fault.to_string(),
        })
    }

    pub(crate) fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, SchemaError> {
        let syntax = |error: serde_json::Error| SchemaError::Syntax(error.to_string());
        let value: Value = serde_json::from_slice(bytes).map_err(syntax)?;
        self.check(&value)?;
        serde_json::from_value(value).map_err(syntax)
    }

    fn text(self) -> &'static str {
        match self {
            Self::Result => include_str!("../../../../schemas/result.schema.json"),
            Self::Review => include_str!("../../../../schemas/claude_review.schema.json"),
            Self::TestManifest => include_str!("../../../../schemas/test_manifest.schema.json"),
            Self::Clarification => include_str!("../../../../schemas/clarification.schema.json"),
            Self::Uat => include_str!("../../../../schemas/uat.schema.json"),
            Self::DocsManifest => include_str!("../../../../schemas/docs_manifest.schema.json"),
        }
    }

    fn validator(self) -> &'static Validator {
        static COMPILED: [OnceLock<Validator>; 6] = [const { OnceLock::new() }; 6];
        COMPILED[self as usize].get_or_init(|| compile(self.text()))
    }
}

/// Renders a JSON file: two spaces of indentation, a line break at the end.
pub(crate) fn render_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("our types have only string keys");
    format!("{text}\n")
}

fn compile(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).expect("the schemas ship with the program");
    jsonschema::options()
        .with_draft(Draft::Draft7)
        .should_validate_formats(true)
        .build(&schema)
        .expect("the schemas ship with the program")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_schema_compiles_and_tells_where_a_fault_is() {
        for schema in [
            Schema::Result,
            Schema::Review,
            Schema::TestManifest,
            Schema::Clarification,
            Schema::Uat,
            Schema::DocsManifest,
        ] {
            assert!(schema.check(&json!({})).is_err(), "{}", schema.name());
        }
        let bad =
            json!({"version": 1, "suites": [{"name": "unit", "status": "ok", "artifacts": {}}]});
        let error = Schema::TestManifest.check(&bad).unwrap_err().to_string();
        assert!(error.contains("/suites/0/status"), "{error}");
    }

    #[test]
    fn the_sample_result_of_the_specification_is_valid() {
        let sample = json!({
            "version": 1, "project": "myproject", "workstream": "test_framework",
            "microcommit": "COMMIT-TF-001", "status": "passed", "base_sha": "abc123d",
            "commit_sha": "def789a", "touched_files_count": 5,
            "timestamps": {"started": "2025-01-15T12:00:00Z", "ended": "2025-01-15T12:05:30Z", "duration_seconds": 330},
            "stages": {"load": {"status": "passed", "duration_seconds": 0.5}}, "notes": ""
        });
        assert_eq!(Schema::Result.check(&sample), Ok(()));
    }

    #[test]
    fn dates_are_checked() {
        let bad = json!({
            "version": 1, "project": "p", "workstream": "w", "microcommit": null, "status": "failed",
            "timestamps": {"started": "yesterday", "ended": "2025-01-15T12:05:30Z"}
        });
        assert!(Schema::Result.check(&bad).is_err());
    }
}
