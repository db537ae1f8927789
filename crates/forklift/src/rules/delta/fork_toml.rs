//! `FORK.toml`: the changes that a fork declares. It lies beside FORK.md on the fork's main branch.

use merge::delta::change::{DeclaredChange, UpstreamState};
use merge::pattern::{PathPatterns, check_pattern};
use serde::Deserialize;

/// Paths of the file, in order of preference.
pub(crate) const FORK_TOML: [&str; 2] = ["FORK.toml", ".agents/FORK.toml"];

/// Digits by which a commit is named at least.
const LEAST_DIGITS: usize = 7;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForkTomlFault {
    #[error("{0}")]
    Shape(String),
    #[error("a change has an empty name")]
    Nameless,
    #[error("two changes are named '{0}'; give each a name of its own")]
    Twice(String),
    #[error(
        "change '{name}': '{commit}' is no commit; give at least {LEAST_DIGITS} digits of its id"
    )]
    Commit { name: String, commit: String },
    #[error("change '{name}': {fault}")]
    Pattern { name: String, fault: merge::pattern::PatternError },
    #[error(
        "change '{name}': upstream is \"not sent\", or one of open, merged and rejected with an address or a version"
    )]
    Upstream { name: String },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileText {
    change: Vec<ChangeText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeText {
    name: String,
    intent: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    commits: Vec<String>,
    upstream: Option<UpstreamText>,
    #[serde(alias = "retire-when")]
    retire_when: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum UpstreamText {
    Word(String),
    State(UpstreamTable),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct UpstreamTable {
    open: Option<String>,
    merged: Option<String>,
    rejected: Option<String>,
}

/// Parses the file.
pub(crate) fn parse_fork_toml(text: &str) -> Result<Vec<DeclaredChange>, ForkTomlFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file: FileText = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        ForkTomlFault::Shape(format!("{place}{}", error.message().replace('\n', ", ")))
    })?;
    let mut changes: Vec<DeclaredChange> = Vec::new();
    for change in file.change {
        let change = check_change(change)?;
        if changes.iter().any(|known| known.name == change.name) {
            return Err(ForkTomlFault::Twice(change.name));
        }
        changes.push(change);
    }
    Ok(changes)
}

fn check_change(change: ChangeText) -> Result<DeclaredChange, ForkTomlFault> {
    let name = change.name.trim().to_owned();
    if name.is_empty() {
        return Err(ForkTomlFault::Nameless);
    }
    for pattern in &change.paths {
        check_pattern(pattern)
            .map_err(|fault| ForkTomlFault::Pattern { name: name.clone(), fault })?;
    }
    let mut commits = Vec::new();
    for commit in change.commits {
        let is_id = (LEAST_DIGITS..=64).contains(&commit.len())
            && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(ForkTomlFault::Commit { name, commit });
        }
        commits.push(commit.to_ascii_lowercase());
    }
    let upstream = match change.upstream {
        None => None,
        Some(text) => Some(
            upstream_state(text).ok_or_else(|| ForkTomlFault::Upstream { name: name.clone() })?,
        ),
    };
    Ok(DeclaredChange {
        name,
        intent: change.intent,
        paths: PathPatterns::new(&change.paths),
        commits,
        upstream,
        retire_when: change.retire_when,
    })
}

fn upstream_state(text: UpstreamText) -> Option<UpstreamState> {
    match text {
        UpstreamText::Word(word) => (word == "not sent").then_some(UpstreamState::NotSent),
        UpstreamText::State(UpstreamTable { open: Some(url), merged: None, rejected: None }) => {
            Some(UpstreamState::Open(url))
        }
        UpstreamText::State(UpstreamTable {
            open: None,
            merged: Some(version),
            rejected: None,
        }) => Some(UpstreamState::Merged(version)),
        UpstreamText::State(UpstreamTable { open: None, merged: None, rejected: Some(url) }) => {
            Some(UpstreamState::Rejected(url))
        }
        UpstreamText::State(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        parse_fork_toml(text).expect_err("a fault").to_string()
    }

    #[test]
    fn every_field_of_a_change_is_read() {
        let text = "[[change]]\nname = \"login\"\nintent = \"single sign-on\"\npaths = [\"src/auth/\"]\n\
                    commits = [\"ABCDEF0\"]\nupstream = {open = \"https://x/1\"}\nretire_when = \"2.0\"\n\
                    [[change]]\nname = \"brand\"\nupstream = \"not sent\"\n";
        let changes = parse_fork_toml(text).expect("good");
        assert_eq!(changes.len(), 2);
        let login = &changes[0];
        assert_eq!(
            (login.name.as_str(), login.intent.as_deref()),
            ("login", Some("single sign-on"))
        );
        assert!(login.paths.matches(b"src/auth/x.rs") && !login.paths.matches(b"src/x.rs"));
        assert_eq!(login.commits, ["abcdef0"]);
        assert_eq!(login.upstream, Some(UpstreamState::Open("https://x/1".to_owned())));
        assert_eq!(login.retire_when.as_deref(), Some("2.0"));
        assert_eq!(changes[1].upstream, Some(UpstreamState::NotSent));
        assert!(parse_fork_toml("").expect("good").is_empty());
    }

    #[test]
    fn what_is_not_known_or_cannot_be_is_refused_with_its_place() {
        assert!(
            fault("[[change]]\nname = \"a\"\nintend = \"b\"\n").contains("line 3"),
            "{}",
            fault("[[change]]\nname = \"a\"\nintend = \"b\"\n")
        );
        assert!(fault("[[change]]\n").contains("name"));
        assert!(fault("[[change]]\nname = \" \"\n").contains("empty name"));
        assert!(
            fault("[[change]]\nname = \"a\"\n[[change]]\nname = \"a\"\n").contains("two changes")
        );
        assert!(
            fault("[[change]]\nname = \"a\"\ncommits = [\"x\"]\n").contains("'x' is no commit")
        );
        assert!(fault("[[change]]\nname = \"a\"\npaths = [\"a[b\"]\n").contains("'a[b'"));
        assert!(fault("[[change]]\nname = \"a\"\nupstream = \"sent\"\n").contains("not sent"));
        let two = "[[change]]\nname = \"a\"\nupstream = {open = \"x\", merged = \"y\"}\n";
        assert!(fault(two).contains("one of open"));
    }
}
