//! Import of commits from a sealed repository, where they were judged.

use std::ffi::OsString;
use std::time::Duration;

use super::WorktreeRepo;
use crate::git::call::{GitCall, args};
use crate::git::{GitError, RefName, SealedRepo};

/// Time limit for many objects on a slow disk.
const TAKE_LIMIT: Duration = Duration::from_secs(600);

impl WorktreeRepo {
    /// Copies the objects of a ref of `from` without creating a ref, so the user's refs do not move.
    pub async fn take_objects(&self, from: &SealedRepo, name: &RefName) -> Result<(), GitError> {
        let call = GitCall::new(argv_take(from, name)).within(TAKE_LIMIT);
        self.git().ask(call).await?.success().map(|_| ())
    }
}

/// Builds the arguments. The user's protocol restrictions do not apply: this is a folder of our own.
fn argv_take(from: &SealedRepo, name: &RefName) -> Vec<OsString> {
    let mut argv = args(["-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags"]);
    argv.extend(args(["--no-recurse-submodules", "--no-auto-maintenance"]));
    argv.extend(args(["--no-write-fetch-head", "--refmap=", "--end-of-options"]));
    argv.push(from.path().into());
    argv.push(name.as_str().into());
    argv
}
