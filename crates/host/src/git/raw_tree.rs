//! Trees as they are stored. Git's own lists show every mode in its usual form, so an odd one is visible only here.

use model::id::Sha;

use super::blob::parse_objects;
use super::call::{GitCall, argv, argv_with};
use super::parse::{filled_fields, header_and_path, lines_of, parse_mode};
use super::{GitError, ObjectFormat, SealedRepo};

/// Number of trees requested in one batch.
const BATCH_COUNT: usize = 500;

const MODE_LINK: u32 = 0o120_000;

/// One entry of a tree as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTreeEntry {
    /// The mode as git uses it, such as `0o100644`.
    pub mode: u32,
    /// The mode as stored, if it is not the usual spelling of `mode`.
    pub odd_mode: Option<String>,
    pub id: Sha,
    pub name: Vec<u8>,
}

impl SealedRepo {
    /// Reads trees in the order given; `None` for an object that is missing or not a tree.
    pub async fn read_trees(
        &self,
        ids: &[Sha],
    ) -> Result<Vec<Option<Vec<RawTreeEntry>>>, GitError> {
        let mut trees = Vec::with_capacity(ids.len());
        for batch in ids.chunks(BATCH_COUNT) {
            let input = lines_of(batch);
            let call = GitCall::new(argv("cat-file --batch --buffer")).reading(input.as_bytes());
            let answer = self.git.query(call).await?;
            let objects = |bytes| parse_objects(bytes, "tree");
            let objects = answer.parse(objects, "an object that ends too early")?;
            for object in answer.all_of(objects, batch.len())? {
                let parse = |bytes: &[u8]| parse_raw_tree(bytes, self.object_format());
                let tree = object.map(|object| parse(&object.bytes).ok_or("a tree ends too early"));
                trees.push(tree.transpose().map_err(|problem| answer.unreadable(problem))?);
            }
        }
        Ok(trees)
    }

    /// Lists the paths of all files, links and submodules of a whole tree.
    pub async fn list_paths(&self, tree: &Sha) -> Result<Vec<Vec<u8>>, GitError> {
        let argv = argv_with("ls-tree -r -z --full-tree --name-only", [tree.as_str()]);
        let answer = self.git.query(argv).await?;
        Ok(filled_fields(&answer.stdout).map(<[u8]>::to_vec).collect())
    }

    /// Lists the symbolic links of a whole tree: path and blob of each.
    pub async fn list_links(&self, tree: &Sha) -> Result<Vec<(Vec<u8>, Sha)>, GitError> {
        let argv = argv_with("ls-tree -r -z --full-tree", [tree.as_str()]);
        self.git.query(argv).await?.parse(parse_links, "an entry without a path")
    }

    /// Reads a blob as a git configuration file: keys and values, as git itself understands them. `None` if git does not
    /// understand it.
    pub async fn read_config_blob(
        &self,
        blob: &Sha,
    ) -> Result<Option<Vec<(String, String)>>, GitError> {
        let argv = argv_with("config --null --list --no-includes --blob", [blob.as_str()]);
        let answer = self.git.call(argv).await?;
        Ok((answer.status == 0).then(|| parse_config(&answer.stdout)))
    }
}

/// Parses entries of the form `mode`, blank, name, NUL, id in bytes.
fn parse_raw_tree(mut bytes: &[u8], format: ObjectFormat) -> Option<Vec<RawTreeEntry>> {
    let id_bytes = format.zero().len() / 2;
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let blank = bytes.iter().position(|&byte| byte == b' ')?;
        let end = bytes.iter().position(|&byte| byte == 0).filter(|end| *end > blank)?;
        let id = bytes.get(end + 1..end + 1 + id_bytes)?;
        let stored = std::str::from_utf8(&bytes[..blank]).ok()?;
        let mode = usual_mode(parse_mode(stored)?);
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        entries.push(RawTreeEntry {
            mode,
            odd_mode: (format!("{mode:o}") != stored).then(|| stored.to_owned()),
            id: Sha::parse(&hex).ok()?,
            name: bytes[blank + 1..end].to_vec(),
        });
        bytes = &bytes[end + 1 + id_bytes..];
    }
    Some(entries)
}

/// Returns the mode that git uses for a stored one.
fn usual_mode(stored: u32) -> u32 {
    match stored & 0o170_000 {
        0o100_000 if stored & 0o100 != 0 => 0o100_755,
        0o100_000 => 0o100_644,
        MODE_LINK => MODE_LINK,
        0o040_000 => 0o040_000,
        _ => 0o160_000,
    }
}

/// Parses entries of the form `mode type id`, tab, path, NUL and keeps the links.
fn parse_links(bytes: &[u8]) -> Option<Vec<(Vec<u8>, Sha)>> {
    let mut links = Vec::new();
    for field in filled_fields(bytes) {
        let (header, path) = header_and_path(field)?;
        let &[mode, _, id] = header.as_slice() else { return None };
        if parse_mode(mode)? == MODE_LINK {
            links.push((path.to_vec(), Sha::parse(id).ok()?));
        }
    }
    Some(links)
}

/// Parses entries of the form key, newline, value, NUL. A key alone has no newline and means true.
fn parse_config(bytes: &[u8]) -> Vec<(String, String)> {
    let entry = |field: &[u8]| {
        let text = String::from_utf8_lossy(field).into_owned();
        match text.split_once('\n') {
            Some((key, value)) => (key.to_owned(), value.to_owned()),
            None => (text, String::new()),
        }
    };
    filled_fields(bytes).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(mode: &str, name: &[u8], byte: u8) -> Vec<u8> {
        [mode.as_bytes(), b" ", name, b"\0", &[byte; 20]].concat()
    }

    #[test]
    fn odd_modes_are_seen_and_usual_ones_are_not_odd() {
        let bytes = [
            stored("100644", b"a", 1),
            stored("100664", b"b", 2),
            stored("40000", b"c d", 3),
            stored("040000", b"e", 4),
            stored("100777", b"f", 5),
            stored("120000", b"\xff", 6),
            stored("160000", b"h", 7),
        ]
        .concat();
        let entries = parse_raw_tree(&bytes, ObjectFormat::Sha1).unwrap();
        let odd = |at: usize| (entries[at].mode, entries[at].odd_mode.as_deref());
        assert_eq!(odd(0), (0o100_644, None));
        assert_eq!(odd(1), (0o100_644, Some("100664")));
        assert_eq!(odd(2), (0o040_000, None));
        assert_eq!(odd(3), (0o040_000, Some("040000")));
        assert_eq!(odd(4), (0o100_755, Some("100777")));
        assert_eq!((odd(5), odd(6)), ((0o120_000, None), (0o160_000, None)));
        assert_eq!(entries[5].name, b"\xff");
        assert_eq!(entries[1].id.as_str(), "02".repeat(20));
    }

    #[test]
    fn half_a_tree_is_no_tree() {
        let whole = stored("100644", b"a", 1);
        assert_eq!(parse_raw_tree(b"", ObjectFormat::Sha1).unwrap(), []);
        for end in 1..whole.len() {
            assert!(parse_raw_tree(&whole[..end], ObjectFormat::Sha1).is_none(), "{end}");
        }
        assert!(parse_raw_tree(&stored("10x644", b"a", 1), ObjectFormat::Sha1).is_none());
    }

    #[test]
    fn only_links_are_listed() {
        let id = "a".repeat(40);
        let text = format!("100644 blob {id}\ta\0120000 blob {id}\tb\nc\0");
        let links = parse_links(text.as_bytes()).unwrap();
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].0, b"b\nc");
        assert!(parse_links(b"what\0").is_none());
    }

    #[test]
    fn a_setting_without_a_value_is_read() {
        let entries = parse_config(b"submodule.a.url\nhttps://x\0core.bare\0");
        assert_eq!(entries[0], ("submodule.a.url".to_owned(), "https://x".to_owned()));
        assert_eq!(entries[1], ("core.bare".to_owned(), String::new()));
    }
}
