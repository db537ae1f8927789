//! Common parts of all ids: a string behind a check.

use std::borrow::Cow;

/// The rule that a text breaks, for messages.
pub(super) type Rule = Cow<'static, str>;

/// Declares a checked string. `$check` returns the broken rule.
macro_rules! checked_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:path) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks a text; the error says which rule it breaks.
            pub fn parse(text: &str) -> Result<Self, $crate::id::IdError> {
                match $check(text) {
                    Ok(()) => Ok(Self(text.to_owned())),
                    Err(rule) => Err($crate::id::IdError::new($kind, text, rule)),
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::id::IdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::id::IdError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}
pub(super) use checked_id;

pub(super) type Bytes = fn(u8) -> bool;

/// Returns whether a text has `first`, then only `rest`, and 1 to `max` bytes in all.
pub(super) fn is_shaped(text: &str, first: Bytes, rest: Bytes, max: usize) -> bool {
    let Some((&head, tail)) = text.as_bytes().split_first() else {
        return false;
    };
    text.len() <= max && first(head) && tail.iter().copied().all(rest)
}

/// Returns the rule as an error unless it is kept.
pub(super) fn keeps(rule: &'static str, kept: bool) -> Result<(), Rule> {
    if kept { Ok(()) } else { Err(Cow::Borrowed(rule)) }
}
