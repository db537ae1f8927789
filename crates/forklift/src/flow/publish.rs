//! Publishing a verified commit: the branch that it goes to, the push, and the pull request.

use std::path::Path;

use engine::publish::Publication;
use engine::run::{Push, Pushed};
use host::git::{BranchUpdate, SealedRepo, UserEnv};
use model::exit::ForkliftExit;
use model::id::{BranchName, RunId, Sha};
use run_store::operation_log::OperationLog;

use super::earlier::{choose_branch_after, find_later_result, last_published, own_branches};
use super::pull::open_pull;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};
use crate::rules::earlier::BranchChoice;
use crate::rules::judge::Verdict;

/// The branch of a publication.
struct Destination {
    branch: BranchName,
    /// The commit of an earlier run that the push replaces.
    replaces: Option<Sha>,
}

impl ForkRun<'_> {
    /// Pushes the commit and opens or renews the pull request, if the verdict allows it.
    pub(super) async fn publish_verified(&mut self) -> Result<(), Failure> {
        let (Some(Verdict::Publish), Some(tip)) = (&self.run.record.verdict, self.run.record.tip())
        else {
            return Ok(());
        };
        self.ui.phase("publish", "pushing the branch to origin");
        let repo = self.run.import_repo(&self.repo);
        let log = self.run.operations().or_machine()?;
        if let Some(later) = find_later_result(self.runs(), self.run.dir.id(), &self.run.record)? {
            let problem = format!("{later} published a later result for this fork");
            let branch = new_branch(self.run.dir.id())?.branch;
            self.run.record.publication = Some(unpublished(branch, tip, problem));
            return Ok(());
        }
        let mut to = self.choose_destination(&tip).await?;
        let mut pushed = self.push(&repo, &log, &tip, &to).await?;
        if to.replaces.is_some() && !pushed.publication.pushed && !pushed.unreachable {
            // Others pushed a moment ago, or origin allows no branch to be rewritten.
            let problem = pushed.publication.problem.unwrap_or_default();
            self.ui.note(&format!("{} could not be renewed ({problem})", to.branch));
            to = new_branch(self.run.dir.id())?;
            pushed = self.push(&repo, &log, &tip, &to).await?;
        }
        let mut published = pushed.publication;
        if published.pushed {
            let pull = self.pull_request(&repo, &published.branch).await?;
            let own = own_branches(self.runs(), &self.run.record.fork)?;
            let folder = self.run.dir.path();
            open_pull(&self.forge, &pull, &log, (folder, &own), &mut published).await?;
        }
        self.run.record.publication = Some(published);
        Ok(())
    }

    /// Chooses the branch of the newest published run of this fork, or a new one.
    async fn choose_destination(&self, tip: &Sha) -> Result<Destination, Failure> {
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
    fn runs(&self) -> &Path {
        let dir = self.run.dir.path();
        dir.parent().unwrap_or(dir)
    }

    async fn push(
        &self,
        repo: &SealedRepo,
        log: &OperationLog,
        tip: &Sha,
        to: &Destination,
    ) -> Result<Pushed, Failure> {
        let update = match &to.replaces {
            Some(expected) => BranchUpdate::Replace { expected },
            None => BranchUpdate::FastForward,
        };
        let push = Push {
            repo,
            url: self.run.record.fork.push_url(),
            branch: to.branch.clone(),
            commit: tip,
            update,
            env: UserEnv::from_env(),
        };
        push.run(log, &self.run.redactor).await.or_machine()
    }
}

fn new_branch(run: &RunId) -> Result<Destination, Failure> {
    let branch = BranchName::parse(&format!("forklift/{run}")).or_exit(ForkliftExit::Internal)?;
    Ok(Destination { branch, replaces: None })
}

fn unpublished(branch: BranchName, commit: Sha, problem: String) -> Publication {
    let problem = Some(problem);
    Publication { branch, commit, pushed: false, problem, pull: None, pull_text: None, note: None }
}
