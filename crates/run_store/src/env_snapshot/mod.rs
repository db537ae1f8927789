//! Record of the machine of a run: system, tools and their versions, a few variables.
//!
//! Of the environment only the names listed here are shown, since any other variable may hold a secret.

mod later;
mod observe;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use model::escape::escape_line;
use model::redact::Redactor;

use crate::error::StoreError;
use crate::run_dir::RunDir;

pub use later::LaterSnapshot;
pub use observe::observe_env;

/// File name of the snapshot in a run directory.
pub const ENV_SNAPSHOT: &str = "env_snapshot.txt";

/// The only variables that are ever shown.
pub const SHOWN_VARIABLES: [&str; 4] =
    ["AOS_LOCK_TIMEOUT", "AOS_LOG_LEVEL", "AOS_OPS_DIR", "AOS_PROJECT"];

const MODE: u32 = 0o600;
const NOT_FOUND: &str = "not found";

/// Facts about the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvFacts {
    pub generated: Timestamp,
    /// The system and its release, such as `Linux 5.15.0`.
    pub os: String,
    pub shell: Option<String>,
    pub git_program: Option<PathBuf>,
    /// By program, the first line of its version output. A program that is missing or does not answer in time has no
    /// entry.
    pub versions: BTreeMap<String, String>,
    /// Variables and their values; only [`SHOWN_VARIABLES`] are rendered.
    pub variables: BTreeMap<String, String>,
}

/// One line about a program.
struct VersionLine {
    label: &'static str,
    program: &'static str,
    show: Show,
}

/// Shown part of a program's version output.
#[derive(Clone, Copy)]
enum Show {
    /// The number alone, without the program's name before it.
    Number,
    /// The whole first line.
    Line,
}

const fn entry(label: &'static str, program: &'static str, show: Show) -> VersionLine {
    VersionLine { label, program, show }
}

/// Programs by section, as the format has them.
const SECTIONS: &[(&str, &[VersionLine])] = &[
    (
        "Tools",
        &[
            entry("git", "git", Show::Number),
            entry("node", "node", Show::Number),
            entry("npm", "npm", Show::Number),
            entry("python", "python3", Show::Number),
            entry("make", "make", Show::Line),
        ],
    ),
    ("Claude Code", &[entry("claude --version", "claude", Show::Line)]),
    ("Docker (if available)", &[entry("docker", "docker", Show::Line)]),
];

const BUBBLEWRAP: &[VersionLine] = &[entry("bwrap", "bwrap", Show::Line)];
const GIT: &[VersionLine] = &[entry("git --version", "git", Show::Line)];
const AGENTS: &[VersionLine] = &[
    entry("codex --version", "codex", Show::Line),
    entry("opencode --version", "opencode", Show::Line),
    entry("pi --version", "pi", Show::Line),
];

/// Writes the snapshot of a run that is not closed.
pub fn save_env_snapshot(
    run: &RunDir,
    redactor: &Redactor,
    facts: &EnvFacts,
) -> Result<(), StoreError> {
    run.ensure_open()?;
    let text = render_env_snapshot(facts);
    host::file::write_atomic(&run.env_snapshot(), redactor.redact(&text).as_bytes(), MODE)?;
    Ok(())
}

/// Renders the snapshot. Our own sections come last, so that a reader that does not know them finds the others in their
/// place.
pub fn render_env_snapshot(facts: &EnvFacts) -> String {
    let generated = facts.generated.strftime("%Y-%m-%dT%H:%M:%SZ");
    let mut page = SnapshotText(format!("# Environment Snapshot\n# Generated: {generated}\n"));
    page.heading("System");
    page.line("OS", Some(&facts.os));
    page.line("Shell", facts.shell.as_deref());
    for (heading, entries) in SECTIONS {
        page.heading(heading);
        page.programs(entries, facts);
    }
    page.heading("Environment (non-secret)");
    for name in SHOWN_VARIABLES {
        if let Some(value) = facts.variables.get(name) {
            page.line(name, Some(value));
        }
    }
    page.heading("Bubblewrap (if available)");
    page.programs(BUBBLEWRAP, facts);
    page.heading("Git");
    page.programs(GIT, facts);
    page.line("program", facts.git_program.as_ref().map(|path| path.to_string_lossy()).as_deref());
    page.heading("Agent CLIs");
    page.programs(AGENTS, facts);
    page.0
}

struct SnapshotText(String);

impl SnapshotText {
    fn heading(&mut self, heading: &str) {
        self.0.push_str(&format!("\n## {heading}\n"));
    }

    /// Escapes the value, so that a program's output stays on its line.
    fn line(&mut self, label: &str, value: Option<&str>) {
        let value = escape_line(value.unwrap_or(NOT_FOUND));
        self.0.push_str(&format!("{label}: {value}\n"));
    }

    fn programs(&mut self, entries: &[VersionLine], facts: &EnvFacts) {
        for VersionLine { label, program, show } in entries {
            let version = facts.versions.get(*program).map(String::as_str);
            self.line(label, version.map(|version| shorten(version, *show)));
        }
    }
}

fn shorten(version: &str, show: Show) -> &str {
    match show {
        Show::Number => parse_number(version).unwrap_or(version),
        Show::Line => version,
    }
}

/// Finds the first word that is a version: `git version 2.39.0`, `v20.10.0`, `Python 3.11.0`.
fn parse_number(version: &str) -> Option<&str> {
    version
        .split_whitespace()
        .map(|word| word.strip_prefix('v').unwrap_or(word))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(versions: &[(&str, &str)], variables: &[(&str, &str)]) -> EnvFacts {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        EnvFacts {
            generated: "2025-01-15T12:00:00.123Z".parse().unwrap(),
            os: "Linux 5.15.0".to_owned(),
            shell: Some("/bin/bash".to_owned()),
            git_program: Some(PathBuf::from("/usr/bin/git")),
            versions: owned(versions),
            variables: owned(variables),
        }
    }

    #[test]
    fn a_full_snapshot_starts_as_the_format_says_and_ends_with_our_own_sections() {
        let versions = [
            ("git", "git version 2.39.0"),
            ("node", "v20.10.0"),
            ("npm", "10.2.0"),
            ("python3", "Python 3.11.0"),
            ("make", "GNU Make 4.3"),
            ("claude", "claude-code 1.0.0"),
            ("docker", "Docker version 24.0.0"),
            ("bwrap", "bubblewrap 0.8.0"),
            ("codex", "codex-cli 0.40.0"),
        ];
        let variables = [("AOS_LOG_LEVEL", "info"), ("AOS_PROJECT", "myproject")];
        insta::assert_snapshot!(render_env_snapshot(&facts(&versions, &variables)), @"
        # Environment Snapshot
        # Generated: 2025-01-15T12:00:00Z

        ## System
        OS: Linux 5.15.0
        Shell: /bin/bash

        ## Tools
        git: 2.39.0
        node: 20.10.0
        npm: 10.2.0
        python: 3.11.0
        make: GNU Make 4.3

        ## Claude Code
        claude --version: claude-code 1.0.0

        ## Docker (if available)
        docker: Docker version 24.0.0

        ## Environment (non-secret)
        AOS_LOG_LEVEL: info
        AOS_PROJECT: myproject

        ## Bubblewrap (if available)
        bwrap: bubblewrap 0.8.0

        ## Git
        git --version: git version 2.39.0
        program: /usr/bin/git

        ## Agent CLIs
        codex --version: codex-cli 0.40.0
        opencode --version: not found
        pi --version: not found
        ");
    }

    #[test]
    fn what_is_missing_is_said_to_be() {
        let nothing = EnvFacts { shell: None, git_program: None, ..facts(&[], &[]) };
        let text = render_env_snapshot(&nothing);
        assert_eq!(text.matches(": not found\n").count(), 14, "{text}");
        assert!(text.contains("Shell: not found\n"));
    }

    #[test]
    fn only_the_listed_variables_are_shown() {
        let variables = [("AOS_PROJECT", "p"), ("AOS_TOKEN", "secret-1"), ("PATH", "secret-2")];
        let text = render_env_snapshot(&facts(&[], &variables));
        assert!(text.contains("AOS_PROJECT: p\n"));
        assert!(!text.contains("secret-"), "{text}");
    }

    #[test]
    fn a_program_cannot_add_lines_to_the_snapshot() {
        let text = render_env_snapshot(&facts(&[("make", "GNU\n## Tools\x1b[2J")], &[]));
        assert!(text.contains("make: GNU\\n## Tools\\x1b[2J\n"), "{text}");
    }

    #[test]
    fn a_version_number_is_the_first_word_that_looks_like_one() {
        for (said, number) in [
            ("git version 2.39.5 (Apple Git-154)", Some("2.39.5")),
            ("v20.10.0", Some("20.10.0")),
            ("version v1", Some("1")),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(parse_number(said), number, "{said}");
        }
    }

    #[test]
    fn a_snapshot_is_saved_without_secrets_and_not_after_the_end() {
        let root = tempfile::tempdir().unwrap();
        let facts = facts(&[], &[("AOS_PROJECT", "hunter2-hunter2")]);
        let project = model::id::ProjectName::parse("app").unwrap();
        let run = RunDir::create(root.path(), &project, facts.generated).unwrap();
        let redactor = Redactor::new([model::secret::Secret::new("hunter2-hunter2")]);
        save_env_snapshot(&run, &redactor, &facts).unwrap();
        let text = std::fs::read_to_string(run.env_snapshot()).unwrap();
        assert!(text.contains("AOS_PROJECT: ***\n"), "{text}");
        run.close(&redactor, &"the end").unwrap();
        let late = save_env_snapshot(&run, &redactor, &facts);
        assert!(matches!(late, Err(StoreError::Closed { .. })));
    }
}
