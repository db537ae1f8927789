//! APIs of language models, and the price of their tokens.

use serde::{Deserialize, Serialize};

/// An HTTP API of language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireApi {
    /// Anthropic's `POST /v1/messages`.
    Messages,
    /// OpenAI's `POST /v1/chat/completions`.
    Chat,
    /// OpenAI's `POST /v1/responses`.
    Responses,
}

/// Dollars for a million tokens of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens that the model reads, without cached ones.
    pub input: f64,
    /// Tokens that the model writes.
    pub output: f64,
    #[serde(default)]
    pub cache_read: f64,
    /// Tokens that go into its cache.
    #[serde(default)]
    pub cache_write: f64,
}

impl WireApi {
    pub const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];

    /// Name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_records() {
        for api in WireApi::ALL {
            assert_eq!(serde_json::to_value(api).unwrap(), api.name());
            assert_eq!(WireApi::parse(api.name()), Some(api));
        }
        assert_eq!(WireApi::parse("Chat"), None);
    }
}
