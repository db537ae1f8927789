//! List prices of well-known models, for an estimate of what a run cost where the user gives no price.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use egress::model_route::{Prices, TokenCount};
use serde::Deserialize;

use crate::agent_settings::price;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    /// Day on which the prices were read.
    as_of: String,
    models: BTreeMap<String, (f64, f64)>,
}

static LIST: LazyLock<PriceList> =
    LazyLock::new(|| toml::from_str(include_str!("prices.toml")).expect("a test parses it"));

/// The cost of tokens by the list, in words; `None` for a model that is not in it.
pub fn estimate_cost(model: &str, tokens: &TokenCount) -> Option<String> {
    // A server's prefix is not part of the model's name.
    let name = model.rsplit('/').next().unwrap_or(model);
    let known = LIST.models.iter().filter(|(known, _)| name.starts_with(known.as_str()));
    let (known, (input, output)) = known.max_by_key(|(known, _)| known.len())?;
    let prices = Prices([(known.clone(), price(*input, *output))].into());
    let usd = prices.cost(name, tokens);
    Some(format!("about {usd:.2} dollars, an estimate by the price list of {}", LIST.as_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(model: &str, expected: Option<&str>) {
        let tokens =
            TokenCount { input: 1_000_000, output: 100_000, cache_read: 0, cache_write: 0 };
        let words = estimate_cost(model, &tokens);
        let expected = expected.map(|usd| {
            format!("about {usd} dollars, an estimate by the price list of {}", LIST.as_of)
        });
        assert_eq!(words, expected, "{model}");
    }

    #[test]
    fn the_longest_name_that_fits_gives_the_estimate() {
        check("claude-sonnet-4-5-20250929", Some("4.50"));
        check("anthropic/claude-sonnet-4-5", Some("4.50"));
        check("gpt-5-mini-2025", Some("0.45"));
        check("gpt-5.1-codex", Some("2.25"));
        check("qwen3-coder", None);
    }
}
