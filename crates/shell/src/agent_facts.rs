//! Facts about an agent's part of a run, in words: model, duration, tokens and cost. What is not known is left out.

use egress::model_route::{ModelUsage, TokenCount};
use engine::agent_result::AgentResult;
use engine::record::ExitRecord;

use crate::price_list::estimate_cost;
use crate::ui::Ui;

/// One agent in one box.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentFacts<'a> {
    pub model: Option<&'a str>,
    pub exit: Option<&'a ExitRecord>,
    pub result: Option<&'a AgentResult>,
}

impl AgentFacts<'_> {
    /// Shows model, time and tokens as lines of the result, as far as they are known.
    pub fn show(self, ui: &Ui) {
        let time = self.exit.map(|exit| render_duration(exit.wall_ms));
        let model = self.model.map(str::to_owned);
        for (label, value) in [("model", model), ("agent time", time), ("tokens", self.tokens())] {
            if let Some(value) = value {
                ui.result(label, &value);
            }
        }
    }

    fn counted(self) -> Option<ModelUsage> {
        let usage = self.exit?.egress.as_ref()?.usage.clone();
        Some(usage).filter(|usage| usage.tokens() > 0)
    }

    /// Tokens by the host's own count; an agent's count is its claim.
    pub fn tokens(self) -> Option<String> {
        if let Some(usage) = self.counted() {
            let estimate = if usage.estimated > 0 { ", in part estimated" } else { "" };
            let read = usage.input + usage.cache_read + usage.cache_write;
            return Some(format!("{read} read, {} written{estimate}", usage.output));
        }
        let claim = self.result.filter(|claim| claim.input_tokens + claim.output_tokens > 0)?;
        let AgentResult { input_tokens, output_tokens, .. } = claim;
        Some(format!("{input_tokens} read, {output_tokens} written, by the agent's account"))
    }

    /// Cost by the user's price, by the agent's account, or by the price list.
    pub fn cost(self) -> Option<String> {
        let claimed = self.result.and_then(|claim| claim.cost_usd);
        match (self.counted(), claimed, self.model) {
            (Some(usage), _, _) if usage.usd > 0.0 => Some(format!("{:.2} dollars", usage.usd)),
            (_, Some(usd), _) if usd > 0.0 => {
                Some(format!("{usd:.2} dollars, by the agent's account"))
            }
            (Some(usage), _, Some(model)) => {
                let ModelUsage { input, output, cache_read, cache_write, .. } = usage;
                estimate_cost(model, &TokenCount { input, output, cache_read, cache_write })
            }
            _ => None,
        }
    }
}

/// A duration in its two largest units: `42 s`, `3 min 5 s`, `2 h 10 min`.
pub fn render_duration(millis: u64) -> String {
    let secs = millis / 1000;
    match secs {
        0 => format!("{:.1} s", std::time::Duration::from_millis(millis).as_secs_f64()),
        1..60 => format!("{secs} s"),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", secs / 3600, secs % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_two_units() {
        for (millis, expected) in [
            (0, "0.0 s"),
            (640, "0.6 s"),
            (42_900, "42 s"),
            (185_000, "3 min 5 s"),
            (7_800_000, "2 h 10 min"),
        ] {
            assert_eq!(render_duration(millis), expected);
        }
    }
}
