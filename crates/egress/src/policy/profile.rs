//! Egress profiles: the base that a policy starts from. A new profile is a new variant here; the compiler lists the rest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Hosts that a run may reach before its allow rules count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EgressProfile {
    /// Nothing at all, not even the model.
    None,
    /// The model route, and what the allow rules name.
    ModelOnly,
    /// Like [`EgressProfile::ModelOnly`], and the registries of the usual languages and systems.
    Packages,
    /// Any public host. Everything in the box can be sent anywhere.
    Open,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no egress profile is called {0:?}; choose none, model-only, packages or open")]
pub struct UnknownProfile(String);

impl EgressProfile {
    /// All profiles, from closed to open.
    pub const ALL: [Self; 4] = [Self::None, Self::ModelOnly, Self::Packages, Self::Open];

    /// Returns the name in configuration and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ModelOnly => "model-only",
            Self::Packages => "packages",
            Self::Open => "open",
        }
    }
}

impl FromStr for EgressProfile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let known = Self::ALL.into_iter().find(|profile| profile.as_str() == text);
        known.ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

impl fmt::Display for EgressProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_read_back_from_its_word() {
        for profile in EgressProfile::ALL {
            assert_eq!(profile.as_str().parse(), Ok(profile));
            let quoted = format!("\"{profile}\"");
            assert_eq!(serde_json::from_str::<EgressProfile>(&quoted).unwrap(), profile);
        }
    }

    #[test]
    fn an_unknown_word_is_told_the_four() {
        let error = "full".parse::<EgressProfile>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no egress profile is called \"full\"; choose none, model-only, packages or open"
        );
    }
}
