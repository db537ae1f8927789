//! Commits written again with other people, parents or trailers; trees, dates and everything else stay as they are.

use std::time::Duration;

use model::id::Sha;

use super::call::{GitCall, argv, argv_with};
use super::{GitError, GitIdentity, SealedRepo};

/// Time limit for reading or writing one object.
const OBJECT_LIMIT: Duration = Duration::from_secs(30);

/// Change of a commit that is written again.
#[derive(Clone, Copy, Debug)]
pub struct CommitChange<'a> {
    pub parents: &'a [Sha],
    /// Instead of the author; the date stays.
    pub author: Option<&'a GitIdentity>,
    /// Instead of the committer; the date stays.
    pub committer: Option<&'a GitIdentity>,
    /// Lines for the end of the message, unless it has them.
    pub trailers: &'a [String],
}

impl SealedRepo {
    /// Writes a commit again; nothing points at the result yet. Signatures are dropped, because they no longer hold.
    pub async fn rewrite_commit(
        &self,
        commit: &Sha,
        change: CommitChange<'_>,
    ) -> Result<Sha, GitError> {
        let call = GitCall::new(argv_with("cat-file commit", [commit.as_str()]));
        let answer = self.git.query(call.within(OBJECT_LIMIT)).await?;
        let bytes = answer.parse(|bytes| render_change(bytes, change), "it is not a commit")?;
        let call = GitCall::new(argv("hash-object -t commit -w --stdin"));
        self.git.query(call.reading(&bytes).within(OBJECT_LIMIT)).await?.parse_id()
    }
}

impl SealedRepo {
    /// The commit with other parents, as its signature covers it. People, dates and message stay.
    pub async fn commit_with_parents(
        &self,
        commit: &Sha,
        parents: &[Sha],
    ) -> Result<Vec<u8>, GitError> {
        let call = GitCall::new(argv_with("cat-file commit", [commit.as_str()]));
        let answer = self.git.query(call.within(OBJECT_LIMIT)).await?;
        let change = CommitChange { parents, author: None, committer: None, trailers: &[] };
        answer.parse(|bytes| render_change(bytes, change), "it is not a commit")
    }

    /// Writes a commit with a signature over it; nothing points at the result yet.
    pub async fn write_signed(&self, commit: &[u8], signature: &str) -> Result<Sha, GitError> {
        let header = match tree_id_length(commit) {
            64 => "gpgsig-sha256",
            _ => "gpgsig",
        };
        let call = GitCall::new(argv("hash-object -t commit -w --stdin"));
        let signed = add_signature(commit, header, signature);
        self.git.query(call.reading(&signed).within(OBJECT_LIMIT)).await?.parse_id()
    }
}

/// Length of the ids in a commit, by that of its tree.
fn tree_id_length(commit: &[u8]) -> usize {
    let line = commit.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.strip_prefix(b"tree ").unwrap_or_default().len()
}

/// The commit with a signature as its last header; the lines after the first one begin with a space.
fn add_signature(commit: &[u8], header: &str, signature: &str) -> Vec<u8> {
    // A commit without a message ends with its headers.
    let end = commit.windows(2).position(|pair| pair == b"\n\n").map_or(commit.len(), |at| at + 1);
    let folded = signature.trim_end().replace('\n', "\n ");
    let line = format!("{header} {folded}\n");
    [&commit[..end], line.as_bytes(), &commit[end..]].concat()
}

fn render_change(bytes: &[u8], change: CommitChange<'_>) -> Option<Vec<u8>> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let (headers, message) = (&bytes[..end], &bytes[end + 2..]);
    let mut new = Vec::with_capacity(bytes.len() + 200);
    for line in headers.split(|&byte| byte == b'\n') {
        let name = line.split(|&byte| byte == b' ').next().unwrap_or_default();
        match name {
            b"tree" => {
                new.extend([line, b"\n"].concat());
                for parent in change.parents {
                    new.extend(format!("parent {parent}\n").into_bytes());
                }
            }
            b"author" => new.extend(with_person(line, b"author ", change.author)?),
            b"committer" => new.extend(with_person(line, b"committer ", change.committer)?),
            b"encoding" => new.extend([line, b"\n"].concat()),
            // Old parents, and headers that belong to the old commit only.
            _ => {}
        }
    }
    new.push(b'\n');
    new.extend(with_trailers(message, change.trailers));
    Some(new)
}

/// The line with another person before the date.
fn with_person(line: &[u8], word: &[u8], person: Option<&GitIdentity>) -> Option<Vec<u8>> {
    let Some(person) = person else { return Some([line, b"\n"].concat()) };
    let date = line.iter().rposition(|&byte| byte == b'>')? + 1;
    let clean = |text: &str| text.replace(['<', '>', '\n', '\0'], "");
    let who = format!("{} <{}>", clean(&person.name), clean(&person.email));
    Some([word, who.as_bytes(), &line[date..], b"\n"].concat())
}

/// The message with the trailers that it lacks, after those that it has.
fn with_trailers(message: &[u8], trailers: &[String]) -> Vec<u8> {
    let has = |trailer: &&String| {
        message.split(|&byte| byte == b'\n').any(|line| line == trailer.as_bytes())
    };
    let missing: Vec<&String> = trailers.iter().filter(|trailer| !has(trailer)).collect();
    if missing.is_empty() {
        return message.to_vec();
    }
    let mut new = message.trim_ascii_end().to_vec();
    new.extend(if ends_with_trailers(&new) { b"\n".as_slice() } else { b"\n\n" });
    for trailer in missing {
        new.extend([trailer.as_bytes(), b"\n"].concat());
    }
    new
}

/// True if the last paragraph, which is not the first, has only lines such as `Fixes: 12`.
fn ends_with_trailers(message: &[u8]) -> bool {
    let Some(start) = message.windows(2).rposition(|pair| pair == b"\n\n") else { return false };
    let is_trailer = |line: &[u8]| {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        name.len() < line.len()
            && !name.is_empty()
            && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    message[start + 2..].split(|&byte| byte == b'\n').all(is_trailer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
        parent aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nauthor Agent <a@b> 1 +0100\n\
        committer Agent <a@b> 2 -0200\ngpgsig -----BEGIN\n more\n -----END\nencoding ISO-8859-1\n\n";

    fn change(message: &str, trailers: &[&str], person: Option<&GitIdentity>) -> String {
        let parent = Sha::parse("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").expect("legal");
        let trailers: Vec<String> = trailers.iter().map(|it| (*it).to_owned()).collect();
        let change = CommitChange {
            parents: &[parent],
            author: person,
            committer: person,
            trailers: &trailers,
        };
        let bytes = render_change(format!("{COMMIT}{message}").as_bytes(), change);
        String::from_utf8(bytes.expect("a commit")).expect("UTF-8")
    }

    #[test]
    fn a_signature_is_a_folded_header_before_the_message() {
        let signed = add_signature(b"tree x\n\nWords\n\nmore\n", "gpgsig", "-----B\nabc\n-----E\n");
        let signed = String::from_utf8(signed).expect("UTF-8");
        assert_eq!(signed, "tree x\ngpgsig -----B\n abc\n -----E\n\nWords\n\nmore\n");
    }

    #[test]
    fn people_and_parents_change_and_dates_stay() {
        let ada = GitIdentity { name: "Ada <x>\n".to_owned(), email: "ada@example.org".to_owned() };
        insta::assert_snapshot!(change("Merge\n", &["Signed-off-by: Ada <ada@example.org>"], Some(&ada)), @r"
        tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
        parent bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        author Ada x <ada@example.org> 1 +0100
        committer Ada x <ada@example.org> 2 -0200
        encoding ISO-8859-1

        Merge

        Signed-off-by: Ada <ada@example.org>
        ");
        assert!(
            change("x", &[], None).contains("author Agent <a@b> 1 +0100\ncommitter Agent <a@b> 2")
        );
    }

    #[track_caller]
    fn check_message(message: &str, expected: &str) {
        let with = with_trailers(message.as_bytes(), &["S: a".to_owned(), "C: b".to_owned()]);
        assert_eq!(String::from_utf8(with).expect("UTF-8"), expected);
    }

    #[test]
    fn trailers_follow_those_that_are_there_and_come_once() {
        check_message(
            "Subject\n\nText: here.\nmore text\n",
            "Subject\n\nText: here.\nmore text\n\nS: a\nC: b\n",
        );
        check_message("Subject\n\nFixes: 1\n", "Subject\n\nFixes: 1\nS: a\nC: b\n");
        check_message("Fixes: 1\n", "Fixes: 1\n\nS: a\nC: b\n");
        check_message("Subject\n\nS: a\n", "Subject\n\nS: a\nC: b\n");
        check_message("Subject\n\nS: a\nC: b\n", "Subject\n\nS: a\nC: b\n");
    }
}
