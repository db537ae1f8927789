//! The commits that a branch adds, with their claimed authors.

use std::ffi::OsString;
use std::time::Duration;

use model::id::Sha;

use super::call::{GitCall, argv_with};
use super::parse::{excluded, nul_fields};
use super::{GitError, SealedRepo};

/// Metadata of a commit. None of it is proven: names and addresses are claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitFacts {
    pub sha: Sha,
    /// Its parents, in order; a merge has several and a root none.
    pub parents: Vec<Sha>,
    /// Author, as the commit claims.
    pub author: GitIdentity,
    /// Committer, as the commit claims.
    pub committer: GitIdentity,
    /// The first paragraph of its message, on one line.
    pub subject: String,
}

/// A name and an address as recorded in a commit; bytes that are not UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitIdentity {
    pub name: String,
    pub email: String,
}

/// Date and subject of a commit, to show it to people. Both are claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitLine {
    pub sha: Sha,
    /// Seconds since 1970 of the committer's date.
    pub seconds: i64,
    pub subject: String,
}

const FIELDS: usize = 7;
/// Fields end with NUL, which no part of a commit can contain. The same holds for [`FORMAT`].
const MESSAGE_FORMAT: &str = "--format=tformat:%H%x00%B";
const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%cn%x00%ce%x00%s";

impl SealedRepo {
    /// Lists commits reachable from `tip` and from none of `exclude`, newest first, at most `limit`.
    pub async fn new_commits(
        &self,
        tip: &Sha,
        exclude: &[Sha],
        limit: usize,
    ) -> Result<Vec<CommitFacts>, GitError> {
        let answer = self.git.query(argv_new_commits(tip, exclude, limit)).await?;
        parse_commits(&answer.stdout).map_err(|problem| answer.unreadable(problem))
    }
}

impl SealedRepo {
    /// Reads dates and subjects of commits. Those that are missing are left out.
    pub async fn commit_lines(&self, commits: &[Sha]) -> Result<Vec<CommitLine>, GitError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let words = "log -z --no-walk=unsorted --ignore-missing --no-patch --no-color --encoding=UTF-8 --stdin";
        let call = GitCall::new(argv_with(words, ["--format=tformat:%H%x00%ct%x00%s"]));
        let answer = self.git.query(call.reading(input.as_bytes())).await?;
        answer.parse(parse_lines, "it is not a list of commits")
    }
}

fn parse_lines(bytes: &[u8]) -> Option<Vec<CommitLine>> {
    let fields = nul_fields(bytes)?;
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let (lines, rest) = fields.as_chunks::<3>();
    let line = |[sha, seconds, subject]: &[&[u8]; 3]| {
        let (sha, seconds) = (Sha::parse(&text(sha)).ok()?, text(seconds).parse().ok()?);
        Some(CommitLine { sha, seconds, subject: text(subject) })
    };
    lines.iter().map(line).collect::<Option<_>>().filter(|_| rest.is_empty())
}

impl SealedRepo {
    /// Lists the whole messages of the commits that [`Self::new_commits`] lists.
    pub async fn new_messages(
        &self,
        tip: &Sha,
        exclude: &[Sha],
        limit: usize,
    ) -> Result<Vec<(Sha, String)>, GitError> {
        let argv = argv_log(MESSAGE_FORMAT, tip, exclude, limit);
        let answer = self.git.query(argv).await?;
        parse_messages(&answer.stdout).map_err(|problem| answer.unreadable(problem))
    }
}

/// Time for which messages are searched.
const SEARCH_LIMIT: Duration = Duration::from_secs(20);

/// Messages of a range, as far as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundMessages {
    pub messages: Vec<(Sha, String)>,
    /// Limits on size or time ended the search: more messages may match.
    pub is_cut: bool,
}

impl SealedRepo {
    /// Finds the messages of commits reachable from `tip` and from none of `exclude` in which each of these extended regular
    /// expressions matches a line, whatever the case of its letters; newest first, at most `cap` bytes of them. A range that
    /// is too large to be searched is no error.
    pub async fn find_messages(
        &self,
        tip: &Sha,
        exclude: &[Sha],
        patterns: &[&str],
        cap: usize,
    ) -> Result<FoundMessages, GitError> {
        let words = "log -z --no-patch --no-color --encoding=UTF-8 --regexp-ignore-case --extended-regexp --all-match";
        let patterns = patterns.iter().map(|pattern| format!("--grep={pattern}"));
        let values = [MESSAGE_FORMAT, "--end-of-options", tip.as_str()].map(str::to_owned);
        let values = patterns.chain(values).chain(excluded(exclude)).chain(["--".to_owned()]);
        let call = GitCall::new(argv_with(words, values)).cut_after(cap).within(SEARCH_LIMIT);
        let answer = match self.git.query(call).await {
            Err(GitError::TimedOut { .. }) => {
                return Ok(FoundMessages { messages: Vec::new(), is_cut: true });
            }
            answer => answer?,
        };
        let whole = whole_pairs(&answer.stdout);
        let messages = parse_messages(whole).map_err(|problem| answer.unreadable(problem))?;
        Ok(FoundMessages { messages, is_cut: answer.truncated })
    }
}

/// The part of an answer, which may be cut, that has whole pairs of fields.
fn whole_pairs(bytes: &[u8]) -> &[u8] {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at + 1);
    let end = ends.skip(1).step_by(2).last().unwrap_or_default();
    &bytes[..end]
}

fn parse_messages(bytes: &[u8]) -> Result<Vec<(Sha, String)>, String> {
    let fields = nul_fields(bytes).ok_or("it ends too early")?;
    let (pairs, rest) = fields.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("a message without its commit".to_owned());
    }
    let parse = |[sha, message]: &[&[u8]; 2]| {
        let sha = Sha::parse(&String::from_utf8_lossy(sha)).map_err(|error| error.to_string())?;
        Ok((sha, String::from_utf8_lossy(message).into_owned()))
    };
    pairs.iter().map(parse).collect()
}

fn argv_new_commits(tip: &Sha, exclude: &[Sha], limit: usize) -> Vec<OsString> {
    argv_log(FORMAT, tip, exclude, limit)
}

fn argv_log(format: &str, tip: &Sha, exclude: &[Sha], limit: usize) -> Vec<OsString> {
    let words = "log -z --no-patch --no-color --topo-order --encoding=UTF-8";
    let values = [format, &format!("--max-count={limit}"), "--end-of-options", tip.as_str()];
    let values = values.map(str::to_owned).into_iter().chain(excluded(exclude));
    argv_with(words, values.chain(["--".to_owned()]))
}

fn parse_commits(bytes: &[u8]) -> Result<Vec<CommitFacts>, String> {
    let fields = nul_fields(bytes).ok_or("it ends too early")?;
    let fields: Vec<String> =
        fields.into_iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
    let (commits, rest) = fields.as_chunks::<FIELDS>();
    if !rest.is_empty() {
        return Err(format!("{} fields too many", rest.len()));
    }
    commits.iter().map(parse_commit).collect()
}

fn parse_commit(fields: &[String; FIELDS]) -> Result<CommitFacts, String> {
    let [sha, parents, author, author_email, committer, committer_email, subject] = fields;
    let id = |text: &str| Sha::parse(text).map_err(|error| error.to_string());
    Ok(CommitFacts {
        sha: id(sha)?,
        parents: parents.split_ascii_whitespace().map(id).collect::<Result<_, _>>()?,
        author: GitIdentity { name: author.clone(), email: author_email.clone() },
        committer: GitIdentity { name: committer.clone(), email: committer_email.clone() },
        subject: subject.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn the_question_names_every_commit_by_its_whole_id() {
        let id = |text| Sha::parse(text).unwrap();
        let argv = argv_new_commits(&id(A), &[id(B)], 10).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"log -z --no-patch --no-color --topo-order --encoding=UTF-8 --format=tformat:%H%x00%P%x00%an%x00%ae%x00%cn%x00%ce%x00%s --max-count=10 --end-of-options aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ^bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb --");
    }

    #[test]
    fn merges_roots_and_odd_names_are_read() {
        let text = format!(
            "{A}\0{B} {A}\0Ada \"x\" <y>\0a@x\0Bot\0\0merge: one\0{B}\0\0\0\0\u{202e}\0b@x\0\0"
        );
        let commits = parse_commits(text.as_bytes()).unwrap();
        assert_eq!(commits.len(), 2);
        assert_eq!(commits[0].parents.len(), 2);
        assert_eq!(commits[0].author.name, "Ada \"x\" <y>");
        assert_eq!(commits[0].committer, GitIdentity { name: "Bot".into(), email: String::new() });
        assert_eq!(commits[0].subject, "merge: one");
        assert!(commits[1].parents.is_empty());
        assert_eq!(commits[1].subject, "");
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_a_commit() {
        let mut bytes = format!("{A}\0\0").into_bytes();
        bytes.extend_from_slice(b"\xff\0a\0c\0d\0s\0");
        assert_eq!(parse_commits(&bytes).unwrap()[0].author.name, "\u{fffd}");
    }

    #[test]
    fn dates_and_subjects_are_read() {
        let text = format!("{A}\x001700000000\0merge: one\0{B}\x000\0\0");
        let found = parse_lines(text.as_bytes()).unwrap();
        assert_eq!((found[0].seconds, found[0].subject.as_str()), (1_700_000_000, "merge: one"));
        assert_eq!((found.len(), found[1].subject.as_str()), (2, ""));
        assert_eq!(parse_lines(format!("{A}\x001\0").as_bytes()), None);
    }

    #[test]
    fn messages_are_read_whole() {
        let text = format!("{A}\0subject\n\nCloses #3\n\0{B}\0\0");
        let messages = parse_messages(text.as_bytes()).unwrap();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0].1, "subject\n\nCloses #3\n");
        assert_eq!(messages[1].1, "");
        assert!(parse_messages(format!("{A}\0").as_bytes()).is_err());
    }

    #[test]
    fn of_an_answer_that_was_cut_the_whole_messages_are_read() {
        let text = format!("{A}\0one\n\0{B}\0tw");
        assert_eq!(parse_messages(whole_pairs(text.as_bytes())).unwrap().len(), 1);
        for end in [0, 10, 41, 45] {
            assert_eq!(whole_pairs(&text.as_bytes()[..end]), b"", "{end}");
        }
    }

    #[test]
    fn half_an_answer_is_no_answer() {
        assert_eq!(parse_commits(b"").unwrap(), []);
        assert!(parse_commits(format!("{A}\0\0a").as_bytes()).is_err());
        assert!(parse_commits(format!("{A}\0\0a\0").as_bytes()).is_err());
        assert!(parse_commits(b"short\0\0a\0b\0c\0d\0e\0").is_err());
    }
}
