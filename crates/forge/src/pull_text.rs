//! Pull request as a page of text, for a remote without a forge.

use std::path::{Path, PathBuf};

use host::file::{FileError, write_atomic};
use model::escape::escape_line;

use crate::pull::NewPull;

const PULL_TEXT_FILE: &str = "PULL_REQUEST.md";

/// Writes a pull request as Markdown into `folder`, in the place of an earlier one. Returns the file.
pub fn write_pull_text(folder: &Path, pull: &NewPull) -> Result<PathBuf, FileError> {
    let path = folder.join(PULL_TEXT_FILE);
    write_atomic(&path, render_pull_text(pull).as_bytes(), 0o600)?;
    Ok(path)
}

/// A pull request as a Markdown page. The body is not escaped.
fn render_pull_text(pull: &NewPull) -> String {
    let NewPull { title, body, head, base, draft: _ } = pull;
    // A page in a folder needs no marks against a forge.
    let title = title.replace('\u{200b}', "");
    let mut text = format!("# {}\n\nMerge `{head}` into `{base}`.\n", escape_line(&title));
    let body = body.trim_end();
    if !body.is_empty() {
        text.push_str(&format!("\n{body}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use model::id::BranchName;

    use super::*;

    fn pull() -> NewPull {
        NewPull {
            title: "Take in\nupstream v2".to_owned(),
            body: "Three commits.\n\n- one\n\n".to_owned(),
            head: BranchName::parse("forklift/run-1").unwrap(),
            base: BranchName::parse("main").unwrap(),
            draft: false,
        }
    }

    #[test]
    fn the_page_says_what_goes_where() {
        assert_eq!(
            render_pull_text(&pull()),
            "# Take in\\nupstream v2\n\nMerge `forklift/run-1` into `main`.\n\n\
             Three commits.\n\n- one\n"
        );
    }

    #[test]
    fn writing_again_replaces_the_page() {
        let folder = tempfile::tempdir().unwrap();
        write_pull_text(folder.path(), &pull()).unwrap();
        let again = NewPull { body: String::new(), ..pull() };
        let path = write_pull_text(folder.path(), &again).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), render_pull_text(&again));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
