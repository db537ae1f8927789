//! A file that lists forks, one folder per line.

use std::path::{Path, PathBuf};

/// The folders that the text names, relative ones below `folder`. Empty lines and lines that begin with `#` do not count.
pub(crate) fn parse_fork_list(text: &str, folder: &Path) -> Vec<PathBuf> {
    let counts = |line: &&str| !line.is_empty() && !line.starts_with('#');
    text.lines().map(str::trim).filter(counts).map(|line| folder.join(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(parse_fork_list(text, Path::new("/lists")), expected, "{text:?}");
    }

    #[test]
    fn folders_are_taken_line_by_line() {
        check("", &[]);
        check("# forks of mine\n\n/srv/a\n  /srv/b c \r\n", &["/srv/a", "/srv/b c"]);
        check("here\n../there", &["/lists/here", "/lists/../there"]);
        check("/srv/a#1\n", &["/srv/a#1"]);
    }
}
