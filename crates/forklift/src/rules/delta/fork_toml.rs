//! `FORK.toml`: the changes that a fork declares. It lies beside FORK.md on the fork's main branch.

use std::ops::Range;

use merge::delta::change::{DeclaredChange, UpstreamState};
use merge::pattern::{PathPatterns, check_pattern};
use serde::Deserialize;
use toml::{Spanned, Value};

/// Paths of the file, in order of preference.
pub(crate) const FORK_TOML: [&str; 2] = ["FORK.toml", ".agents/FORK.toml"];

/// Digits by which a commit is named at least.
const LEAST_DIGITS: usize = 7;

/// A fault of the file, with its line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub(crate) struct ForkTomlError {
    line: Option<usize>,
    fault: ForkTomlFault,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ForkTomlFault {
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
    name: Spanned<String>,
    intent: Option<String>,
    #[serde(default)]
    paths: Vec<Spanned<String>>,
    #[serde(default)]
    commits: Vec<Spanned<String>>,
    upstream: Option<Spanned<Value>>,
    #[serde(alias = "retire-when")]
    retire_when: Option<String>,
}

/// Parses the file.
pub(crate) fn parse_fork_toml(text: &str) -> Result<Vec<DeclaredChange>, ForkTomlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let at = |span: Range<usize>, fault| {
        let line = Some(1 + text[..span.start].matches('\n').count());
        ForkTomlError { line, fault }
    };
    let file: FileText = toml::from_str(text).map_err(|error| {
        let fault = ForkTomlFault::Shape(error.message().replace('\n', ", "));
        match error.span() {
            Some(span) => at(span, fault),
            None => ForkTomlError { line: None, fault },
        }
    })?;
    let mut changes: Vec<DeclaredChange> = Vec::new();
    for change in file.change {
        let named = change.name.span();
        let change = check_change(change).map_err(|(span, fault)| at(span, fault))?;
        if changes.iter().any(|known| known.name == change.name) {
            return Err(at(named, ForkTomlFault::Twice(change.name)));
        }
        changes.push(change);
    }
    Ok(changes)
}

/// A fault and its place in the text.
type PlacedFault = (Range<usize>, ForkTomlFault);

fn check_change(change: ChangeText) -> Result<DeclaredChange, PlacedFault> {
    let name = change.name.get_ref().trim().to_owned();
    if name.is_empty() {
        return Err((change.name.span(), ForkTomlFault::Nameless));
    }
    let mut paths = Vec::new();
    for pattern in change.paths {
        check_pattern(pattern.get_ref()).map_err(|fault| {
            (pattern.span(), ForkTomlFault::Pattern { name: name.clone(), fault })
        })?;
        paths.push(pattern.into_inner());
    }
    let mut commits = Vec::new();
    for commit in change.commits {
        let span = commit.span();
        let commit = commit.into_inner();
        let is_id = (LEAST_DIGITS..=64).contains(&commit.len())
            && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err((span, ForkTomlFault::Commit { name, commit }));
        }
        commits.push(commit.to_ascii_lowercase());
    }
    let upstream = match change.upstream {
        None => None,
        Some(value) => {
            let fault = || (value.span(), ForkTomlFault::Upstream { name: name.clone() });
            Some(upstream_state(value.get_ref()).ok_or_else(fault)?)
        }
    };
    Ok(DeclaredChange {
        name,
        intent: change.intent,
        paths: PathPatterns::new(&paths),
        commits,
        upstream,
        retire_when: change.retire_when,
    })
}

fn upstream_state(value: &Value) -> Option<UpstreamState> {
    if let Value::String(word) = value {
        return (word == "not sent").then_some(UpstreamState::NotSent);
    }
    let table = value.as_table().filter(|table| table.len() == 1)?;
    let (key, value) = table.iter().next()?;
    let value = value.as_str()?.to_owned();
    match key.as_str() {
        "open" => Some(UpstreamState::Open(value)),
        "merged" => Some(UpstreamState::Merged(value)),
        "rejected" => Some(UpstreamState::Rejected(value)),
        _ => None,
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
        for (text, line, words) in [
            ("[[change]]\n", "line 1: ", "name"),
            ("\n[[change]]\nname = \" \"\n", "line 3: ", "empty name"),
            ("[[change]]\nname = \"a\"\n[[change]]\nname = \" a \"\n", "line 4: ", "two changes"),
            (
                "[[change]]\nname = \"a\"\ncommits = [\n\"abcdef0\",\n\"x\"]\n",
                "line 5: ",
                "'x' is no commit",
            ),
            ("[[change]]\nname = \"a\"\npaths = [\n\"x\",\n\"a[b\"]\n", "line 5: ", "'a[b'"),
            ("[[change]]\nname = \"a\"\nupstream = \"sent\"\n", "line 3: ", "not sent"),
            ("[[change]]\nname = \"a\"\nupstream = {opened = \"x\"}\n", "line 3: ", "one of open"),
            ("[[change]]\nname = \"a\"\nupstream = {}\n", "line 3: ", "one of open"),
            ("[[change]]\nname = \"a\"\nupstream = {open = 3}\n", "line 3: ", "one of open"),
            (
                "[[change]]\nname = \"a\"\nupstream = {open = \"x\", merged = \"y\"}\n",
                "line 3: ",
                "one of open",
            ),
        ] {
            let said = fault(text);
            assert!(said.starts_with(line) && said.contains(words), "{text}: {said}");
        }
    }
}
