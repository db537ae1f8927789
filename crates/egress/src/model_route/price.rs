//! Prices of tokens.

use std::collections::BTreeMap;

use model::wire::Price;
use serde::{Deserialize, Serialize};

use super::usage::TokenCount;

/// Prices by model name or by prefix of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the cost of `tokens` in dollars. A model without a price counts as the most expensive one, so
    /// that a cap holds whatever a server calls its models.
    #[must_use]
    pub fn cost(&self, model: &str, tokens: &TokenCount) -> f64 {
        let by_name = self.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        let longest = by_name.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price);
        longest.map_or_else(
            || self.0.values().map(|price| cost_of(price, tokens)).fold(0.0, f64::max),
            |price| cost_of(&price, tokens),
        )
    }

    /// Returns the most that a prompt and an answer can cost, whatever the model and whether the prompt is cached.
    pub(super) fn most(&self, prompt: u64, answer: u64) -> f64 {
        let count = |input, cache_read, cache_write| TokenCount {
            input,
            output: answer,
            cache_read,
            cache_write,
        };
        let kinds = [count(prompt, 0, 0), count(0, prompt, 0), count(0, 0, prompt)];
        let costs = self.0.values().flat_map(|price| kinds.map(|kind| cost_of(price, &kind)));
        costs.fold(0.0, f64::max)
    }
}

#[expect(clippy::cast_precision_loss, reason = "no count of tokens comes near 2^52")]
fn cost_of(price: &Price, tokens: &TokenCount) -> f64 {
    let parts = [
        (tokens.input, price.input),
        (tokens.output, price.output),
        (tokens.cache_read, price.cache_read),
        (tokens.cache_write, price.cache_write),
    ];
    parts.into_iter().map(|(count, price)| count as f64 * price / 1e6).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        let price = |input, output| Price { input, output, cache_read: 0.5, cache_write: 6.0 };
        let known = [("large", price(5.0, 25.0)), ("large-mini", price(1.0, 5.0))];
        Prices(known.into_iter().map(|(name, price)| (name.to_owned(), price)).collect())
    }

    fn check(model: &str, expected: f64) {
        let tokens = TokenCount { input: 1000, output: 100, cache_read: 2000, cache_write: 500 };
        let cost = prices().cost(model, &tokens);
        assert!((cost - expected).abs() < 1e-9, "{model}: {cost}");
    }

    #[test]
    fn the_longest_name_that_fits_gives_the_price() {
        check("large-2025", 0.005 + 0.0025 + 0.001 + 0.003);
        check("large-mini-2025", 0.001 + 0.0005 + 0.001 + 0.003);
    }

    #[test]
    fn an_unknown_model_is_as_dear_as_the_dearest() {
        check("other", 0.005 + 0.0025 + 0.001 + 0.003);
        assert!(Prices::default().cost("other", &TokenCount::default()) < 1e-12);
    }
}
