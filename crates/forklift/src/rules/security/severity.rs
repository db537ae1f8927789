//! Severity of a vulnerability: the word of the advisory, else the base score of its CVSS vector.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Severity, in the order of a list: the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    Critical,
    High,
    Medium,
    Low,
    Unknown,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Unknown => "unknown",
        })
    }
}

impl Severity {
    /// Parses the word of a database.
    pub(crate) fn of_word(word: &str) -> Self {
        match word.trim().to_ascii_lowercase().as_str() {
            "critical" => Self::Critical,
            "high" | "important" => Self::High,
            "medium" | "moderate" => Self::Medium,
            "low" | "minor" => Self::Low,
            _ => Self::Unknown,
        }
    }

    /// Rates a base score as the CVSS specification does.
    fn of_score(score: f64) -> Self {
        match score {
            score if score >= 9.0 => Self::Critical,
            score if score >= 7.0 => Self::High,
            score if score >= 4.0 => Self::Medium,
            score if score > 0.0 => Self::Low,
            _ => Self::Unknown,
        }
    }

    /// Rates a CVSS vector of version 3. Other versions are not computed and are unknown, which no limit leaves out.
    pub(crate) fn of_vector(vector: &str) -> Self {
        base_score(vector).map_or(Self::Unknown, Self::of_score)
    }
}

/// Computes the base score of a vector such as `CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H`.
fn base_score(vector: &str) -> Option<f64> {
    let metrics = vector.strip_prefix("CVSS:3.1/").or_else(|| vector.strip_prefix("CVSS:3.0/"))?;
    let metric = |name: &str| {
        let mut found = metrics.split('/').filter_map(|metric| metric.split_once(':'));
        found.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let changed = match metric("S")? {
        "C" => true,
        "U" => false,
        _ => return None,
    };
    let vector = weight(metric("AV")?, &[("N", 0.85), ("A", 0.62), ("L", 0.55), ("P", 0.2)])?;
    let complexity = weight(metric("AC")?, &[("L", 0.77), ("H", 0.44)])?;
    let privileges = match changed {
        true => weight(metric("PR")?, &[("N", 0.85), ("L", 0.68), ("H", 0.5)])?,
        false => weight(metric("PR")?, &[("N", 0.85), ("L", 0.62), ("H", 0.27)])?,
    };
    let interaction = weight(metric("UI")?, &[("N", 0.85), ("R", 0.62)])?;
    let harm = |name| weight(metric(name)?, &[("H", 0.56), ("L", 0.22), ("N", 0.0)]);
    let lost = 1.0 - (1.0 - harm("C")?) * (1.0 - harm("I")?) * (1.0 - harm("A")?);
    let impact = match changed {
        true => 7.52 * (lost - 0.029) - 3.25 * (lost - 0.02_f64).powi(15),
        false => 6.42 * lost,
    };
    if impact <= 0.0 {
        return Some(0.0);
    }
    let exploitability = 8.22 * vector * complexity * privileges * interaction;
    let score = if changed { 1.08 * (impact + exploitability) } else { impact + exploitability };
    Some((score.min(10.0) * 10.0).ceil() / 10.0)
}

fn weight(value: &str, weights: &[(&str, f64)]) -> Option<f64> {
    weights.iter().find(|(name, _)| *name == value).map(|(_, weight)| *weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(vector: &str, score: f64, severity: Severity) {
        let found = base_score(vector).expect("a score");
        assert!((found - score).abs() < 0.05, "{vector}: {found}");
        assert_eq!(Severity::of_vector(vector), severity);
    }

    #[test]
    fn scores_are_those_of_the_specification() {
        check("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8, Severity::Critical);
        check("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H", 7.5, Severity::High);
        check("CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1, Severity::Medium);
        check("CVSS:3.1/AV:P/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N", 1.6, Severity::Low);
        check("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0, Severity::Unknown);
    }

    #[test]
    fn what_cannot_be_computed_is_unknown() {
        for vector in ["", "CVSS:4.0/AV:N", "CVSS:3.1/AV:N", "CVSS:3.1/AV:X/AC:L/PR:N/UI:N/S:U"] {
            assert_eq!(Severity::of_vector(vector), Severity::Unknown, "{vector}");
        }
        assert_eq!(Severity::of_word(" Moderate"), Severity::Medium);
        assert_eq!(Severity::of_word("awful"), Severity::Unknown);
    }
}
