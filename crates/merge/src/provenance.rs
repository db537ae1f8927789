//! Provenance by the words of a message: the commits that it says it brings, and those that it says it undoes.

/// The commits that a message of the fork says it brings, and those that it says it undoes, by the beginnings of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageProvenance {
    pub brings: Vec<String>,
    pub reverts: Vec<String>,
}

/// Reads the lines that git and people write: `(cherry picked from commit X)`, `backport of X`, `Upstream-commit: X` and
/// `This reverts commit X`.
pub fn read_provenance(message: &str) -> MessageProvenance {
    let mut found = MessageProvenance::default();
    for line in message.lines() {
        let lower = line.to_ascii_lowercase();
        let ids = lower.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| {
            (12..=64).contains(&word.len()) && word.bytes().any(|byte| byte.is_ascii_digit())
        });
        let ids = ids.map(str::to_owned);
        if lower.contains("reverts commit") {
            found.reverts.extend(ids);
        } else if [
            "cherry picked from",
            "cherry-picked from",
            "backport",
            "upstream commit",
            "upstream-commit",
        ]
        .iter()
        .any(|words| lower.contains(words))
        {
            found.brings.extend(ids);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_says_what_it_brings_and_what_it_undoes() {
        let (a, b) = ("a1".repeat(20), "b2".repeat(20));
        let found = read_provenance(&format!(
            "fix\n\n(cherry picked from commit {a})\nThis reverts commit {b}.\n"
        ));
        assert_eq!(found, MessageProvenance { brings: vec![a.clone()], reverts: vec![b] });
        assert_eq!(read_provenance(&format!("see {a}")), MessageProvenance::default());
        assert_eq!(read_provenance(&format!("Backport of {}", &a[..12])).brings, [&a[..12]]);
    }
}
