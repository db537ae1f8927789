//! A secret: a string that prints as `***`.
//!
//! The type guards against accidents (a `{:?}` in a log line, a struct that is serialised whole), not against code that
//! calls [`Secret::expose`]. There is no `PartialEq`, since comparing byte by byte leaks by its timing, and no `Serialize`.

use std::fmt;

/// Replacement of a secret wherever text is shown or stored.
pub const MASK: &str = "***";

/// A value that must not be shown, logged or stored in the clear.
#[derive(Clone, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value. Review each call.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_itself_in_no_format() {
        let secret = Secret::new("hunter2-hunter2");
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?} {:?}", Some(&secret)).matches('h').count(),
            0
        );
        assert_eq!(secret.to_string(), "***");
    }

    #[test]
    fn a_secret_is_read_from_a_plain_string() {
        let secret: Secret = serde_json::from_str("\"abc\"").unwrap();
        assert_eq!(secret.expose(), "abc");
        assert!(!secret.is_empty());
        assert!(Secret::new("").is_empty());
    }
}
