//! Target of an update: the tip of upstream's branch, its latest release, or a name.

use std::fmt;

use model::id::Sha;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Target {
    #[default]
    Tip,
    /// The tag with the highest version that is no preview.
    LatestTag,
    Named(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' cannot be the name of a tag, a branch or a commit")]
pub(crate) struct BadTarget {
    text: String,
}

impl Target {
    /// Parses `tip`, `latest-tag` or a name.
    pub(crate) fn parse(text: &str) -> Result<Self, BadTarget> {
        let odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
        match text {
            "tip" => Ok(Self::Tip),
            "latest-tag" => Ok(Self::LatestTag),
            _ if text.is_empty() || text.starts_with('-') || text.contains("..") => {
                Err(BadTarget { text: shown(text) })
            }
            _ if text.contains(odd) || text.len() > 200 => Err(BadTarget { text: shown(text) }),
            _ => Ok(Self::Named(text.to_owned())),
        }
    }
}

fn shown(text: &str) -> String {
    model::escape::escape_line(&text.chars().take(60).collect::<String>()).into_owned()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tip => "tip",
            Self::LatestTag => "latest-tag",
            Self::Named(name) => name,
        })
    }
}

impl TryFrom<String> for Target {
    type Error = BadTarget;

    fn try_from(text: String) -> Result<Self, BadTarget> {
        Self::parse(&text)
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Without `refs/tags/`.
    pub(crate) name: String,
    /// The tagged object.
    pub(crate) id: Sha,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoLatest {
    #[error(
        "upstream has no tag that looks like a release, such as v1.2.3; use --target tip or name one"
    )]
    None,
    #[error(
        "upstream's tags {one} and {other} are the same version on different commits; name the one you mean with --target"
    )]
    Ambiguous { one: String, other: String },
}

/// The tag with the highest version. Previews (`v2.0.0-rc1`) do not count.
pub(crate) fn choose_latest(tags: &[Tag]) -> Result<&Tag, NoLatest> {
    let versions = tags.iter().filter_map(|tag| Some((parse_version(&tag.name)?, tag)));
    let mut latest: Option<([u64; 4], &Tag)> = None;
    for (version, tag) in versions {
        match latest {
            Some((known, _)) if version < known => {}
            Some((known, other)) if version == known && tag.id != other.id => {
                // A clash below the top does not matter, and this may still turn out to be below it.
                let higher = |tag: &Tag| parse_version(&tag.name) > Some(version);
                if !tags.iter().any(higher) {
                    let (one, other) = (other.name.clone(), tag.name.clone());
                    return Err(NoLatest::Ambiguous { one, other });
                }
            }
            _ => latest = Some((version, tag)),
        }
    }
    latest.map(|(_, tag)| tag).ok_or(NoLatest::None)
}

/// `v1.2.3` or `1.2`: two to four numbers; parts that are missing count as 0.
fn parse_version(name: &str) -> Option<[u64; 4]> {
    let digits = name.strip_prefix(['v', 'V']).unwrap_or(name);
    let parts: Vec<&str> = digits.split('.').collect();
    if !(2..=4).contains(&parts.len()) {
        return None;
    }
    let mut version = [0; 4];
    for (slot, part) in version.iter_mut().zip(parts) {
        let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *slot = plain.then(|| part.parse().ok()).flatten()?;
    }
    Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest(names: &[&str]) -> Result<String, NoLatest> {
        let id = |n: usize| Sha::parse(&format!("{n:040}")).expect("legal");
        let tag = |(n, name): (usize, &&str)| Tag { name: (*name).to_owned(), id: id(n) };
        let tags: Vec<Tag> = names.iter().enumerate().map(tag).collect();
        choose_latest(&tags).map(|tag| tag.name.clone())
    }

    #[test]
    fn versions_are_compared_by_number_and_previews_do_not_count() {
        let names = ["v1.9.0", "v1.10.0", "v2.0.0-rc1", "nightly", "1.2"];
        assert_eq!(latest(&names), Ok("v1.10.0".to_owned()));
        assert_eq!(latest(&["0.1", "v0.1.1"]), Ok("v0.1.1".to_owned()));
    }

    #[test]
    fn no_release_and_two_of_the_same_are_told_apart() {
        assert_eq!(latest(&["nightly", "v1"]), Err(NoLatest::None));
        let error = latest(&["v1.0.0", "1.0"]).expect_err("ambiguous").to_string();
        assert!(error.contains("v1.0.0 and 1.0"), "{error}");
        assert_eq!(latest(&["v1.0.0", "1.0", "v1.1"]), Ok("v1.1".to_owned()));
    }

    #[test]
    fn a_name_that_git_would_take_for_something_else_is_refused() {
        for text in ["", "-x", "a b", "a..b", "HEAD~1", "a^", "x:y", "a\u{7}"] {
            assert!(Target::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(Target::parse("release/1.x"), Ok(Target::Named("release/1.x".to_owned())));
    }
}
