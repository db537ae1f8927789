//! Claims on PostgreSQL, beside a loop of pgbench that claims the next item in one statement on the same server.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use orchestrator_db::{PostgresOptions, Store, WorkClaim, WorkItem, open_postgres};
use testkit::measure::{compare, row, time};
use testkit::postgresql::PostgresServer;

const DATABASE: &str = "bench";
const CLIENTS: usize = 8;
/// Claims in one turn.
const CLAIMS: usize = 1600;
const ROUNDS: usize = 5;
const LEASE: Duration = Duration::from_secs(600);

/// The next item in the order of the queue: what a queue on PostgreSQL costs at least, with an event for each claim.
const YARDSTICK: &str = "\
WITH found AS (SELECT owner, repo, issue_number FROM work WHERE state = 'queued'
  ORDER BY queued_at, owner, repo, issue_number LIMIT 1 FOR UPDATE SKIP LOCKED),
claimed AS (UPDATE work SET state = 'claimed', fence = fence + 1, claim_id = 4711, claims = claims + 1,
  holder = 'bench/1', lease_until = now() + interval '10 minutes', updated_at = now() FROM found
  WHERE work.owner = found.owner AND work.repo = found.repo AND work.issue_number = found.issue_number
  RETURNING work.*),
event AS (INSERT INTO work_event (seq, owner, repo, issue_number, at, state, reason)
  SELECT pg_current_xact_id()::text::bigint * 1024, owner, repo, issue_number, now(), state, '' FROM claimed)
SELECT owner, repo, issue_number, fence, lease_until FROM claimed;
";

/// Queues items anew.
fn fill(server: &PostgresServer) {
    server.sql_in(DATABASE, "TRUNCATE work; TRUNCATE work_event");
    server.sql_in(
        DATABASE,
        &format!(
            "INSERT INTO work (owner, repo, issue_number, state, request, title, fence, claim_id, claims, \
             attempts, reason, created_at, updated_at, queued_at) \
             SELECT 'acme', 'widget', n, 'queued', '{{\"resume\": {{\"prompt\": null}}}}', 'Mend it', 1, n, 0, 0, \
             'labelled', now(), now(), now() + n * interval '1 ms' FROM generate_series(1, {CLAIMS}) AS n"
        ),
    );
    server.sql_in(DATABASE, "VACUUM ANALYZE work");
}

/// Claims every item, each client with a connection of its own.
fn claim_all(stores: &[Arc<dyn Store>], works: &[WorkItem]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for store in stores {
            scope.spawn(|| {
                while let Some(work) = works.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let claim = store.claim_work(work, "bench/1", LEASE, None).expect("a claim");
                    assert!(matches!(claim, WorkClaim::Claimed(_)), "{claim:?}");
                }
            });
        }
    });
}

/// Time for all claims, by the rate that pgbench prints; without that of connecting.
fn time_of(report: &str) -> Duration {
    let rate = report.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|text| text.split(' ').next()).expect("a rate");
    Duration::from_secs_f64(CLAIMS as f64 / rate.parse::<f64>().expect("a number"))
}

fn main() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.create_database(DATABASE);
    let options = PostgresOptions { address, password: None, ca_file: None };
    let open = |_| open_postgres(&options).expect("a store");
    let stores: Vec<Arc<dyn Store>> = (0..CLIENTS).map(open).collect();
    let script = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(script.path(), YARDSTICK).expect("the script");
    std::fs::set_permissions(script.path(), PermissionsExt::from_mode(0o644)).expect("readable");
    let clients = CLIENTS.to_string();
    let each = (CLAIMS / CLIENTS).to_string();
    let result = compare(
        ROUNDS,
        || {
            fill(&server);
            let works = stores[0].claimable_works("bench", CLAIMS).expect("items");
            assert_eq!(works.len(), CLAIMS);
            time(|| claim_all(&stores, &works))
        },
        || {
            fill(&server);
            let mut pgbench = server.program("pgbench");
            pgbench.args(["-n", "-j", "2", "-c", &clients, "-t", &each, "-f"]).arg(script.path());
            let output = pgbench.arg(DATABASE).output().expect("pgbench");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let left = server.sql_in(DATABASE, "SELECT count(*) FROM work WHERE state = 'queued'");
            assert_eq!(left, "0", "it claims every item too");
            time_of(&String::from_utf8_lossy(&output.stdout))
        },
    );
    // At least 0.7 times as many in the same time.
    result.print(
        "state: claims on PostgreSQL, 8 clients",
        "a loop of pgbench",
        1.0 / 0.7,
        Duration::ZERO,
    );
    let per_second = |time: Duration| CLAIMS as f64 / time.as_secs_f64();
    row(&format!(
        "state: {:.0} claims per second, pgbench {:.0}",
        per_second(result.ours),
        per_second(result.yardstick)
    ));
}
