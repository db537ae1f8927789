//! The work of a bottle in the user's checkout: as a diff, as uncommitted changes, or as a branch.

use host::git::{GitError, RefName, SealedRepo, WorktreeRepo};
use model::exit::BottleExit;
use model::id::{BranchName, Sha};

use super::bottle::Bottle;
use super::home::Home;
use super::run_record::load_run;
use crate::exit::{Failure, OrExit, OrGeneral};
use crate::rules::judge::Verdict;

/// The newest commits that were taken out of a bottle.
pub(crate) struct BottleWork {
    checkout: WorktreeRepo,
    /// Repository of the run, with the commits.
    repo: SealedRepo,
    name: RefName,
    /// The commit that the bottle began with.
    pub(crate) base: Sha,
    pub(crate) tip: Sha,
    slug: String,
    branch: BranchName,
    verdict: Option<Verdict>,
}

/// Treatment of work that the host has not found good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsound {
    Refused,
    Accepted,
}

impl BottleWork {
    pub(crate) async fn find(home: &Home, slug: &str) -> Result<Self, Failure> {
        let (bottle, record) = Bottle::open(home, slug)?;
        let mut uncommitted = None;
        for run in record.runs.iter().rev() {
            let dir = bottle.run(run)?;
            let meta = load_run(&dir)?;
            let Some(tip) = meta.tip() else {
                uncommitted = uncommitted.or(meta.uncommitted.clone());
                continue;
            };
            let checkout = WorktreeRepo::discover(&record.repo).await.or_general()?;
            let format = checkout.user().object_format();
            let name = format!("refs/bottle/{}/{}", meta.run, meta.pins.branch);
            return Ok(Self {
                repo: SealedRepo::open(&dir.repo(), format),
                checkout,
                name: RefName::parse(&name).or_exit(BottleExit::Internal)?,
                base: record.base,
                tip,
                slug: slug.to_owned(),
                branch: record.branch,
                verdict: meta.verdict,
            });
        }
        let text = format!("the bottle '{slug}' has no commits yet");
        Err(match uncommitted {
            None => Failure::not_found(text)
                .with_remedy(format!("see what its agent did with: bot-bottle logs {slug}")),
            Some(left) => {
                let (words, folder) = (left.words(), bottle.workspace());
                let text = format!(
                    "{text}; its agent left in no commit: {words} (in {})",
                    folder.display()
                );
                let again = "--prompt 'Commit your work'";
                let remedy =
                    format!("have it commit them: bot-bottle resume {slug} --headless {again}");
                Failure::not_found(text).with_remedy(remedy)
            }
        })
    }

    /// The patch from the bottle's first commit to its last.
    pub(crate) async fn patch(&self) -> Result<Vec<u8>, Failure> {
        self.repo.whole_patch(&self.base, &self.tip).await.or_general()
    }

    /// Puts the changes into the files of the checkout, uncommitted.
    pub(crate) async fn apply(&self, unsound: Unsound) -> Result<(), Failure> {
        self.check_verdict(unsound)?;
        let patch = self.patch().await?;
        self.checkout.user().apply_patch(&patch).await.map_err(|error| {
            let text = format!("the changes do not fit the checkout: {}", reason(&error));
            let remedy = format!("take them as a branch with: bot-bottle checkout {}", self.slug);
            Failure::usage(text).with_remedy(remedy)
        })
    }

    /// Makes a branch of the commits, or moves the one that an earlier call made, and checks it out.
    pub(crate) async fn check_out(
        &self,
        branch: Option<BranchName>,
        unsound: Unsound,
    ) -> Result<BranchName, Failure> {
        self.check_verdict(unsound)?;
        let branch = branch.unwrap_or_else(|| self.branch.clone());
        self.checkout.take_objects(&self.repo, &self.name).await.or_general()?;
        let there = self.checkout.branch_tip(&branch).await.or_general()?;
        match there {
            Some(there) if there == self.tip => {}
            Some(there) => self.renew(&branch, &there).await?,
            None => {
                let reason = "bot-bottle: the work of a bottle";
                self.checkout.create_branch(&branch, &self.tip, reason).await.or_general()?;
            }
        }
        self.checkout.user().switch_branch(&branch).await.map_err(|error| {
            let text =
                format!("the branch '{branch}' is there and not checked out: {}", reason(&error));
            Failure::usage(text).with_remedy(format!("check it out with: git switch {branch}"))
        })?;
        Ok(branch)
    }

    /// Moves a branch forward that has nothing beyond the bottle's commits and is not checked out.
    async fn renew(&self, branch: &BranchName, there: &Sha) -> Result<(), Failure> {
        let head = self.checkout.user().head_branch().await.or_general()?;
        let is_older = self.checkout.is_ancestor(there, &self.tip).await.or_general()?;
        let remedy =
            format!("name another branch: bot-bottle checkout {} --branch NAME", self.slug);
        if head.as_ref() == Some(branch) {
            let text = format!("the branch '{branch}' is checked out and older than the bottle");
            let remedy = format!("{remedy}, or bring it up to date with: git merge {}", self.tip);
            return Err(Failure::usage(text).with_remedy(remedy));
        }
        if !is_older {
            let text = format!("the branch '{branch}' has commits that the bottle does not have");
            return Err(Failure::usage(text).with_remedy(remedy));
        }
        let reason = "bot-bottle: newer work of a bottle";
        self.checkout.move_branch(branch, &self.tip, there, reason).await.or_general()
    }

    fn check_verdict(&self, unsound: Unsound) -> Result<(), Failure> {
        match &self.verdict {
            Some(Verdict::Publish) => Ok(()),
            _ if unsound == Unsound::Accepted => Ok(()),
            verdict => {
                let words = verdict.as_ref().map_or("it was not judged".to_owned(), Verdict::words);
                let text = format!("the work of '{}' was not found good: {words}", self.slug);
                let remedy = format!(
                    "look at it with: bot-bottle diff {}; take it all the same with --force",
                    self.slug
                );
                Err(Failure::usage(text).with_remedy(remedy))
            }
        }
    }
}

/// Git's own reason, without the command line.
fn reason(error: &GitError) -> String {
    match error {
        GitError::Failed { stderr, .. } => stderr.clone(),
        other => other.to_string(),
    }
}
