//! Changes along a branch's main line: for each of its commits, the paths in which it differs from the commit before it.
//! A merge counts with all that it brought in.

use model::id::Sha;

use super::call::{GitCall, argv};
use super::merge::MERGE_LIMIT;
use super::parse::{nul_fields, parse_id};
use super::{GitError, SealedRepo};

/// A path that a commit of a main line changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePath {
    pub path: Vec<u8>,
    pub is_deleted: bool,
}

const PATHS: &str = "diff-tree --stdin -r -z --raw --no-renames --ignore-submodules=none";

impl SealedRepo {
    /// Lists the paths that each commit of a line changed against the one before it; `before` stands before the first.
    pub async fn line_paths(
        &self,
        before: &Sha,
        line: &[Sha],
    ) -> Result<Vec<Vec<LinePath>>, GitError> {
        if line.is_empty() {
            return Ok(Vec::new());
        }
        // Git takes the second commit of a line for the only parent of the first.
        let parents = [before].into_iter().chain(line);
        let input: String = line
            .iter()
            .zip(parents)
            .map(|(commit, parent)| format!("{commit} {parent}\n"))
            .collect();
        let call = GitCall::new(argv(PATHS)).reading(input.as_bytes()).within(MERGE_LIMIT);
        let answer = self.git.query(call).await?;
        answer.parse(|bytes| parse_line(bytes, line), "it is not a list of changed paths")
    }
}

/// Parses for each commit that changed something its id, and then pairs of a header that begins with a colon and a path.
fn parse_line(bytes: &[u8], line: &[Sha]) -> Option<Vec<Vec<LinePath>>> {
    let mut found: Vec<Vec<LinePath>> = vec![Vec::new(); line.len()];
    let mut at = 0;
    let mut fields = nul_fields(bytes)?.into_iter();
    while let Some(field) = fields.next() {
        if field.starts_with(b":") {
            let is_deleted = field.ends_with(b" D");
            found.get_mut(at)?.push(LinePath { path: fields.next()?.to_vec(), is_deleted });
        } else {
            let commit = parse_id(field)?;
            at += line.get(at..)?.iter().position(|it| *it == commit)?;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha(digit: &str) -> Sha {
        Sha::parse(&digit.repeat(40)).unwrap()
    }

    #[test]
    fn commits_without_changes_have_no_paths() {
        let line = [sha("a"), sha("b"), sha("c")];
        let header = |status| format!(":100644 100644 {} {} {status}", sha("1"), sha("2"));
        let text =
            format!("{}\0{}\0x y\0{}\0{}\0gone\0", line[0], header("M"), line[2], header("D"));
        let found = parse_line(text.as_bytes(), &line).unwrap();
        let path = |path: &[u8], is_deleted| vec![LinePath { path: path.to_vec(), is_deleted }];
        assert_eq!(found, [path(b"x y", false), vec![], path(b"gone", true)]);
        assert_eq!(parse_line(b"", &line).unwrap().len(), 3);
    }

    #[test]
    fn an_answer_about_other_commits_is_refused() {
        let text = format!("{}\0", sha("d"));
        assert_eq!(parse_line(text.as_bytes(), &[sha("a")]), None);
    }
}
