//! Search for lines in the files of a commit.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use model::id::Sha;

use super::call::{GitCall, argv_with};
use super::{GitError, SealedRepo};

/// Time limit for reading all files of a large tree.
const SEARCH_LIMIT: Duration = Duration::from_secs(300);

impl SealedRepo {
    /// Lists the text files of a commit in which one of these texts stands, within one line each.
    pub async fn files_with_text(
        &self,
        commit: &Sha,
        texts: &[&[u8]],
    ) -> Result<Vec<Vec<u8>>, GitError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let call = GitCall::new(argv_grep(commit, texts)).within(SEARCH_LIMIT);
        let answer = self.git.call(call).await?;
        match answer.found()? {
            Some(found) => {
                let parse = |bytes| parse_paths(bytes, commit);
                found.parse(parse, "it is not a list of files")
            }
            None => Ok(Vec::new()),
        }
    }
}

fn argv_grep(commit: &Sha, texts: &[&[u8]]) -> Vec<OsString> {
    let words = "grep -I -l -z -F --no-textconv --full-name --no-color";
    let texts = texts.iter().flat_map(|text| [OsStr::new("-e"), OsStr::from_bytes(text)]);
    let end = [OsStr::new(commit.as_str()), OsStr::new("--")];
    argv_with(words, texts.chain(end))
}

/// Parses `COMMIT:PATH` records.
fn parse_paths(bytes: &[u8], commit: &Sha) -> Option<Vec<Vec<u8>>> {
    let records = bytes.split(|&byte| byte == 0).filter(|record| !record.is_empty());
    let path = |record: &[u8]| {
        let rest = record.strip_prefix(commit.as_str().as_bytes())?;
        rest.strip_prefix(b":").map(<[u8]>::to_vec)
    };
    records.map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_option_and_paths_keep_their_bytes() {
        let commit = Sha::parse(&"a".repeat(40)).expect("an id");
        let argv = argv_grep(&commit, &[b"--open-files-in-pager=x"]);
        let at = argv.iter().position(|word| word == "-e").expect("a text");
        assert_eq!(argv[at + 1], "--open-files-in-pager=x");
        let bytes = [commit.as_str().as_bytes(), b":a\n\xff:b\0"].concat();
        assert_eq!(parse_paths(&bytes, &commit), Some(vec![b"a\n\xff:b".to_vec()]));
        assert_eq!(parse_paths(b"other:a\0", &commit), None);
    }
}
