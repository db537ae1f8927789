//! `FORK.md`: what the fork's people say about it, and the rules that they set before their words.
//!
//! The rules stand between two lines of `---` at the very top. They are strict: a key that is not known, or a value that
//! cannot be, stops the run before anything is started, because a rule that is silently not kept is worse than none.

use serde::{Deserialize, Serialize};

use super::strategy::Strategy;
use super::target::Target;

/// The file, or where it stands if the root is wanted for other things.
pub(crate) const FORK_FILES: [&str; 2] = ["FORK.md", ".agents/FORK.md"];

/// Five minutes to set up, ten to check.
const SETUP_SECS: u64 = 300;
const CHECK_SECS: u64 = 600;

/// A command may take as long as an agent may.
const MOST_SECS: u64 = 86_400;

/// The rules of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ForkRules {
    /// Run in the workspace before the agent starts.
    pub(crate) setup: Option<Command>,
    /// Must pass on the result.
    pub(crate) check: Option<Command>,
    /// What is merged, unless a flag says otherwise.
    pub(crate) target: Option<Target>,
    /// How, unless a flag says otherwise.
    pub(crate) strategy: Option<Strategy>,
    /// Paths whose version in the fork must survive.
    pub(crate) protect: Vec<String>,
}

/// A line for the shell, and the time that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) line: String,
    pub(crate) timeout_secs: u64,
}

/// The file, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ForkFile {
    pub(crate) rules: ForkRules,
    /// What is for the agent to read.
    pub(crate) words: String,
}

/// What is wrong with the rules.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForkFileFault {
    #[error("the rules at its top begin with '---' and never end; close them with another '---'")]
    Open,
    #[error("{0}")]
    Shape(String),
    #[error("'{key}' is empty; give it a value or leave it out")]
    Empty { key: &'static str },
    #[error("'{key}' must be between 1 and {MOST_SECS} seconds")]
    Time { key: &'static str },
    #[error("'{key}' has no meaning without '{needs}'")]
    Alone { key: &'static str, needs: &'static str },
    #[error("'target': {0}")]
    Target(#[from] super::target::BadTarget),
}

/// As the rules are written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Written {
    setup: Option<String>,
    setup_timeout: Option<u64>,
    check: Option<String>,
    check_timeout: Option<u64>,
    target: Option<String>,
    strategy: Option<Strategy>,
    protect: Vec<String>,
}

/// Reads the file. One without rules is all words.
pub(crate) fn parse_fork_file(text: &str) -> Result<ForkFile, ForkFileFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((rules, words)) = split_rules(text)? else {
        return Ok(ForkFile { rules: ForkRules::default(), words: text.to_owned() });
    };
    let rules = if rules.trim().is_empty() { ForkRules::default() } else { parse_rules(rules)? };
    Ok(ForkFile { rules, words: words.to_owned() })
}

/// The rules and what follows them, if the first line opens rules.
fn split_rules(text: &str) -> Result<Option<(&str, &str)>, ForkFileFault> {
    let mut at = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_end() == "---";
        match start {
            None if is_fence => start = Some(at + line.len()),
            None => return Ok(None),
            Some(start) if is_fence => {
                return Ok(Some((&text[start..at], &text[at + line.len()..])));
            }
            Some(_) => {}
        }
        at += line.len();
    }
    if start.is_some() { Err(ForkFileFault::Open) } else { Ok(None) }
}

fn parse_rules(text: &str) -> Result<ForkRules, ForkFileFault> {
    let written: Written = serde_saphyr::from_str(text).map_err(|error| {
        let words = error.to_string();
        ForkFileFault::Shape(words.lines().next().unwrap_or_default().to_owned())
    })?;
    let setup = command("setup", written.setup, "setup-timeout", written.setup_timeout, SETUP_SECS);
    let check = command("check", written.check, "check-timeout", written.check_timeout, CHECK_SECS);
    if written.protect.iter().any(|path| path.trim().is_empty()) {
        return Err(ForkFileFault::Empty { key: "protect" });
    }
    Ok(ForkRules {
        setup: setup?,
        check: check?,
        target: written.target.as_deref().map(Target::parse).transpose()?,
        strategy: written.strategy,
        protect: written.protect,
    })
}

fn command(
    key: &'static str,
    line: Option<String>,
    time_key: &'static str,
    time: Option<u64>,
    usual: u64,
) -> Result<Option<Command>, ForkFileFault> {
    let Some(line) = line else {
        return match time {
            Some(_) => Err(ForkFileFault::Alone { key: time_key, needs: key }),
            None => Ok(None),
        };
    };
    if line.trim().is_empty() {
        return Err(ForkFileFault::Empty { key });
    }
    let timeout_secs = time.unwrap_or(usual);
    if !(1..=MOST_SECS).contains(&timeout_secs) {
        return Err(ForkFileFault::Time { key: time_key });
    }
    Ok(Some(Command { line, timeout_secs }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        parse_fork_file(text).expect_err("a fault").to_string()
    }

    #[test]
    fn words_alone_are_all_words() {
        for text in ["", "Keep /vendor.\n", "text\n---\nsetup: x\n---\n", " ---\nx\n---\n"] {
            let file = parse_fork_file(text).expect("good");
            assert_eq!((file.rules, file.words.as_str()), (ForkRules::default(), text));
        }
    }

    #[test]
    fn every_rule_is_read_and_the_words_follow() {
        let text = "---\nsetup: npm ci\nsetup-timeout: 60\ncheck: |\n  npm test\n  npm run lint\ntarget: latest-tag\n\
                    strategy: rebase\nprotect:\n  - vendor/\n  - '*.lock'\n---\nKeep it.\n";
        let file = parse_fork_file(text).expect("good");
        assert_eq!(file.words, "Keep it.\n");
        let rules = file.rules;
        let setup = Command { line: "npm ci".to_owned(), timeout_secs: 60 };
        assert_eq!(rules.setup, Some(setup));
        let check = rules.check.expect("a check");
        assert_eq!((check.line.as_str(), check.timeout_secs), ("npm test\nnpm run lint\n", 600));
        assert_eq!(rules.target, Some(Target::LatestTag));
        assert_eq!(rules.strategy, Some(Strategy::Rebase));
        assert_eq!(rules.protect, ["vendor/", "*.lock"]);
    }

    #[test]
    fn an_empty_block_sets_no_rules() {
        let file = parse_fork_file("---\n---\nhello\n").expect("good");
        assert_eq!((file.rules, file.words.as_str()), (ForkRules::default(), "hello\n"));
    }

    #[test]
    fn what_is_not_known_or_cannot_be_is_refused() {
        assert!(fault("---\nsetup: x\n").contains("never end"));
        assert!(fault("---\nchek: make\n---\n").contains("chek"));
        assert!(fault("---\nsetup: ''\n---\n").contains("'setup' is empty"));
        assert!(fault("---\ncheck: x\ncheck-timeout: 0\n---\n").contains("check-timeout"));
        assert!(fault("---\ncheck-timeout: 5\n---\n").contains("without 'check'"));
        assert!(fault("---\nstrategy: squash\n---\n").contains("squash"));
        assert!(fault("---\ntarget: -x\n---\n").contains("target"));
        assert!(fault("---\nsetup: a\nsetup: b\n---\n").contains("setup"));
        assert!(!fault("---\nprotect: [\n---\n").is_empty());
    }
}
