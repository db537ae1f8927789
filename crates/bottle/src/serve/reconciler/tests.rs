//! Bottles and leases of other hosts: nothing is removed because it is absent on this disk.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orchestrator_db::{
    About, BottleState, Delivery, ForgeState, IssueKey, Store, WorkClaim, WorkItem, WorkNote,
    WorkRequest, WorkState, WorkStep, Writer,
};
use tokio::sync::Notify;

use super::Reconciler;
use super::observe::{find_bottle, observe_issue};
use super::queue::ObservedPart;
use super::worker::find_or_clean_up;
use crate::flow::bottle::Bottle;
use crate::flow::fleet::{LOCAL_HOST, open_store};
use crate::flow::home::Home;
use crate::flow::issue_row::IssueRows;
use crate::flow::lease::{Lease, LeaseHolder};
use crate::serve::inbox::Inbox;
use crate::serve::live_config::LiveConfig;
use crate::serve::repos::Repos;
use crate::serve::settings::ServeSettings;
use crate::serve::turn::ServeTurn;
use crate::serve::vitals::Vitals;
use crate::serve::{Duties, PAGE_SOURCE, Service};

const LEASE: Duration = Duration::from_secs(60);
const SLUG: &str = "worker-issue-3";

/// A server of a forge that is not there.
fn service(folder: &Path) -> Arc<Service> {
    let home = Home::at(folder);
    std::fs::write(&home.token_file, "a-token").expect("written");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&home.token_file, private).expect("private");
    let text =
        "[[forge]]\nkind = \"gitea\"\nurl = \"https://git.example\"\nrepos = [\"acme/widget\"]\n";
    let settings = ServeSettings::parse(text).expect("settings");
    let store = open_store(&home).expect("a database");
    let arrived = Arc::new(Notify::new());
    let inbox = Inbox::open(Arc::clone(&store), Arc::clone(&arrived));
    let repos = Repos::load(&settings, &home).expect("repositories");
    let config = LiveConfig::new(None, settings, repos, &home);
    let (reloaded, vitals) = (Notify::new(), Vitals::default());
    let (host, turn) = (LOCAL_HOST.to_owned(), ServeTurn::default());
    let duties = Duties::ALL;
    Arc::new(Service { home, config, store, host, inbox, arrived, reloaded, vitals, turn, duties })
}

fn key() -> IssueKey {
    IssueKey { owner: "acme".to_owned(), repo: "widget".to_owned(), issue_number: 3 }
}

fn queue(store: &dyn Store) -> WorkItem {
    let request = WorkRequest::start("worker", Vec::new(), None);
    store.add_work(&key(), "Sort", &request, &WorkNote::because("labelled")).expect("queued")
}

fn claim(store: &dyn Store, holder: &str) -> WorkItem {
    let claim = store.claim_work(&queue(store), holder, LEASE, None).expect("claimed");
    let WorkClaim::Claimed(work) = claim else { panic!("{claim:?}") };
    *work
}

/// The row of a running bottle on a host.
fn add_row(store: &dyn Store, host: &str) {
    let row = ForgeState {
        key: key(),
        slug: SLUG.to_owned(),
        agent_name: "worker".to_owned(),
        bottle_names: Vec::new(),
        backend_name: "bwrap".to_owned(),
        host: Some(host.to_owned()),
        saved: None,
        agent_git_user: String::new(),
        pr_number: None,
        status: BottleState::Running,
        last_checkin_at: host::clock::now(),
    };
    store.add_forge_state(&row, Writer { host, claim: None }).expect("stored");
}

/// A database in which this host claimed an issue whose bottle is on `host`; what a worker finds of the bottle.
fn find_with_row_of(service: &Service, host: &str) -> Result<bool, String> {
    let store = &service.store;
    let holder =
        LeaseHolder { host: LOCAL_HOST.to_owned(), name: "local/1".to_owned(), is_shared: false };
    let work = claim(&**store, &holder.name);
    add_row(&**store, host);
    let (asked_at, cancel) = (host::clock::boottime(), host::signal::Cancel::new());
    let lease = Lease::of_claim(Arc::clone(store), holder, &work, LEASE, asked_at, cancel);
    let rows = IssueRows::of_claim(&service.home, &lease);
    find_or_clean_up(service, rows, &work).map(|it| it.is_some()).map_err(|it| it.to_string())
}

/// The worker writes the row, then the folder's record. An observation in between must not take the bottle for a leftover
/// and remove it.
#[test]
fn a_bottle_that_is_being_made_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    let work = queue(&*service.store);
    let bottle = Bottle::create(&service.home, SLUG, &BTreeSet::new()).expect("a folder");
    add_row(&*service.store, LOCAL_HOST);
    assert!(find_bottle(&service, &work).expect("no failure").is_none());
    assert!(bottle.path().exists(), "the folder stays");
    assert!(service.store.forge_state(&key()).expect("a row").is_some(), "the row stays");
}

#[test]
fn a_bottle_that_a_killed_process_left_empty_is_removed_with_its_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    let bottle = Bottle::create(&service.home, SLUG, &BTreeSet::new()).expect("a folder");
    std::fs::write(bottle.path().join(".record.json.part"), "{").expect("half a record");
    assert_eq!(find_with_row_of(&service, LOCAL_HOST), Ok(false));
    assert!(!bottle.path().exists());
    assert_eq!(service.store.forge_state(&key()).expect("read"), None);
}

#[test]
fn the_bottle_of_another_host_is_not_forgotten_because_it_is_not_on_this_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    let found = find_with_row_of(&service, "there");
    assert!(found.is_err_and(|reason| reason.contains("is on host there")));
    assert!(service.store.forge_state(&key()).expect("read").is_some(), "the row stays");
}

#[test]
fn a_bottle_whose_folder_is_missing_is_not_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    let found = find_with_row_of(&service, LOCAL_HOST);
    assert!(found.is_err_and(|reason| reason.contains("is missing: mount or restore it")));
    assert!(service.store.forge_state(&key()).expect("read").is_some(), "the row stays");
}

/// The forge is not there, so an observation that asked it would fail.
#[tokio::test]
async fn an_issue_whose_bottle_is_away_is_not_judged_without_it() {
    for host in [LOCAL_HOST, "there"] {
        let folder = tempfile::tempdir().expect("a folder");
        let service = service(folder.path());
        queue(&*service.store);
        add_row(&*service.store, host);
        let observed = observe_issue(&service, &key(), ObservedPart::Conversation).await;
        assert!(observed.expect("no call").is_away, "{host}");
    }
}

#[tokio::test]
async fn an_action_on_the_bottle_of_another_host_waits_for_that_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    queue(&*service.store);
    add_row(&*service.store, "there");
    let delivery = Delivery {
        seq: 0,
        source: PAGE_SOURCE.to_owned(),
        id: "d-1".to_owned(),
        event: "destroy".to_owned(),
        owner: "acme".to_owned(),
        repo: "widget".to_owned(),
        about: About::Issue(3),
        body: Vec::new(),
        received_at: host::clock::now(),
        handled_at: None,
    };
    service.store.insert_deliveries(&[delivery]).expect("stored");
    let mut reconciler = Reconciler::new(Arc::clone(&service)).expect("a reconciler");
    reconciler.read_inbox().expect("read");
    assert_eq!(service.store.count_unhandled().expect("a count"), 1);
    let work = service.store.work(&key()).expect("read").expect("work");
    assert_eq!(work.destroy_at, None);
}

#[tokio::test]
async fn the_end_of_a_retention_is_left_to_the_host_that_has_the_bottle() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    let work = queue(&*service.store);
    add_row(&*service.store, "there");
    let due = Some(host::clock::now());
    service.store.set_destroy_at(&key(), work.fence, due).expect("stored");
    let mut reconciler = Reconciler::new(Arc::clone(&service)).expect("a reconciler");
    reconciler.maintain().expect("maintained");
    let work = service.store.work(&key()).expect("read").expect("work");
    assert!(reconciler.busy.is_empty() && work.destroy_at.is_some());
}

#[tokio::test]
async fn what_another_host_lets_expire_is_fenced_off_and_waits_for_its_bottle() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    let store = &service.store;
    let theirs = claim(&**store, "there/1");
    add_row(&**store, "there");
    let mut reconciler = Reconciler::new(Arc::clone(&service)).expect("a reconciler");
    reconciler.take_over_expired().expect("looked");
    assert_eq!(store.work(&key()).expect("read").as_ref(), Some(&theirs), "its lease runs");
    expire(&service);
    reconciler.take_over_expired().expect("looked");
    let work = store.work(&key()).expect("read").expect("work");
    assert_eq!((work.state, work.holder), (WorkState::Queued, None));
    assert!(work.reason.contains("the host that has its bottle"), "{}", work.reason);
    let note = WorkNote::because("late");
    store.step_work(&key(), theirs.fence, WorkStep::Freeze, &note).expect_err("it is fenced off");
    assert!(store.claimable_works(LOCAL_HOST, 10).expect("read").is_empty());
    assert_eq!(store.claimable_works("there", 10).expect("read").len(), 1);
}

#[tokio::test]
async fn a_reconciler_whose_issue_was_taken_over_ends_the_work_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(folder.path());
    let store = &service.store;
    let mut reconciler = Reconciler::new(Arc::clone(&service)).expect("a reconciler");
    let work = claim(&**store, &reconciler.holder.name);
    let cancel = host::signal::Cancel::new();
    let lease = Arc::new(Lease::of_claim(
        Arc::clone(store),
        reconciler.holder.clone(),
        &work,
        LEASE,
        host::clock::boottime(),
        cancel.clone(),
    ));
    let busy = super::stop::BusyWork { work, lease: Arc::clone(&lease), cancel: cancel.clone() };
    reconciler.busy.insert(key(), busy);
    reconciler.renew_leases().expect("renewed");
    reconciler.maintain().expect("maintained");
    assert_eq!(cancel.reason(), None);
    expire(&service);
    store.take_over_expired("there/1", LEASE).expect("taken over");
    reconciler.renew_leases().expect("looked");
    reconciler.maintain().expect("maintained");
    assert!(lease.is_lost() && cancel.reason().is_some());
    let result = super::worker::JobResult {
        key: key(),
        slug: None,
        outcome: super::worker::JobOutcome::Unneeded("late".to_owned()),
    };
    reconciler.record_outcome(result).expect("dropped");
    let work = store.work(&key()).expect("read").expect("work");
    assert_eq!((work.state, work.holder.as_deref()), (WorkState::Claimed, Some("there/1")));
}

/// Ends all leases.
fn expire(service: &Service) {
    let database = rusqlite::Connection::open(&service.home.database).expect("the database");
    let sql = "UPDATE work SET lease_until = 0 WHERE holder IS NOT NULL";
    database.execute(sql, []).expect("expired");
}
