//! Commits split into parts and written again, byte for byte, as needed to recreate a commit on another base
//! without files.

use std::time::Duration;

use jiff::Timestamp;
use model::id::Sha;

use super::call::{GitCall, argv, argv_with};
use super::parse::parse_id;
use super::{GitError, GitIdentity, SealedRepo};

/// Time limit for reading or writing one object.
const OBJECT_LIMIT: Duration = Duration::from_secs(30);

/// Parts of a commit. Headers that belong to one commit only, such as signatures, are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitParts {
    pub tree: Sha,
    pub parents: Vec<Sha>,
    /// The author line with its date, as recorded in the commit.
    pub author: Vec<u8>,
    /// The encoding of the message, if it is not UTF-8.
    pub encoding: Option<Vec<u8>>,
    pub message: Vec<u8>,
}

impl SealedRepo {
    pub async fn commit_parts(&self, commit: &Sha) -> Result<CommitParts, GitError> {
        let call = GitCall::new(argv_with("cat-file commit", [commit.as_str()]));
        let answer = self.git.query(call.within(OBJECT_LIMIT)).await?;
        answer.parse(parse_commit, "it is not a commit")
    }

    /// Returns a commit as git stores it: headers, an empty line, the message.
    pub async fn commit_bytes(&self, commit: &Sha) -> Result<Vec<u8>, GitError> {
        let call = GitCall::new(argv_with("cat-file commit", [commit.as_str()]));
        Ok(self.git.query(call.within(OBJECT_LIMIT)).await?.stdout)
    }

    /// Writes a commit that nothing points at yet.
    pub async fn write_commit(
        &self,
        parts: &CommitParts,
        committer: &GitIdentity,
        when: Timestamp,
    ) -> Result<Sha, GitError> {
        let bytes = render_commit(parts, committer, when);
        let call = GitCall::new(argv("hash-object -t commit -w --stdin"));
        self.git.query(call.reading(&bytes).within(OBJECT_LIMIT)).await?.parse_id()
    }
}

/// Parses headers, one per line with continuation lines that begin with a blank; an empty line; the message.
fn parse_commit(bytes: &[u8]) -> Option<CommitParts> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let (headers, message) = (&bytes[..end], &bytes[end + 2..]);
    let values = |name: &str| {
        let name = [name.as_bytes(), b" "].concat();
        headers
            .split(|&byte| byte == b'\n')
            .filter_map(move |line| line.strip_prefix(name.as_slice()).map(<[u8]>::to_vec))
    };
    Some(CommitParts {
        tree: parse_id(&values("tree").next()?)?,
        parents: values("parent").map(|id| parse_id(&id)).collect::<Option<_>>()?,
        author: values("author").next()?,
        encoding: values("encoding").next(),
        message: message.to_vec(),
    })
}

fn render_commit(parts: &CommitParts, committer: &GitIdentity, when: Timestamp) -> Vec<u8> {
    let mut bytes = format!("tree {}\n", parts.tree).into_bytes();
    for parent in &parts.parents {
        bytes.extend(format!("parent {parent}\n").into_bytes());
    }
    bytes.extend([b"author ".as_slice(), &parts.author, b"\n"].concat());
    let clean = |text: &str| text.replace(['<', '>', '\n', '\0'], "");
    let (name, email) = (clean(&committer.name), clean(&committer.email));
    bytes.extend(format!("committer {name} <{email}> {} +0000\n", when.as_second()).into_bytes());
    if let Some(encoding) = &parts.encoding {
        bytes.extend([b"encoding ".as_slice(), encoding, b"\n"].concat());
    }
    bytes.push(b'\n');
    bytes.extend(&parts.message);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    fn parts(message: &[u8]) -> CommitParts {
        let tree = Sha::parse(TREE).expect("legal");
        CommitParts {
            parents: vec![tree.clone(), tree.clone()],
            tree,
            author: b"A B <a@b> 1 +0100".to_vec(),
            encoding: Some(b"ISO-8859-1".to_vec()),
            message: message.to_vec(),
        }
    }

    #[test]
    fn a_commit_survives_being_taken_apart() {
        let identity = GitIdentity { name: "host <x>\n".to_owned(), email: "h@x".to_owned() };
        for message in [b"one\n\ntwo\n".as_slice(), b"", b"\n\nbytes \xff\n", b"author me\n"] {
            let parts = parts(message);
            let bytes = render_commit(&parts, &identity, Timestamp::UNIX_EPOCH);
            assert_eq!(parse_commit(&bytes).expect("a commit"), parts);
        }
    }

    #[test]
    fn a_signature_stays_behind() {
        let text = format!(
            "tree {TREE}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\ngpgsig BEGIN\n author E <e@e> 2 +0000\n END\n\nhello\n"
        );
        let parts = parse_commit(text.as_bytes()).expect("a commit");
        assert_eq!(parts.author, b"A <a@b> 1 +0000");
        assert_eq!(parts.message, b"hello\n");
    }
}
