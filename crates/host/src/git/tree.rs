//! Trees derived from another one by changing some of its paths, without an index and without files.

use model::id::Sha;

use super::call::{GitCall, argv};
use super::parse::quoted;
use super::{GitError, SealedRepo};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEdit {
    pub path: Vec<u8>,
    pub entry: NewEntry,
}

/// New entry at a path. Modes are such as `0o100644`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewEntry {
    /// A file with this content.
    Content { mode: u32, bytes: Vec<u8> },
    /// An existing object.
    Object { mode: u32, id: Sha },
    /// No entry: the path is removed.
    Nothing,
}

/// Ref of the temporary commit that the import format needs around a tree. The same command removes it.
const PASSING_REF: &str = "refs/bottleworks/passing-tree";

impl SealedRepo {
    /// Returns the tree with these changes, made in one call of git.
    pub async fn edit_tree(&self, tree: &Sha, edits: &[TreeEdit]) -> Result<Sha, GitError> {
        let stream = render_stream(tree, edits, &self.object_format().zero());
        let call = GitCall::new(argv("fast-import --quiet --done")).reading(&stream);
        self.git.query(call).await?.parse(parse_root, "it does not name a tree")
    }
}

/// Renders the import stream. Removals come first, so that a folder can give way to a file of its name.
fn render_stream(tree: &Sha, edits: &[TreeEdit], zero: &str) -> Vec<u8> {
    let mut stream = format!(
        "commit {PASSING_REF}\ncommitter Bottleworks <> 0 +0000\ndata 0\nM 040000 {tree} \"\"\n"
    )
    .into_bytes();
    for edit in edits.iter().filter(|edit| edit.entry == NewEntry::Nothing) {
        stream.extend_from_slice(b"D ");
        stream.extend(quoted(&edit.path));
        stream.push(b'\n');
    }
    for TreeEdit { path, entry } in edits {
        match entry {
            NewEntry::Nothing => {}
            NewEntry::Object { mode, id } => {
                stream.extend(format!("M {mode:o} {id} ").into_bytes());
                stream.extend(quoted(path));
                stream.push(b'\n');
            }
            NewEntry::Content { mode, bytes } => {
                stream.extend(format!("M {mode:o} inline ").into_bytes());
                stream.extend(quoted(path));
                stream.extend(format!("\ndata {}\n", bytes.len()).into_bytes());
                stream.extend_from_slice(bytes);
                stream.push(b'\n');
            }
        }
    }
    stream.extend(format!("ls \"\"\nreset {PASSING_REF}\nfrom {zero}\n\ndone\n").into_bytes());
    stream
}

/// Parses `040000 tree id`, tab, newline.
fn parse_root(bytes: &[u8]) -> Option<Sha> {
    let text = std::str::from_utf8(bytes).ok()?;
    Sha::parse(text.strip_prefix("040000 tree ")?.trim_end()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn a_stream_removes_first_and_leaves_no_name_behind() {
        let id = Sha::parse(A).unwrap();
        let edit = |path: &[u8], entry| TreeEdit { path: path.to_vec(), entry };
        let edits = [
            edit(b"a \"b\"", NewEntry::Content { mode: 0o100_755, bytes: b"x\n".to_vec() }),
            edit(b"c\n\xff", NewEntry::Object { mode: 0o160_000, id: id.clone() }),
            edit(b"d", NewEntry::Nothing),
        ];
        let stream = String::from_utf8(render_stream(&id, &edits, &"0".repeat(40))).unwrap();
        insta::assert_snapshot!(stream, @r#"
        commit refs/bottleworks/passing-tree
        committer Bottleworks <> 0 +0000
        data 0
        M 040000 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ""
        D "d"
        M 100755 inline "a \"b\""
        data 2
        x

        M 160000 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "c\012\377"
        ls ""
        reset refs/bottleworks/passing-tree
        from 0000000000000000000000000000000000000000

        done
        "#);
    }

    #[test]
    fn the_root_is_read_off() {
        let root = parse_root(format!("040000 tree {A}\t\n").as_bytes());
        assert_eq!(root.unwrap().as_str(), A);
        assert!(parse_root(b"missing \n").is_none());
    }
}
