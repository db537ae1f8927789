//! Finds the clone of a public repository in a folder of clones.

use std::path::{Path, PathBuf};

/// Objects of a bare clone or one with a work tree, by its whole name with a plus for the slash, or by its short one.
pub(crate) fn find_objects(clones: &Path, name: &str) -> Option<PathBuf> {
    let short = name.rsplit('/').next().unwrap_or(name);
    let flat = name.replace('/', "+");
    let folders = [format!("{flat}.git"), flat, short.to_owned(), format!("{short}.git")];
    let inner = ["objects", ".git/objects", "repo/objects", "repo/.git/objects"];
    folders
        .iter()
        .flat_map(|folder| inner.iter().map(move |inner| clones.join(folder).join(inner)))
        .find(|objects| objects.is_dir())
}
