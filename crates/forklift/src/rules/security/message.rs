//! Security fixes by the words of upstream's own commits and tags: a weaker source than an advisory.

use std::collections::BTreeSet;

use super::advisory::AdvisoryId;

/// Extended regular expressions, for git, that find every message which [`read_message`] may count.
pub(crate) const UPSTREAM_PATTERNS: &[&str] = &[
    "CVE-[0-9]{4}-[0-9]{4}",
    "GHSA-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}",
    "security (fix|issue|bug|hole|problem|vulnerabilit)",
    "vulnerabilit(y|ies)",
];

/// The same for messages that name an identifier.
pub(crate) const ID_PATTERNS: &[&str] =
    &["CVE-[0-9]{4}-[0-9]{4}", "GHSA-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}"];

/// The same for commits of the fork that say where they come from.
pub(crate) const FORK_PATTERNS: &[&str] = &[
    "cherry.picked from commit",
    "backport",
    "upstream.commit",
    "CVE-[0-9]{4}-[0-9]{4}",
    "GHSA-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}",
];

/// The same for commits that undo others.
pub(crate) const REVERT_PATTERNS: &[&str] = &["reverts commit"];

/// Words that say that a commit is a security fix.
const WORDS: &[&str] = &[
    "security fix",
    "security issue",
    "security bug",
    "security hole",
    "security problem",
    "security vulnerabilit",
    "fix vulnerabilit",
    "fixes vulnerabilit",
    "fix a vulnerability",
    "fixes a vulnerability",
    "fix potential vulnerabilit",
];

/// Plainness with which a message says that its commit is a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimStrength {
    /// The subject says so, or a line that names the identifier does.
    Says,
    /// It only mentions the matter.
    Mentions,
}

/// Claim of a message about security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageClaim {
    /// Empty where only words say it.
    pub(crate) ids: Vec<AdvisoryId>,
    pub(crate) strength: ClaimStrength,
}

/// Words in a line with an identifier that say that it is fixed.
const FIX_WORDS: &[&str] = &["fix", "address", "resolve", "mitigat", "prevent", "close", "cve:"];

/// Words in such a line that say that another hole is meant.
const OTHER_WORDS: &[&str] = &[
    "similar",
    "cognate",
    "as with",
    "same as",
    "related to",
    "caused by",
    "introduced by",
    "regress",
];

/// Reads a message; `None` if it claims nothing, or undoes another commit.
pub(crate) fn read_message(message: &str) -> Option<MessageClaim> {
    let subject = message.lines().next().unwrap_or_default().to_ascii_lowercase();
    let is_other = ["revert", "merge "].iter().any(|start| subject.starts_with(start));
    if is_other {
        return None;
    }
    let ids = find_ids(message);
    let says = match ids.first() {
        Some(_) => message.lines().enumerate().any(|(number, line)| {
            let (lower, has_id) = (line.to_ascii_lowercase(), !find_ids(line).is_empty());
            let is_bare = line.split_whitespace().all(|word| !find_ids(word).is_empty());
            let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
            let says = is_bare || (has(FIX_WORDS) && !has(OTHER_WORDS));
            has_id && (number == 0 || says)
        }),
        None => WORDS.iter().any(|words| subject.contains(words)),
    };
    let lower = message.to_ascii_lowercase();
    let mentions = !ids.is_empty() || WORDS.iter().any(|words| lower.contains(words));
    let strength = if says { ClaimStrength::Says } else { ClaimStrength::Mentions };
    mentions.then_some(MessageClaim { ids, strength })
}

/// The identifiers in a text, CVE first, each once.
pub(crate) fn find_ids(text: &str) -> Vec<AdvisoryId> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let mut found = BTreeSet::new();
    for word in words {
        let upper = word.to_ascii_uppercase();
        if is_cve(&upper) {
            found.extend(AdvisoryId::parse(&upper).ok());
        } else if is_ghsa(&upper) {
            let rest = word[4..].to_ascii_lowercase();
            found.extend(AdvisoryId::parse(&format!("GHSA{rest}")).ok());
        }
    }
    found.into_iter().collect()
}

fn is_cve(word: &str) -> bool {
    let mut parts = word.split('-');
    let digits = |part: Option<&str>, least: usize| {
        part.is_some_and(|part| {
            (least..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    parts.next() == Some("CVE")
        && digits(parts.next().filter(|year| year.len() == 4), 4)
        && digits(parts.next(), 4)
        && parts.next().is_none()
}

fn is_ghsa(word: &str) -> bool {
    let mut parts = word.split('-');
    let is_part =
        |part: &str| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    parts.next() == Some("GHSA") && parts.clone().count() == 3 && parts.all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        find_ids(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn identifiers_are_found_wherever_they_stand() {
        assert_eq!(
            ids("fix (cve-2024-12345), see GHSA-R33Q-22hv-j29q."),
            ["CVE-2024-12345", "GHSA-r33q-22hv-j29q"]
        );
        assert_eq!(ids("CVE-2024-12345/CVE-2024-12345"), ["CVE-2024-12345"]);
        for text in [
            "CVE-24-12345",
            "CVE-2024-1",
            "xCVE-2024-12345",
            "CVE-2024-12345-x",
            "GHSA-a-b-c",
            "GHSA",
        ] {
            assert_eq!(ids(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_revert_and_a_merge_are_no_fixes() {
        assert!(read_message("Revert \"fix CVE-2024-1234\"").is_none());
        assert!(read_message("Merge branch fix-CVE-2024-1234").is_none());
        assert!(read_message("docs: words\n\nnothing").is_none());
    }

    #[test]
    fn a_message_that_only_mentions_a_hole_is_told_from_one_that_fixes_it() {
        let strength = |text: &str| read_message(text).expect("a claim").strength;
        for text in [
            "les: fix a security issue",
            "x: CVE-2024-1234",
            "x: check\n\nThis fixes the hole (CVE-2024-1234).",
            "x: check\n\nCVE: CVE-2024-1234",
            "x: check\n\n(CVE-2024-1234, CVE-2024-1235)\n",
        ] {
            assert_eq!(strength(text), ClaimStrength::Says, "{text}");
        }
        for text in [
            "x: sort\n\nAs with CVE-2024-1234, order matters.",
            "x: sort\n\nNo security issue.",
            "x: sort\n\nA similar fix to that of CVE-2015-1794.",
        ] {
            assert_eq!(strength(text), ClaimStrength::Mentions, "{text}");
        }
    }
}
