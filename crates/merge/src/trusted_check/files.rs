//! Files that define a check: build files, settings of test runners, CI definitions, and scripts that the check names.
//!
//! The check runs with these files as trusted people have them, so that an agent cannot rewrite its own judge. Of files
//! with other content too, such as `package.json`, only the sections about tests count.

use serde_json::Value;

/// Files in which other scripts of the check may be named.
pub(super) const CHECK_ROOTS: [&str; 15] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "package.json",
    "tox.ini",
    "noxfile.py",
    "Rakefile",
    "CMakeLists.txt",
    "Makefile.am",
    "Makefile.in",
    "composer.json",
    "meson.build",
];

const NAMES: [&str; 105] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "Rakefile",
    "noxfile.py",
    "tox.ini",
    "pytest.ini",
    ".pytest.ini",
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    ".coveragerc",
    "karma.conf.js",
    "karma.conf.ts",
    "jasmine.json",
    ".taprc",
    ".npmrc",
    ".pnpmfile.cjs",
    "nextest.toml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gradlew",
    "mvnw",
    "pom.xml",
    "build.xml",
    "junit-platform.properties",
    "phpunit.xml",
    "phpunit.xml.dist",
    ".rspec",
    "CTestConfig.cmake",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".drone.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".woodpecker.yml",
    "appveyor.yml",
    "cloudbuild.yaml",
    "pytest.toml",
    ".pytest.toml",
    ".bazelrc",
    "bunfig.toml",
    "deno.json",
    "deno.jsonc",
    "turbo.json",
    "nx.json",
    "lerna.json",
    "Earthfile",
    "mix.exs",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.work",
    ".nvmrc",
    ".node-version",
    ".python-version",
    ".tool-versions",
    ".rspec-local",
    "CMakeLists.txt",
    "CMakePresets.json",
    "CMakeUserPresets.json",
    "meson.build",
    "meson.options",
    "meson_options.txt",
    "BUILD",
    "BUILD.bazel",
    "WORKSPACE",
    "WORKSPACE.bazel",
    "MODULE.bazel",
    "BUCK",
    "Makefile.am",
    "Makefile.in",
    "GNUmakefile.in",
    "configure",
    "configure.ac",
    "configure.in",
    "SConstruct",
    "SConscript",
    "wscript",
    "setup.py",
    "hatch.toml",
    "dodo.py",
    "build.sbt",
    "build.sc",
    "build.mill",
    "Package.swift",
    "Directory.Build.props",
    "Directory.Build.targets",
    "testng.xml",
    "codeception.yml",
    "behat.yml",
    "dart_test.yaml",
    "build.zig",
    "rebar.config",
    "project.clj",
    "stack.yaml",
    "dune",
    "dune-project",
];

/// Endings of names of build files and settings of test runners.
const ENDINGS: [&str; 10] = [
    ".mk",
    ".cmake",
    ".bzl",
    ".sbt",
    ".csproj",
    ".fsproj",
    ".vbproj",
    ".runsettings",
    ".cabal",
    ".xctestplan",
];

/// First parts of the names of settings files that end in several ways.
const STEMS: [&str; 9] = [
    "jest.config.",
    "vitest.config.",
    "vitest.workspace.",
    "playwright.config.",
    "cypress.config.",
    "ava.config.",
    "wdio.conf.",
    ".mocharc.",
    ".nycrc",
];

/// Folders whose files all count.
const FOLDERS: [&str; 11] = [
    ".github/workflows/",
    ".github/actions/",
    ".circleci/",
    ".buildkite/",
    ".woodpecker/",
    ".ci/",
    ".mvn/",
    ".cargo/",
    "gradle/wrapper/",
    "node_modules/.bin/",
    "vendor/bin/",
];

/// Runners of tests that Python looks for in the folder of the check first.
const PYTHON_RUNNERS: [&str; 6] = ["pytest", "unittest", "nose2", "tox", "nox", "coverage"];

/// Returns whether Python would start a file of the root in place of a runner of that name.
fn is_in_place_of_runner(path: &str) -> bool {
    let module = path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix("/__main__.py"));
    let module = module.or_else(|| path.strip_suffix(".py"));
    module.is_some_and(|module| PYTHON_RUNNERS.contains(&module))
}

/// Returns whether files of this name define how tests are run, whatever the check is.
pub fn is_check_file(path: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(path) else { return false };
    let name = file_name(path);
    NAMES.contains(&name)
        || is_in_place_of_runner(path)
        || STEMS.iter().any(|stem| name.starts_with(stem))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || sections_of(name).is_some()
        || FOLDERS
            .iter()
            .any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Text in which a file is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// The line of the check itself.
    Line,
    /// A file of the check. It names sources too, so only scripts for tests count.
    File,
}

/// Returns whether a named file is a script of the check rather than a source or a list.
pub(super) fn is_check_script(path: &str, is_executable: bool, by: NamedBy) -> bool {
    let name = file_name(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_program =
        ["py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "ps1"].contains(&extension);
    let lower = path.to_ascii_lowercase();
    let is_about_tests = ["test", "check", "spec", "lint", "verify", "runner", "harness"]
        .iter()
        .any(|it| lower.contains(it));
    match extension {
        "sh" | "bash" | "zsh" | "mk" => true,
        "" => is_executable || is_about_tests,
        _ => is_program && (by == NamedBy::Line || is_about_tests),
    }
}

/// Content of a file for the check: the result's, with the sections about tests as both sides have them. `None` if the file
/// counts as a whole, or cannot be read as its format.
pub(super) fn with_trusted_sections(path: &[u8], result: &[u8], trusted: &[u8]) -> Option<Vec<u8>> {
    let name = file_name(std::str::from_utf8(path).ok()?);
    let (result, trusted) = (std::str::from_utf8(result).ok()?, std::str::from_utf8(trusted).ok()?);
    match sections_of(name)? {
        Sections::Keys(keys) => replace_keys(result, trusted, keys),
        Sections::Headers(headers) => Some(replace_sections(result, trusted, headers)),
    }
}

/// Content for the check of a manifest that the agent added: without its sections about tests, because there is no trusted
/// version of them. A new package of Cargo's defines only its own tests and stays. `None` if the file counts as a whole.
pub(super) fn without_test_sections(path: &[u8], result: &[u8]) -> Option<Vec<u8>> {
    let name = file_name(std::str::from_utf8(path).ok()?);
    match sections_of(name)? {
        _ if name == "Cargo.toml" => Some(result.to_vec()),
        Sections::Keys(_) => with_trusted_sections(path, result, b"{}"),
        Sections::Headers(_) => with_trusted_sections(path, result, b""),
    }
}

/// Sections of a file that define tests.
enum Sections {
    /// Keys of a JSON object.
    Keys(&'static [&'static str]),
    /// First parts of section headers, as in TOML and in setup.cfg.
    Headers(&'static [&'static str]),
}

fn sections_of(name: &str) -> Option<Sections> {
    Some(match name {
        "package.json" => Sections::Keys(&[
            "scripts", "jest", "mocha", "ava", "tap", "nyc", "c8", "vitest", "karma", "jasmine",
        ]),
        "composer.json" => Sections::Keys(&["scripts"]),
        "pyproject.toml" => Sections::Headers(&[
            "tool.pytest",
            "tool.tox",
            "tool.coverage",
            "tool.hatch.envs",
            "tool.poe",
            "tool.nox",
            "tool.pdm.scripts",
            "tool.taskipy",
        ]),
        "setup.cfg" => {
            Sections::Headers(&["tool:pytest", "pytest", "aliases", "test", "testenv", "coverage"])
        }
        "Cargo.toml" => Sections::Headers(&["[test]", "[bench]", "lib", "workspace\n"]),
        _ => return None,
    })
}

fn replace_keys(text: &str, trusted: &str, keys: &[&str]) -> Option<Vec<u8>> {
    let (mut result, trusted): (Value, Value) =
        (serde_json::from_str(text).ok()?, serde_json::from_str(trusted).ok()?);
    let (object, trusted) = (result.as_object_mut()?, trusted.as_object()?);
    if keys.iter().all(|key| object.get(*key) == trusted.get(*key)) {
        return Some(text.as_bytes().to_vec());
    }
    for key in keys {
        match trusted.get(*key) {
            Some(value) => object.insert((*key).to_owned(), value.clone()),
            None => object.remove(*key),
        };
    }
    serde_json::to_vec_pretty(&result).ok()
}

/// Puts the trusted sections in place of the result's, at its end.
fn replace_sections(result: &str, trusted: &str, headers: &[&str]) -> Vec<u8> {
    let is_about_tests = |section: &&str| {
        let header = section.lines().next().unwrap_or_default().trim();
        let Some(name) = header.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            return false;
        };
        headers.iter().any(|it| format!("{}\n", name.trim()).starts_with(it))
    };
    let (kept, own): (Vec<&str>, Vec<&str>) =
        sections(result).into_iter().partition(|it| !is_about_tests(it));
    let wanted: Vec<&str> = sections(trusted).into_iter().filter(is_about_tests).collect();
    // A switch of Cargo's that turns all of the test files off.
    let is_switch = |line: &&str| line.trim_start().starts_with("autotests");
    let is_new = |line: &&str| is_switch(line) && !trusted.contains(line.trim());
    if own == wanted && !result.lines().any(|line| is_new(&line)) {
        return result.as_bytes().to_vec();
    }
    let mut text: String = kept
        .into_iter()
        .flat_map(|section| section.split_inclusive('\n'))
        .filter(|line| !is_new(line))
        .collect();
    for section in wanted {
        if !text.ends_with('\n') && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(section);
    }
    text.into_bytes()
}

/// Splits a text before each line that is a section header.
fn sections(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        if at > 0
            && bare.starts_with('[')
            && bare.ends_with(']')
            && !bare.contains([',', '"', '\''])
        {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    starts.windows(2).map(|range| &text[range[0]..range[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_define_checks_are_known_by_their_names() {
        for path in [
            "Makefile",
            "sub/rules.mk",
            "justfile",
            "package.json",
            "web/jest.config.ts",
            "tests/conftest.py",
            "pyproject.toml",
            ".github/workflows/ci.yml",
            ".cargo/config.toml",
            "crates/a/Cargo.toml",
            "pom.xml",
            ".mocharc.json",
            ".bazelrc",
            "web/bunfig.toml",
            "node_modules/.bin/jest",
            "rust-toolchain.toml",
            "pytest.py",
            "unittest/__main__.py",
            "lib/CMakeLists.txt",
            "cmake/tests.cmake",
            "meson.build",
            "pkg/BUILD.bazel",
            "tools/rules.bzl",
            "Makefile.am",
            "configure.ac",
            "setup.py",
            "composer.json",
            "build.sbt",
            "Package.swift",
            "test/Unit.csproj",
            "testng.xml",
        ] {
            assert!(is_check_file(path.as_bytes()), "{path}");
        }
        for path in [
            "src/main.rs",
            "tests/test_a.py",
            "README.md",
            "Makefile.md",
            "src/conftest.pyx",
            "src/coverage.py",
            "src/pytest/__init__.py",
        ] {
            assert!(!is_check_file(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn scripts_are_told_from_sources() {
        let check = |path: &str, by, expected| {
            assert_eq!(is_check_script(path, false, by), expected, "{path}");
        };
        check("run.sh", NamedBy::File, true);
        check("run.py", NamedBy::Line, true);
        check("app.py", NamedBy::File, false);
        check("run_tests.py", NamedBy::File, true);
        check("src/main.c", NamedBy::Line, false);
        check("data.json", NamedBy::Line, false);
        assert!(is_check_script("bin/ci", true, NamedBy::File));
    }

    #[test]
    fn of_a_manifest_only_the_part_about_tests_is_replaced() {
        let result = br#"{"name": "a", "dependencies": {"b": "2"}, "scripts": {"test": "true"}, "jest": {"testMatch": []}}"#;
        let trusted = br#"{"name": "a", "dependencies": {"b": "1"}, "scripts": {"test": "jest"}}"#;
        let mixed = with_trusted_sections(b"package.json", result, trusted).expect("changed");
        let mixed: Value = serde_json::from_slice(&mixed).expect("JSON");
        let expected = serde_json::json!({
            "name": "a", "dependencies": {"b": "2"}, "scripts": {"test": "jest"}
        });
        assert_eq!(mixed, expected);
        let pyproject = |version: &str, option: &str| {
            format!(
                "[project]\nversion = \"{version}\"\n[tool.pytest.ini_options]\naddopts = \"{option}\"\n[tool.ruff]\nx = 1\n"
            )
        };
        let mixed = with_trusted_sections(
            b"pyproject.toml",
            pyproject("2", "--co").as_bytes(),
            pyproject("1", "-q").as_bytes(),
        );
        let mixed = String::from_utf8(mixed.expect("known")).expect("text");
        assert!(
            mixed.contains("version = \"2\"")
                && mixed.contains("\"-q\"")
                && !mixed.contains("--co"),
            "{mixed}"
        );
    }

    #[test]
    fn a_cargo_manifest_keeps_its_dependencies_and_loses_its_switches() {
        let result = "[package]\nname = \"a\"\nautotests = false\n[workspace]\nmembers = []\n[workspace.dependencies]\nb = \"2\"\n[lib]\ntest = false\n";
        let trusted = "[package]\nname = \"a\"\n[workspace]\nmembers = [\"x\"]\n[workspace.dependencies]\nb = \"1\"\n";
        let mixed = with_trusted_sections(b"Cargo.toml", result.as_bytes(), trusted.as_bytes());
        let mixed = String::from_utf8(mixed.expect("known")).expect("text");
        let expected = "[package]\nname = \"a\"\n[workspace.dependencies]\nb = \"2\"\n[workspace]\nmembers = [\"x\"]\n";
        assert_eq!(mixed, expected);
    }

    #[test]
    fn a_manifest_that_the_agent_added_stays_without_its_word_about_tests() {
        let package = b"[package]\nname = \"a\"\n[lib]\nproc-macro = true\n";
        let kept = without_test_sections(b"crates/a/Cargo.toml", package);
        assert_eq!(kept.as_deref(), Some(&package[..]));
        let project = b"[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"--co\"\n";
        let kept = without_test_sections(b"pyproject.toml", project).expect("it stays");
        assert_eq!(kept, b"[project]\nname = \"a\"\n");
        assert_eq!(without_test_sections(b"conftest.py", b"x"), None);
    }

    #[test]
    fn sections_that_nobody_changed_leave_the_file_alone() {
        let text = "[package]\nautotests = false\n[lib]\nname = \"x\"\n";
        let trusted = "[package]\nautotests = false\nversion = \"1\"\n[lib]\nname = \"x\"\n";
        let mixed = with_trusted_sections(b"Cargo.toml", text.as_bytes(), trusted.as_bytes());
        assert_eq!(mixed.as_deref(), Some(text.as_bytes()));
    }
}
