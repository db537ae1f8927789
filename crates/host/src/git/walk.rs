//! Whole histories, for a walk through them in memory: commits with their messages, and what each changed.
//!
//! Each question is one process of git, however many commits it is about.

use std::time::Duration;

use model::id::Sha;

use super::call::{GitCall, GitOutput, argv, argv_with};
use super::diff::parse_entry;
use super::forecast::parse_renames;
use super::parse::{excluded, lines_of, nul_fields, parse_id, some_object};
use super::{ChangedEntry, GitError, GitIdentity, Rename, SealedRepo};

/// Time limit for reading thousands of commits.
const WALK_LIMIT: Duration = Duration::from_secs(300);

/// Bytes of one answer. Where git has more to say, the question is divided.
const ANSWER_BYTES: usize = 48 << 20;

/// Most questions of one process.
const AT_ONCE: usize = 5000;

/// A commit of a history with everything that it claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCommit {
    pub sha: Sha,
    /// Its parents, in order.
    pub parents: Vec<Sha>,
    pub author: GitIdentity,
    /// Seconds since 1970 of the author's date and of the committer's.
    pub authored: i64,
    pub committed: i64,
    pub message: String,
}

impl HistoryCommit {
    /// The first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// A commit and the parent that it is compared with: the given one, else its only one.
pub type ComparedCommit = (Sha, Option<Sha>);

/// A path that differs from every parent of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CombinedEntry {
    pub path: Vec<u8>,
    /// The objects of the parents, in order; `None` for one that lacks the path.
    pub parents: Vec<Option<Sha>>,
    /// The object of the merge; `None` if it lacks the path.
    pub result: Option<Sha>,
}

impl SealedRepo {
    /// Lists the commits reachable from `tips` and from none of `exclude`, merges included, each before its parents.
    pub async fn history(
        &self,
        tips: &[Sha],
        exclude: &[Sha],
    ) -> Result<Vec<HistoryCommit>, GitError> {
        let ends = tips.iter().map(ToString::to_string).chain(excluded(exclude));
        let input: String = ends.map(|end| format!("{end}\n")).collect();
        let call = GitCall::new(argv_with(HISTORY, [FORMAT])).reading(input.as_bytes());
        let answer = self.git.query(call.within(WALK_LIMIT)).await?;
        answer.parse(parse_history, "it is not a list of commits")
    }

    /// Returns the best common ancestor of a commit and a merge of all the others.
    pub async fn merge_base_of_all(
        &self,
        tip: &Sha,
        others: &[Sha],
    ) -> Result<Option<Sha>, GitError> {
        let words = std::iter::once(tip).chain(others).map(Sha::as_str);
        let answer = self.git.call(argv_with("merge-base", words)).await?;
        answer.found()?.map(GitOutput::parse_id).transpose()
    }

    /// Lists the paths that each commit changed, in the order given.
    pub async fn changes_of(
        &self,
        commits: &[ComparedCommit],
    ) -> Result<Vec<Vec<ChangedEntry>>, GitError> {
        let words = format!("{DIFF} --root --no-renames");
        self.in_parts(&words, commits, parse_changes, "it is not a list of changed paths").await
    }

    /// Lists the files that each commit renamed, in the order given. Where git cannot read a content, only files that were
    /// renamed as they are.
    pub async fn renames_of(
        &self,
        commits: &[ComparedCommit],
    ) -> Result<Vec<Vec<Rename>>, GitError> {
        let (mut found, mut open) = (Vec::with_capacity(commits.len()), vec![commits]);
        while let Some(some) = open.pop() {
            match self.renames_by(RENAMES, some).await {
                Ok(renames) => found.extend(renames),
                Err(GitError::Failed { .. }) if some.len() > 1 => {
                    let (one, other) = some.split_at(some.len() / 2);
                    open.extend([other, one]);
                }
                Err(GitError::Failed { .. }) => {
                    found.extend(self.renames_by(EXACT_RENAMES, some).await?);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    async fn renames_by(
        &self,
        words: &str,
        commits: &[ComparedCommit],
    ) -> Result<Vec<Vec<Rename>>, GitError> {
        let words = format!("{DIFF} --diff-filter=R {words}");
        self.in_parts(&words, commits, parse_renamed, "it is not a list of renames").await
    }

    /// Lists for each merge the paths that differ from all of its parents, in the order given.
    pub async fn combined_changes(
        &self,
        merges: &[Sha],
    ) -> Result<Vec<Vec<CombinedEntry>>, GitError> {
        let merges: Vec<ComparedCommit> = merges.iter().map(|sha| (sha.clone(), None)).collect();
        let words = format!("{DIFF} -c --no-renames");
        self.in_parts(&words, &merges, parse_combined, "it is not a list of combined paths").await
    }

    /// Asks about many commits. A question with too long an answer is divided.
    async fn in_parts<T>(
        &self,
        words: &str,
        commits: &[ComparedCommit],
        parse: impl Fn(&[u8]) -> Option<Vec<Vec<T>>>,
        problem: &str,
    ) -> Result<Vec<Vec<T>>, GitError> {
        let mut found = Vec::with_capacity(commits.len());
        let mut open: Vec<&[ComparedCommit]> = commits.chunks(AT_ONCE).rev().collect();
        while let Some(some) = open.pop() {
            let input: String = some.iter().map(render_question).collect();
            let call = GitCall::new(argv(words)).reading(input.as_bytes()).within(WALK_LIMIT);
            let answer = self.git.query(call.cut_after(ANSWER_BYTES)).await?;
            match some {
                [_, _, ..] if answer.truncated => {
                    let (one, other) = some.split_at(some.len() / 2);
                    open.extend([other, one]);
                }
                _ if answer.truncated => return Err(answer.unreadable("it is too long")),
                _ => {
                    let some_found = answer.parse(&parse, problem)?;
                    found.extend(answer.all_of(some_found, some.len())?);
                }
            }
        }
        Ok(found)
    }
}

fn render_question((commit, parent): &ComparedCommit) -> String {
    match parent {
        Some(parent) => format!("{commit} {parent}\n"),
        None => lines_of(std::slice::from_ref(commit)),
    }
}

const HISTORY: &str =
    "log -z --no-patch --no-color --no-mailmap --topo-order --encoding=UTF-8 --stdin";

const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%B";

const FIELDS: usize = 7;

/// `--always` prints the id of a commit without changes too.
const DIFF: &str = "diff-tree --stdin --always -r -z --raw --no-abbrev --no-ext-diff --no-textconv \
    --ignore-submodules=none";

/// Git's own limit on compared candidates bounds the time.
const RENAMES: &str = "--find-renames -l1000";
const EXACT_RENAMES: &str = "--find-renames=100%";

fn parse_history(bytes: &[u8]) -> Option<Vec<HistoryCommit>> {
    let fields = nul_fields(bytes)?;
    let (commits, rest) = fields.as_chunks::<FIELDS>();
    rest.is_empty().then_some(())?;
    commits.iter().map(parse_commit).collect()
}

fn parse_commit(fields: &[&[u8]; FIELDS]) -> Option<HistoryCommit> {
    let [sha, parents, name, email, authored, committed, message] = fields;
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    // A date that git cannot read is printed as nothing.
    let seconds = |field: &[u8]| text(field).parse().unwrap_or_default();
    Some(HistoryCommit {
        sha: parse_id(sha)?,
        parents: text(parents)
            .split(' ')
            .filter(|id| !id.is_empty())
            .map(id)
            .collect::<Option<_>>()?,
        author: GitIdentity { name: text(name), email: text(email) },
        authored: seconds(authored),
        committed: seconds(committed),
        message: text(message),
    })
}

fn id(text: &str) -> Option<Sha> {
    Sha::parse(text).ok()
}

/// Parses answers that each begin with a commit and go on with entries of a header, which begins with a colon, and paths.
fn parse_answers<'a, T>(
    bytes: &'a [u8],
    mut entry: impl FnMut(&'a [u8], &mut dyn Iterator<Item = &'a [u8]>) -> Option<T>,
) -> Option<Vec<Vec<T>>> {
    let mut answers: Vec<Vec<T>> = Vec::new();
    let mut fields = nul_fields(bytes)?.into_iter();
    while let Some(field) = fields.next() {
        if field.starts_with(b":") {
            answers.last_mut()?.push(entry(field, &mut fields)?);
        } else {
            parse_id(field)?;
            answers.push(Vec::new());
        }
    }
    Some(answers)
}

fn parse_changes(bytes: &[u8]) -> Option<Vec<Vec<ChangedEntry>>> {
    parse_answers(bytes, |header, fields| parse_entry(header, fields.next()?))
}

fn parse_renamed(bytes: &[u8]) -> Option<Vec<Vec<Rename>>> {
    let renames = |header: &[u8], fields: &mut dyn Iterator<Item = &[u8]>| {
        let entry = [header, fields.next()?, fields.next()?, b""].join(&0);
        parse_renames(&entry)?.pop()
    };
    parse_answers(bytes, |header, fields| renames(header, fields))
}

/// Parses entries of as many colons as there are parents, the modes and objects of all parents and of the result, the
/// statuses and the path.
fn parse_combined(bytes: &[u8]) -> Option<Vec<Vec<CombinedEntry>>> {
    parse_answers(bytes, |header, fields| {
        let text = std::str::from_utf8(header).ok()?;
        let count = text.bytes().take_while(|byte| *byte == b':').count();
        let words: Vec<&str> = text[count..].split(' ').collect();
        let mut objects: Vec<Option<Sha>> = words
            .get(count + 1..2 * count + 2)?
            .iter()
            .map(|word| Some(some_object(id(word)?)))
            .collect::<Option<_>>()?;
        let result = objects.pop()?;
        Some(CombinedEntry { path: fields.next()?.to_vec(), parents: objects, result })
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn shown(argv: &[OsString]) -> String {
        argv.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn nothing_outside_git_takes_part_in_a_walk() {
        insta::assert_snapshot!(shown(&argv_with(HISTORY, [FORMAT])), @"log -z --no-patch --no-color --no-mailmap --topo-order --encoding=UTF-8 --stdin --format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%B");
        insta::assert_snapshot!(shown(&argv(DIFF)), @"diff-tree --stdin --always -r -z --raw --no-abbrev --no-ext-diff --no-textconv --ignore-submodules=none");
    }

    #[test]
    fn a_commit_is_compared_with_the_parent_that_is_given() {
        let [a, b] = [A, B].map(|text| Sha::parse(text).unwrap());
        assert_eq!(render_question(&(a.clone(), Some(b))), format!("{A} {B}\n"));
        assert_eq!(render_question(&(a, None)), format!("{A}\n"));
    }

    #[test]
    fn commits_have_all_that_they_claim() {
        let text = format!("{A}\0{B} {A}\0Ada\0a@x\x007\x008\0one\n\ntwo\n\0{B}\0\0\0\0\0\0\0");
        let found = parse_history(text.as_bytes()).unwrap();
        assert_eq!((found[0].parents.len(), found[0].authored, found[0].committed), (2, 7, 8));
        assert_eq!((found[0].subject(), found[0].message.as_str()), ("one", "one\n\ntwo\n"));
        assert_eq!((found[1].parents.len(), found[1].authored, found[1].subject()), (0, 0, ""));
        assert!(parse_history(format!("{A}\0").as_bytes()).is_none());
    }

    #[test]
    fn changes_belong_to_the_commit_before_them() {
        let text = format!("{A}\0:100644 100644 {A} {B} M\0a b\0{B}\0");
        let found = parse_changes(text.as_bytes()).unwrap();
        assert_eq!((found.len(), found[0].len(), found[1].len()), (2, 1, 0));
        assert_eq!(found[0][0].path, b"a b");
        let text = format!("{A}\0:100644 100644 {A} {B} R087\0old\0new\0{B}\0");
        let found = parse_renamed(text.as_bytes()).unwrap();
        assert_eq!(
            (found[0][0].from.as_slice(), found[0][0].to.as_slice()),
            (&b"old"[..], &b"new"[..])
        );
        assert!(found[1].is_empty());
        assert!(parse_changes(format!(":100644 100644 {A} {B} M\0a\0").as_bytes()).is_none());
    }

    #[test]
    fn a_combined_entry_has_the_objects_of_all_parents() {
        let text = format!("{A}\0::100644 000000 100644 {A} {NONE} {B} MA\0f\n\0");
        let found = parse_combined(text.as_bytes()).unwrap();
        let entry = &found[0][0];
        assert_eq!((entry.path.as_slice(), entry.parents.len()), (&b"f\n"[..], 2));
        assert_eq!(entry.parents[1], None);
        assert_eq!(entry.result.as_ref().unwrap().as_str(), B);
        assert!(
            parse_combined(format!("{A}\0::100644 100644 {A} {B} M\0f\0").as_bytes()).is_none()
        );
    }
}
