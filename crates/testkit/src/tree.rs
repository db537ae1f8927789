//! Whole trees: what they look like, and whether something is hidden in them. No link is followed, and what goes away
//! while somebody looks was not there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Every entry of a tree with its mode and owner, and its content.
pub type Picture = BTreeMap<PathBuf, (u32, u32, Vec<u8>)>;

/// Takes a picture of a tree: files by their bytes, links by their targets.
pub fn picture(root: &Path) -> Picture {
    let shot = |path: PathBuf| {
        let meta = unless_gone(fs::symlink_metadata(&path))?;
        let name = path.strip_prefix(root).expect("below the root").to_path_buf();
        Some((name, (meta.mode(), meta.uid(), content(&path))))
    };
    entries(root).into_iter().filter_map(shot).collect()
}

/// The entries of a tree whose name or content has `text` in it.
pub fn holding(root: &Path, text: &str) -> Vec<PathBuf> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let mut found = entries(root);
    found.retain(|path| {
        let name = path.strip_prefix(root).expect("below the root");
        has(name.as_os_str().as_bytes()) || has(&content(path))
    });
    found
}

/// The regular files of a tree.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = entries(root);
    found.retain(|path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()));
    found
}

/// Everything below a folder, which must be there: whoever looks in the wrong place must not find it clean.
pub fn entries(root: &Path) -> Vec<PathBuf> {
    assert!(root.is_dir(), "{} is no folder", root.display());
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Some(inside) = unless_gone(fs::read_dir(&folder)) else { continue };
        for entry in inside.map(|entry| entry.expect("an entry")) {
            if entry.file_type().expect("a kind").is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

/// The bytes of a file, the target of a link; nothing for what has neither.
fn content(path: &Path) -> Vec<u8> {
    let Some(meta) = unless_gone(fs::symlink_metadata(path)) else { return Vec::new() };
    if meta.is_file() {
        unless_gone(fs::read(path)).unwrap_or_default()
    } else if meta.is_symlink() {
        let target = unless_gone(fs::read_link(path));
        target.map(|target| target.as_os_str().as_bytes().to_vec()).unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn unless_gone<T>(looked: io::Result<T>) -> Option<T> {
    match looked {
        Ok(found) => Some(found),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("could not look: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_names_contents_and_targets_of_links() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("deep")).unwrap();
        fs::write(path("deep/file"), "it says hunter2 here").unwrap();
        fs::write(path("hunter2.txt"), "").unwrap();
        fs::write(path("other"), "nothing").unwrap();
        std::os::unix::fs::symlink("/nowhere/hunter2", path("link")).unwrap();
        let mut found = holding(dir.path(), "hunter2");
        found.sort();
        assert_eq!(found, [path("deep/file"), path("hunter2.txt"), path("link")]);
        assert_eq!(files(dir.path()).len(), 3);
        assert!(picture(dir.path()).contains_key(Path::new("deep")));
    }
}
