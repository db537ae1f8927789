//! `FORK.md`: instructions for the agent, with rules for forklift in front.
//!
//! The rules are YAML between two lines of `---` at the top. An unknown key or an invalid value stops the run before anything
//! starts, because a rule that is silently ignored is worse than none.

use merge::account::{DropRules, MergeSide};
use merge::pattern::PathPatterns;
use merge::pattern::check_pattern;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::hunk::Side;
use merge::resolver::rule::{PathRule, Regenerate, ResolveRules};
use serde::{Deserialize, Serialize};

use super::branch_pair::{BadPairs, BranchPair, check_pairs};
use super::security::source_name::{BadSource, SourceName};
use super::strategy::Strategy;
use super::target::Target;

/// Paths of the file, in order of preference.
pub(crate) const FORK_FILES: [&str; 2] = ["FORK.md", ".agents/FORK.md"];

/// Default time limits: five minutes for setup and regeneration, ten for the check.
const SETUP_SECS: u64 = 300;
const REGENERATE_SECS: u64 = 300;
const CHECK_SECS: u64 = 600;

/// Longest time limit, the same as for an agent.
const MOST_SECS: u64 = 86_400;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ForkRules {
    /// Command that runs in the workspace before the agent starts.
    pub(crate) setup: Option<TimedCommand>,
    /// Command that must pass on the result.
    pub(crate) check: Option<TimedCommand>,
    /// Says whether the tests that the check runs are compared with those of both sides; they are by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compare_tests: Option<bool>,
    pub(crate) target: Option<Target>,
    pub(crate) strategy: Option<Strategy>,
    /// Gitignore-like patterns of paths whose version in the fork must survive.
    pub(crate) protect: Vec<String>,
    /// Patterns of files that may be published although they act by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow_paths: Vec<String>,
    #[serde(default)]
    pub(crate) trust: Option<f64>,
    /// Rules for conflicts at matching paths; the first that matches counts.
    #[serde(default)]
    pub(crate) resolve: Vec<Resolve>,
    /// Time limit of regeneration commands, if not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) regenerate_timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "SecurityRules::is_empty")]
    pub(crate) security: SecurityRules,
    /// Pairs that `--branches` brings up to date, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) branches: Vec<BranchPair>,
}

/// Where the fork's security fixes are known from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SecurityRules {
    /// Addresses of repositories with advisories.
    pub(crate) advisories: Vec<String>,
    /// Names of upstream in advisories, beside its address.
    pub(crate) upstream: Vec<String>,
}

impl SecurityRules {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Rule for conflicts at matching paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Resolve {
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) take: Option<Side>,
    /// Trust threshold here; 1 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trust: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) regenerate: Option<String>,
}

impl ForkRules {
    /// Time limit of regeneration commands in seconds.
    pub(crate) fn regenerate_secs(&self) -> u64 {
        self.regenerate_timeout.unwrap_or(REGENERATE_SECS)
    }

    pub(crate) fn resolve_rules(&self) -> ResolveRules {
        self.resolve.iter().fold(ResolveRules::default(), |rules, resolve| {
            let from = resolve.take.unwrap_or(Side::Theirs);
            let ruling = match (&resolve.regenerate, resolve.take, resolve.trust) {
                (Some(command), ..) => {
                    PathRule::Regenerate(Regenerate { from, command: command.clone() })
                }
                (None, Some(Side::Ours), _) => PathRule::Ours,
                (None, Some(Side::Theirs), _) => PathRule::Theirs,
                (None, None, trust) => {
                    let trust = trust.and_then(|share| TrustThreshold::new(share).ok());
                    PathRule::Trust(trust.unwrap_or(TrustThreshold::NEVER))
                }
            };
            rules.with(&resolve.path, ruling)
        })
    }

    /// Paths at which a side's changes may be missing.
    pub(crate) fn drop_rules(&self) -> DropRules {
        let protected = PathPatterns::new(&self.protect);
        let known = DropRules::default().with(MergeSide::Upstream, protected, "protect");
        self.resolve.iter().fold(known, |known, resolve| {
            let (paths, reason) =
                (PathPatterns::new([&resolve.path]), format!("resolve: {}", resolve.path));
            match (&resolve.regenerate, resolve.take) {
                (Some(_), _) => known
                    .with(MergeSide::Upstream, paths.clone(), reason.clone())
                    .with(MergeSide::Fork, paths, reason),
                (None, Some(Side::Ours)) => known.with(MergeSide::Upstream, paths, reason),
                (None, Some(Side::Theirs)) => known.with(MergeSide::Fork, paths, reason),
                (None, None) => known,
            }
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimedCommand {
    pub(crate) line: String,
    pub(crate) timeout_secs: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ForkFile {
    pub(crate) rules: ForkRules,
    /// Text for the agent.
    pub(crate) text: String,
}

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
    #[error("'{key}' must be a number from 0 to 1")]
    Trust { key: &'static str },
    #[error(
        "'resolve' at '{path}' must say one thing: take, trust, or regenerate (with take for the side to start from)"
    )]
    Resolve { path: String },
    #[error("'resolve' at '{path}': a rule names the paths it is for; '!' has no meaning there")]
    Negated { path: String },
    #[error("'security': {0}")]
    Source(#[from] BadSource),
    #[error("'branches': {0}")]
    Pairs(#[from] BadPairs),
    #[error(transparent)]
    Pattern(#[from] merge::pattern::PatternError),
    #[error("'target': {0}")]
    Target(#[from] super::target::BadTarget),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct ForkRulesText {
    setup: Option<String>,
    setup_timeout: Option<u64>,
    check: Option<String>,
    check_timeout: Option<u64>,
    compare_tests: Option<bool>,
    target: Option<String>,
    strategy: Option<Strategy>,
    protect: Vec<String>,
    allow_paths: Vec<String>,
    trust: Option<f64>,
    resolve: Vec<Resolve>,
    regenerate_timeout: Option<u64>,
    security: SecurityRules,
    branches: Vec<BranchPair>,
}

/// Parses the file. Without rules all of it is text for the agent.
pub(crate) fn parse_fork_file(text: &str) -> Result<ForkFile, ForkFileFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((rules, rest)) = split_rules(text)? else {
        return Ok(ForkFile { rules: ForkRules::default(), text: text.to_owned() });
    };
    let rules = if rules.trim().is_empty() { ForkRules::default() } else { parse_rules(rules)? };
    Ok(ForkFile { rules, text: rest.to_owned() })
}

/// Splits the rules from the text, if the first line opens rules.
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

/// The first line of the parser's message, with the line number of the whole file. The parser places an unknown field at
/// the first line of the rules; the field itself is looked for.
fn describe_shape(text: &str, message: &str) -> String {
    let message = message.lines().next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let Some((place, problem)) = message.split_once(": ") else { return message.to_owned() };
    let field = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let own = text.lines().position(|line| {
        field.is_some_and(|field| line.trim_start_matches([' ', '-']).starts_with(field))
    });
    let told = place.strip_prefix("line ").and_then(|rest| rest.split(' ').next());
    let told = told.and_then(|line| line.parse::<usize>().ok());
    // The rules begin after the fence in line 1.
    match own.map(|line| line + 2).or(told.map(|line| line + 1)) {
        Some(line) => format!("line {line}: {problem}"),
        None => message.to_owned(),
    }
}

fn parse_rules(text: &str) -> Result<ForkRules, ForkFileFault> {
    let written: ForkRulesText = serde_saphyr::from_str(text)
        .map_err(|error| ForkFileFault::Shape(describe_shape(text, &error.to_string())))?;
    let setup = command("setup", written.setup, "setup-timeout", written.setup_timeout, SETUP_SECS);
    let check = command("check", written.check, "check-timeout", written.check_timeout, CHECK_SECS);
    written.protect.iter().try_for_each(|pattern| check_path("protect", pattern))?;
    written.allow_paths.iter().try_for_each(|pattern| check_path("allow-paths", pattern))?;
    check_trust("trust", written.trust)?;
    written.resolve.iter().try_for_each(check_resolve)?;
    check_regenerate_timeout(written.regenerate_timeout, &written.resolve)?;
    for source in &written.security.advisories {
        SourceName::parse_foreign(source)?;
    }
    check_pairs(&written.branches)?;
    let check = check?;
    if written.compare_tests.is_some() && check.is_none() {
        return Err(ForkFileFault::Alone { key: "compare-tests", needs: "check" });
    }
    Ok(ForkRules {
        setup: setup?,
        check,
        compare_tests: written.compare_tests,
        target: written.target.as_deref().map(Target::parse).transpose()?,
        strategy: written.strategy,
        protect: written.protect,
        allow_paths: written.allow_paths,
        trust: written.trust,
        resolve: written.resolve,
        regenerate_timeout: written.regenerate_timeout,
        security: written.security,
        branches: written.branches,
    })
}

fn check_regenerate_timeout(secs: Option<u64>, resolve: &[Resolve]) -> Result<(), ForkFileFault> {
    let key = "regenerate-timeout";
    let Some(secs) = secs else { return Ok(()) };
    if resolve.iter().all(|resolve| resolve.regenerate.is_none()) {
        return Err(ForkFileFault::Alone { key, needs: "regenerate" });
    }
    if (1..=MOST_SECS).contains(&secs) { Ok(()) } else { Err(ForkFileFault::Time { key }) }
}

fn check_resolve(resolve: &Resolve) -> Result<(), ForkFileFault> {
    check_path("path", &resolve.path)?;
    if resolve.path.trim_start().starts_with('!') {
        return Err(ForkFileFault::Negated { path: resolve.path.clone() });
    }
    check_trust("trust", resolve.trust)?;
    match (&resolve.regenerate, resolve.take, resolve.trust) {
        (Some(command), _, None) if !command.trim().is_empty() => Ok(()),
        (None, Some(_), None) | (None, None, Some(_)) => Ok(()),
        _ => Err(ForkFileFault::Resolve { path: resolve.path.clone() }),
    }
}

fn check_path(key: &'static str, pattern: &str) -> Result<(), ForkFileFault> {
    if pattern.trim().is_empty() {
        return Err(ForkFileFault::Empty { key });
    }
    Ok(check_pattern(pattern)?)
}

fn check_trust(key: &'static str, share: Option<f64>) -> Result<(), ForkFileFault> {
    let good = share.is_none_or(|share| TrustThreshold::new(share).is_ok());
    if good { Ok(()) } else { Err(ForkFileFault::Trust { key }) }
}

fn command(
    key: &'static str,
    line: Option<String>,
    time_key: &'static str,
    time: Option<u64>,
    usual: u64,
) -> Result<Option<TimedCommand>, ForkFileFault> {
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
    Ok(Some(TimedCommand { line, timeout_secs }))
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
            assert_eq!((file.rules, file.text.as_str()), (ForkRules::default(), text));
        }
    }

    #[test]
    fn every_rule_is_read_and_the_words_follow() {
        let text = "---\nsetup: npm ci\nsetup-timeout: 60\ncheck: |\n  npm test\n  npm run lint\ncompare-tests: false\ntarget: latest-tag\n\
                    strategy: rebase\nprotect:\n  - vendor/\n  - '*.lock'\nallow-paths: [AGENTS.md]\n---\nKeep it.\n";
        let file = parse_fork_file(text).expect("good");
        assert_eq!(file.text, "Keep it.\n");
        let rules = file.rules;
        let setup = TimedCommand { line: "npm ci".to_owned(), timeout_secs: 60 };
        assert_eq!(rules.setup, Some(setup));
        let check = rules.check.expect("a check");
        assert_eq!((check.line.as_str(), check.timeout_secs), ("npm test\nnpm run lint\n", 600));
        assert_eq!(rules.compare_tests, Some(false));
        assert_eq!(rules.target, Some(Target::LatestTag));
        assert_eq!(rules.strategy, Some(Strategy::Rebase));
        assert_eq!(rules.protect, ["vendor/", "*.lock"]);
        assert_eq!(rules.allow_paths, ["AGENTS.md"]);
    }

    #[test]
    fn rulings_about_conflicts_reach_the_resolver() {
        let text = "---\ntrust: 0.95\nresolve:\n  - {path: docs, take: theirs}\n  - {path: src/auth, trust: 1}\n  \
                    - {path: Cargo.lock, regenerate: cargo update -w}\n---\n";
        let rules = parse_fork_file(text).expect("good").rules;
        assert_eq!(rules.trust, Some(0.95));
        let rules = rules.resolve_rules();
        assert_eq!(rules.rule_at(b"docs/a.md"), Some(&PathRule::Theirs));
        assert_eq!(rules.trust_at(b"src/auth/x", TrustThreshold::DEFAULT), TrustThreshold::NEVER);
        assert!(matches!(rules.rule_at(b"Cargo.lock"), Some(PathRule::Regenerate(_))));
    }

    #[test]
    fn an_empty_block_sets_no_rules() {
        let file = parse_fork_file("---\n---\nhello\n").expect("good");
        assert_eq!((file.rules, file.text.as_str()), (ForkRules::default(), "hello\n"));
    }

    #[test]
    fn what_is_not_known_or_cannot_be_is_refused() {
        assert!(fault("---\nsetup: x\n").contains("never end"));
        assert!(fault("---\nchek: make\n---\n").contains("chek"));
        assert!(fault("---\nsetup: ''\n---\n").contains("'setup' is empty"));
        assert!(fault("---\ncheck: x\ncheck-timeout: 0\n---\n").contains("check-timeout"));
        assert!(fault("---\ncheck-timeout: 5\n---\n").contains("without 'check'"));
        assert!(fault("---\ncompare-tests: false\n---\n").contains("without 'check'"));
        let maybe = fault("---\ncheck: x\ncompare-tests: maybe\n---\n");
        assert!(maybe.contains("bool"), "{maybe}");
        assert!(fault("---\nregenerate-timeout: 5\n---\n").contains("without 'regenerate'"));
        let never = "---\nresolve: [{path: a, regenerate: b}]\nregenerate-timeout: 0\n---\n";
        assert!(fault(never).contains("regenerate-timeout"));
        assert!(fault("---\nstrategy: squash\n---\n").contains("squash"));
        assert!(fault("---\ntarget: -x\n---\n").contains("target"));
        assert!(fault("---\nsetup: a\nsetup: b\n---\n").contains("setup"));
        assert!(!fault("---\nprotect: [\n---\n").is_empty());
        assert!(fault("---\nprotect: ['a[b']\n---\n").contains("'a[b'"));
        assert!(fault("---\nallow-paths: ['a[b']\n---\n").contains("'a[b'"));
        assert!(fault("---\nallow-paths: ['']\n---\n").contains("'allow-paths' is empty"));
        assert!(fault("---\nresolve: [{path: '!a', take: ours}]\n---\n").contains("'!'"));
        assert!(fault("---\ntrust: 2\n---\n").contains("from 0 to 1"));
        assert!(fault("---\nresolve:\n  - {path: a}\n---\n").contains("'a'"));
        assert!(fault("---\nresolve:\n  - {path: a, take: mine}\n---\n").contains("mine"));
    }
}
