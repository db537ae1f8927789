//! The login of a worker: it does all that a worker does, and whoever has its password reaches nothing else.

use std::sync::Arc;
use std::time::Duration;

use orchestrator_db::{
    About, Amount, BottleState, BottleStep, BudgetLimit, BudgetScope, DbError, Delivery,
    ForgeState, HostClaim, HostReport, PostgresOptions, RunReservation, Store, UserActionRecord,
    WorkClaim, WorkItem, WorkState, WorkStep, Writer, open_postgres, worker_role_sql,
};
use postgres::{Client, NoTls};
use testkit::postgresql::PostgresServer;

use crate::conformance::key;
use crate::conformance::work::{LEASE, add, step};

const DATABASE: &str = "bottles";

/// A database with two logins of workers.
struct Logins {
    server: PostgresServer,
    owner: Arc<dyn Store>,
}

fn logins() -> Option<Logins> {
    let server = PostgresServer::start()?;
    let address = server.create_database(DATABASE);
    let options = PostgresOptions { address, password: None, ca_file: None };
    let owner = open_postgres(&options).unwrap();
    for name in ["w1", "w2"] {
        server.sql_in(DATABASE, &worker_role_sql(name).unwrap());
    }
    Some(Logins { server, owner })
}

impl Logins {
    fn address(&self, login: &str) -> String {
        self.server.address(DATABASE).replace("user=postgres", &format!("user={login}"))
    }

    /// The store as a worker uses it whose host reports itself.
    fn worker(&self, login: &str, host: &str) -> Arc<dyn Store> {
        let address = self.address(login);
        let store =
            open_postgres(&PostgresOptions { address, password: None, ca_file: None }).unwrap();
        assert_eq!(store.report_host(&report(host), LEASE).unwrap(), HostClaim::Held);
        store
    }

    /// A session of a thief who has the password.
    fn thief(&self, login: &str) -> Client {
        Client::connect(&self.address(login), NoTls).unwrap()
    }
}

fn report(host: &str) -> HostReport {
    HostReport {
        name: host.to_owned(),
        process: "1".to_owned(),
        place: host.to_owned(),
        version: "1".to_owned(),
        role: "worker".to_owned(),
        slots: 4,
        busy: 0,
        disk_free_bytes: None,
    }
}

fn reservation() -> RunReservation {
    RunReservation {
        agent: "ann".to_owned(),
        day: "2026-11-19".parse().unwrap(),
        most: Amount { tokens: Some(40), micro_usd: None },
        limits: vec![BudgetLimit {
            scope: BudgetScope::Host,
            most: Amount { tokens: Some(100), micro_usd: None },
        }],
    }
}

fn claim_next(store: &dyn Store, host: &str) -> WorkItem {
    let works = store.claimable_works(host, 10).unwrap();
    let holder = format!("{host}/1");
    let claim = store.claim_work(&works[0], &holder, LEASE, Some(&reservation())).unwrap();
    let WorkClaim::Claimed(work) = claim else { panic!("{claim:?}") };
    *work
}

/// Makes the bottle of a claimed issue, as a run does.
fn make_bottle(store: &dyn Store, host: &str, work: &WorkItem) -> String {
    let slug = format!("ann-issue-{}", work.key.issue_number);
    let row = ForgeState {
        key: work.key.clone(),
        slug: slug.clone(),
        agent_name: "ann".to_owned(),
        bottle_names: Vec::new(),
        backend_name: "bwrap".to_owned(),
        host: Some(host.to_owned()),
        agent_git_user: String::new(),
        pr_number: None,
        status: BottleState::Running,
        last_checkin_at: host::clock::now(),
        saved: None,
    };
    let writer = Writer { host, claim: Some(work.fence) };
    store.add_forge_state(&row, writer).unwrap();
    store.save_summary(&work.key, &slug, "{\"secret\": 1}", writer).unwrap();
    assert_eq!(store.reserve_run(&work.key, &slug, &reservation(), writer).unwrap(), None);
    step(store, work, WorkStep::Begin).unwrap();
    slug
}

fn stop_of(number: u64, id: &str, source: &str) -> Delivery {
    Delivery {
        seq: 0,
        source: source.to_owned(),
        id: id.to_owned(),
        event: "freeze".to_owned(),
        owner: "acme".to_owned(),
        repo: "widget".to_owned(),
        about: About::Issue(number),
        body: b"the body".to_vec(),
        received_at: host::clock::now(),
        handled_at: None,
    }
}

#[test]
fn a_worker_does_all_of_its_work_with_its_own_login() {
    let Some(logins) = logins() else { return };
    let store = &*logins.worker("w1", "a");
    add(&*logins.owner, 1);
    let work = claim_next(store, "a");
    let slug = make_bottle(store, "a", &work);
    let writer = Writer { host: "a", claim: Some(work.fence) };
    store.check_in(&work.key, &slug, Some(7), writer).unwrap();
    assert_eq!(store.renew_leases("a/1", LEASE).unwrap()[0].fence, work.fence);
    logins
        .owner
        .insert_deliveries(&[stop_of(1, "d-1", "page"), stop_of(1, "d-2", "gitea")])
        .unwrap();
    let action = UserActionRecord {
        id: "d-1".to_owned(),
        actor: "alice".to_owned(),
        action: "freeze".to_owned(),
        key: work.key.clone(),
        at: host::clock::now(),
    };
    logins.owner.record_action(&action).unwrap();
    let stops = store.unhandled_from(&["page", "comment"], 10).unwrap();
    assert_eq!(stops.len(), 1);
    assert_eq!(store.actor_of("d-1").unwrap().as_deref(), Some("alice"));
    assert_eq!(store.delivery_body(stops[0].seq).unwrap(), b"the body");
    assert_eq!(store.issue_deliveries(&work.key).unwrap().len(), 2);
    store.mark_handled(&[stops[0].seq]).unwrap();
    assert_eq!(store.unhandled_from(&["page"], 10).unwrap().len(), 0);
    let unsettled = store.unsettled_spending().unwrap();
    let spent = Amount { tokens: Some(9), micro_usd: None };
    store.settle_spending(unsettled[0].seq, &spent).unwrap();
    assert_eq!(store.spending_of(&work.key).unwrap()[0].spent, Some(spent));
    let raised = store.raise_claim(&work.key, work.fence, 30).unwrap().unwrap();
    let work = WorkItem { fence: raised, ..work };
    step(store, &work, WorkStep::Freeze).unwrap();
    let writer = Writer { host: "a", claim: Some(raised) };
    store.step_bottle(&work.key, &slug, BottleStep::Freeze, writer).unwrap();
    // The host that has the bottle goes on with it, and removes it in the end.
    step(&*logins.owner, &work, WorkStep::Queue).unwrap();
    let again = claim_next(store, "a");
    step(store, &again, WorkStep::Wait).unwrap();
    store.set_destroy_at(&again.key, again.fence, Some(host::clock::now())).unwrap();
    assert_eq!(store.works_to_maintain("a/1").unwrap().len(), 1);
    let writer = Writer { host: "a", claim: Some(again.fence) };
    store.step_bottle(&again.key, &slug, BottleStep::Destroy, writer).unwrap();
    assert_eq!(store.works_to_maintain("a/1").unwrap().len(), 1, "a crash here loses nothing");
    step(store, &again, WorkStep::Destroy).unwrap();
    // A claim whose lease has ended is taken over.
    add(&*logins.owner, 2);
    let other = &*logins.worker("w2", "b");
    let theirs = claim_next(other, "b");
    logins.server.sql_in(DATABASE, "UPDATE work SET lease_until = 'epoch' WHERE holder = 'b/1'");
    let taken = store.take_over_expired("a/1", LEASE).unwrap();
    assert_eq!((taken.len(), &taken[0].key), (1, &theirs.key));
    make_bottle(store, "a", &taken[0]);
    let refused = step(other, &theirs, WorkStep::Freeze).unwrap_err();
    assert!(matches!(refused, DbError::Unknown { .. } | DbError::Fenced { .. }), "{refused}");
    store.leave_host("a", "1").unwrap();
    let events = logins.owner.work_events(&key("acme", "widget", 2)).unwrap();
    assert_eq!(events.last().map(|event| event.state), Some(WorkState::Running));
}

#[test]
fn budgets_are_summed_over_the_workers_of_all_logins() {
    let Some(logins) = logins() else { return };
    let (one, other) = (logins.worker("w1", "a"), logins.worker("w2", "b"));
    for number in 1..=3 {
        add(&*logins.owner, number);
    }
    claim_next(&*one, "a");
    claim_next(&*other, "b");
    let third = one.claimable_works("a", 10).unwrap().remove(0);
    let claim = one.claim_work(&third, "a/1", LEASE, Some(&reservation())).unwrap();
    assert!(matches!(claim, WorkClaim::Refused(_)), "40 + 40 + 40 of 100: {claim:?}");
}

/// Two workers: the first one has issue 1, and issue 2 is queued. The second one's password is stolen.
fn theft() -> Option<(Logins, WorkItem)> {
    let logins = logins()?;
    let store = logins.worker("w1", "a");
    logins.worker("w2", "b");
    add(&*logins.owner, 1);
    let work = claim_next(&*store, "a");
    make_bottle(&*store, "a", &work);
    logins
        .owner
        .insert_deliveries(&[stop_of(1, "d-1", "gitea"), stop_of(9, "d-2", "gitea")])
        .unwrap();
    add(&*logins.owner, 2);
    Some((logins, work))
}

#[test]
fn a_thief_with_the_password_of_a_worker_sees_nothing_of_another_one() {
    let Some((logins, _)) = theft() else { return };
    let mut thief = logins.thief("w2");
    for table in ["forge_state", "delivery", "user_action", "work_event", "spending", "past_fence"]
    {
        let count: i64 =
            thief.query_one(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().get(0);
        assert_eq!(count, 0, "{table}");
    }
    let seen: Vec<i64> = thief
        .query("SELECT issue_number FROM work", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(seen, [2], "only what can be claimed");
    let hosts: i64 = thief.query_one("SELECT count(*) FROM host", &[]).unwrap().get(0);
    assert_eq!(hosts, 1, "its own");
}

#[test]
fn a_thief_with_the_password_of_a_worker_changes_nothing_of_another_one() {
    let Some((logins, work)) = theft() else { return };
    let mut thief = logins.thief("w2");
    let mut denied = |sql: &str, words: &str| {
        let error = thief.batch_execute(sql).expect_err(sql);
        let text = error.as_db_error().map(|it| it.message().to_owned()).unwrap_or_default();
        assert!(text.contains(words), "{sql}: {error:?}");
    };
    for sql in [
        "SELECT * FROM public.work",
        "SELECT body FROM public.delivery",
        "SELECT * FROM public.user_action",
        "SELECT * FROM public.notice",
        "SELECT * FROM public.host",
        "UPDATE public.work SET holder = 'b/1'",
        "DELETE FROM public.work",
        "DELETE FROM work",
        "INSERT INTO work SELECT * FROM work",
        "DELETE FROM delivery",
        "UPDATE delivery SET body = ''",
        "DELETE FROM work_event",
        "INSERT INTO public.chore VALUES ('reconcile', 'b/1', now())",
        "UPDATE place_base SET base = 0",
        "TRUNCATE public.work",
    ] {
        denied(sql, "permission denied");
    }
    denied("CREATE TABLE bot_bottle_worker.mine (x int)", "permission denied");
    for sql in [
        "UPDATE work SET state = 'destroyed' WHERE issue_number = 2",
        "UPDATE work SET request = '{}', state = 'claimed', holder = 'b/1', fence = fence + 1, \
         lease_until = now() WHERE issue_number = 2",
        "UPDATE work SET state = 'claimed', holder = 'a/1', fence = fence + 1, lease_until = now() \
         WHERE issue_number = 2",
        "UPDATE work SET fence = fence - 1 WHERE issue_number = 2",
    ] {
        denied(sql, "worker");
    }
    denied(
        "INSERT INTO work_event SELECT 1, 'acme', 'widget', 2, now(), 'destroyed', 'so'",
        "nothing that happened",
    );
    denied(
        "INSERT INTO host (name, process, place, version, role, slots, busy, seen_at, until) \
         VALUES ('a', '2', 'a', '1', 'worker', 1, 0, now(), now()) \
         ON CONFLICT (name) DO UPDATE SET until = excluded.until",
        "another login",
    );
    denied("UPDATE host SET name = 'c'", "another login");
    denied("UPDATE host SET login = 'w1'", "another login");
    denied(
        "INSERT INTO forge_state (owner, repo, issue_number, slug, agent_name, bottle_names, \
         backend_name, agent_git_user, status, last_checkin_at, host) \
         VALUES ('acme', 'widget', 2, 'x', 'x', '[]', 'x', '', 'frozen', now(), 'b')",
        "another host",
    );
    // A step of another one's claim, with the right fence: the row is not there for it.
    let address = logins.address("w2");
    let options = PostgresOptions { address, password: None, ca_file: None };
    let stolen = open_postgres(&options).unwrap();
    let refused = step(&*stolen, &work, WorkStep::Freeze).unwrap_err();
    assert!(matches!(refused, DbError::Unknown { .. }), "{refused}");
    assert_eq!(stolen.reclaim_work(&work.key, work.fence, "a/1", LEASE).unwrap(), None);
    assert!(stolen.renew_leases("a/1", Duration::from_secs(1)).unwrap().is_empty());
    assert!(stolen.take_over_host("a/2", LEASE).unwrap().is_empty());
    let known = logins.owner.work(&work.key).unwrap().unwrap();
    assert_eq!((known.fence, known.state), (work.fence, WorkState::Running), "nothing has changed");
    // Nor may it name a host whose bottles it would see.
    let report = HostReport { process: "9".to_owned(), ..report("a") };
    stolen.report_host(&report, LEASE).unwrap_err();
}
