//! History of a fork, for `replay` and `trust`: its two tips, a scratch repository that sees them, and saved knowledge.

use std::path::{Path, PathBuf};

use clap::Args;
use host::git::{LineageRange, UserRepo};
use merge::resolver::history::Learned;
use merge::resolver::structure::StructureRecord;
use model::id::{BranchName, RemoteName, Sha};
use shell::Ui;

use crate::commands::ForkliftDirs;
use crate::commands::run_args::NameArgs;
use crate::exit::{Failure, OrExit};
use crate::flow::observe::{find_repo, fork_directory, fork_key, known_default_branch};
use crate::flow::past::ForkPast;
use crate::flow::resolver::learn_kept;
use crate::flow::structure::{load_record, record_file};

/// The fork whose merges are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    names: NameArgs,
}

/// A fork whose merges are read. Nothing is fetched, and the checkout does not change.
pub(super) struct ForkHistory {
    pub(super) past: ForkPast,
    /// Names for people: the fork and its upstream, as in their addresses.
    pub(super) names: [String; 2],
    tip: Sha,
    upstream: Sha,
    key: String,
}

impl ForkHistory {
    /// Finds the fork at or above a folder, with its remotes as last fetched.
    pub(super) async fn find(
        args: &HistoryArgs,
        directory: Option<&Path>,
        places: &ForkliftDirs,
    ) -> Result<Self, Failure> {
        let repo = find_repo(&fork_directory(directory)?).await?;
        let remotes = args.names.remotes(&places.shared);
        let main_branch = args.names.main_branch.as_ref();
        let tip = tip_of(&repo, &remotes.origin, main_branch).await?;
        let upstream = tip_of(&repo, &remotes.upstream, main_branch).await?;
        let past = ForkPast::open(&repo, &remotes.origin, &places.cache).await?;
        let names =
            [name_of(&repo, &remotes.origin).await?, name_of(&repo, &remotes.upstream).await?];
        Ok(Self { past, names, tip, upstream, key: fork_key(&repo) })
    }

    pub(super) fn range(&self) -> LineageRange<'_> {
        self.past.range(&self.tip, &self.upstream)
    }

    /// Knowledge about the fork, updated with new merges.
    pub(super) async fn learned(&self, ui: &Ui, cache: &Path) -> Result<Learned, Failure> {
        learn_kept(ui, &self.past.sealed, self.range(), &self.kept_at(cache)).await
    }

    /// Record of the structural merger, if a run used one.
    pub(super) fn structure(&self, cache: &Path) -> Option<StructureRecord> {
        load_record(&record_file(cache, &self.key))
    }

    fn kept_at(&self, cache: &Path) -> PathBuf {
        cache.join("forks").join(format!("{}.learned.json", self.key))
    }
}

/// Owner and name from the address of a remote, without anything secret that it may hold.
async fn name_of(repo: &UserRepo, remote: &RemoteName) -> Result<String, Failure> {
    let address = repo.remote_url(remote).await.or_machine()?.unwrap_or_default();
    Ok(short_address(&address).unwrap_or_else(|| remote.to_string()))
}

/// The last two parts of an address.
pub(crate) fn short_address(address: &str) -> Option<String> {
    let address = address.split(['?', '#']).next()?.trim_end_matches('/');
    let address = address.strip_suffix(".git").unwrap_or(address);
    let path = address.rsplit('@').next()?;
    let parts: Vec<&str> = path.split(['/', ':']).filter(|part| !part.is_empty()).collect();
    let last = parts.len().saturating_sub(2);
    (!parts.is_empty()).then(|| parts[last..].join("/"))
}

async fn tip_of(
    repo: &UserRepo,
    remote: &RemoteName,
    branch: Option<&BranchName>,
) -> Result<Sha, Failure> {
    let branch = match branch {
        Some(branch) => branch.clone(),
        None => known_default_branch(repo, remote).await?,
    };
    let name = format!("refs/remotes/{remote}/{branch}");
    repo.resolve_commit(&name).await.or_machine()?.ok_or_else(|| {
        Failure::usage(format!(
            "there is no {remote}/{branch} here; fetch it with: git fetch {remote}, or name another with --main-branch"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::short_address;

    #[test]
    fn an_address_is_shown_by_owner_and_name_alone() {
        for address in [
            "https://user:secret@forge.example/org/app.git",
            "git@forge.example:org/app.git",
            "ssh://git@forge.example:22/group/org/app/",
            "/srv/org/app.git",
        ] {
            assert_eq!(short_address(address).as_deref(), Some("org/app"), "{address}");
        }
        assert_eq!(short_address(""), None);
    }
}
