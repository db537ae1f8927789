//! Path patterns as in gitignore: `protect:` and `resolve:` in FORK.md, and `protect` in the manifests of agents.

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// List of patterns. The last one that matches a path decides, so that `!` can take back an earlier one.
///
/// - a name without a slash matches at any depth, a pattern with one only from the root; a leading `/` or `./` is the root
/// - a pattern that matches a folder matches everything below it; a trailing `/` makes no difference
/// - `*` and `?` stay within a name, `**` spans folders, `[a-z]` is a class of bytes, a backslash quotes
/// - letters are compared with their case; paths need not be UTF-8
///
/// Unlike in gitignore, `!` takes back paths inside a folder that an earlier pattern matches.
#[derive(Clone, Debug, Default)]
pub struct PathPatterns {
    globs: GlobSet,
    /// For each glob whether a match selects the path or takes it back.
    selects: Vec<bool>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{pattern}' is not a path pattern: {reason}")]
pub struct PatternError {
    pattern: String,
    reason: String,
}

impl PathPatterns {
    /// Compiles patterns. One that is not a valid glob matches its own text: callers refuse it beforehand with
    /// [`check_pattern`], and records of older versions may still have one.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Self {
        let mut builder = GlobSetBuilder::new();
        let mut selects = Vec::new();
        for pattern in patterns {
            let Some(parsed) = Pattern::parse(pattern.as_ref()) else { continue };
            let globs = parsed.globs().or_else(|_| parsed.literal().globs());
            for glob in globs.into_iter().flatten() {
                builder.add(glob);
                selects.push(parsed.selects);
            }
        }
        Self { globs: builder.build().unwrap_or_default(), selects }
    }

    /// Returns whether the patterns select a path, which is relative to the root of the tree.
    pub fn matches(&self, path: &[u8]) -> bool {
        let matched = self.globs.matches_candidate(&Candidate::from_bytes(path));
        matched.last().is_some_and(|&last| self.selects[last])
    }
}

/// Checks that a pattern is valid and not empty.
pub fn check_pattern(text: &str) -> Result<(), PatternError> {
    let error = |reason: String| PatternError { pattern: text.to_owned(), reason };
    let parsed = Pattern::parse(text).ok_or_else(|| error("it is empty".to_owned()))?;
    parsed.globs().map(drop).map_err(|found| error(found.kind().to_string()))
}

/// A pattern in terms of globs.
struct Pattern {
    /// Glob from the root, without slashes at its ends.
    glob: String,
    selects: bool,
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (text, selects) = text.strip_prefix('!').map_or((text, true), |rest| (rest, false));
        let rooted = text.strip_prefix("./").or_else(|| text.strip_prefix('/'));
        let body = rooted.unwrap_or(text).trim_matches('/');
        if body.is_empty() {
            return None;
        }
        let body = quote_braces(body);
        let is_rooted = rooted.is_some() || body.contains('/');
        let glob = if is_rooted { body } else { format!("**/{body}") };
        Some(Self { glob, selects })
    }

    /// The same pattern with every special character quoted.
    fn literal(&self) -> Self {
        Self { glob: globset::escape(&self.glob), selects: self.selects }
    }

    /// A glob for the path itself and one for everything below it.
    fn globs(&self) -> Result<[Glob; 2], globset::Error> {
        let glob = |text: &str| {
            GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build()
        };
        Ok([glob(&self.glob)?, glob(&format!("{}/**", self.glob))?])
    }
}

/// Quotes braces, which are ordinary characters in gitignore and alternatives in a glob.
fn quote_braces(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    let (mut is_escaped, mut in_class) = (false, false);
    for c in text.chars() {
        match c {
            '{' | '}' if !is_escaped && !in_class => quoted.extend(['[', c, ']']),
            _ => quoted.push(c),
        }
        in_class = !is_escaped && ((in_class && c != ']') || c == '[');
        is_escaped = !is_escaped && c == '\\';
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], matched: &[&str], others: &[&str]) {
        let compiled = PathPatterns::new(patterns);
        for path in matched {
            assert!(compiled.matches(path.as_bytes()), "{patterns:?} should match {path}");
        }
        for path in others {
            assert!(!compiled.matches(path.as_bytes()), "{patterns:?} should not match {path}");
        }
    }

    #[test]
    fn a_name_matches_at_any_depth_and_a_path_from_the_root() {
        check(&["LICENSE"], &["LICENSE", "docs/LICENSE", "LICENSE/x"], &["LICENSE.md", "license"]);
        check(&["/LICENSE"], &["LICENSE"], &["docs/LICENSE"]);
        check(&["./LICENSE"], &["LICENSE"], &["docs/LICENSE"]);
        check(&["src/auth"], &["src/auth", "src/auth/a/b"], &["a/src/auth", "src/authority"]);
    }

    #[test]
    fn a_folder_covers_everything_below_it() {
        let below = ["branding/logo.svg", "branding/a/b", "a/branding/x", "branding"];
        check(&["branding/"], &below, &["brandings/x", "a/brand"]);
        check(&["/branding/"], &["branding/x"], &["a/branding/x"]);
        check(&["docs/**"], &["docs/a", "docs/a/b"], &["docs", "doc/a", "a/docs/b"]);
    }

    #[test]
    fn stars_stay_inside_a_name_unless_doubled() {
        check(&["*.lock"], &["a.lock", ".lock", "a/b.lock"], &["a.lock2", "a.loc"]);
        check(&["/*.lock"], &["a.lock"], &["a/b.lock"]);
        check(&["**/*.lock"], &["a.lock", "a/b.lock", "a/b/c.lock"], &["a.loc"]);
        check(&["ci/*/x"], &["ci/a/x", "ci/a/x/y"], &["ci/a/b/x", "ci/x"]);
        check(&["a/**/b"], &["a/b", "a/x/y/b", "a/b/c"], &["b", "ab"]);
        check(&["a?c", "[x-z]1"], &["abc", "d/a-c", "y1"], &["ac", "a/c", "w1"]);
    }

    #[test]
    fn the_last_pattern_that_matches_decides() {
        check(&["docs/", "!docs/api"], &["docs/a"], &["docs/api", "docs/api/x"]);
        check(&["!docs/api", "docs/"], &["docs/api"], &[]);
        check(&["*.md", "!/README.md", "README.md"], &["README.md"], &["a"]);
        check(&["!a"], &[], &["a", "b"]);
    }

    #[test]
    fn special_characters_can_be_quoted_and_braces_are_ordinary() {
        check(&[r"\!a", r"b\*"], &["!a", "b*"], &["a", "bc"]);
        check(&["{a,b}"], &["{a,b}", "x/{a,b}"], &["a", "b"]);
        check(&["[{]x", r"\{y"], &["{x", "{y"], &["x"]);
    }

    #[test]
    fn a_path_need_not_be_utf_8() {
        let patterns = PathPatterns::new(["*.bin", "dir/"]);
        assert!(patterns.matches(b"a\xff\xfe.bin") && patterns.matches(b"dir/\xff"));
        assert!(!patterns.matches(b"a\xff.bi"));
    }

    #[test]
    fn an_empty_or_broken_pattern_is_refused() {
        for text in ["", " ", "/", "!", "./", "!/"] {
            assert!(check_pattern(text).is_err(), "{text:?}");
            check(&[text], &[], &["a", "a/b"]);
        }
        let error = check_pattern("a[b").unwrap_err().to_string();
        assert!(error.contains("'a[b'"), "{error}");
        assert!(check_pattern("src/**/*.[ch]").is_ok());
        check(&["/a[b"], &["a[b", "a[b/c"], &["ab"]);
    }
}
