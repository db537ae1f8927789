//! Choice of the files that a break is seeded into, to see whether the check notices.

use std::collections::BTreeSet;

/// A line that no language understands, before and after the text of a file.
pub(crate) const SEED: &str = "\n)]} forklift --prove-check: this is a break \"' {[(\n";

/// Files at most. One is enough to be noticed; several, because a check need not build everything.
const MOST: usize = 50;

const SOURCES: [&str; 25] = [
    "c", "cc", "cpp", "cs", "cu", "cxx", "ex", "go", "h", "hpp", "hs", "java", "js", "jsx", "kt",
    "lua", "ml", "php", "py", "rb", "rs", "scala", "swift", "ts", "tsx",
];

/// Chooses source files that upstream changed; where it changed none of the fork's, any of the fork's. Files of tests and files
/// that the check names are left out, because a check that cannot run proves nothing.
pub(crate) fn choose_seeded(
    files: &[Vec<u8>],
    upstream: &BTreeSet<Vec<u8>>,
    check: &str,
) -> Vec<Vec<u8>> {
    let sources: Vec<&Vec<u8>> = files.iter().filter(|path| is_source(path, check)).collect();
    let changed: Vec<Vec<u8>> =
        sources.iter().filter(|path| upstream.contains(**path)).copied().cloned().collect();
    let chosen = if changed.is_empty() { sources.into_iter().cloned().collect() } else { changed };
    chosen.into_iter().take(MOST).collect()
}

fn is_source(path: &[u8], check: &str) -> bool {
    let text = String::from_utf8_lossy(path);
    let name = text.rsplit('/').next().unwrap_or_default();
    let is_known = name.rsplit_once('.').is_some_and(|(_, kind)| SOURCES.contains(&kind));
    let is_test = text
        .to_lowercase()
        .split(['/', '.', '_', '-'])
        .any(|word| ["test", "tests", "spec", "conftest"].contains(&word));
    is_known && !is_test && !check.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(files: &[&str], upstream: &[&str]) -> Vec<String> {
        let bytes = |paths: &[&str]| paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        let files: Vec<Vec<u8>> = bytes(files);
        let upstream = upstream.iter().map(|path| path.as_bytes().to_vec()).collect();
        let found = choose_seeded(&files, &upstream, "python3 scripts/run.py");
        found.into_iter().map(|path| String::from_utf8(path).expect("text")).collect()
    }

    #[test]
    fn sources_that_upstream_changed_are_broken_and_tests_are_not() {
        let files =
            ["src/a.rs", "src/b.rs", "tests/it.rs", "test_a.py", "scripts/run.py", "README.md"];
        assert_eq!(chosen(&files, &["src/b.rs", "README.md", "tests/it.rs"]), ["src/b.rs"]);
        assert_eq!(chosen(&files, &["README.md"]), ["src/a.rs", "src/b.rs"]);
        assert!(chosen(&["README.md", "tests/a.py"], &[]).is_empty());
    }
}
