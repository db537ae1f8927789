//! CODEOWNERS: the accounts that review a change. Teams and mail addresses are left to the forge.

use std::collections::BTreeSet;

use merge::pattern::PathPatterns;

/// Places of the file, in the order in which forges look for it.
pub(crate) const OWNERS_PATHS: [&str; 4] =
    [".github/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"];

/// Most accounts that are asked.
const OWNERS_MAX: usize = 5;

/// Owners of changed paths. The last line that matches a path decides, as on the forges.
pub(crate) fn find_owners(text: &str, changed: &[Vec<u8>]) -> Vec<String> {
    let rules: Vec<(PathPatterns, Vec<String>)> = text.lines().filter_map(parse_line).collect();
    let owners_of = |path: &Vec<u8>| {
        let rule = rules.iter().rev().find(|(pattern, _)| pattern.matches(path));
        rule.map(|(_, owners)| owners.clone()).unwrap_or_default()
    };
    let all: BTreeSet<String> = changed.iter().flat_map(owners_of).collect();
    all.into_iter().take(OWNERS_MAX).collect()
}

/// Parses a pattern with its owners; `None` for comments and sections.
fn parse_line(line: &str) -> Option<(PathPatterns, Vec<String>)> {
    let line = line.split(" #").next().unwrap_or_default().trim();
    if line.is_empty() || line.starts_with(['#', '[', '^']) {
        return None;
    }
    let mut words = line.split_whitespace();
    let pattern = words.next()?;
    let is_account = |name: &&str| !name.is_empty() && !name.contains(['/', '@']);
    let owners = words.filter_map(|word| word.strip_prefix('@')).filter(is_account);
    Some((PathPatterns::new([pattern]), owners.map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_matches_decides() {
        let text = "# all\n*  @ann @acme/team\n/docs/ @bob dan@example.org # words\n[Section]\n*.rs @carl\n/gen/\n";
        let owners = |paths: &[&str]| {
            let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
            find_owners(text, &paths)
        };
        assert_eq!(owners(&["README.md"]), ["ann"]);
        assert_eq!(owners(&["docs/a.md"]), ["bob"]);
        assert_eq!(owners(&["src/a.rs", "x"]), ["ann", "carl"]);
        assert_eq!(
            owners(&["gen/x"]),
            Vec::<String>::new(),
            "a line without owners takes them away"
        );
    }
}
