//! Repositories owned by the program: for a demonstration, or as a target of fetches.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::call::{Git, GitCall, args, program};
use super::seal::{init_env, sealed_flags};
use super::{GitError, SealedRepo};
use crate::signal::Cancel;

impl SealedRepo {
    /// Imports history in the format of `git fast-import`.
    pub async fn fast_import(&self, stream: &str) -> Result<(), GitError> {
        let call = GitCall::new(args(["fast-import", "--quiet"]));
        self.git.ask(call.reading(stream.as_bytes())).await?.success()?;
        Ok(())
    }
}

/// Checks `origin` out into the new folder `path`, with `origin` and `upstream` as its remotes.
pub async fn check_out_fork(path: &Path, origin: &Path, upstream: &Path) -> Result<(), GitError> {
    let mut git = scratch();
    let mut clone = args(["clone", "--quiet", "--no-hardlinks", "--template=", "--"]);
    clone.extend([OsString::from(origin), OsString::from(path)]);
    git.ask(GitCall::new(clone)).await?.success()?;
    git.cwd = path.to_path_buf();
    let mut remote = args(["remote", "add", "upstream"]);
    remote.push(upstream.into());
    git.ask(GitCall::new(remote)).await?.success()?;
    Ok(())
}

/// Creates a bare repository in the new folder `path` whose remote `origin` is `url`. It fetches nothing and
/// holds no credential.
pub async fn init_source(path: &Path, url: &str) -> Result<(), GitError> {
    let mut git = scratch();
    let mut init = args(["init", "--quiet", "--bare", "--template=", "--"]);
    init.push(path.into());
    git.ask(GitCall::new(init)).await?.success()?;
    // A bare repository is not discovered but given explicitly.
    git.flags = sealed_flags(Some(path));
    git.ask(GitCall::new(args(["remote", "add", "--", "origin", url]))).await?.success()?;
    Ok(())
}

fn scratch() -> Git {
    Git {
        program: program(),
        cwd: PathBuf::from("/"),
        env: init_env(),
        flags: sealed_flags(None),
        log: None,
        cancel: Cancel::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{UserEnv, UserRepo};
    use model::id::RemoteName;

    #[tokio::test]
    async fn a_source_is_bare_and_knows_its_origin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("widget.git");
        init_source(&path, "https://git.example/acme/widget.git").await.unwrap();
        let repo = UserRepo::discover_as(&path, UserEnv::from_env()).await.unwrap();
        assert!(repo.is_bare());
        let url = repo.remote_url(&RemoteName::parse("origin").unwrap()).await.unwrap();
        assert_eq!(url.as_deref(), Some("https://git.example/acme/widget.git"));
    }
}
