//! The database rows of an issue that has a bottle, as a claim of the orchestrator or a command writes them.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::lease_file::LeaseFile;
use engine::run::ForgeClaim;
use engine::workspace::AGENT_IDENTITY;
use host::git::RaisedFence;
use model::exit::BottleExit;
use orchestrator_db::{
    BottleStep, BudgetRefusal, DbError, Fence, ForgeState, IssueKey, RunReservation, Store, Writer,
};

use super::access::ForgeAccess;
use super::bottle::Record;
use super::bottle_summary::BottleSummary;
use super::fleet::{LOCAL_HOST, host_name, open_store};
use super::home::Home;
use super::lease::{Lease, LeaseLoss};
use super::observe::Source;
use crate::exit::{Failure, OrGeneral};
use crate::rules::forge_env::ForgeEnv;
use crate::rules::lease::LEASE_LOST;

/// Time for the forge to take a claim.
const FENCE_LIMIT: Duration = Duration::from_secs(60);

/// Writes the rows of issues for a command, or for a claim as long as its lease runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IssueRows<'a> {
    home: &'a Home,
    /// The claim; `None` for a person who works with a bottle by hand, whose lock keeps others out.
    lease: Option<&'a Lease>,
}

impl<'a> IssueRows<'a> {
    pub(crate) fn by_hand(home: &'a Home) -> Self {
        Self { home, lease: None }
    }

    pub(crate) fn of_claim(home: &'a Home, lease: &'a Lease) -> Self {
        Self { home, lease: Some(lease) }
    }

    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        match self.lease {
            Some(lease) => Ok(Arc::clone(lease.store())),
            None => open_store(self.home),
        }
    }

    /// Refuses to go on once the lease is lost: another owner may be at work.
    pub(crate) fn check_lease(&self) -> Result<(), Failure> {
        self.claim().map(drop)
    }

    /// The file by which the boxes of a run and its sidecar know the end of the lease.
    pub(crate) fn lease_file(&self, run_dir: &Path) -> Option<LeaseFile> {
        self.lease?.file_for(run_dir)
    }

    /// The claim as the forge is told of it, so that it refuses the push of an older one.
    pub(crate) fn forge_claim(&self, issue: u64) -> Result<Option<ForgeClaim>, Failure> {
        let Some(lease) = self.lease.filter(|lease| lease.is_shared()) else { return Ok(None) };
        Ok(Some(ForgeClaim { issue, number: lease.fence()?.number }))
    }

    /// Tells the forge of the claim before anything is read from it. What an older claim pushed until now is part of what
    /// is read; what it pushes from now on is refused.
    pub(crate) async fn raise_fence(
        &self,
        source: &Source,
        access: &ForgeAccess,
    ) -> Result<(), Failure> {
        let Some(ForgeClaim { issue, number }) = self.forge_claim(access.env.issue)? else {
            return Ok(());
        };
        let (url, env) = (&source.push_urls()?.first, access.git_env());
        let raised = source.repo.raise_fence(url, (issue, number), env, FENCE_LIMIT).await;
        match raised.or_general()? {
            RaisedFence::Held(_) => Ok(()),
            // Either this claim was overtaken, or the database was restored to a time before that of the forge's claim.
            RaisedFence::Newer(newer) => match self.lease.map(|it| it.raise_above(newer.claim)) {
                Some(Ok(Some(_))) => Box::pin(self.raise_fence(source, access)).await,
                Some(Err(failure)) => Err(failure),
                Some(Ok(None)) | None => Err(self.note_overtaken()),
            },
            RaisedFence::Rejected { reason } => {
                let text = format!("origin rejects the fence of issue #{issue}: {reason}");
                let remedy = "allow the account to push refs below refs/bottleworks/fence/";
                Err(Failure::new(BottleExit::General, text).with_remedy(remedy))
            }
        }
    }

    /// Takes up that the forge has a newer claim.
    pub(crate) fn note_overtaken(&self) -> Failure {
        match self.lease {
            Some(lease) => lease.note_refused(LeaseLoss::RefusedByForge),
            None => Failure::new(BottleExit::General, LEASE_LOST),
        }
    }

    /// True once the lease is lost.
    pub(crate) fn has_lost_lease(&self) -> bool {
        self.lease.is_some_and(Lease::is_lost)
    }

    /// Inserts the row of a new bottle. An issue with a bottle is refused: two would overwrite each other's work.
    pub(crate) fn insert(&self, env: &ForgeEnv, record: &Record) -> Result<(), Failure> {
        let row = ForgeState {
            key: issue_key(env),
            slug: record.slug.to_string(),
            agent_name: record.agent.clone(),
            bottle_names: record.bottles.clone(),
            backend_name: record.backend.to_string(),
            host: Some(self.host()?.into_owned()),
            agent_git_user: format!("{} <{}>", AGENT_IDENTITY.0, AGENT_IDENTITY.1),
            pr_number: record.pull,
            saved: None,
            status: orchestrator_db::BottleState::Running,
            last_checkin_at: host::clock::now(),
        };
        let added = self
            .store()?
            .add_forge_state(&row, Writer { host: &self.host()?, claim: self.claim()? });
        added.map_err(|error| match &error {
            DbError::HasBottle { slug, status, .. } => Failure::not_found(format!(
                "a bottle that is {status} cannot be started: the bottle '{slug}' works on issue #{}; go on with: bot-bottle orchestrate resume --slug {slug}",
                env.issue
            )),
            _ => self.refused(error, BottleExit::General),
        })?;
        self.save_summary(&BottleSummary::of(record))
    }

    /// Takes a step of the bottle's state. A row of another bottle stays unchanged.
    pub(crate) fn step(&self, record: &Record, step: BottleStep) -> Result<(), Failure> {
        let Some(env) = &record.forge else { return Ok(()) };
        let (store, key, slug) = (self.store()?, issue_key(env), record.slug.as_str());
        let host = self.host()?;
        let writer = Writer { host: &host, claim: self.claim()? };
        let stepped = store.step_bottle(&key, slug, step, writer);
        match stepped.map_err(|error| self.refused(error, BottleExit::NotFound))? {
            Some(_) => {
                self.written(store.check_in(&key, slug, record.pull, writer))?;
                self.save_summary(&BottleSummary::of(record))
            }
            None => Ok(()),
        }
    }

    /// Stores what other hosts need to know of a bottle, where there may be others.
    pub(crate) fn save_summary(&self, summary: &BottleSummary) -> Result<(), Failure> {
        let record = &summary.record;
        let host = self.host()?;
        let (Some(env), false) = (&record.forge, host == LOCAL_HOST) else { return Ok(()) };
        let writer = Writer { host: &host, claim: self.claim()? };
        let (key, slug, text) = (issue_key(env), record.slug.as_str(), summary.to_text()?);
        self.written(self.store()?.save_summary(&key, slug, &text, writer))
    }

    /// Updates the time of the last sign of life, and the pull request.
    pub(crate) fn touch(&self, record: &Record) -> Result<(), Failure> {
        let Some(env) = &record.forge else { return Ok(()) };
        let (key, slug) = (issue_key(env), record.slug.as_str());
        let host = self.host()?;
        let writer = Writer { host: &host, claim: self.claim()? };
        self.written(self.store()?.check_in(&key, slug, record.pull, writer))
    }

    /// Stores where the newest state of the bottle is in the store of bottles.
    #[cfg(feature = "postgres")]
    pub(crate) fn note_saved(&self, key: &IssueKey, slug: &str, name: &str) -> Result<(), Failure> {
        let host = self.host()?;
        let writer = Writer { host: &host, claim: self.claim()? };
        self.written(self.store()?.note_saved(key, slug, name, writer))
    }

    /// Makes this host the one that has the bottle.
    #[cfg(feature = "postgres")]
    pub(crate) fn move_here(&self, key: &IssueKey, slug: &str) -> Result<(), Failure> {
        let host = self.host()?;
        let writer = Writer { host: &host, claim: self.claim()? };
        self.written(self.store()?.move_bottle(key, slug, writer))
    }

    /// Says what the claim waits for; nothing for a person, who sees it.
    #[cfg(feature = "postgres")]
    pub(crate) fn tell(&self, key: &IssueKey, reason: &str) -> Result<(), Failure> {
        match self.claim()? {
            Some(fence) => self.written(self.store()?.tell_work(key, fence, reason)),
            None => Ok(()),
        }
    }

    /// True for a person who works with a bottle by hand.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.lease.is_none()
    }

    /// Deletes the row of a bottle that was never made.
    pub(crate) fn delete(&self, key: &IssueKey, slug: &str) -> Result<(), Failure> {
        let host = self.host()?;
        let writer = Writer { host: &host, claim: self.claim()? };
        self.written(self.store()?.delete_forge_state(key, slug, writer))
    }

    /// Marks the bottle of an issue as destroyed, although its folder is not on this host any more.
    pub(crate) fn give_up(&self, key: &IssueKey, slug: &str) -> Result<(), Failure> {
        let host = self.host()?;
        let writer = Writer { host: &host, claim: self.claim()? };
        let stepped = self.store()?.step_bottle(key, slug, BottleStep::Destroy, writer);
        self.written(stepped).map(drop)
    }

    /// Reserves what a run may spend.
    pub(crate) fn reserve(
        &self,
        key: &IssueKey,
        run: &str,
        request: &RunReservation,
    ) -> Result<Option<BudgetRefusal>, Failure> {
        let host = self.host()?;
        let writer = Writer { host: &host, claim: self.claim()? };
        self.written(self.store()?.reserve_run(key, run, request, writer))
    }

    /// The host whose bottles are in this home.
    pub(crate) fn host(&self) -> Result<Cow<'a, str>, Failure> {
        match self.lease {
            Some(lease) => Ok(Cow::Borrowed(lease.host())),
            None => host_name(self.home).map(Cow::Owned),
        }
    }

    fn written<T>(&self, written: Result<T, DbError>) -> Result<T, Failure> {
        written.map_err(|error| self.refused(error, BottleExit::General))
    }

    /// A write that the store refused. One that came under an older claim means that the lease is lost.
    fn refused(&self, error: DbError, status: BottleExit) -> Failure {
        match (self.lease, error) {
            (Some(lease), DbError::Fenced { .. }) => {
                lease.note_refused(LeaseLoss::RefusedByDatabase)
            }
            (_, error) => Failure::of(status, error),
        }
    }

    /// The claim under which it is written; `None` for a person.
    pub(crate) fn claim(&self) -> Result<Option<Fence>, Failure> {
        self.lease.map(Lease::fence).transpose()
    }
}

pub(crate) fn issue_key(env: &ForgeEnv) -> IssueKey {
    IssueKey { owner: env.owner.clone(), repo: env.repo.clone(), issue_number: env.issue }
}
