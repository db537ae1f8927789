//! A fleet on PostgreSQL without boxes: a long queue shared out among many workers, the time from a stored issue to its claim,
//! and what idle workers cost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use orchestrator_db::{
    HostReport, IssueKey, PostgresOptions, Store, WorkClaim, WorkNote, WorkRequest, WorkStep,
    open_postgres, spread_front,
};
use testkit::measure::{quantile, row, time};
use testkit::postgresql::PostgresServer;

const DATABASE: &str = "bench";
const QUEUED: u64 = 10_000;
const WORKERS: u64 = 200;
/// Threads, each with the connections of a store; the workers take turns on them.
const THREADS: u64 = 24;
const LEASE: Duration = Duration::from_secs(600);
/// Claims in a second in the part that is paced.
const RATE: u64 = 200;
const PACED: u64 = 2_000;
/// Items that a look reads.
const PAGE: usize = 32;
const WAKE_UPS: u64 = 200;
/// Seconds of idling whose looks are made.
const IDLE_SECS: u64 = 20;

fn fill(server: &PostgresServer, state: &str, count: u64) {
    server.sql_in(DATABASE, "TRUNCATE work; TRUNCATE work_event");
    server.sql_in(
        DATABASE,
        &format!(
            "INSERT INTO work (owner, repo, issue_number, state, request, title, fence, claim_id, claims, \
             attempts, reason, created_at, updated_at, queued_at) \
             SELECT 'acme', 'widget', n, '{state}', '{{\"resume\": {{\"prompt\": null}}}}', 'Mend it', 1, n, 0, 0, \
             'labelled', now(), now(), now() + n * interval '1 ms' FROM generate_series(1, {count}) AS n"
        ),
    );
    server.sql_in(DATABASE, "VACUUM ANALYZE");
}

/// Claims of all workers, and how long each look with its claim took.
#[derive(Default)]
struct Claims {
    by_issue: BTreeMap<u64, u32>,
    times: Vec<Duration>,
}

/// Has the workers claim and settle everything; with a pause between two claims of a thread where they are paced.
fn share_out(stores: &[Arc<dyn Store>], count: u64, pause: Duration) -> Claims {
    let (all, settled) = (Mutex::new(Claims::default()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (thread, store) in (0..).zip(stores) {
            let (all, settled) = (&all, &settled);
            scope.spawn(move || {
                let (mut mine, mut due) = (Vec::new(), Instant::now());
                for turn in 0_u64.. {
                    if settled.load(Ordering::Relaxed) >= count {
                        break;
                    }
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    due += pause;
                    let host = format!("w{}", (thread + turn * THREADS) % WORKERS);
                    if let Some(claimed) = claim_one(&**store, &host) {
                        settled.fetch_add(1, Ordering::Relaxed);
                        mine.push(claimed);
                    }
                }
                let mut all = all.lock().expect("claims");
                for (issue, time) in mine {
                    *all.by_issue.entry(issue).or_default() += 1;
                    all.times.push(time);
                }
            });
        }
    });
    all.into_inner().expect("claims")
}

/// Looks at the queue, claims the first item that no other one got, and settles it.
fn claim_one(store: &dyn Store, host: &str) -> Option<(u64, Duration)> {
    let (holder, begun) = (format!("{host}/1"), Instant::now());
    let mut works = store.claimable_works(host, PAGE).expect("a look");
    spread_front(&mut works, u64::from_le_bytes(host::random::bytes().expect("random bytes")));
    for work in works {
        let WorkClaim::Claimed(work) =
            store.claim_work(&work, &holder, LEASE, None).expect("an answer")
        else {
            continue;
        };
        let took = begun.elapsed();
        let note = WorkNote::because("done");
        store.step_work(&work.key, work.fence, WorkStep::Freeze, &note).expect("settled");
        return Some((work.key.issue_number, took));
    }
    None
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn queue(server: &PostgresServer, stores: &[Arc<dyn Store>]) {
    fill(server, "queued", QUEUED);
    let mut claims = Claims::default();
    let took = time(|| claims = share_out(stores, QUEUED, Duration::ZERO));
    let lost = QUEUED - claims.by_issue.len() as u64;
    let twice = claims.by_issue.values().filter(|times| **times > 1).count();
    row(&format!(
        "state: {QUEUED} queued, {WORKERS} workers: {lost} lost, {twice} twice, {:.0} claims with settling per second",
        QUEUED as f64 / took.as_secs_f64()
    ));
    fill(server, "queued", PACED);
    let pause = Duration::from_secs(1) * u32::try_from(THREADS).expect("few") / RATE as u32;
    let claims = share_out(stores, PACED, pause);
    let p99 = millis(quantile(claims.times, 0.99));
    row(&format!("state: {RATE} claims per second: p99 {p99:.1} ms (wanted: 50)"));
}

/// From the commit that queues an issue to its claim by a worker that waits for a notification.
fn wake_up(server: &PostgresServer, stores: &[Arc<dyn Store>]) {
    fill(server, "frozen", QUEUED);
    let (sender, news) = mpsc::channel();
    stores[0].listen(Box::new(move || sender.send(()).unwrap_or_default()));
    news.recv().expect("it listens");
    let mut times = Vec::new();
    for number in 1..=WAKE_UPS {
        let issue_number = QUEUED + number;
        let key = IssueKey { owner: "acme".into(), repo: "widget".into(), issue_number };
        let request = WorkRequest::resume(None);
        stores[1].add_work(&key, "Mend it", &request, &WorkNote::because("so")).expect("queued");
        let stored = Instant::now();
        while claim_one(&*stores[0], "w1").is_none() {
            news.recv().expect("a notification");
        }
        times.push(stored.elapsed());
    }
    let p99 = millis(quantile(times, 0.99));
    row(&format!("state: from a stored issue to its claim: p99 {p99:.1} ms (wanted: 250)"));
}

/// Processor time of the server's sessions.
fn server_cpu(server: &PostgresServer) -> Duration {
    let pids = server.sql_in(DATABASE, "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity");
    let ids: Vec<i32> = pids.split(' ').filter_map(|pid| pid.parse().ok()).collect();
    host::proc::cpu_time(&ids)
}

/// The looks of idle workers beside 10,000 frozen cases, as often as `bot-bottle worker` makes them.
fn idle(server: &PostgresServer, stores: &[Arc<dyn Store>]) {
    fill(server, "frozen", QUEUED);
    let store = &stores[0];
    let before = server_cpu(server);
    for second in 0..IDLE_SECS {
        for worker in 0..WORKERS {
            let (host, holder) = (format!("w{worker}"), format!("w{worker}/1"));
            let turn = second + worker;
            if turn % 5 == 0 {
                store.works_to_maintain(&holder).expect("a look");
                store.unhandled_from(&["page", "comment"], 500).expect("a look");
                assert!(store.claimable_works(&host, PAGE).expect("a look").is_empty());
            }
            if turn % 2 == 0 {
                store.take_over_expired(&holder, LEASE).expect("a look");
            }
            if turn % 20 == 0 {
                store.report_host(&report(host), LEASE).expect("a report");
            }
        }
    }
    let spent = server_cpu(server).saturating_sub(before);
    let share = 100.0 * spent.as_secs_f64() / IDLE_SECS as f64;
    row(&format!(
        "state: {WORKERS} idle workers: {share:.1} % of a core of the server (wanted: 5)"
    ));
}

fn report(name: String) -> HostReport {
    let text = || "bench".to_owned();
    HostReport {
        place: name.clone(),
        name,
        process: text(),
        version: text(),
        role: text(),
        slots: 4,
        busy: 0,
        disk_free_bytes: None,
    }
}

fn main() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.create_database(DATABASE);
    let options = PostgresOptions { address, password: None, ca_file: None };
    let open = |_| open_postgres(&options).expect("a store");
    let stores: Vec<Arc<dyn Store>> = (0..THREADS).map(open).collect();
    queue(&server, &stores);
    wake_up(&server, &stores);
    idle(&server, &stores);
}
