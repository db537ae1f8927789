//! Usage of the model by a run, and the check of its caps.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::spec::Caps;

/// Tokens of one call or of many; the kinds do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// Read by the model, cached ones not included.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl TokenCount {
    pub(super) fn total(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }
}

/// Usage of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spend {
    #[serde(flatten)]
    pub tokens: TokenCount,
    /// Its cost in dollars, as far as prices are known.
    pub usd: f64,
    /// True if the server reported no usage and the byte count gave an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUsage {
    pub requests: u64,
    /// Tokens read by the model, cached ones not included.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Cost in dollars, as far as prices are known.
    pub usd: f64,
    /// Calls whose tokens are an estimate, because the server reported none.
    pub estimated: u64,
    /// The cap that stopped a call.
    pub cap_hit: Option<String>,
    /// Time at which the server accepts calls again; cleared once it accepts one.
    pub waiting_until: Option<Timestamp>,
    pub by_status: BTreeMap<u16, u64>,
}

impl ModelUsage {
    pub(crate) fn add(&mut self, spend: &Spend) {
        self.input += spend.tokens.input;
        self.output += spend.tokens.output;
        self.cache_read += spend.tokens.cache_read;
        self.cache_write += spend.tokens.cache_write;
        self.usd += spend.usd;
        self.estimated += u64::from(spend.estimated);
    }

    /// All kinds together.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }

    /// Returns the cap that is reached, if one is.
    pub(crate) fn reached(&self, caps: &Caps) -> Option<String> {
        if let Some(max) = caps.max_usd.filter(|max| self.usd >= *max) {
            return Some(format!("{:.2} of {max:.2} dollars are spent", self.usd));
        }
        if let Some(max) = caps.max_tokens.filter(|max| self.tokens() >= *max) {
            return Some(format!("{} of {max} tokens are used", self.tokens()));
        }
        let max = caps.max_requests.filter(|max| self.requests >= *max)?;
        Some(format!("{} of {max} calls are made", self.requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cap_stops_by_itself_and_says_so() {
        let usage =
            ModelUsage { requests: 3, input: 70, output: 30, usd: 1.5, ..Default::default() };
        let reached = |caps: Caps| usage.reached(&caps);
        assert_eq!(reached(Caps::default()), None);
        let caps = Caps { max_usd: Some(1.6), max_tokens: Some(101), max_requests: Some(4) };
        assert_eq!(reached(caps), None);
        let usd = reached(Caps { max_usd: Some(1.5), ..caps });
        assert_eq!(usd.as_deref(), Some("1.50 of 1.50 dollars are spent"));
        let tokens = reached(Caps { max_tokens: Some(100), ..caps });
        assert_eq!(tokens.as_deref(), Some("100 of 100 tokens are used"));
        let calls = reached(Caps { max_requests: Some(3), ..caps });
        assert_eq!(calls.as_deref(), Some("3 of 3 calls are made"));
    }
}
