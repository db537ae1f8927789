//! Sparse worktrees: the folders of a large repository that a workstream needs.

use std::collections::BTreeSet;

use serde::Serialize;

use super::conflict::contains;
use super::profile::{Keys, ProfileError, is_inside};

/// The profile's choice between whole and sparse worktrees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SparseChoice {
    pub(crate) is_on: bool,
    /// Folders that every sparse worktree has beside the expected paths.
    pub(crate) paths: Vec<String>,
}

pub(super) fn parse_sparse(keys: &Keys<'_>) -> Result<SparseChoice, ProfileError> {
    let choice = SparseChoice { is_on: keys.flag("SPARSE")?, paths: keys.list("SPARSE_PATHS", "") };
    if choice.paths.iter().all(|path| is_inside(path)) {
        return Ok(choice);
    }
    Err(ProfileError { key: "SPARSE_PATHS".to_owned(), rule: "paths inside the repository" })
}

/// Chooses the folders. A path without a slash at its end may be a file, so its folder is taken too; a file in the root is
/// there anyway. A folder that lies in another one is left out.
pub(crate) fn choose_sparse(expected: &[String], more: &[String]) -> Vec<String> {
    let mut folders = BTreeSet::new();
    for path in expected.iter().chain(more) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let folder = match path.strip_suffix('/') {
            Some(folder) => Some(folder),
            // What has a dot in its name is a file.
            None if name.contains('.') => path.rsplit_once('/').map(|(folder, _)| folder),
            None => Some(path.as_str()),
        };
        folders.extend(folder.filter(|folder| !folder.is_empty()).map(str::to_owned));
    }
    let is_inner = |folder: &String| {
        folders.iter().any(|other| other != folder && contains(other, folder.as_bytes()))
    };
    folders.iter().filter(|folder| !is_inner(folder)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_taken_whole_and_files_by_their_folder() {
        for (expected, more, folders) in [
            (&["src/login/", "tests"][..], &[][..], &["src/login", "tests"][..]),
            (&["src/login/token.rs"], &[], &["src/login"]),
            (&["Makefile.in"], &["build/"], &["build"]),
            (&["src/", "src/login/"], &[], &["src"]),
            (&["src", "src2/"], &["src/"], &["src", "src2"]),
            (&[], &[], &[]),
        ] {
            let words =
                |list: &[&str]| -> Vec<String> { list.iter().map(|it| (*it).to_owned()).collect() };
            assert_eq!(choose_sparse(&words(expected), &words(more)), folders, "{expected:?}");
        }
    }
}
