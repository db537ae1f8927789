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
    let mut known = LIST.models.iter();
    let (known, (input, output)) = known.find(|(known, _)| is_version_of(name, known))?;
    let prices = Prices([(known.clone(), price(*input, *output))].into());
    let usd = prices.cost(name, tokens);
    Some(format!("about {usd:.2} dollars, an estimate by the price list of {}", LIST.as_of))
}

/// True for the name itself, and for the name with a date or `latest`. Another word is another model, with another price.
fn is_version_of(name: &str, known: &str) -> bool {
    let Some(rest) = name.strip_prefix(known) else { return false };
    let Some(version) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    let digits = |count: usize, text: &str| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let parts: Vec<&str> = version.split('-').collect();
    match parts.as_slice() {
        ["latest"] => true,
        [date] => digits(8, date),
        [year, month, day] => digits(4, year) && digits(2, month) && digits(2, day),
        _ => false,
    }
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
    fn a_name_with_or_without_a_date_has_an_estimate_and_another_model_has_none() {
        check("claude-sonnet-4-5-20250929", Some("4.50"));
        check("anthropic/claude-sonnet-4-5", Some("4.50"));
        check("claude-3-5-haiku-latest", Some("1.20"));
        check("claude-opus-4@20250514", Some("22.50"));
        check("gpt-5-mini-2025-08-07", Some("0.45"));
        check("gpt-5.1-codex", Some("2.25"));
        for other in ["qwen3-coder", "o3-pro", "gpt-5.2-pro", "gpt-4.1-nano", "gpt-5-mini-2025"] {
            check(other, None);
        }
    }
}
