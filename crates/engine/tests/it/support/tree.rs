//! Whole trees: what they look like, and whether something is hidden in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Every entry of a tree with its kind, mode and owner, and its content.
pub(crate) type Picture = BTreeMap<PathBuf, (u32, u32, Vec<u8>)>;

/// Takes a picture of a tree: files by their bytes, links by their targets.
pub(crate) fn picture(root: &Path) -> Picture {
    entries(root)
        .into_iter()
        .map(|path| {
            let meta = fs::symlink_metadata(&path).expect("an entry");
            let content = content(&path, &meta);
            let name = path.strip_prefix(root).expect("below the root").to_path_buf();
            (name, (meta.mode(), meta.uid(), content))
        })
        .collect()
}

/// The files of a tree whose name or content has `text` in it.
pub(crate) fn holds_bytes(root: &Path, text: &str) -> Vec<PathBuf> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    entries(root)
        .into_iter()
        .filter(|path| {
            let meta = fs::symlink_metadata(path).expect("an entry");
            let name = path.strip_prefix(root).expect("below the root");
            has(name.as_os_str().as_bytes()) || has(&content(path, &meta))
        })
        .collect()
}

/// Everything below a folder, following no link.
pub(crate) fn entries(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry"))
        {
            if entry.file_type().expect("a kind").is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

fn content(path: &Path, meta: &fs::Metadata) -> Vec<u8> {
    if meta.is_file() {
        fs::read(path).expect("a file")
    } else if meta.is_symlink() {
        fs::read_link(path).expect("a link").as_os_str().as_bytes().to_vec()
    } else {
        Vec::new()
    }
}
