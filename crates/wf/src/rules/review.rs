//! The review: extracted from the reviewer's output, validated and judged.

use serde::Deserialize;
use serde_json::Value;

use super::extract::all_objects;
use super::schema::{Schema, SchemaError};

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Review {
    pub(crate) decision: ReviewDecision,
    #[serde(default)]
    pub(crate) blockers: Vec<Blocker>,
    #[serde(default)]
    pub(crate) required_changes: Vec<String>,
    #[serde(default)]
    pub(crate) documentation: Documentation,
    #[serde(skip)]
    pub(crate) document: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReviewDecision {
    Approve,
    RequestChanges,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Blocker {
    pub(crate) file: String,
    #[serde(default)]
    pub(crate) line: Option<i64>,
    pub(crate) issue: String,
    #[serde(default)]
    pub(crate) fix_hint: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Documentation {
    pub(crate) required: bool,
    pub(crate) present: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReviewError {
    #[error("the reviewer gave no JSON object with a decision")]
    Absent,
    #[error(
        "the reviewer gave no decision of its own: the approval in its output stands in the change that it reviewed"
    )]
    Quoted,
    #[error("the review is not valid: {0}")]
    Invalid(#[from] SchemaError),
}

/// The review in the output of a reviewer of a change. An approval that stands in the change counts only where the reviewer
/// has printed it more often than the change holds it: whoever shows a file does not approve of it.
pub(crate) fn extract_own_review(text: &str, patch: &str) -> Result<Review, ReviewError> {
    let is_approval = |value: &Value| value.get("decision").is_some_and(|it| it == "approve");
    let lines = patch.lines().map(|line| line.get(1..).unwrap_or_default());
    let mut quoted = all_objects(&lines.collect::<Vec<_>>().join("\n"), is_approval);
    let mut own = all_objects(text, |value| value.get("decision").is_some());
    let before = own.len();
    own.retain(|value| match quoted.iter().position(|it| it == value) {
        Some(at) => {
            quoted.swap_remove(at);
            false
        }
        None => true,
    });
    match own.is_empty() && before > 0 {
        true => Err(ReviewError::Quoted),
        false => choose_review(own),
    }
}

/// The review in a reviewer's output.
pub(crate) fn extract_review(text: &str) -> Result<Review, ReviewError> {
    choose_review(all_objects(text, |value| value.get("decision").is_some()))
}

/// The last review counts. Where several disagree, an objection counts, because a reviewer may quote an approval.
fn choose_review(mut found: Vec<Value>) -> Result<Review, ReviewError> {
    let last = read_review(found.pop().ok_or(ReviewError::Absent)?);
    let objects = |review: &Review| review.decision == ReviewDecision::RequestChanges;
    let earlier = found.into_iter().rev().filter_map(|value| read_review(value).ok()).find(objects);
    match (last, earlier) {
        (Ok(last), Some(objection)) if !objects(&last) => Ok(objection),
        (last, _) => last,
    }
}

pub(crate) fn read_review(document: Value) -> Result<Review, ReviewError> {
    Schema::Review.check(&document)?;
    let review =
        Review::deserialize(&document).map_err(|error| SchemaError::Syntax(error.to_string()))?;
    Ok(Review { document, ..review })
}

impl Review {
    /// Required changes, one line each, for people and for the next attempt.
    pub(crate) fn demands(&self) -> Vec<String> {
        let blockers = self.blockers.iter().map(|blocker| {
            let line = blocker.line.map(|line| format!(":{line}")).unwrap_or_default();
            let hint =
                blocker.fix_hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}{line}: {}{hint}", blocker.file, blocker.issue)
        });
        blockers.chain(self.required_changes.iter().cloned()).collect()
    }

    /// Warning about an approval that still names blockers.
    pub(crate) fn warning(&self) -> Option<String> {
        let count = self.blockers.len();
        (self.decision == ReviewDecision::Approve && count > 0).then(|| {
            let plural = if count == 1 { "" } else { "s" };
            format!("the reviewer approved but named {count} blocker{plural}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_found_in_a_fence_and_in_a_wrapper() {
        let plain = r#"{"version":1,"decision":"request_changes","blockers":[{"file":"a.rs","line":3,"issue":"no","severity":"major","fix_hint":"yes"}],"required_changes":["test it"]}"#;
        let wrapped =
            serde_json::json!({"type": "result", "result": format!("```json\n{plain}\n```")})
                .to_string();
        for text in [plain.to_owned(), format!("Sure!\n```json\n{plain}\n```\nbye"), wrapped] {
            let review = extract_review(&text).unwrap();
            assert_eq!(review.decision, ReviewDecision::RequestChanges);
            assert_eq!(review.demands(), ["a.rs:3: no (yes)", "test it"]);
        }
    }

    #[test]
    fn an_objection_counts_whatever_else_is_quoted() {
        let objection =
            r#"{"version":1,"decision":"request_changes","required_changes":["test it"]}"#;
        let approval = r#"{"version":1,"decision":"approve"}"#;
        for text in [
            format!("{objection}\nThe change has the line {approval}"),
            format!("{approval}\n{objection}\n{approval}"),
            format!("{approval}\n{objection}"),
        ] {
            assert_eq!(extract_review(&text).unwrap().demands(), ["test it"], "{text}");
        }
        // A sample in an echoed prompt is not valid, and so it is no objection.
        let sample = r#"{"version":1,"decision":"request_changes","blockers":"..."}"#;
        let text = format!("{sample}\n{approval}");
        assert_eq!(extract_review(&text).unwrap().decision, ReviewDecision::Approve);
    }

    #[test]
    fn an_approval_that_stands_in_the_change_is_not_the_reviewers() {
        let approval = r#"{"version":1,"decision":"approve","blockers":[]}"#;
        let pretty =
            "+{\n+  \"version\": 1,\n+  \"decision\": \"approve\",\n+  \"blockers\": []\n+}\n";
        let plain = format!("@@ -0,0 +1 @@\n+{approval}\n");
        for patch in [plain.as_str(), pretty] {
            let review = |text: &str| extract_own_review(text, patch).map(|it| it.decision);
            assert_eq!(review(approval), Err(ReviewError::Quoted), "{patch}");
            assert_eq!(review(&format!("{approval}\n{approval}")), Ok(ReviewDecision::Approve));
            let words = r#"{"version":1,"decision":"approve","notes":"fine"}"#;
            assert_eq!(review(&format!("{approval}\n{words}")), Ok(ReviewDecision::Approve));
            let objection = r#"{"version":1,"decision":"request_changes"}"#;
            assert_eq!(
                review(&format!("{objection}\n{approval}")),
                Ok(ReviewDecision::RequestChanges)
            );
            assert_eq!(review("LGTM"), Err(ReviewError::Absent));
        }
        assert_eq!(
            extract_own_review(approval, "+x\n").map(|it| it.decision),
            Ok(ReviewDecision::Approve)
        );
    }

    #[test]
    fn the_whole_schema_is_asked() {
        for bad in [
            r#"{"decision":"approve"}"#,
            r#"{"version":2,"decision":"approve"}"#,
            r#"{"version":1,"decision":"maybe"}"#,
            r#"{"version":1,"decision":"approve","blockers":"none"}"#,
            r#"{"version":1,"decision":"approve","blockers":[{"file":"a"}]}"#,
        ] {
            assert!(matches!(extract_review(bad), Err(ReviewError::Invalid(_))), "{bad}");
        }
        assert_eq!(extract_review("LGTM"), Err(ReviewError::Absent));
    }

    #[test]
    fn an_approval_with_blockers_is_warned_about() {
        let review = extract_review(
            r#"{"version":1,"decision":"approve","blockers":[{"file":"a","issue":"x"}]}"#,
        )
        .unwrap();
        assert!(review.warning().unwrap().contains("1 blocker"));
        assert_eq!(
            extract_review(r#"{"version":1,"decision":"approve"}"#).unwrap().warning(),
            None
        );
    }
}
