//! PostgreSQL: the promises of every engine on a server that the test starts, and its own about commits in another order,
//! restores, restarts, fail-over and poolers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;

use model::secret::Secret;
use orchestrator_db::{
    DbError, HostClaim, HostReport, PostgresOptions, ReplicationState, Store, WorkStep,
    check_postgres, open_postgres,
};
use postgres::{Client, NoTls};
use testkit::postgresql::{Pgbouncer, PostgresServer};
use testkit::wait::{PATIENCE, wait_for, wait_until};

use crate::conformance::work::{LEASE, add, claim, step};
use crate::conformance::{Engine, with_promises};

/// A database of its own on the server, by its address.
struct Database {
    address: String,
    /// The server itself, where the address leads to a pooler.
    direct: String,
}

fn options(address: &str) -> PostgresOptions {
    PostgresOptions { address: address.to_owned(), password: None, ca_file: None }
}

fn open(address: &str) -> Arc<dyn Store> {
    open_postgres(&options(address)).unwrap()
}

fn connect(address: &str) -> Client {
    Client::connect(address, NoTls).unwrap()
}

fn numbers(store: &dyn Store, since: u64) -> Vec<u64> {
    let events = store.events_since(since, 100).unwrap();
    events.into_iter().map(|event| event.key.issue_number).collect()
}

impl Engine for Database {
    fn open(&self) -> Arc<dyn Store> {
        open(&self.address)
    }

    fn execute(&self, sql: &str) {
        connect(&self.direct).batch_execute(sql).unwrap();
    }

    fn expire_leases(&self) {
        self.execute("UPDATE work SET lease_until = 'epoch' WHERE holder IS NOT NULL");
        self.execute("UPDATE chore SET until = 'epoch'");
    }
}

#[track_caller]
fn check_promises(server: &PostgresServer, pooler: Option<&Pgbouncer>) {
    let promises = with_promises!(as_list!());
    let mut broken = Vec::new();
    let direct = server.create_database("promises");
    let address = pooler.map(|pooler| pooler.address("promises"));
    let database = Database { address: address.unwrap_or_else(|| direct.clone()), direct };
    for (name, promise) in promises {
        // Each one begins with an empty database.
        database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
        if catch_unwind(AssertUnwindSafe(|| promise(&database))).is_err() {
            broken.push(name);
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn every_promise_of_a_store_holds_on_postgresql() {
    let Some(server) = PostgresServer::start() else { return };
    check_promises(&server, None);
}

#[test]
fn every_promise_of_a_store_holds_behind_a_pooler_of_transactions() {
    let Some(server) = PostgresServer::start() else { return };
    let Some(pooler) = Pgbouncer::start(&server) else { return };
    check_promises(&server, Some(&pooler));
}

/// The numbers of a sequence are not in the order of commits: a reader that goes by them passes over what is committed late.
#[test]
fn an_event_that_is_committed_late_is_read_by_those_who_read_before() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.create_database("late");
    let store = open(&address);
    add(&*store, 1);
    let cursor = store.last_event().unwrap();
    let mut late = connect(&address);
    let mut late = late.transaction().unwrap();
    let sql = "INSERT INTO work_event (seq, owner, repo, issue_number, at, state, reason) \
               VALUES (pg_current_xact_id()::text::bigint * 1024, 'acme', 'widget', 2, now(), 'queued', '')";
    late.batch_execute(sql).unwrap();
    add(&*store, 3);
    assert_eq!(numbers(&*store, cursor), [] as [u64; 0], "an older transaction may still commit");
    assert_eq!(store.last_event().unwrap(), cursor);
    late.commit().unwrap();
    assert_eq!(numbers(&*store, cursor), [2, 3]);
}

/// A server that a dump was restored into counts its transactions from the beginning.
#[test]
fn events_after_a_restore_follow_those_before_it() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.create_database("restored");
    let store = open(&address);
    add(&*store, 1);
    connect(&address)
        .batch_execute("UPDATE work_event SET seq = seq + 1024::bigint * 5000000000")
        .unwrap();
    drop(store);
    let store = open(&address);
    let cursor = store.last_event().unwrap();
    assert_eq!(numbers(&*store, 0), [1]);
    add(&*store, 2);
    assert_eq!(numbers(&*store, cursor), [2]);
    add(&*open(&address), 3);
    assert_eq!(numbers(&*store, cursor), [2, 3]);
}

#[test]
fn a_schema_of_a_newer_version_is_refused() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.create_database("newer");
    drop(open(&address));
    connect(&address).batch_execute("INSERT INTO bot_bottle_schema (version) VALUES (99)").unwrap();
    let error = open_postgres(&options(&address)).unwrap_err();
    assert!(matches!(error, DbError::Newer { found: 99, known: 4, .. }), "{error}");
}

#[test]
fn many_processes_create_the_tables_at_once() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.create_database("fresh");
    std::thread::scope(|scope| {
        for number in 1..=8 {
            let address = &address;
            scope.spawn(move || add(&*open(address), number));
        }
    });
    assert_eq!(open(&address).works().unwrap().len(), 8);
}

#[test]
fn a_store_goes_on_after_its_server_was_killed_and_started_again() {
    let Some(mut server) = PostgresServer::start() else { return };
    let store = open(&server.create_database("restarted"));
    add(&*store, 1);
    let claimed = claim(&*store, "a/1").unwrap();
    server.kill();
    store.works().unwrap_err();
    server.start_again();
    assert_eq!(
        store.work(&claimed.key).unwrap().unwrap(),
        claimed,
        "what was acknowledged is there"
    );
    step(&*store, &claimed, WorkStep::Freeze).unwrap();
}

#[test]
fn a_failover_to_a_synchronous_standby_takes_no_claim_back() {
    let Some(mut primary) = PostgresServer::start() else { return };
    primary.create_database("bottles");
    let standby = primary.start_synchronous_standby();
    let address = primary.address_with(&standby, "bottles");
    let store = open(&address);
    let health = check_postgres(&options(&address)).unwrap();
    assert_eq!(health.replication, ReplicationState::Synchronous);
    add(&*store, 1);
    let older = claim(&*store, "a/1").unwrap();
    primary.kill();
    assert!(
        !check_postgres(&options(&address)).unwrap().accepts_writes,
        "only the standby is left"
    );
    standby.promote();
    let known = wait_for("the standby", || store.work(&older.key).ok().flatten());
    assert_eq!(known, older, "the claim outlives the server that gave it");
    assert_eq!(claim(&*store, "b/1"), None, "and nobody else gets it");
    let newer = store.take_over_host("a/2", LEASE).unwrap().remove(0);
    assert_eq!(newer.fence.number, older.fence.number + 1);
    assert_ne!(newer.fence.claim, older.fence.claim);
    let refused = step(&*store, &older, WorkStep::Freeze).unwrap_err();
    assert!(matches!(refused, DbError::Fenced { .. }), "{refused}");
}

/// The same numbers may be given out twice then, and the random id tells the claims apart.
#[test]
fn a_claim_that_a_failover_lost_is_refused_by_its_id() {
    let Some(mut primary) = PostgresServer::start() else { return };
    primary.create_database("bottles");
    let standby = primary.start_standby();
    let store = open(&primary.address_with(&standby, "bottles"));
    assert_eq!(
        check_postgres(&options(&primary.address("bottles"))).unwrap().replication,
        ReplicationState::Asynchronous
    );
    add(&*store, 1);
    let caught_up = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication";
    wait_until("the standby", || primary.sql(caught_up) == "t");
    // The standby's link stands still, and then the primary acknowledges a claim.
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''");
    standby.sql("SELECT pg_reload_conf()");
    wait_until("no link", || primary.sql("SELECT count(*) FROM pg_stat_replication") == "0");
    let lost = claim(&*store, "a/1").unwrap();
    primary.kill();
    standby.promote();
    let again = wait_for("the standby", || {
        store.works().ok()?;
        claim(&*store, "b/1")
    });
    assert_eq!(again.fence.number, lost.fence.number, "the number went back");
    let refused = step(&*store, &lost, WorkStep::Freeze).unwrap_err();
    assert!(matches!(refused, DbError::Fenced { .. }), "{refused}");
    step(&*store, &again, WorkStep::Freeze).unwrap();
}

#[test]
fn a_process_hears_of_what_another_one_stored() {
    let Some(mut server) = PostgresServer::start() else { return };
    let address = server.create_database("news");
    let (store, other) = (open(&address), open(&address));
    let (sender, news) = channel();
    store.listen(Box::new(move || sender.send(()).unwrap_or_default()));
    // The first call says that it listens.
    news.recv_timeout(PATIENCE).unwrap();
    add(&*other, 1);
    news.recv_timeout(PATIENCE).unwrap();
    server.kill();
    server.start_again();
    news.recv_timeout(PATIENCE).unwrap();
    wait_until("the other connection", || other.works().is_ok());
    add(&*other, 2);
    news.recv_timeout(PATIENCE).unwrap();
    drop(store);
    assert!(
        wait_for("the end of the listener", || news.recv_timeout(PATIENCE).err())
            .to_string()
            .contains("closed")
    );
}

#[test]
fn the_state_of_a_database_is_told() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.create_database("health");
    let before = check_postgres(&options(&address)).unwrap();
    assert_eq!((before.schema, before.replication), (None, ReplicationState::Alone));
    drop(open(&address));
    let health = check_postgres(&options(&address)).unwrap();
    assert_eq!((health.schema, health.known_schema), (Some(4), 4));
    assert!(health.accepts_writes && health.is_durable);
    assert_eq!(health.encoding, "UTF8");
    assert!(health.clock_difference.abs() < PATIENCE.try_into().unwrap());
    let error = check_postgres(&options(&server.address("nothing"))).unwrap_err();
    assert!(model::error_chain(&error).contains("\"nothing\" does not exist"), "{error}");
}

#[test]
fn a_server_is_known_by_its_certificate_and_a_password_is_in_no_error() {
    let Some((server, port, certificate)) = PostgresServer::start_with_tls("geheim") else {
        return;
    };
    server.sql("CREATE DATABASE bottles OWNER bottles");
    let connect = |mode: &str, password: &str, ca_file| {
        let address = format!(
            "host=localhost hostaddr=127.0.0.1 port={port} user=bottles dbname=bottles {mode}"
        );
        let password = Some(Secret::new(password));
        open_postgres(&PostgresOptions { address, password, ca_file })
    };
    let refused = |mode, password, ca_file| {
        let error = connect(mode, password, ca_file).unwrap_err();
        let text = model::error_chain(&error);
        assert!(!text.contains("geheim") && !format!("{error:?}").contains("geheim"), "{text}");
        text
    };
    let ca_file = || Some(certificate.clone());
    add(&*connect("sslmode=require", "geheim", ca_file()).unwrap(), 1);
    let text = refused("sslmode=require", "geheim", None);
    assert!(text.contains("certificate"), "{text}");
    let text = refused("sslmode=disable", "geheim", ca_file());
    assert!(text.contains("no encryption"), "{text}");
    let text = refused("sslmode=require", "not-geheim", ca_file());
    assert!(text.contains("password authentication failed"), "{text}");
}

#[test]
fn a_name_of_a_host_belongs_to_one_home_until_its_process_is_gone() {
    let Some(server) = PostgresServer::start() else { return };
    let store = open(&server.create_database("hosts"));
    let report = |process: &str, place: &str, busy| HostReport {
        name: "a".to_owned(),
        process: process.to_owned(),
        place: place.to_owned(),
        version: "1.2.3".to_owned(),
        role: "worker".to_owned(),
        slots: 4,
        busy,
        disk_free_bytes: Some(7),
    };
    let enter = |report: &HostReport| store.report_host(report, LEASE).unwrap();
    assert_eq!(enter(&report("1", "here", 0)), HostClaim::Held);
    assert_eq!(enter(&report("1", "here", 3)), HostClaim::Held, "it renews its report");
    let copied = enter(&report("2", "copy", 0));
    assert!(matches!(&copied, HostClaim::Taken { process, .. } if process == "1"), "{copied:?}");
    let hosts = store.hosts().unwrap();
    assert_eq!(hosts[0].report, report("1", "here", 3), "the copy changed nothing");
    assert!(hosts[0].is_live);
    assert_eq!(enter(&report("3", "here", 0)), HostClaim::Held, "the same home after a crash");
    assert!(matches!(enter(&report("2", "copy", 0)), HostClaim::Taken { .. }));
    store.leave_host("a", "1").unwrap();
    assert!(store.hosts().unwrap()[0].is_live, "an older process ends no newer one");
    store.leave_host("a", "3").unwrap();
    assert!(!store.hosts().unwrap()[0].is_live);
    assert_eq!(enter(&report("2", "copy", 0)), HostClaim::Held, "the home was moved");
    add(&*store, 1);
    claim(&*store, "a/2").unwrap();
    let leases = store.held_leases().unwrap();
    assert_eq!((leases.held, leases.expired, leases.without_host), (1, 0, 0));
    store.leave_host("a", "2").unwrap();
    assert_eq!(store.held_leases().unwrap().without_host, 1);
}

#[test]
fn what_is_due_is_found_by_an_index() {
    let Some(server) = PostgresServer::start() else { return };
    let name = "indexed";
    let store = open(&server.create_database(name));
    server.sql_in(
        name,
        "INSERT INTO work (owner, repo, issue_number, state, request, title, fence, claim_id, claims, \
         attempts, reason, created_at, updated_at, queued_at) \
         SELECT 'acme', 'widget', n, 'frozen', '{\"resume\": {\"prompt\": null}}', 'Mend it', 1, n, 1, 0, \
         '', now(), now(), now() FROM generate_series(1, 10000) AS n; \
         INSERT INTO forge_state (owner, repo, issue_number, slug, agent_name, bottle_names, backend_name, \
         agent_git_user, status, last_checkin_at, host) SELECT owner, repo, issue_number, 'b-' || issue_number, \
         'ann', '[]', 'bwrap', '', 'frozen', now(), 'there' FROM work",
    );
    server.sql_in(name, "VACUUM ANALYZE");
    add(&*store, 20_000);
    drop(store);
    // Counters of a session are sent at its end at the latest.
    let scans = || {
        let others = "SELECT count(*) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
        wait_until("the end of the sessions", || server.sql_in(name, others) == "0");
        server.sql_in(
            name,
            "SELECT sum(seq_tup_read)::bigint FROM pg_stat_user_tables \
             WHERE relname IN ('work', 'forge_state', 'delivery')",
        )
    };
    let look = || {
        let store = open(&server.address(name));
        assert_eq!(store.claimable_works("here", 64).unwrap().len(), 1);
        assert!(store.works_to_maintain("here/1").unwrap().is_empty());
        assert!(store.take_over_expired("here/1", LEASE).unwrap().is_empty());
        assert!(store.renew_leases("here/1", LEASE).unwrap().is_empty());
        assert!(store.unhandled_from(&["page", "comment"], 100).unwrap().is_empty());
    };
    look();
    let before = scans();
    look();
    assert_eq!(scans(), before, "a look reads no whole table");
}
