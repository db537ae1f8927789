//! Counts of people's resolutions by kind of conflict, kind of file, folder and path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Resolution of a file or a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// The fork's side.
    Ours,
    /// Upstream's side.
    Theirs,
    Absent,
    /// The common ancestor's version.
    Base,
    /// Both sides, the fork's first.
    OursTheirs,
    /// Both sides, upstream's first.
    TheirsOurs,
    /// Both changes, which do not touch.
    Apart,
    /// Both changes, which touch.
    Touching,
    /// Both insertions, the fork's first.
    BothOurs,
    /// Both insertions, upstream's first.
    BothTheirs,
    Other,
}

/// Shares of resolutions in other forks.
pub type Shares = BTreeMap<Resolution, f64>;

/// Weight, in cases, of the wider scope within the narrower one, from the widest.
const WEIGHTS: [f64; 4] = [8.0, 6.0, 4.0, 2.0];
/// Factor by which old cases fade with each new one.
const FADING: f64 = 0.97;

/// Resolutions counted by scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Habits {
    #[serde(alias = "places")]
    scopes: BTreeMap<String, Counts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    all: f64,
    each: BTreeMap<Resolution, f64>,
}

/// Scopes of a case, from the widest to the narrowest.
pub type ScopeKeys = [String; 4];

/// Scopes of a kind of conflict: everywhere, in files of this kind, in this folder, at this path.
pub fn scope_keys(kind: &str, path: &str) -> ScopeKeys {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    [
        kind.to_owned(),
        format!("{kind} *{}", file_kind(path)),
        format!("{kind} {folder}/"),
        format!("{kind} {path}"),
    ]
}

/// Extension of a file name, or the name if it has none.
pub fn file_kind(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    match name.rsplit_once('.') {
        Some((before, kind)) if !before.is_empty() => kind,
        Some(_) | None => name,
    }
}

impl Habits {
    /// Likelihood of a resolution in these scopes, starting from its share in other forks.
    pub fn likelihood(&self, scopes: &ScopeKeys, choice: Resolution, anywhere: f64) -> f64 {
        scopes.iter().zip(WEIGHTS).fold(anywhere, |wider, (scope, weight)| {
            let counts = self.scopes.get(scope);
            let all = counts.map_or(0.0, |counts| counts.all);
            let this = counts.and_then(|counts| counts.each.get(&choice)).copied();
            (this.unwrap_or_default() + weight * wider) / (all + weight)
        })
    }

    pub fn learn(&mut self, scopes: ScopeKeys, choice: Resolution) {
        for scope in scopes {
            let counts = self.scopes.entry(scope).or_default();
            counts.all = counts.all * FADING + 1.0;
            counts.each.values_mut().for_each(|count| *count *= FADING);
            *counts.each.entry(choice).or_default() += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_counts_more_than_its_folder() {
        let mut habits = Habits::default();
        for _ in 0..4 {
            habits.learn(scope_keys("content", "a/x.rs"), Resolution::Ours);
            habits.learn(scope_keys("content", "a/y.rs"), Resolution::Theirs);
        }
        let at = |path| habits.likelihood(&scope_keys("content", path), Resolution::Ours, 0.3);
        assert!(at("a/x.rs") > 0.75 && at("a/y.rs") < 0.25, "{} {}", at("a/x.rs"), at("a/y.rs"));
        assert!((0.35..0.55).contains(&at("a/z.rs")));
        assert!((at("b/z.py") - 0.4).abs() < 0.1);
        assert!(
            (habits.likelihood(&scope_keys("binary", "q"), Resolution::Ours, 0.3) - 0.3).abs()
                < 1e-9
        );
    }

    #[test]
    fn habits_that_an_older_version_saved_are_read() {
        let text = r#"{"places":{"content":{"all":1.0,"each":{"ours":1.0}}}}"#;
        let habits: Habits = serde_json::from_str(text).unwrap();
        let likelihood =
            |habits: &Habits| habits.likelihood(&scope_keys("content", "a"), Resolution::Ours, 0.3);
        assert!(likelihood(&habits) > likelihood(&Habits::default()));
    }

    #[test]
    fn a_file_without_a_dot_is_a_kind_of_its_own() {
        assert_eq!(file_kind("a.b/Makefile"), "Makefile");
        assert_eq!(file_kind("a/.gitignore"), ".gitignore");
        assert_eq!(file_kind("x.tar.gz"), "gz");
    }
}
