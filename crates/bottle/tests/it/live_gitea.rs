//! `bot-bottle serve` beside a live Gitea or Forgejo that the environment names, with the token of a site administrator. What
//! happens there reaches it by the server's own webhooks: no sweep looks for it. The server has to allow webhooks to loopback.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use base64ct::{Base64, Encoding};
use serde_json::{Value, json};
use testkit::part::missing;
use testkit::postgresql::PostgresServer;
use testkit::repo::Repo;
use testkit::wait::wait_for;

use crate::feedback::teach;
use crate::paid::{CALL, install_paid_agent};
use crate::support::{COMMIT, DONE, FIRST_STEP_DONE, Person};

const URL: &str = "BOTTLEWORKS_TEST_GITEA_URL";
const TOKEN: &str = "BOTTLEWORKS_TEST_GITEA_TOKEN";
const PASSWORD: &str = "Only-for-1-test!";

/// The only issue of a test, and its pull request.
const ISSUE: &str = "/issues/1";
const SLUG: &str = "worker-issue-1";

/// The server, as its administrator.
struct Server {
    authority: String,
    token: String,
}

impl Server {
    fn from_env() -> Option<Self> {
        let found = host::env::var(URL).zip(host::env::var(TOKEN));
        let Some((url, token)) = found else {
            missing("live_gitea", &format!("set {URL} and {TOKEN}"));
            return None;
        };
        let authority = url.strip_prefix("http://").expect("plain HTTP on loopback");
        Some(Self { authority: authority.trim_end_matches('/').to_owned(), token })
    }

    /// Calls the API with a token, or with the name and password of an account. HTTP/1.0, so that the answer ends with the
    /// connection.
    fn call(&self, auth: &str, method: &str, path: &str, body: &Value) -> Value {
        let Self { authority, .. } = self;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} /api/v1{path} HTTP/1.0\r\nHost: {authority}\r\nAuthorization: {auth}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(authority).expect("the live server");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|text| text.parse::<u16>().ok());
        assert!(status.is_some_and(|it| (200..300).contains(&it)), "{method} {path}: {answer}");
        serde_json::from_str(body).unwrap_or_default()
    }

    fn admin(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(&format!("token {}", self.token), method, path, body)
    }

    fn add_account(&self, login: &str) -> Account {
        let account = json!({
            "username": login, "email": format!("{login}@example.test"), "password": PASSWORD,
            "must_change_password": false,
        });
        self.admin("POST", "/admin/users", &account);
        let body = json!({ "name": "test", "scopes": ["all"] });
        let basic = Base64::encode_string(format!("{login}:{PASSWORD}").as_bytes());
        let path = format!("/users/{login}/tokens");
        let made = self.call(&format!("Basic {basic}"), "POST", &path, &body);
        let token = made["sha1"].as_str().expect("a token").to_owned();
        Account { login: login.to_owned(), token }
    }
}

struct Account {
    login: String,
    token: String,
}

/// A repository on the live server, an issue for `worker`, and an orchestrator.
struct Live {
    server: Server,
    person: Person,
    org: String,
    bot: Account,
    /// Member of the organisation.
    alice: Account,
    /// Account of nobody's.
    carol: Account,
    repo: Repo,
    child: Option<Child>,
    address: Option<SocketAddr>,
}

impl Live {
    fn new() -> Option<Self> {
        let server = Server::from_env()?;
        let person = Person::new()?;
        let mark = RandomState::new().build_hasher().finish() & 0xffff_ffff;
        let name = |word: &str| format!("{word}-{mark:08x}");
        let [bot, alice, carol] =
            ["bot", "alice", "carol"].map(|word| server.add_account(&name(word)));
        let org = name("org");
        server.admin("POST", "/orgs", &json!({ "username": org }));
        let team = json!({ "name": "bots", "permission": "write", "units": ["repo.code", "repo.issues", "repo.pulls"] });
        let team = server.admin("POST", &format!("/orgs/{org}/teams"), &team);
        for account in [&bot, &alice] {
            let path = format!("/teams/{}/members/{}", team["id"], account.login);
            server.admin("PUT", &path, &Value::Null);
        }
        let repo = json!({ "name": "app", "auto_init": true, "default_branch": "main" });
        server.admin("POST", &format!("/orgs/{org}/repos"), &repo);
        for (account, permission) in [(&bot, "admin"), (&alice, "write"), (&carol, "read")] {
            let path = format!("/repos/{org}/app/collaborators/{}", account.login);
            server.admin("PUT", &path, &json!({ "permission": permission }));
        }
        let address =
            format!("http://{}:{}@{}/{org}/app.git", alice.login, alice.token, server.authority);
        let dir = person.hermetic.work().join("live");
        Repo::init(&dir);
        let repo = Repo::open(&dir);
        repo.git(&["remote", "add", "origin", &address]);
        repo.git(&["fetch", "--quiet", "origin"]);
        repo.git(&["checkout", "--quiet", "-B", "main", "origin/main"]);
        Some(Self { server, person, org, bot, alice, carol, repo, child: None, address: None })
    }

    fn repo_path(&self, path: &str) -> String {
        format!("/repos/{}/app{path}", self.org)
    }

    fn as_account(&self, account: &Account, method: &str, path: &str, body: &Value) -> Value {
        let auth = format!("token {}", account.token);
        self.server.call(&auth, method, &self.repo_path(path), body)
    }

    fn read(&self, path: &str) -> Value {
        self.as_account(&self.alice, "GET", path, &Value::Null)
    }

    /// Serves the repository, and has the server post to it.
    fn serve(&mut self, more: &str) {
        let home = self.person.home();
        let token = home.join("forge-token");
        std::fs::write(&token, &self.bot.token).expect("written");
        std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).expect("private");
        let url = format!("http://{}", self.server.authority);
        let text = format!(
            "listen = \"127.0.0.1:0\"\nbackend = \"bwrap\"\nretention_days = 0\ndrain_secs = 1\nsweep_secs = 3600\n{more}\n\
             [[forge]]\nkind = \"gitea\"\nurl = {url:?}\norg = {:?}\ntoken_file = {token:?}\nrepos = [\"{}/app\"]\n",
            self.org, self.org,
        );
        let config = home.join("serve.toml");
        std::fs::write(&config, text).expect("written");
        let log = std::fs::File::create(self.person.hermetic.work().join("serve.log"));
        let mut command =
            self.person.command(&["serve", "--json", "--config", config.to_str().expect("a path")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.expect("a log"));
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let listening = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let event: Value = serde_json::from_str(&line).ok()?;
            event["address"].as_str()?.parse::<SocketAddr>().ok()
        });
        self.child = Some(child);
        // Its further output goes on being read, so that it never waits for a reader.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let address = listening.unwrap_or_else(|| panic!("it does not listen: {}", self.log()));
        self.address = Some(address);
        let (name, own) = (format!("{}/app", self.org), format!("http://{address}"));
        let mut install = self.person.command(&["hook", "install", &name, "--url", &own]);
        install.env("FORGE_GITEA_API", format!("{url}/api/v1"));
        self.person.hermetic.run_ok(install.env("FORGE_TOKEN", &self.bot.token));
    }

    /// Opens the issue as a member does, with labels and the bot as assignee.
    fn open_issue(&self, labels: &[&str]) {
        let make = |name: &&str| {
            let label = json!({ "name": name, "color": "#00aabb" });
            self.as_account(&self.alice, "POST", "/labels", &label)["id"].clone()
        };
        let labels: Vec<Value> = labels.iter().map(make).collect();
        let issue = json!({
            "title": "Do it", "body": "What is wanted.", "labels": labels, "assignees": [self.bot.login],
        });
        let made = self.as_account(&self.alice, "POST", "/issues", &issue);
        assert_eq!(made["number"], 1, "{made}");
    }

    fn comment(&self, account: &Account, words: &str) {
        let path = format!("{ISSUE}/comments");
        self.as_account(account, "POST", &path, &json!({ "body": words }));
    }

    fn comments(&self) -> Vec<String> {
        let list = self.read(&format!("{ISSUE}/comments"));
        let list = list.as_array().expect("a list").iter();
        list.filter_map(|it| it["body"].as_str().map(str::to_owned)).collect()
    }

    /// Sets the check of a commit, as a runner would.
    fn check(&self, sha: &str, state: &str) {
        let body = json!({ "state": state, "context": "test", "description": "assert 1 == 2" });
        self.as_account(&self.alice, "POST", &format!("/statuses/{sha}"), &body);
    }

    /// Tip of the bottle's branch on the server.
    fn tip(&self) -> String {
        let branch = self.read(&format!("/branches/bot-bottle%2F{SLUG}"));
        branch["commit"]["id"].as_str().expect("a commit").to_owned()
    }

    fn pulls(&self) -> Vec<Value> {
        self.read("/pulls?state=all").as_array().expect("a list").clone()
    }

    fn work(&self) -> Option<(String, String)> {
        let path = self.person.home().join("bot-bottle.db");
        let database = rusqlite::Connection::open(path).ok()?;
        let sql = "SELECT state, reason FROM work WHERE issue_number = 1";
        database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).ok()
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_dir(self.person.bottle(SLUG).join("runs"));
        runs.map_or(0, |entries| entries.flatten().count())
    }

    /// Waits until the bottle has had this many runs and is in this state.
    #[track_caller]
    fn wait(&self, runs: usize, state: &str) -> String {
        let what = format!("{runs} runs and {state}; serve said: {}", self.log());
        wait_for(&what, || {
            let (now, reason) = self.work()?;
            (now == state && self.runs() >= runs).then_some(reason)
        })
    }

    fn last_prompt(&self) -> String {
        let run = self.person.last_run(SLUG);
        let plan = std::fs::read_to_string(run.join("plan.json")).unwrap_or_default();
        plan.replace("\\n", "\n")
    }

    fn log(&self) -> String {
        let log = self.person.hermetic.work().join("serve.log");
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// Waits until webhooks that came are handled.
    fn wait_handled(&self) {
        let path = self.person.home().join("bot-bottle.db");
        let database = rusqlite::Connection::open(path).expect("the database");
        wait_for("the deliveries to be handled", || {
            let sql = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
            let count: i64 = database.query_row(sql, [], |row| row.get(0)).ok()?;
            (count == 0).then_some(())
        });
    }

    /// Waits for a webhook with this event.
    fn wait_delivered(&self, event: &str, count: i64) {
        let path = self.person.home().join("bot-bottle.db");
        let database = rusqlite::Connection::open(path).expect("the database");
        wait_for(event, || {
            let sql = "SELECT count(*) FROM delivery WHERE event = ?1";
            let found: i64 = database.query_row(sql, [event], |row| row.get(0)).ok()?;
            (found >= count).then_some(())
        });
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().expect("ended");
        }
        if std::thread::panicking() {
            return;
        }
        self.server.admin("DELETE", &self.repo_path(""), &Value::Null);
        self.server.admin("DELETE", &format!("/orgs/{}", self.org), &Value::Null);
        for account in [&self.bot, &self.alice, &self.carol] {
            let path = format!("/admin/users/{}?purge=true", account.login);
            self.server.admin("DELETE", &path, &Value::Null);
        }
    }
}

/// A bottle that has published its work on the live server's issue.
fn published(more: &str) -> Option<Live> {
    let mut live = Live::new()?;
    live.person.script(&format!("{COMMIT}{DONE}"));
    live.serve(more);
    live.open_issue(&["bot-bottle:worker"]);
    live.wait(1, "frozen");
    assert_eq!(live.pulls().len(), 1, "{}", live.log());
    Some(live)
}

#[test]
fn a_red_check_wakes_the_bottle_and_a_second_commit_turns_it_green() {
    let Some(live) = published("") else { return };
    let red = live.tip();
    live.check(&red, "failure");
    live.wait(2, "frozen");
    assert!(live.last_prompt().contains("assert 1 == 2"), "{}", live.last_prompt());
    let green = live.tip();
    assert_ne!(red, green, "a second commit");
    live.check(&green, "success");
    live.wait_delivered("status", 2);
    live.wait_handled();
    assert_eq!((live.runs(), live.pulls().len()), (2, 1), "{}", live.log());
    let status: Vec<String> =
        live.comments().into_iter().filter(|body| body.contains("Frozen")).collect();
    assert_eq!(status.len(), 1, "one comment, edited: {:?}", live.comments());
}

#[test]
fn a_conflict_is_resolved_without_a_model() {
    let Some(mut live) = Live::new() else { return };
    teach(&live.repo);
    let number = "[[step]]\nrun = \"echo 'version 15 word14' > config; git commit -qam number\"\n";
    live.person.script(&format!("{number}{DONE}"));
    live.serve("");
    live.open_issue(&["bot-bottle:worker"]);
    live.wait(1, "frozen");
    let before = live.tip();
    live.repo.write("config", "version 14 word15\n");
    live.repo.commit("word");
    live.repo.git(&["push", "--quiet", "origin", "HEAD:main"]);
    let pull = live.pulls()[0]["number"].as_u64().expect("a number");
    wait_for("the server to see the conflict", || {
        (live.read(&format!("/pulls/{pull}"))["mergeable"] == false).then_some(())
    });
    // A server says nothing about a conflict by itself; the next webhook about the pull request is a look.
    live.comment(&live.carol, "It conflicts now.");
    wait_for("the merge", || (live.tip() != before).then_some(()));
    live.wait(2, "frozen");
    assert!(!live.person.last_run(SLUG).join("boxes/agent").exists(), "no agent was started");
    live.repo.git(&["fetch", "--quiet", "origin"]);
    let merged = live.repo.git(&["show", &format!("origin/bot-bottle/{SLUG}:config")]);
    assert_eq!(merged.trim(), "version 15 word15");
    wait_for("the server to see that it merges", || {
        (live.read(&format!("/pulls/{pull}"))["mergeable"] == true).then_some(())
    });
    assert_eq!(live.pulls().len(), 1);
}

#[test]
fn a_plan_is_approved_by_a_member_and_not_by_others() {
    let Some(mut live) = Live::new() else { return };
    live.person.script("[[step]]\nrun = [\"forge\", \"done\", \"success\", \"1. sort\"]\n");
    live.serve("");
    live.open_issue(&["bot-bottle:worker", "bot-bottle:plan"]);
    let reason = live.wait(1, "needs-attention");
    assert!(reason.contains("its plan waits for an approval"), "{reason}");
    live.comment(&live.carol, "/approve");
    live.wait_delivered("issue_comment", 1);
    live.wait_handled();
    assert_eq!((live.runs(), live.pulls().len()), (1, 0), "an outsider approves nothing");
    live.person.script(&format!("{COMMIT}{DONE}"));
    live.comment(&live.alice, "/approve");
    live.wait(2, "frozen");
    let plans = live.comments().into_iter().filter(|body| body.contains("1. sort")).count();
    assert_eq!((live.runs(), live.pulls().len(), plans), (2, 1, 1));
}

#[test]
fn a_member_stops_the_box_by_a_comment_and_others_do_not() {
    let Some(mut live) = Live::new() else { return };
    live.person.script(&format!("{COMMIT}[[step]]\nsleep = 600\n{DONE}"));
    live.serve("");
    live.open_issue(&["bot-bottle:worker"]);
    let works = || {
        live.person.newest_run(SLUG)?;
        live.person.log(SLUG).contains(FIRST_STEP_DONE).then_some(())
    };
    wait_for("the agent", works);
    live.comment(&live.carol, "/stop");
    live.wait_delivered("issue_comment", 1);
    live.wait_handled();
    assert_eq!(live.work().expect("work").0, "running", "an outsider stops nothing");
    live.comment(&live.alice, "/stop");
    live.wait(1, "needs-attention");
    let shim = live.person.last_run(SLUG).join("boxes/agent/shim.json");
    let shim: Value =
        serde_json::from_slice(&std::fs::read(shim).expect("a shim")).expect("a record");
    let pid = shim["process"]["pid"].as_u64().expect("a process");
    wait_for("the end of the box", || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    assert_eq!((live.runs(), live.pulls().len()), (1, 0));
}

/// The fence is a ref that no page of the server shows, and it moves with the branch.
#[test]
fn with_a_shared_database_the_server_holds_the_fence_of_the_issue() {
    let Some(postgres) = PostgresServer::start() else { return };
    let Some(mut live) = Live::new() else { return };
    postgres.create_database("bottles");
    let config = live.person.hermetic.home().join(".config/bottleworks/config.toml");
    std::fs::create_dir_all(config.parent().expect("a folder")).expect("made");
    let text = format!("[fleet]\ndatabase = \"{}\"\n", postgres.address("bottles"));
    std::fs::write(&config, text).expect("written");
    live.person.script(&format!("{COMMIT}{DONE}"));
    live.serve("");
    live.open_issue(&["bot-bottle:worker"]);
    wait_for("the pull request", || (live.pulls().len() == 1).then_some(()));
    let state = || postgres.sql_in("bottles", "SELECT state FROM work");
    wait_for("its freeze", || (state() == "frozen").then_some(()));
    live.repo.git(&["fetch", "--quiet", "origin", "refs/bottleworks/fence/1:refs/fence"]);
    let fence = live.repo.git(&["cat-file", "blob", "refs/fence"]);
    let claim = postgres.sql_in("bottles", "SELECT fence FROM work");
    assert!(fence.starts_with(&format!("claim {claim} ")), "{fence}: {claim}");
    let branches = live.read("/branches");
    assert!(!branches.to_string().contains("fence"), "{branches}");
    // An older claim is refused by the server itself.
    let tip = live.repo.git(&["rev-parse", "main"]);
    let lease = format!("--force-with-lease=refs/bottleworks/fence/1:{}", tip.trim());
    let branch = format!("main:refs/heads/bot-bottle/{SLUG}-late");
    let late = ["push", "--atomic", &lease, "origin", "main:refs/bottleworks/fence/1", &branch];
    assert!(live.repo.try_git(&late).is_err());
    assert!(!live.read("/branches").to_string().contains("-late"));
}

#[test]
fn a_budget_that_is_used_up_is_told_on_the_issue_and_kept() {
    let Some(mut live) = Live::new() else { return };
    let _model = install_paid_agent(&live.person, "");
    live.serve("[budget]\nrun = { tokens = 1000 }\nissue = { tokens = 1100 }\n");
    live.open_issue(&["bot-bottle:worker"]);
    live.wait(1, "frozen");
    live.comment(&live.alice, "More, please.");
    let reason = live.wait(1, "waiting");
    assert!(reason.contains("the budget of issue 1, 1,100 tokens, has no room"), "{reason}");
    assert!(reason.contains(&format!("{CALL} tokens are spent")), "{reason}");
    wait_for("the status comment", || {
        let told = live.comments().iter().any(|body| body.contains("has no room for another run"));
        told.then_some(())
    });
    assert_eq!((live.runs(), live.pulls().len()), (1, 1), "{}", live.log());
}
