//! A path in a tree: bytes for git, text for people.

use std::fmt;

use model::escape::escape_line;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Path from the root of a tree, as bytes. It is serialised as escaped text, so a path read from a record is for display only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreePath(Vec<u8>);

impl TreePath {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for TreePath {
    /// One line, without control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_line(&String::from_utf8_lossy(&self.0)))
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_on_one_line() {
        let path = TreePath::new(b"a\nb \xff\x1b[1m".to_vec());
        assert_eq!(path.to_string(), "a\\nb \u{fffd}\\x1b[1m");
        assert_eq!(path.as_bytes().len(), 9);
    }
}
