//! The lease of a claim, as its worker sees it. Its end is measured on the boot-time clock from before the store was asked,
//! so that no clock of another machine and no sleep of this one makes it longer than the store's.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::lease_file::LeaseFile;
use host::signal::{Cancel, CancelReason};
use model::exit::BottleExit;
use orchestrator_db::{Fence, IssueKey, Store, WorkItem};

use crate::exit::{Failure, OrGeneral};
use crate::rules::lease::{LEASE_LOST, deadline};

/// Claim of a worker on an issue. Once it is lost, everything that was begun under it ends and nothing is written.
#[derive(Debug)]
pub(crate) struct Lease {
    store: Arc<dyn Store>,
    key: IssueKey,
    holder: LeaseHolder,
    /// Ends what the worker does.
    cancel: Cancel,
    state: Mutex<LeaseState>,
}

/// The process that holds leases.
#[derive(Debug, Clone)]
pub(crate) struct LeaseHolder {
    pub(crate) host: String,
    /// As the store has it: `host/process`.
    pub(crate) name: String,
    /// True if other hosts may take over what this one does not renew. Its boxes and sidecars then end with their leases
    /// by themselves; on a single host they outlive a restart.
    pub(crate) is_shared: bool,
}

impl LeaseHolder {
    /// The part of the name that is new with every process.
    pub(crate) fn process(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(_, process)| process)
    }
}

/// Way in which a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseLoss {
    /// It ended, and could not be had once more.
    Expired,
    /// The database refused a write under it.
    RefusedByDatabase,
    /// The forge has a newer claim.
    RefusedByForge,
}

impl LeaseLoss {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::RefusedByDatabase => "refused-by-database",
            Self::RefusedByForge => "refused-by-forge",
        }
    }
}

#[derive(Debug)]
struct LeaseState {
    fence: Fence,
    /// Length of the lease, and the time on the boot-time clock from which on nothing is written; `None` for work that
    /// nobody has to hold.
    term: Option<(Duration, Duration)>,
    loss: Option<LeaseLoss>,
    /// The file that the shim and the sidecar of the run read.
    file: Option<LeaseFile>,
}

impl Lease {
    /// The lease of a claimed item. `asked_at` is a time on the boot-time clock before the claim.
    pub(crate) fn of_claim(
        store: Arc<dyn Store>,
        holder: LeaseHolder,
        work: &WorkItem,
        length: Duration,
        asked_at: Duration,
        cancel: Cancel,
    ) -> Self {
        let term = work.state.is_held().then(|| (length, deadline(asked_at, length)));
        let state = Mutex::new(LeaseState { fence: work.fence, term, loss: None, file: None });
        Self { store, key: work.key.clone(), holder, cancel, state }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn host(&self) -> &str {
        &self.holder.host
    }

    /// The fence to write under. A lease whose end has come is claimed once more; if another one has it now, or the store
    /// cannot be asked, it is lost.
    pub(crate) fn fence(&self) -> Result<Fence, Failure> {
        let mut state = self.state();
        if state.loss.is_some() {
            return Err(lost());
        }
        let asked_at = host::clock::boottime();
        match state.term {
            Some((length, end)) if asked_at >= end => {
                let Self { store, key, holder, .. } = self;
                match store.reclaim_work(key, state.fence, &holder.name, length) {
                    Ok(Some(work)) => {
                        tracing::info!(issue = %key, fence = %work.fence, "claimed once more");
                        state.fence = work.fence;
                        state.set_term(length, deadline(asked_at, length));
                    }
                    Ok(None) => return Err(self.lose(state, LeaseLoss::Expired)),
                    Err(error) => {
                        tracing::warn!(issue = %key, error = model::error_chain(&error), "its lease could not be renewed in time");
                        return Err(self.lose(state, LeaseLoss::Expired));
                    }
                }
            }
            Some(_) | None => {}
        }
        Ok(state.fence)
    }

    /// Takes up a renewal that was asked for at this time; `None` if the store did not renew it.
    pub(crate) fn note_renewal(
        &self,
        renewed: Option<Fence>,
        length: Duration,
        asked_at: Duration,
    ) {
        let mut state = self.state();
        if state.term.is_none() {
            return;
        }
        let end = match renewed {
            Some(fence) if fence == state.fence => deadline(asked_at, length),
            // The next look claims it once more, or finds that it is lost.
            Some(_) | None => Duration::ZERO,
        };
        state.set_term(length, end);
    }

    /// The file by which the boxes of this run and its sidecar know the end of the lease; `None` if they do not end with it.
    pub(crate) fn file_for(&self, run_dir: &Path) -> Option<LeaseFile> {
        let mut state = self.state();
        let (length, end) = state.term.filter(|_| self.holder.is_shared)?;
        let file = state.file.insert(LeaseFile::of_run(run_dir)).clone();
        state.set_term(length, end);
        Some(file)
    }

    /// Takes up that the store or the forge refused a write under this claim.
    pub(crate) fn note_refused(&self, by: LeaseLoss) -> Failure {
        let state = self.state();
        match state.loss {
            Some(_) => lost(),
            None => self.lose(state, by),
        }
    }

    /// Raises the claim above a number that the forge has, if it is still the newest one: the database was restored to an
    /// earlier time. `None` if another claim has come since.
    pub(crate) fn raise_above(&self, number: u64) -> Result<Option<Fence>, Failure> {
        let mut state = self.state();
        if state.loss.is_some() {
            return Err(lost());
        }
        let raised = self.store.raise_claim(&self.key, state.fence, number).or_general()?;
        if let Some(fence) = raised {
            tracing::warn!(issue = %self.key, %fence, "the forge has a claim that the database does not know: the claim is raised above it");
            state.fence = fence;
        }
        Ok(raised)
    }

    /// True if other hosts may claim the same issue.
    pub(crate) fn is_shared(&self) -> bool {
        self.holder.is_shared
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// The way in which it was lost, once it is.
    pub(crate) fn loss(&self) -> Option<LeaseLoss> {
        self.state().loss
    }

    fn lose(&self, mut state: MutexGuard<'_, LeaseState>, loss: LeaseLoss) -> Failure {
        state.loss = Some(loss);
        drop(state);
        tracing::warn!(issue = %self.key, "its lease is lost: its box is stopped, and nothing is published");
        self.cancel.cancel(CancelReason::Asked(LEASE_LOST.into()));
        lost()
    }

    fn state(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseState {
    fn set_term(&mut self, length: Duration, end: Duration) {
        self.term = Some((length, end));
        // An end that is unknown is no news: the boxes keep the one that they know, which a new claim may move.
        if let Some(file) = self.file.as_ref().filter(|_| !end.is_zero())
            && let Err(error) = file.write(end)
        {
            tracing::warn!(
                error = model::error_chain(&error),
                "the end of a lease could not be written"
            );
        }
    }
}

fn lost() -> Failure {
    Failure::new(BottleExit::General, LEASE_LOST)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use orchestrator_db::{WorkClaim, WorkNote, WorkRequest, WorkStep, open_file};

    use super::*;

    const LENGTH: Duration = Duration::from_secs(60);

    struct Scene {
        _dir: tempfile::TempDir,
        store: Arc<dyn Store>,
        work: WorkItem,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().expect("a folder");
        let store = open_file(&dir.path().join("bot-bottle.db")).expect("a database");
        let key = IssueKey { owner: "acme".to_owned(), repo: "widget".to_owned(), issue_number: 3 };
        let request = WorkRequest::start("worker", Vec::new(), None);
        let note = WorkNote::because("labelled");
        let queued = store.add_work(&key, "Sort", &request, &note).expect("queued");
        let claim = store.claim_work(&queued, "a/1", LENGTH, None).expect("claimed");
        let WorkClaim::Claimed(work) = claim else { panic!("{claim:?}") };
        Scene { _dir: dir, store, work: *work }
    }

    /// The lease, as it looks to a process that has slept past its end.
    fn slept(scene: &Scene) -> (Lease, Cancel) {
        let (lease, cancel) = awake(scene);
        lease.note_renewal(None, LENGTH, Duration::ZERO);
        (lease, cancel)
    }

    fn awake(scene: &Scene) -> (Lease, Cancel) {
        let cancel = Cancel::new();
        let holder = LeaseHolder { host: "a".to_owned(), name: "a/1".to_owned(), is_shared: true };
        let (store, asked_at) = (Arc::clone(&scene.store), host::clock::boottime());
        let lease = Lease::of_claim(store, holder, &scene.work, LENGTH, asked_at, cancel.clone());
        (lease, cancel)
    }

    #[test]
    fn a_lease_that_runs_asks_the_store_nothing() {
        let scene = scene();
        let (lease, _) = awake(&scene);
        scene.store.take_over_host("a/2", LENGTH).expect("taken over");
        assert_eq!(lease.fence().expect("it runs"), scene.work.fence);
    }

    #[test]
    fn who_slept_past_its_lease_and_was_not_missed_goes_on_under_a_new_claim() {
        let scene = scene();
        let (lease, cancel) = slept(&scene);
        let fence = lease.fence().expect("claimed once more");
        assert_eq!(fence.number, scene.work.fence.number + 1);
        assert_eq!(lease.fence().expect("it runs"), fence);
        assert_eq!(cancel.reason(), None);
    }

    #[test]
    fn who_slept_while_another_one_took_over_ends_and_writes_nothing() {
        let scene = scene();
        let (lease, cancel) = slept(&scene);
        scene.store.take_over_host("a/2", LENGTH).expect("taken over");
        for _ in 0..2 {
            assert_eq!(lease.fence().expect_err("lost").to_string(), LEASE_LOST);
        }
        assert!(lease.is_lost());
        assert_eq!(cancel.reason(), Some(CancelReason::Asked(LEASE_LOST.into())));
    }

    #[test]
    fn a_renewal_of_an_older_claim_does_not_count() {
        let scene = scene();
        let (lease, _) = awake(&scene);
        scene.store.take_over_host("a/2", LENGTH).expect("taken over");
        let newer = scene.store.work(&scene.work.key).expect("read").expect("work").fence;
        lease.note_renewal(Some(newer), LENGTH, host::clock::boottime());
        lease.fence().expect_err("it is another one's");
    }

    #[tokio::test]
    async fn boxes_know_the_end_that_was_asked_for_last_and_no_end_that_is_only_doubted() {
        let scene = scene();
        let (lease, _) = awake(&scene);
        let dir = tempfile::tempdir().expect("a run directory");
        let file = lease.file_for(dir.path()).expect("leases of this holder are shared");
        let end = || fs::read_to_string(dir.path().join("lease")).expect("an end");
        let first = end();
        let fence = lease.fence().expect("it runs");
        lease.note_renewal(None, LENGTH, Duration::ZERO);
        assert_eq!(end(), first);
        lease.note_renewal(Some(fence), LENGTH, host::clock::boottime() + LENGTH);
        assert!(end() > first, "{first} {}", end());
        lease.note_renewal(Some(fence), Duration::from_millis(6), host::clock::boottime());
        file.ended().await;
    }

    #[test]
    fn boxes_of_a_single_host_outlive_their_lease() {
        let scene = scene();
        let (lease, _) = awake(&scene);
        let holder = LeaseHolder { is_shared: false, ..lease.holder.clone() };
        let lease = Lease { holder, ..lease };
        assert_eq!(lease.file_for(Path::new("/nowhere")), None);
    }

    #[test]
    fn work_that_nobody_holds_has_no_end() {
        let mut scene = scene();
        let note = WorkNote::because("so");
        let (key, fence) = (&scene.work.key, scene.work.fence);
        scene.store.step_work(key, fence, WorkStep::Freeze, &note).expect("frozen");
        scene.work = scene.store.work(key).expect("read").expect("work");
        let (lease, _) = slept(&scene);
        assert_eq!(lease.fence().expect("nothing to lose"), fence);
    }
}
