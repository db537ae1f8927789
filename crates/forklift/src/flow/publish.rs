//! Destination of a verified commit: the branch that it goes to, and what the push replaces.

use std::path::Path;

use engine::publish::Publication;
use engine::run::Push;
use forge::NewPull;
use host::git::{BranchUpdate, SealedRepo, UserEnv};
use model::exit::ForkliftExit;
use model::id::{BranchName, RunId, Sha};

use super::earlier::{choose_branch_after, last_published};
use super::fetched::FetchedRefs;
use super::observe::find_repo;
use super::pull::keep_text;
use super::record::ForkRecord;
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
    /// Chooses the branch of the train for one of its steps; else the branch of the newest published run of this fork, or a new one.
    pub(super) async fn choose_destination(&self, tip: &Sha) -> Result<Destination, Failure> {
        let record = &self.run.record;
        let own = self.run.dir.id();
        if let Some(step) = &record.train {
            // The branch grows by one step: a push that would replace anything is refused.
            let branch = BranchName::parse(&step.published_branch());
            return Ok(Destination {
                branch: branch.or_exit(ForkliftExit::Internal)?,
                replaces: None,
            });
        }
        let earlier = last_published(self.runs(), record, own)?;
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

    /// Records what a push would do and keeps the text of the pull request beside the commit.
    pub(super) async fn hold_back(&mut self, repo: &SealedRepo, tip: &Sha) -> Result<(), Failure> {
        let to = self.choose_destination(tip).await?;
        let pull = self.pull_request(repo, &to.branch).await?;
        let pull_text = Some(keep_text(self.run.dir.path(), &pull)?);
        let note = self.mode_note(&to.branch);
        let commit = tip.clone();
        let held = Publication {
            pull_text,
            note,
            problem: None,
            ..unpublished(to.branch, commit, String::new())
        };
        self.run.record.publication = Some(held);
        Ok(())
    }

    /// Keeps the text of a pull request that the user does not want to be opened.
    pub(super) fn leave_out_pull(
        &self,
        pull: &NewPull,
        published: &mut Publication,
    ) -> Result<(), Failure> {
        published.pull_text = Some(keep_text(self.run.dir.path(), pull)?);
        published.note = self.mode_note(&published.branch);
        Ok(())
    }

    fn mode_note(&self, branch: &BranchName) -> Option<String> {
        let ForkRecord { settings, fork, .. } = &self.run.record.product;
        settings.publish_mode.note(branch.as_str(), fork.push_url())
    }

    /// Records for `forklift status` that origin has the branch. A fetch sees branches only where it asks the place that is
    /// pushed to.
    pub(super) async fn note_pushed(&self, published: &Publication) {
        let fork = &self.run.record.fork;
        if fork.push_url() != fork.origin {
            return;
        }
        let pushed = (&published.branch, &published.commit);
        let noted = match find_repo(&fork.path).await {
            Ok(checkout) => {
                FetchedRefs::add_pushed(&checkout, &self.cache, &fork.remotes.origin, pushed)
            }
            Err(failure) => Err(failure),
        };
        // The branch is on origin, so the run goes on.
        if let Err(failure) = noted {
            self.ui.warn(&format!("'forklift status' may miss {}: {failure}", published.branch));
        }
    }

    /// The folder of all runs.
    pub(crate) fn runs(&self) -> &Path {
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
            more_urls: &self.run.record.fork.more_push_urls,
            branch: to.branch.clone(),
            commit: tip,
            update,
            claim: None,
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
