//! Names and ids, checked once.
//!
//! Each type is a string that keeps a rule. Only [`parse`](ProjectName::parse) checks it, whether the value ends up in a
//! path, a ref, an argument or a query. Ids serialise as plain strings and are checked again on deserialisation.

mod checked;
mod git;
mod name;
mod run;
mod work;

pub use git::{BranchName, RemoteName, Sha};
pub use name::{AgentName, BoxName, Override, ProjectName, Slug};
pub use run::RunId;
pub use work::{ClarificationId, MicroCommitId, UatId, WorkstreamId};

use crate::escape::escape_line;
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{value}\" is not a valid {kind}: {rule}")]
pub struct IdError {
    kind: &'static str,
    value: String,
    rule: Cow<'static, str>,
}

impl IdError {
    fn new(kind: &'static str, value: &str, rule: Cow<'static, str>) -> Self {
        Self { kind, value: shorten(value), rule }
    }

    /// Kind of the id, such as `branch name`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The text, escaped for display and cut to 80 characters.
    pub fn value(&self) -> &str {
        &self.value
    }

    pub fn rule(&self) -> &str {
        &self.rule
    }
}

const MAX_SHOWN_CHARS: usize = 80;

/// Escapes and cuts, never through the middle of an escape.
fn shorten(value: &str) -> String {
    let mut shown = String::new();
    let mut room = MAX_SHOWN_CHARS;
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        let escaped = escape_line(c.encode_utf8(&mut [0; 4])).into_owned();
        let width = escaped.chars().count();
        let is_last = rest.as_str().is_empty();
        if width > room || (width == room && !is_last) {
            shown.push('…');
            break;
        }
        room -= width;
        shown.push_str(&escaped);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_kind_the_value_and_the_rule() {
        let error = BoxName::parse("Box\x1b").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"Box\\x1b\" is not a valid box name: 1 to 32 of a-z, 0-9 and '-', starting with a letter"
        );
        assert_eq!((error.kind(), error.value()), ("box name", "Box\\x1b"));
        assert!(error.rule().starts_with("1 to 32"));
    }

    #[test]
    fn a_long_value_is_cut_to_80_characters() {
        let shown = |value: &str| Slug::parse(value).unwrap_err().value().chars().count();
        assert_eq!(shown(&"A".repeat(80)), 80);
        assert_eq!(shown(&"A".repeat(5000)), 80);
        assert!(shown(&"\u{202e}".repeat(5000)) <= 80);
    }

    #[test]
    fn ids_are_plain_strings_in_json_and_are_checked_on_the_way_in() {
        let slug = Slug::parse("fix-login").unwrap();
        assert_eq!(serde_json::to_string(&slug).unwrap(), "\"fix-login\"");
        assert_eq!(serde_json::from_str::<Slug>("\"fix-login\"").unwrap(), slug);
        let error = serde_json::from_str::<Slug>("\"../etc\"").unwrap_err().to_string();
        assert!(error.contains("is not a valid slug"), "{error}");
    }

    #[test]
    fn ids_are_read_by_from_str_and_shown_as_they_are() {
        let slug: Slug = "fix-login".parse().unwrap();
        assert_eq!(
            format!("{slug} {slug:?} {slug:>10}"),
            "fix-login Slug(\"fix-login\")  fix-login"
        );
    }
}
