//! Tells code from the tests and documents that a fix brings along. Forks often drop those, so they are no sign of a fix.

/// Folders that hold no code of the product.
const FOLDERS: &[&str] = &[
    "test",
    "tests",
    "testing",
    "testdata",
    "test-data",
    "t",
    "spec",
    "specs",
    "doc",
    "docs",
    "man",
    "documentation",
    "examples",
    "example",
    "fuzz",
    "fuzzing",
    "corpus",
    "corpora",
    "po",
    ".github",
    ".circleci",
    ".gitlab",
    "ci",
];

/// Ends of names of files that hold no code.
const ENDS: &[&str] = &[
    ".md",
    ".rst",
    ".txt",
    ".adoc",
    ".html",
    ".pdf",
    ".png",
    ".jpg",
    ".svg",
    ".po",
    ".lock",
    ".sum",
    "_test.go",
    "_test.py",
    "_test.rs",
    ".test.js",
    ".test.ts",
    ".spec.js",
    ".spec.ts",
    "tests.rs",
    "test.java",
    "test.cpp",
    "test.c",
    "test.cc",
    ".t",
    ".test",
];

/// Names of files that hold no code, in lower case.
const NAMES: &[&str] = &[
    "changelog",
    "changes",
    "news",
    "authors",
    "contributors",
    "version",
    "manifest",
    "manifest.uuid",
    "thanks",
    "todo",
    "license",
    "copying",
];

/// Returns whether a path holds code of the product.
pub(crate) fn is_code(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path).to_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path.as_str()));
    let in_tests = folders.split('/').any(|folder| FOLDERS.contains(&folder));
    let is_other = ENDS.iter().any(|end| name.ends_with(end))
        || NAMES.contains(&name)
        || name.starts_with("test_")
        || name.starts_with("changelog");
    !in_tests && !is_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_documents_are_told_from_code() {
        for path in [
            "src/a.c",
            "les/handler.go",
            "Makefile",
            "src/protest/x.rs",
            "CMakeLists.c",
            "lib/testify.py",
        ] {
            assert!(is_code(path.as_bytes()), "{path}");
        }
        for path in [
            "test/a.c",
            "a/tests/b/c.rs",
            "les/handler_test.go",
            "README.md",
            "ChangeLog",
            "docs/x.c",
            "test_a.py",
        ] {
            assert!(!is_code(path.as_bytes()), "{path}");
        }
    }
}
