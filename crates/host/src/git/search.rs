//! Searches for commits by their messages, and the annotations of tags.

use std::ffi::OsString;
use std::time::Duration;

use model::id::Sha;

use super::call::{Git, GitCall, argv_with};
use super::parse::{excluded, nul_fields, parse_id};
use super::{GitError, SealedRepo};

/// Time limit for reading the messages of a long history.
const SEARCH_LIMIT: Duration = Duration::from_secs(300);

/// A commit with its whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    pub sha: Sha,
    pub message: String,
}

/// A tag with a message of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagMessage {
    /// Without `refs/tags/`.
    pub name: String,
    /// The tagged commit.
    pub commit: Sha,
    pub message: String,
}

impl SealedRepo {
    /// Lists the commits reachable from `tips` and from none of `exclude`, merges included.
    pub async fn commits_between(
        &self,
        tips: &[Sha],
        exclude: &[Sha],
    ) -> Result<Vec<Sha>, GitError> {
        let range = tips.iter().map(ToString::to_string).chain(excluded(exclude));
        let argv = argv_with("rev-list", range.chain(["--".to_owned()]));
        self.git.query(GitCall::new(argv).within(SEARCH_LIMIT)).await?.parse_ids()
    }

    /// Lists those of the same commits whose message matches one of these extended regular expressions in any case, newest
    /// first, at most `limit`.
    pub async fn search_messages(
        &self,
        tips: &[Sha],
        exclude: &[Sha],
        patterns: &[&str],
        limit: usize,
    ) -> Result<Vec<FoundMessage>, GitError> {
        let call = GitCall::new(argv_search(tips, exclude, patterns, limit)).within(SEARCH_LIMIT);
        self.git.query(call).await?.parse(parse_messages, "it is not a list of messages")
    }
}

impl Git {
    /// Lists the tags of this repository that have a message.
    pub async fn tag_messages(&self) -> Result<Vec<TagMessage>, GitError> {
        let answer = self.query(argv_with(TAGS, ["refs/tags"])).await?;
        answer.parse(parse_tags, "it is not a list of tags")
    }
}

const FORMAT: &str = "--format=tformat:%H%x00%B";

const TAGS: &str = "for-each-ref \
    --format=%(objecttype)%00%(*objectname)%00%(refname:lstrip=2)%00%(contents)%00";

fn argv_search(tips: &[Sha], exclude: &[Sha], patterns: &[&str], limit: usize) -> Vec<OsString> {
    let words = "log -z --no-patch --no-color --topo-order --encoding=UTF-8 --extended-regexp \
        --regexp-ignore-case";
    let patterns = patterns.iter().map(|pattern| format!("--grep={pattern}"));
    let values = [FORMAT.to_owned(), format!("--max-count={limit}")].into_iter().chain(patterns);
    let range = tips.iter().map(ToString::to_string).chain(excluded(exclude));
    argv_with(words, values.chain(range).chain(["--".to_owned()]))
}

fn parse_messages(bytes: &[u8]) -> Option<Vec<FoundMessage>> {
    let fields = nul_fields(bytes)?;
    let (commits, rest) = fields.as_chunks::<2>();
    rest.is_empty().then_some(())?;
    let found = |[sha, message]: &[&[u8]; 2]| {
        Some(FoundMessage {
            sha: parse_id(sha)?,
            message: String::from_utf8_lossy(message).into_owned(),
        })
    };
    commits.iter().map(found).collect()
}

/// Parses records of four fields; git ends each with a newline, which becomes the start of the next one.
fn parse_tags(bytes: &[u8]) -> Option<Vec<TagMessage>> {
    let Some(body) = bytes.strip_suffix(b"\0\n") else {
        return bytes.is_empty().then(Vec::new);
    };
    let fields: Vec<&[u8]> = body.split(|&byte| byte == 0).collect();
    let (records, rest) = fields.as_chunks::<4>();
    rest.is_empty().then_some(())?;
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let tags = records.iter().filter_map(|[kind, commit, name, message]| {
        let is_annotated = kind.strip_prefix(b"\n").unwrap_or(kind) == b"tag";
        let commit = parse_id(commit).filter(|_| is_annotated)?;
        Some(TagMessage { name: text(name), commit, message: text(message) })
    });
    Some(tags.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn a_search_names_commits_by_their_whole_ids() {
        let id = |text| Sha::parse(text).unwrap();
        let argv = argv_search(&[id(A)], &[id(B)], &["CVE-[0-9]", "--x"], 7).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"log -z --no-patch --no-color --topo-order --encoding=UTF-8 --extended-regexp --regexp-ignore-case --format=tformat:%H%x00%B --max-count=7 --grep=CVE-[0-9] --grep=--x aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ^bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
    }

    #[test]
    fn messages_are_read_whole() {
        let found = parse_messages(format!("{A}\0one\n\ntwo\n\0").as_bytes()).unwrap();
        assert_eq!((found.len(), found[0].message.as_str()), (1, "one\n\ntwo\n"));
        assert_eq!(parse_messages(b"").unwrap(), []);
        assert_eq!(parse_messages(format!("{A}\0x\0one\0").as_bytes()), None);
    }

    #[test]
    fn only_annotated_tags_of_commits_have_messages() {
        let text = format!(
            "tag\0{A}\0v1\0Fixes\n\nCVE-2024-1\n\0\ncommit\0\0v0\0subject\n\0\ntag\0{B}\0v2\0\0\n"
        );
        let tags = parse_tags(text.as_bytes()).unwrap();
        assert_eq!(tags.len(), 2);
        assert_eq!((tags[0].name.as_str(), tags[0].commit.as_str()), ("v1", A));
        assert_eq!(tags[0].message, "Fixes\n\nCVE-2024-1\n");
        assert_eq!((tags[1].name.as_str(), tags[1].message.as_str()), ("v2", ""));
        assert_eq!(parse_tags(b"").unwrap(), []);
    }
}
