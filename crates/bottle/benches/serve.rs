//! `bot-bottle serve`: webhooks that are on disk before they are acknowledged, beside the same SQLite commits alone; and
//! what two hundred bottles at rest and a page of a thousand cases cost, and the time from `/stop` in a comment to the end of the box. `BOTTLES` says how many.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::Value;
use testkit::Hermetic;
use testkit::fake_forge::hooks::{Hook, SECRET};
use testkit::fake_forge::{FakeGitea, OWNER, REPO, Room, TOKEN};
use testkit::measure::{quantile, row};
use testkit::repo::Fork;

/// Senders at once, and what each sends.
const SENDERS: usize = 16;
const EACH: usize = 250;
/// How long bottles are watched at rest.
const REST: Duration = Duration::from_secs(20);

/// Cases on the first page.
const CASES: usize = 1000;

/// Issues that come while a sweep looks at all the others.
const FRESH: usize = 100;
/// Pause between two of them.
const FRESH_PAUSE: Duration = Duration::from_millis(100);

/// Bottles that are stopped, one after the other.
const STOPS: usize = 10;

fn main() {
    bench_webhooks();
    bench_stop();
    bench_page();
    bench_looks();
    let bottles = host::env::var("BOTTLES").map_or(200, |text| text.parse().expect("a number"));
    bench_bottles(bottles);
}

/// A forge, a home and an orchestrator.
struct Shop {
    hermetic: Hermetic,
    forge: FakeGitea,
    fork: Fork,
}

impl Shop {
    fn new() -> Self {
        let hermetic = Hermetic::new();
        let fork = Fork::new(&hermetic);
        let forge = FakeGitea::start();
        forge.add_member("bot-bottle", "bot1");
        forge.add_member("bot-bottle", "alice");
        Self { hermetic, forge, fork }
    }

    fn serve(&self, more: &str) -> (Child, SocketAddr) {
        let home = self.hermetic.home().join(".bot-bottle");
        std::fs::create_dir_all(home.join("agents")).expect("a folder");
        let private = |name: &str, text: &str| {
            let path = home.join(name);
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("private");
            path
        };
        let (token, secret) = (private("token", TOKEN), private("secret", SECRET));
        let manifest = "provider = \"scripted\"\nscript = \"sleep.txt\"\n";
        std::fs::write(home.join("agents/sleeper.toml"), manifest).expect("written");
        std::fs::write(home.join("agents/sleep.txt"), "[[step]]\nsleep = 3600\n").expect("written");
        let config = home.join("serve.toml");
        let text = format!(
            "listen = \"127.0.0.1:0\"\nbackend = \"bwrap\"\ndrain_secs = 0\n{more}\n[[forge]]\n\
             kind = \"gitea\"\nurl = \"{}\"\ntoken_file = {token:?}\nsecret_file = {secret:?}\n\
             repos = [\"{OWNER}/{REPO}\"]\ncheckouts = {{ \"{OWNER}/{REPO}\" = {:?} }}\n",
            self.forge.url(),
            self.fork.checkout.dir(),
        );
        std::fs::write(&config, text).expect("written");
        let mut command = self.hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
        command.args(["serve", "--json", "--config"]).arg(&config);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let address = lines.find_map(|line| {
            let event: Value = serde_json::from_str(&line.ok()?).ok()?;
            event["address"].as_str()?.parse().ok()
        });
        // What it says later has to go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        (child, address.expect("it listens"))
    }

    fn database(&self) -> Connection {
        Connection::open(self.hermetic.home().join(".bot-bottle/bot-bottle.db"))
            .expect("a database")
    }
}

fn bench_webhooks() {
    let shop = Shop::new();
    let issue = shop.forge.add_issue("Quiet", "Nobody's.", &[], &[]);
    let (mut child, address) = shop.serve("sweep_secs = 3600\n");
    let hooks: Vec<Vec<Hook>> = (0..SENDERS)
        .map(|_| {
            (0..EACH)
                .map(|_| Hook::about("issue_comment_created", Room::Issue, issue, SECRET))
                .collect()
        })
        .collect();
    let body = hooks[0][0].body.clone();
    let begun = Instant::now();
    let senders: Vec<_> = hooks
        .into_iter()
        .map(|hooks| std::thread::spawn(move || send_all(address, &hooks)))
        .collect();
    let times: Vec<Duration> =
        senders.into_iter().flat_map(|sender| sender.join().expect("sent")).collect();
    let ours = times.len() as f64 / begun.elapsed().as_secs_f64();
    let kept: i64 = shop
        .database()
        .query_row("SELECT count(*) FROM delivery", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(usize::try_from(kept).ok(), Some(SENDERS * EACH), "all are on disk");
    child.kill().expect("killed");
    child.wait().expect("ended");
    let alone = commits_per_second(shop.hermetic.root(), &body);
    let (ratio, word) = (ours / alone, if ours >= 0.7 * alone { "ok" } else { "UNDER" });
    let p99 = quantile(times, 0.99);
    row(&format!(
        "serve: {ours:.0} durable webhooks per second (p99 {:.1} ms), plain SQLite {alone:.0} commits per second   ratio {ratio:>5.2}   promised at least 0.7x: {word}",
        p99.as_secs_f64() * 1000.0
    ));
}

/// Sends all of them over one connection; how long each took.
fn send_all(address: SocketAddr, hooks: &[Hook]) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let send = |hook: &Hook| {
        let mut request =
            format!("POST /webhooks/gitea HTTP/1.1\r\nHost: {address}\r\n").into_bytes();
        for (name, value) in &hook.headers {
            request.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        request
            .extend_from_slice(format!("Content-Length: {}\r\n\r\n", hook.body.len()).as_bytes());
        request.extend_from_slice(&hook.body);
        let begun = Instant::now();
        stream.write_all(&request).expect("sent");
        let mut answer = Vec::new();
        let mut piece = [0; 1024];
        while !answer.ends_with(b"stored\n") {
            let count = stream.read(&mut piece).expect("an answer");
            assert!(count > 0, "{}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..count]);
        }
        begun.elapsed()
    };
    hooks.iter().map(send).collect()
}

/// The same rows, one commit each, with the same durability.
fn commits_per_second(folder: &Path, body: &[u8]) -> f64 {
    let plain = Connection::open(folder.join("plain.db")).expect("a database");
    plain
        .execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = full;
             CREATE TABLE t (n INTEGER PRIMARY KEY, id TEXT UNIQUE, body BLOB) STRICT;",
        )
        .expect("a table");
    let mut insert =
        plain.prepare("INSERT INTO t (id, body) VALUES (?1, ?2)").expect("a statement");
    let count = 1000;
    let begun = Instant::now();
    for number in 0..count {
        insert.execute(params![number.to_string(), body]).expect("kept");
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

/// Time from a member's `/stop` to the end of the box.
fn bench_stop() {
    let shop = Shop::new();
    let (mut child, address) = shop.serve("sweep_secs = 3600\nstatus_comment = false\n");
    let mut times = Vec::new();
    for _ in 0..STOPS {
        let issue = shop.forge.add_issue("Sleep", "Well.", &["bot-bottle:sleeper"], &["bot1"]);
        let tell = |event: &str| {
            let hook = Hook::about(event, Room::Issue, issue, SECRET);
            assert_eq!(hook.send(address, "/webhooks/gitea"), Some(202));
        };
        tell("issue_opened_labeled_assigned-label_updated");
        let runs =
            shop.hermetic.home().join(format!(".bot-bottle/cellar/sleeper-issue-{issue}/runs"));
        let in_box = |name: &str| {
            let entries = std::fs::read_dir(&runs).into_iter().flatten().flatten();
            entries.map(|run| run.path().join("boxes/agent").join(name)).any(|path| path.exists())
        };
        let wait = |what: &str, holds: &dyn Fn() -> bool| {
            let begun = Instant::now();
            while !holds() {
                assert!(begun.elapsed() < Duration::from_secs(300), "{what} did not come");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let running = "SELECT count(*) FROM work WHERE state = 'running' AND issue_number = ?1";
        wait("the run", &|| {
            let count = shop.database().query_row(running, [issue], |row| row.get(0));
            count.is_ok_and(|count: i64| count == 1) && in_box("shim.json")
        });
        shop.forge.add_comment(Room::Issue, issue, "alice", "/stop");
        let begun = Instant::now();
        tell("issue_comment_created");
        wait("the end", &|| in_box("exit.json"));
        times.push(begun.elapsed());
    }
    let worst = times.iter().max().copied().unwrap_or_default();
    let word = if worst <= Duration::from_secs(2) { "ok" } else { "OVER" };
    row(&format!(
        "serve: /stop ends a box after {:.2} s (median of {STOPS}), {:.2} s at worst   promised 2 s: {word}",
        quantile(times, 0.5).as_secs_f64(),
        worst.as_secs_f64()
    ));
    child.kill().expect("killed");
    child.wait().expect("ended");
}

/// Time of a processor that the first page takes with a thousand cases: one bottle that is frozen, and copies of it.
fn bench_page() {
    let shop = Shop::new();
    let home = shop.hermetic.home().join(".bot-bottle");
    let issue = shop.forge.add_issue("Copy me", "Well.", &["bot-bottle:quick"], &["bot1"]);
    std::fs::create_dir_all(home.join("agents")).expect("a folder");
    let manifest = "provider = \"scripted\"\nscript = \"quick.txt\"\n";
    std::fs::write(home.join("agents/quick.toml"), manifest).expect("written");
    let script = "[[step]]\nrun = [\"forge\", \"done\", \"success\", \"done\"]\n";
    std::fs::write(home.join("agents/quick.txt"), script).expect("written");
    let (mut child, address) = shop.serve("sweep_secs = 3600\nstatus_comment = false\n");
    let hook =
        Hook::about("issue_opened_labeled_assigned-label_updated", Room::Issue, issue, SECRET);
    assert_eq!(hook.send(address, "/webhooks/gitea"), Some(202));
    let database = shop.database();
    database.busy_timeout(Duration::from_secs(10)).expect("a limit");
    let count = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap_or(0) };
    let begun = Instant::now();
    let ended = "SELECT count(*) FROM work WHERE state IN ('frozen', 'needs-attention')";
    while count(ended) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(300), "the run did not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    copy_case(&shop, &database, issue);
    let server = [i32::try_from(child.id()).expect("a process")];
    let spent = |times: u32| {
        let before = host::proc::cpu_time(&server);
        for _ in 0..times {
            let page = get(address, "/");
            assert!(page.contains("copy-999") || page.contains("more:"), "{page}");
        }
        let spent = host::proc::cpu_time(&server).saturating_sub(before);
        spent.as_secs_f64() * 1000.0 / f64::from(times)
    };
    let (first, later) = (spent(1), spent(20));
    let word = if first <= 100.0 && later <= 100.0 { "ok" } else { "OVER" };
    row(&format!(
        "serve: the first page with {CASES} cases takes {first:.0} ms of a processor, then {later:.0} ms   promised 100 ms: {word}"
    ));
    child.kill().expect("killed");
    child.wait().expect("ended");
}

/// Time from a webhook to the end of the look that it asks for, while sweeps look at a thousand issues without a pause; and
/// what a look asks of the forge.
fn bench_looks() {
    let shop = Shop::new();
    let add =
        |title: &str| shop.forge.add_issue(title, "Well.", &["bot-bottle:sleeper"], &["bot1"]);
    for number in 0..CASES - FRESH {
        add(&format!("Wait {number}"));
    }
    let (mut child, address) =
        shop.serve("sweep_secs = 1\nmax_bottles = 1\nstatus_comment = false\n");
    let database = shop.database();
    database.busy_timeout(Duration::from_secs(10)).expect("a limit");
    let count = |sql: &str| -> usize { database.query_row(sql, [], |row| row.get(0)).unwrap_or(0) };
    let wait = |what: &str, holds: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(600), "{what} did not come");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait("the issues", &|| count("SELECT count(*) FROM work") >= CASES - FRESH);
    let looks = || {
        let metrics = get(address, "/metrics");
        let line = "bot_bottle_observations_total{result=\"ok\"} ";
        let found = metrics.lines().find_map(|text| text.strip_prefix(line)?.parse::<f64>().ok());
        found.expect("a number")
    };
    let before = (looks(), shop.forge.requests().len(), shop.forge.connections());
    for number in 0..FRESH {
        let issue = add(&format!("Fresh {number}"));
        let event = "issue_opened_labeled_assigned-label_updated";
        let hook = Hook::about(event, Room::Issue, issue, SECRET);
        assert_eq!(hook.send(address, "/webhooks/gitea"), Some(202));
        std::thread::sleep(FRESH_PAUSE);
    }
    let open = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
    wait("the looks", &|| count(open) == 0);
    let after = (looks(), shop.forge.requests().len(), shop.forge.connections());
    let mut times = database
        .prepare("SELECT (julianday(handled_at) - julianday(received_at)) * 86400.0 FROM delivery")
        .expect("a statement");
    let times: Vec<Duration> = times
        .query_map([], |row| row.get::<_, f64>(0))
        .expect("rows")
        .map(|secs| Duration::from_secs_f64(secs.expect("a time").max(0.0)))
        .collect();
    assert_eq!(times.len(), FRESH, "each webhook is one delivery");
    let worst = times.iter().max().copied().unwrap_or_default();
    let calls = (after.1 - before.1) as f64 / (after.0 - before.0).max(1.0);
    let word = |holds: bool| if holds { "ok" } else { "OVER" };
    row(&format!(
        "serve: {FRESH} new issues beside {} known ones, sweeps without a pause: the look of a webhook has ended after {:.2} s (median), {:.2} s at worst   promised to start within 1 s: {}",
        CASES - FRESH,
        quantile(times, 0.5).as_secs_f64(),
        worst.as_secs_f64(),
        word(worst <= Duration::from_secs(1)),
    ));
    row(&format!(
        "serve: a look makes {calls:.1} calls to the forge, {:.0} looks over {} connections   promised at most 4 calls: {}",
        after.0 - before.0,
        after.2 - before.2,
        word(calls <= 4.0),
    ));
    child.kill().expect("killed");
    child.wait().expect("ended");
}

/// Copies the case of an issue, with its bottle, until there are [`CASES`].
fn copy_case(shop: &Shop, database: &Connection, issue: u64) {
    let cellar = shop.hermetic.home().join(".bot-bottle/cellar");
    let slug = format!("quick-issue-{issue}");
    for number in 1..CASES {
        let name = format!("copy-{number}");
        copy_tree(&cellar.join(&slug), &cellar.join(&name), &slug, &name);
        let copied = format!(
            "CREATE TEMP TABLE one AS SELECT * FROM work WHERE issue_number = {issue}; \
             UPDATE one SET issue_number = {}, slug = '{name}'; \
             INSERT INTO work SELECT * FROM one; DROP TABLE one;",
            1000 + number,
        );
        database.execute_batch(&copied).expect("copied");
    }
}

/// Copies the records of a bottle; its workspace does not matter to the page.
fn copy_tree(from: &Path, to: &Path, slug: &str, name: &str) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (path, file) = (entry.path(), entry.file_name());
        let is_kept = file != "workspace" && file != "harness-state";
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && is_kept => copy_tree(&path, &to.join(file), slug, name),
            Ok(kind) if kind.is_file() => {
                let bytes = std::fs::read(&path).expect("a file");
                let text = String::from_utf8_lossy(&bytes).replace(slug, name);
                std::fs::write(to.join(file), text).expect("written");
            }
            _ => {}
        }
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text
}

fn bench_bottles(count: usize) {
    let shop = Shop::new();
    for number in 0..count {
        let title = format!("Sleep {number}");
        shop.forge.add_issue(&title, "Well.", &["bot-bottle:sleeper"], &["bot1"]);
    }
    let (mut child, _) = shop.serve(&format!("sweep_secs = 3600\nmax_bottles = {count}\n"));
    let server = i32::try_from(child.id()).expect("a process");
    let begun = Instant::now();
    let running = "SELECT count(*) FROM work WHERE state = 'running'";
    let database = shop.database();
    database.busy_timeout(Duration::from_secs(10)).expect("a limit");
    loop {
        let now: i64 = database.query_row(running, [], |row| row.get(0)).unwrap_or(0);
        if usize::try_from(now).is_ok_and(|now| now == count) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(900), "only {now} of {count} run");
        std::thread::sleep(Duration::from_millis(500));
    }
    let started = begun.elapsed();
    // The last ones are still settling.
    std::thread::sleep(Duration::from_secs(10));
    let house = processes(shop.hermetic.root(), server);
    let before: BTreeMap<&str, Duration> = times(&house);
    std::thread::sleep(REST);
    let after = times(&house);
    let share = |name: &str| {
        let spent = after[name].saturating_sub(before[name]);
        100.0 * spent.as_secs_f64() / REST.as_secs_f64()
    };
    let mib = |name: &str| host::proc::observe_memory(&house[name]).bytes as f64 / 1024.0 / 1024.0;
    let each = count as f64;
    row(&format!(
        "serve: {count} bottles started in {:.0} s; each holds {:.1} MiB beside the server ({:.1} MiB), {} processes",
        started.as_secs_f64(),
        mib("bottles") / each,
        mib("server"),
        house["bottles"].len(),
    ));
    row(&format!(
        "serve: at rest the server takes {:.1} % of a processor and all bottles together {:.1} %",
        share("server"),
        share("bottles")
    ));
    child.kill().expect("killed");
    child.wait().expect("ended");
    for pid in &house["bottles"] {
        drop(shop.hermetic.run(shop.hermetic.command("kill").args(["-9", &pid.to_string()])));
    }
}

/// The server, and everything that stands for a bottle: shims and sidecars are recognised by the folder that they were
/// given, boxes by their parents.
fn processes(root: &Path, server: i32) -> BTreeMap<&'static str, Vec<i32>> {
    let root = root.to_string_lossy().into_owned();
    let mut bottles = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if pid != server && line.contains("__") && line.contains(&root) {
            bottles.extend(host::proc::descendants(pid));
        }
    }
    bottles.sort_unstable();
    bottles.dedup();
    BTreeMap::from([("server", vec![server]), ("bottles", bottles)])
}

fn times(house: &BTreeMap<&'static str, Vec<i32>>) -> BTreeMap<&'static str, Duration> {
    house.iter().map(|(name, pids)| (*name, host::proc::cpu_time(pids))).collect()
}
