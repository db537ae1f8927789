//! Repositories owned by the program: for a demonstration, or as a target of fetches.

use std::path::Path;

use super::call::{Git, GitCall, argv, argv_with};
use super::seal::{init_env, sealed_flags};
use super::{GitError, SealedRepo};

impl SealedRepo {
    /// Imports history in the format of `git fast-import`.
    pub async fn fast_import(&self, stream: &str) -> Result<(), GitError> {
        let call = GitCall::new(argv("fast-import --quiet"));
        self.git.run(call.reading(stream.as_bytes())).await
    }
}

/// Checks `origin` out into the new folder `path`, with `origin` and `upstream` as its remotes.
pub async fn check_out_fork(path: &Path, origin: &Path, upstream: &Path) -> Result<(), GitError> {
    check_out(path, origin).await?;
    let mut git = scratch();
    git.cwd = path.to_path_buf();
    git.run(argv_with("remote add upstream", [upstream])).await
}

/// Checks `origin` out into the new folder `path`.
pub async fn check_out(path: &Path, origin: &Path) -> Result<(), GitError> {
    let argv = argv_with("clone --quiet --no-hardlinks --template= --", [origin, path]);
    scratch().run(argv).await
}

/// Creates a bare repository in the new folder `path` whose remote `origin` is `url`. It fetches nothing and
/// holds no credential.
pub async fn init_source(path: &Path, url: &str) -> Result<(), GitError> {
    let mut git = scratch();
    git.run(argv_with("init --quiet --bare --template= --", [path])).await?;
    // A bare repository is not discovered but given explicitly.
    git.flags = sealed_flags(Some(path));
    git.run(argv_with("remote add -- origin", [url])).await
}

fn scratch() -> Git {
    Git::new(Path::new("/"), init_env(), sealed_flags(None))
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
