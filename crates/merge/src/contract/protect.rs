//! Paths whose fork version must survive, as their owner wrote them down.

/// Patterns: a path, a folder (all below it), `*` for anything inside one name, `**` for anything at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    patterns: Vec<Vec<u8>>,
}

impl Protected {
    /// Takes patterns as they were written; a slash or `./` before and slashes behind make no difference.
    #[must_use]
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Self {
        let clean = |text: &str| {
            let text = text.trim();
            text.strip_prefix("./").unwrap_or(text).trim_matches('/').as_bytes().to_vec()
        };
        let patterns = patterns.into_iter().map(|text| clean(text.as_ref()));
        Self { patterns: patterns.filter(|pattern| !pattern.is_empty()).collect() }
    }

    /// Whether a path, or a folder that it is in, is named.
    #[must_use]
    pub fn covers(&self, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let parts: Vec<&[u8]> = ends.chain([path.len()]).map(|end| &path[..end]).collect();
        self.patterns.iter().any(|pattern| parts.iter().any(|part| matches(pattern, part)))
    }
}

/// Goes back to the last star when it gets stuck; a double star outlives a single one.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut single: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        if pattern[at..].starts_with(b"**") {
            at += 2;
            (double, single) = (Some((at, seen)), None);
        } else if pattern.get(at) == Some(&b'*') {
            at += 1;
            single = Some((at, seen));
        } else if seen == path.len() && at == pattern.len() {
            return true;
        } else if seen < path.len() && pattern.get(at) == Some(&path[seen]) {
            (at, seen) = (at + 1, seen + 1);
        } else if let Some((after, from)) = single
            && path.get(from).is_some_and(|&byte| byte != b'/')
        {
            single = Some((after, from + 1));
            (at, seen) = (after, from + 1);
        } else if let Some((after, from)) = double
            && from < path.len()
        {
            (double, single) = (Some((after, from + 1)), None);
            (at, seen) = (after, from + 1);
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, covered: &[&str], others: &[&str]) {
        let protected = Protected::new([pattern]);
        for path in covered {
            assert!(protected.covers(path.as_bytes()), "{pattern} should cover {path}");
        }
        for path in others {
            assert!(!protected.covers(path.as_bytes()), "{pattern} should not cover {path}");
        }
    }

    #[test]
    fn a_path_and_a_folder_are_named_alike() {
        check("LICENSE", &["LICENSE"], &["LICENSE.md", "docs/LICENSE"]);
        check("branding/", &["branding/logo.svg", "branding/a/b"], &["brandings/x", "a/branding"]);
        check("/./x", &[], &["y"]);
        check("", &[], &["x"]);
    }

    #[test]
    fn stars_stay_inside_a_name_unless_doubled() {
        check("*.lock", &["a.lock", ".lock"], &["a/b.lock", "a.lock2"]);
        check("**/*.lock", &["a/b.lock", "a/b/c.lock"], &["a.lock"]);
        check("**.lock", &["a.lock", "a/b.lock"], &["a.loc"]);
        check("ci/*/x", &["ci/a/x", "ci/a/x/y"], &["ci/a/b/x", "ci/x"]);
        check("docs/**", &["docs/a", "docs/a/b"], &["docs", "doc/a"]);
        check("a*b*c", &["abc", "a-b-b-c"], &["ab", "a/b/c"]);
    }
}
