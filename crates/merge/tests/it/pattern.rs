//! Path patterns select what git itself ignores by the same lines of a `.gitignore`.

use merge::pattern::PathPatterns;
use testkit::Repo;

/// Lists of patterns. Each is tried on all paths.
const PATTERNS: [&[&str]; 18] = [
    &["LICENSE"],
    &["/LICENSE"],
    &["src/auth"],
    &["docs/*"],
    &["docs/**"],
    &["*.lock"],
    &["/*.lock"],
    &["**/*.lock"],
    &["**.lock"],
    &["a/**/b"],
    &["ci/*/x"],
    &["a?c"],
    &["[x-z]1"],
    &["{a,b}"],
    &["*.md", "!README.md"],
    &["*.md", "!/README.md"],
    &["!README.md", "*.md"],
    &["**/api"],
];

const PATHS: [&str; 26] = [
    "LICENSE",
    "docs/LICENSE",
    "LICENSE.md",
    "license",
    "src/auth",
    "src/auth/a",
    "x/src/auth",
    "docs/a",
    "docs/a/b",
    "docsx/a",
    "a.lock",
    "a/b.lock",
    "a/c/d.lock",
    "a/b",
    "a/x/b",
    "a/x/y/b",
    "ci/a/x",
    "ci/a/b/x",
    "abc",
    "d/abc",
    "y1",
    "w1",
    "{a,b}",
    "README.md",
    "docs/README.md",
    "docs/api/x",
];

#[test]
fn git_agrees_about_every_pattern_and_path() {
    let scratch = tempfile::tempdir().unwrap();
    let repo = Repo::init(scratch.path().join("repo"));
    for patterns in PATTERNS {
        repo.write(".gitignore", patterns.join("\n"));
        let compiled = PathPatterns::new(patterns);
        let ignored = repo.try_git(&[&["check-ignore", "--no-index"], &PATHS[..]].concat());
        let ignored = ignored.unwrap_or_default();
        for path in PATHS {
            let by_git = ignored.lines().any(|line| line == path);
            assert_eq!(compiled.matches(path.as_bytes()), by_git, "{patterns:?} at {path}");
        }
    }
}
