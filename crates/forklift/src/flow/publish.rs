//! Destination of a verified commit: the branch that it goes to, and what the push replaces.

use std::path::Path;

use engine::publish::Publication;
use engine::run::Push;
use host::git::{BranchUpdate, SealedRepo, UserEnv};
use model::exit::ForkliftExit;
use model::id::{BranchName, RunId, Sha};

use super::earlier::{choose_branch_after, last_published};
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};
use crate::rules::earlier::BranchChoice;

/// The branch of a publication.
pub(super) struct Destination {
    pub(super) branch: BranchName,
    /// The commit of an earlier run that the push replaces.
    pub(super) replaces: Option<Sha>,
}

impl ForkRun<'_> {
    /// Chooses the branch of the newest published run of this fork, or a new one.
    pub(super) async fn choose_destination(&self, tip: &Sha) -> Result<Destination, Failure> {
        let record = &self.run.record;
        let own = self.run.dir.id();
        let earlier = last_published(self.runs(), &record.fork, own)?;
        let Some(earlier) = earlier.and_then(|run| run.meta.publication) else {
            return new_branch(own);
        };
        let places = (&self.repo, &record.fork, &self.forge);
        match choose_branch_after(&earlier, tip, &record.pins.base, places).await? {
            BranchChoice::New => new_branch(own),
            BranchChoice::NewBeside => {
                let message = format!(
                    "others have pushed to {}, so it is left alone and the result gets a new branch",
                    earlier.branch
                );
                self.ui.note(&message);
                new_branch(own)
            }
            BranchChoice::Renew => {
                self.ui.note(&format!("renewing {} of an earlier run", earlier.branch));
                let replaces = Some(earlier.commit);
                Ok(Destination { branch: earlier.branch, replaces })
            }
        }
    }

    /// The folder of all runs.
    pub(super) fn runs(&self) -> &Path {
        let dir = self.run.dir.path();
        dir.parent().unwrap_or(dir)
    }

    pub(super) fn push_to<'p>(
        &'p self,
        repo: &'p SealedRepo,
        tip: &'p Sha,
        to: &'p Destination,
    ) -> Push<'p> {
        let update = match &to.replaces {
            Some(expected) => BranchUpdate::Replace { expected },
            None => BranchUpdate::FastForward,
        };
        Push {
            repo,
            url: self.run.record.fork.push_url(),
            branch: to.branch.clone(),
            commit: tip,
            update,
            env: UserEnv::from_env(),
        }
    }
}

pub(super) fn new_branch(run: &RunId) -> Result<Destination, Failure> {
    let branch = BranchName::parse(&format!("forklift/{run}")).or_exit(ForkliftExit::Internal)?;
    Ok(Destination { branch, replaces: None })
}

pub(super) fn unpublished(branch: BranchName, commit: Sha, problem: String) -> Publication {
    let problem = Some(problem);
    Publication { branch, commit, pushed: false, problem, pull: None, pull_text: None, note: None }
}
