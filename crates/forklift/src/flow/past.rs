//! The fork's past as the user's checkout has it: its objects, and the branches of origin that people accepted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::git::{LineageRange, SealedRepo, UserRepo};
use model::id::{RemoteName, Sha};
use tempfile::TempDir;

use super::observe::fork_key;
use crate::exit::{Failure, OrExit};

/// Branches that the commands push themselves. Nobody has accepted what is on them.
const OWN_BRANCHES: [&str; 2] = ["forklift/", "bot-bottle/"];

/// Age from which a saved commit graph is written anew.
const GRAPH_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// A scratch repository that sees the objects of the user's checkout, and the tips of origin's branches.
pub(crate) struct ForkPast {
    pub(crate) sealed: SealedRepo,
    siblings: Vec<Sha>,
    /// Deleted on drop.
    _scratch: TempDir,
}

impl ForkPast {
    /// Opens the past of a fork; the cache keeps a commit graph for checkouts without one.
    pub(crate) async fn open(
        repo: &UserRepo,
        origin: &RemoteName,
        cache: &Path,
    ) -> Result<Self, Failure> {
        let scratch = TempDir::new().or_machine()?;
        let path = scratch.path().join("past.git");
        let sealed = SealedRepo::init_bare(&path, repo.object_format()).await.or_machine()?;
        sealed.add_alternate(&repo.objects_dir()).or_machine()?;
        // The commit graph is the user's own: no agent can write there.
        let sealed = sealed.believing_commit_graph();
        let branches = repo.remote_branches(origin).await.or_machine()?;
        let is_own = |name: &str| OWN_BRANCHES.iter().any(|prefix| name.starts_with(prefix));
        let accepted = branches.into_iter().filter(|(name, _)| !is_own(name.as_str()));
        let siblings: Vec<Sha> = accepted.map(|(_, tip)| tip).collect();
        if !has_graph(&repo.objects_dir()) {
            let saved = cache.join("forks").join(format!("{}.commit-graph", fork_key(repo)));
            add_graph(&sealed, &siblings, &saved).await;
        }
        Ok(Self { sealed, siblings, _scratch: scratch })
    }

    /// Merges below a tip and on the other branches of origin.
    pub(crate) fn range<'a>(&'a self, tip: &'a Sha, upstream: &'a Sha) -> LineageRange<'a> {
        LineageRange { tip, siblings: &self.siblings, upstream }
    }
}

/// Returns whether a repository has a commit graph, as after `git gc` or `git maintenance`.
fn has_graph(objects: &Path) -> bool {
    let names = ["info/commit-graph", "info/commit-graphs/commit-graph-chain"];
    names.iter().any(|name| objects.join(name).is_file())
}

/// Gives the scratch repository the saved commit graph, or makes one and saves it. It only saves time: where it cannot be
/// had, git reads the commits themselves.
async fn add_graph(sealed: &SealedRepo, tips: &[Sha], saved: &PathBuf) {
    let age = fs::metadata(saved).and_then(|found| found.modified());
    let is_fresh = age.is_ok_and(|when| when.elapsed().is_ok_and(|age| age < GRAPH_AGE));
    let graph = sealed.commit_graph();
    if is_fresh && share_file(saved, &graph).is_ok() {
        return;
    }
    if sealed.write_commit_graph(tips).await.is_ok() {
        drop(fs::remove_file(saved));
        drop(saved.parent().map(fs::create_dir_all));
        drop(share_file(&graph, saved));
    }
}

/// Links a file that nobody changes in place, or copies it where the other folder is on another file system.
fn share_file(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}
