//! Import of commits from a sealed repository, where they were judged.

use std::ffi::OsString;
use std::time::Duration;

use super::WorktreeRepo;
use crate::git::call::{GitCall, argv_with};
use crate::git::{GitError, RefName, SealedRepo};

/// Time limit for many objects on a slow disk.
const TAKE_LIMIT: Duration = Duration::from_secs(600);

impl WorktreeRepo {
    /// Copies the objects of a ref of `from` without creating a ref, so the user's refs do not move.
    pub async fn take_objects(&self, from: &SealedRepo, name: &RefName) -> Result<(), GitError> {
        self.git().run(GitCall::new(argv_take(from, name)).within(TAKE_LIMIT)).await
    }
}

/// Builds the arguments. The user's protocol restrictions do not apply: this is a folder of our own.
fn argv_take(from: &SealedRepo, name: &RefName) -> Vec<OsString> {
    let words = "-c protocol.file.allow=always fetch --quiet --no-tags --no-recurse-submodules \
        --no-auto-maintenance --no-write-fetch-head --refmap= --end-of-options";
    argv_with(words, [from.path().as_os_str(), name.as_str().as_ref()])
}
