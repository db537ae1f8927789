//! The fork's past as the user's checkout has it: its objects, and the branches of origin that people accepted.

use host::git::{LineageRange, SealedRepo, UserRepo};
use model::id::{RemoteName, Sha};
use tempfile::TempDir;

use crate::exit::{Failure, OrExit};

/// Branches that the commands push themselves. Nobody has accepted what is on them.
const OWN_BRANCHES: [&str; 2] = ["forklift/", "bot-bottle/"];

/// A scratch repository that sees the objects of the user's checkout, and the tips of origin's branches.
pub(crate) struct ForkPast {
    pub(crate) sealed: SealedRepo,
    siblings: Vec<Sha>,
    /// Deleted on drop.
    _scratch: TempDir,
}

impl ForkPast {
    pub(crate) async fn open(repo: &UserRepo, origin: &RemoteName) -> Result<Self, Failure> {
        let scratch = TempDir::new().or_machine()?;
        let path = scratch.path().join("past.git");
        let sealed = SealedRepo::init_bare(&path, repo.object_format()).await.or_machine()?;
        sealed.add_alternate(&repo.objects_dir()).or_machine()?;
        // The commit graph is the user's own: no agent can write there.
        let sealed = sealed.believing_commit_graph();
        let branches = repo.remote_branches(origin).await.or_machine()?;
        let is_own = |name: &str| OWN_BRANCHES.iter().any(|prefix| name.starts_with(prefix));
        let accepted = branches.into_iter().filter(|(name, _)| !is_own(name.as_str()));
        Ok(Self { sealed, siblings: accepted.map(|(_, tip)| tip).collect(), _scratch: scratch })
    }

    /// Merges below a tip and on the other branches of origin.
    pub(crate) fn range<'a>(&'a self, tip: &'a Sha, upstream: &'a Sha) -> LineageRange<'a> {
        LineageRange { tip, siblings: &self.siblings, upstream }
    }
}
