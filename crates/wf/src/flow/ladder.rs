//! What of a merge needs nobody: the ladder, in a repository of ours that sees the product's objects and writes none there.
//!
//! A workstream's branch has no past that people accepted, so the answers are trusted as far as other repositories' past
//! carries, and no further.

use host::git::{SealedRepo, WorktreeRepo};
use merge::ladder::decide::Trust;
use merge::ladder::knowledge::Knowledge;
use merge::ladder::rule::Rules;
use merge::ladder::table::Table;
use merge::ladder::{Climb, ClimbOptions, Ends, Remade, climb};
use model::exit::WfExit;
use model::id::Sha;
use tempfile::TempDir;

use crate::exit::{Failure, OrExit};

/// A place to climb in. What is made there goes away with it, unless the product takes it.
pub(crate) struct Ladder {
    pub(crate) repo: SealedRepo,
    _folder: TempDir,
}

impl Ladder {
    /// Makes one beside nothing of the person's.
    pub(crate) async fn open(product: &WorktreeRepo) -> Result<Self, Failure> {
        let folder = TempDir::new().or_exit(WfExit::General)?;
        let user = product.user();
        let path = folder.path().join("ladder.git");
        let repo = SealedRepo::init_bare(&path, user.object_format()).await;
        let repo = repo.or_exit(WfExit::General)?;
        repo.add_alternate(&user.objects_dir()).or_exit(WfExit::General)?;
        Ok(Self { repo, _folder: folder })
    }

    /// Merges as far as that is trusted.
    pub(crate) async fn climb(
        &self,
        ours: &Sha,
        theirs: &Sha,
        trust: Trust,
    ) -> Result<Climb, Failure> {
        let ends = Ends { ours: ours.clone(), theirs: theirs.clone() };
        let (rules, knowledge, remade) = (Rules::default(), Knowledge::default(), Remade::new());
        let options = ClimbOptions {
            trust,
            rules: &rules,
            table: Table::shipped(),
            knowledge: &knowledge,
            structure: None,
            remade: &remade,
        };
        climb(&self.repo, &ends, options).await.or_exit(WfExit::General)
    }
}

/// The paths that somebody has to look at.
pub(crate) fn open_paths(climb: &Climb) -> Vec<String> {
    climb.rest.iter().map(|brief| brief.path.to_string()).collect()
}
