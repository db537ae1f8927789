//! Feeds arbitrary bytes to the reader of advisories, as JSON and as YAML: it must not panic, and what it accepts is clean.

#![no_main]

use libfuzzer_sys::fuzz_target;

// The rules are private to forklift, so their files are part of this target.
#[path = "../../crates/forklift/src/rules/security"]
#[expect(dead_code, reason = "forklift uses the rest")]
mod security {
    pub(crate) mod advisory;
    pub(crate) mod candidate;
    pub(crate) mod osv;
    pub(crate) mod project;
    pub(crate) mod release;
    pub(crate) mod severity;
}

use std::collections::BTreeSet;

use model::id::Sha;
use security::candidate::{FixCandidate, NamedCommits};
use security::osv::{OsvFormat, parse_osv};
use security::project::ProjectNames;

fuzz_target!(|bytes: &[u8]| {
    for format in [OsvFormat::Json, OsvFormat::Yaml] {
        let Ok(advisory) = parse_osv(bytes, format) else { continue };
        assert!(!advisory.summary.contains(char::is_control));
        assert!(
            !advisory.id.as_str().contains(['/', '\\']) && !advisory.id.as_str().contains("..")
        );
        let names = ProjectNames::new(["https://git.example.org/them/parser"]);
        let (known, ordered) = (BTreeSet::new(), BTreeSet::new());
        let unknown = NamedCommits { known: &known, ordered: &ordered };
        let Some(candidate) = FixCandidate::of(&advisory, &names, &unknown) else { continue };
        // Once more with a history in which the commits follow one another.
        let known: BTreeSet<Sha> = candidate.commits().cloned().collect();
        let pairs = known.iter().flat_map(|one| known.range(one..).map(move |other| (one, other)));
        let ordered = pairs.map(|(one, other)| (one.clone(), other.clone())).take(10_000).collect();
        let history = NamedCommits { known: &known, ordered: &ordered };
        drop(FixCandidate::of(&advisory, &names, &history));
    }
});
