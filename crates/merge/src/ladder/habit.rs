//! What people usually choose: counted for kinds of conflict, then kinds of file, then folders, then paths.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How people settled something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// They took the fork's side.
    Ours,
    /// They took upstream's side.
    Theirs,
    /// They left it away.
    Absent,
    /// They went back to the common ancestor.
    Base,
    /// They took both, the fork's first.
    OursTheirs,
    /// They took both, upstream's first.
    TheirsOurs,
    /// They made both changes, which lie apart.
    Apart,
    /// They made both changes, which touch.
    Touching,
    /// They kept both insertions, the fork's first.
    BothOurs,
    /// They kept both insertions, upstream's first.
    BothTheirs,
    /// They wrote something else.
    Other,
}

/// Shares of choices before anything is known about a fork.
pub type Shares = BTreeMap<Choice, f64>;

/// How many cases the wider place counts for in the narrower one, from the widest.
const WEIGHTS: [f64; 4] = [8.0, 6.0, 4.0, 2.0];
/// What is left of the old cases when a new one comes.
const FADING: f64 = 0.97;

/// The choices of a fork's people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Habits {
    places: BTreeMap<String, Counts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    all: f64,
    each: BTreeMap<Choice, f64>,
}

/// The places that a case belongs to, from the widest to the narrowest.
pub type Places = [String; 4];

/// A kind of conflict everywhere, in files of this kind, in this folder, at this path.
#[must_use]
pub fn places_of(kind: &str, path: &str) -> Places {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    [
        kind.to_owned(),
        format!("{kind} *{}", file_kind(path)),
        format!("{kind} {folder}/"),
        format!("{kind} {path}"),
    ]
}

/// What follows the last dot of a name, or the name.
#[must_use]
pub fn file_kind(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    match name.rsplit_once('.') {
        Some((before, kind)) if !before.is_empty() => kind,
        Some(_) | None => name,
    }
}

impl Habits {
    /// How likely a choice is, given how likely it is anywhere.
    #[must_use]
    pub fn likelihood(&self, places: &Places, choice: Choice, anywhere: f64) -> f64 {
        places.iter().zip(WEIGHTS).fold(anywhere, |wider, (place, weight)| {
            let counts = self.places.get(place);
            let all = counts.map_or(0.0, |counts| counts.all);
            let this = counts.and_then(|counts| counts.each.get(&choice)).copied();
            (this.unwrap_or_default() + weight * wider) / (all + weight)
        })
    }

    /// Takes note of a choice.
    pub fn learn(&mut self, places: Places, choice: Choice) {
        for place in places {
            let counts = self.places.entry(place).or_default();
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
            habits.learn(places_of("content", "a/x.rs"), Choice::Ours);
            habits.learn(places_of("content", "a/y.rs"), Choice::Theirs);
        }
        let at = |path| habits.likelihood(&places_of("content", path), Choice::Ours, 0.3);
        assert!(at("a/x.rs") > 0.75 && at("a/y.rs") < 0.25, "{} {}", at("a/x.rs"), at("a/y.rs"));
        assert!((0.35..0.55).contains(&at("a/z.rs")));
        assert!((at("b/z.py") - 0.4).abs() < 0.1);
        assert!(
            (habits.likelihood(&places_of("binary", "q"), Choice::Ours, 0.3) - 0.3).abs() < 1e-9
        );
    }

    #[test]
    fn a_file_without_a_dot_is_a_kind_of_its_own() {
        assert_eq!(file_kind("a.b/Makefile"), "Makefile");
        assert_eq!(file_kind("a/.gitignore"), ".gitignore");
        assert_eq!(file_kind("x.tar.gz"), "gz");
    }
}
