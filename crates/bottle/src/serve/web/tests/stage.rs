//! A folder with bottles in every state, whose texts all try to be more than texts, and ways to ask about it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{COOKIE, HOST, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use model::id::{BranchName, ProjectName, Sha};
use model::redact::Redactor;
use orchestrator_db::{
    ForgeState, IssueKey, IssueText, WorkClaim, WorkNote, WorkRequest, WorkState, WorkStep, Writer,
};
use run_store::operation_log::{Operation, OperationLog, OperationOutcome};
use run_store::run_dir::RunDir;
use sandbox::backend::BackendKind;
use serde_json::{Value, json};
use shell::Ui;
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::flow::attestation::{mark_unsigned, sign_statements};
use crate::flow::bottle::{BaseSource, Bottle, BottleState, Record, VERSION, WorkspaceState};
use crate::flow::fleet::{LOCAL_HOST, open_store};
use crate::flow::home::Home;
use crate::flow::run_record::BottleRunRecord;
use crate::rules::forge_env::ForgeEnv;
use crate::serve::inbox::Inbox;
use crate::serve::live_config::LiveConfig;
use crate::serve::repos::Repos;
use crate::serve::settings::ServeSettings;
use crate::serve::turn::ServeTurn;
use crate::serve::vitals::Vitals;
use crate::serve::{Duties, Service};

/// What a stranger writes into everything that a stranger can write into.
pub(super) const HOSTILE: &str = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\" autofocus onfocus='alert(3)\u{202e}\u{1b}[31m\nforged";
pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(super) const OWNER: &str = "acme";
pub(super) const REPO: &str = "widget";

/// The folder, and who serves it.
pub(super) struct Stage {
    dir: tempfile::TempDir,
    pub(super) service: Arc<Service>,
    pub(super) router: Router,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

impl Stage {
    /// Nobody can log in.
    pub(super) fn open() -> Self {
        Self::new("")
    }

    /// With a token.
    pub(super) fn guarded() -> Self {
        Self::new("admin_token_file = \"<dir>/token\"\n")
    }

    /// With more settings.
    pub(super) fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let token = dir.path().join("token");
        std::fs::write(&token, TOKEN).expect("written");
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("private");
        let text = more.replace("<dir>", &dir.path().display().to_string());
        let forge = format!(
            "[[forge]]\nkind = \"gitea\"\nurl = \"https://git.example\"\nrepos = [\"acme/widget\"]\ntoken_file = \"{}\"\n",
            token.display()
        );
        let settings = ServeSettings::parse(&format!("{text}{forge}")).expect("settings");
        let home = Home::at(dir.path());
        let store = || open_store(&home).expect("a database");
        let arrived = Arc::new(Notify::new());
        let inbox = Inbox::open(store(), Arc::clone(&arrived));
        let repos = Repos::load(&settings, &home).expect("repositories");
        let store = store();
        let config = LiveConfig::new(None, settings, repos, &home);
        let (reloaded, vitals) = (Notify::new(), Vitals::default());
        let (host, turn) = (LOCAL_HOST.to_owned(), ServeTurn::default());
        let duties = Duties::ALL;
        let service = Arc::new(Service {
            home,
            config,
            store,
            host,
            inbox,
            arrived,
            reloaded,
            vitals,
            turn,
            duties,
        });
        let router = super::super::router(Arc::clone(&service));
        Self { dir, service, router }
    }

    /// One case of each status, and bottles that nobody orchestrates.
    pub(super) fn furnished(self) -> Self {
        self.case(1, "stuck", "Login fails when the password holds a colon", WorkStep::CallPerson);
        self.case(2, "waiting", "Export the report as CSV", WorkStep::Wait);
        self.case(3, "busy", "Speed up the search on large repositories", WorkStep::Begin);
        self.case(4, "reviewed", "Dark mode for the settings page", WorkStep::Freeze);
        self.case(5, "gone", "Fix a typo in the footer", WorkStep::Destroy);
        self.case(6, "evil", HOSTILE, WorkStep::CallPerson);
        self.queue(7, "Upgrade the build to the new toolchain");
        let own = self.bottle("by-hand", BottleState::Frozen, None);
        self.run(&own, |_| ());
        let broken = self.service.home.bottles.join("broken");
        std::fs::create_dir_all(&broken).expect("a folder");
        std::fs::write(broken.join("record.json"), "{").expect("written");
        self
    }

    fn queue(&self, issue: u64, title: &str) -> IssueKey {
        let key = key(issue);
        let request = WorkRequest::start("worker", Vec::new(), None);
        let note = WorkNote::because("assigned to bot1");
        self.service.store.add_work(&key, title, &request, &note).expect("queued");
        key
    }

    /// A case whose last step is this one.
    fn case(&self, issue: u64, slug: &str, title: &str, step: WorkStep) {
        let store = &self.service.store;
        let key = self.queue(issue, title);
        let lease = std::time::Duration::from_secs(60);
        let queued = store.work(&key).expect("read").expect("work");
        let claimed = store.claim_work(&queued, "test", lease, None).expect("claimed");
        let WorkClaim::Claimed(work) = claimed else { panic!("{claimed:?}") };
        let running = matches!(step, WorkStep::Begin);
        let state = match step {
            WorkStep::Destroy => BottleState::Destroyed,
            _ if running => BottleState::Running,
            _ => BottleState::Frozen,
        };
        let bottle = self.bottle(slug, state, Some(issue));
        self.run(&bottle, |meta| {
            meta["issue_title"] = json!(title);
            if running {
                for name in
                    ["finished_at", "verdict", "box", "agent_result", "evidence", "exit_status"]
                {
                    meta.as_object_mut().expect("an object").remove(name);
                }
                meta["phase"] = json!("launched");
            }
        });
        let take = |step, reason: &str, slug: Option<&str>, fence| {
            let note = WorkNote { slug: slug.map(str::to_owned), ..WorkNote::because(reason) };
            let later = host::clock::now() + SignedDuration::from_mins(47);
            let note = WorkNote { not_before: (step == WorkStep::Wait).then_some(later), ..note };
            store.step_work(&key, fence, step, &note).expect("a step");
        };
        take(WorkStep::Begin, "its bottle is there", Some(slug), work.fence);
        let reason = match step {
            WorkStep::CallPerson if slug == "evil" => HOSTILE,
            WorkStep::CallPerson => "the agent asks which of the two auth flows is meant",
            WorkStep::Wait => "the model's quota is used up",
            WorkStep::Freeze => "its pull request waits for review",
            WorkStep::Destroy => "its pull request was merged",
            _ => return,
        };
        if step == WorkStep::Destroy {
            take(WorkStep::Freeze, "its pull request waits for review", None, work.fence);
        }
        take(step, reason, None, work.fence);
    }

    /// A bottle with its record.
    pub(super) fn bottle(&self, slug: &str, state: BottleState, issue: Option<u64>) -> Bottle {
        let bottle = Bottle::create(&self.service.home, slug, &BTreeSet::new()).expect("a bottle");
        let sha = |letter: &str| Sha::parse(&letter.repeat(40)).expect("a commit");
        let branch = |text: &str| BranchName::parse(text).expect("a branch");
        let record = Record {
            pull_title: None,
            version: VERSION,
            slug: bottle.slug().clone(),
            state,
            agent: "worker".to_owned(),
            bottles: Vec::new(),
            created_at: host::clock::now() - SignedDuration::from_hours(5),
            repo: self.dir.path().to_path_buf(),
            base_branch: branch("main"),
            base_source: BaseSource::default(),
            branch: branch(&format!("bot-bottle/{slug}")),
            base: sha("a"),
            known_base: sha("a"),
            published: None,
            pull: issue.filter(|_| state != BottleState::Running).map(|number| number + 100),
            forge: issue.map(forge_env),
            backend: BackendKind::Bwrap,
            session: None,
            workspace: WorkspaceState::SetUp,
            runs: Vec::new(),
            seen_comments: BTreeSet::new(),
            text: None,
            model: None,
            plan: None,
            wakeups: Vec::new(),
            host_merge: None,
            signed: None,
            workspace_twin: None,
            branch_removal: None,
            merges_cleanly: None,
        };
        bottle.save(&record).expect("saved");
        bottle
    }

    /// A run of a bottle, with a log; closed if its metadata says that it is finished.
    pub(super) fn run(&self, bottle: &Bottle, change: impl FnOnce(&mut Value)) -> RunDir {
        let project = ProjectName::parse(REPO).expect("a name");
        let now = host::clock::now();
        let dir = RunDir::create(&bottle.runs(), &project, now).expect("a run");
        let (_, mut record) = Bottle::open(&self.service.home, bottle.slug().as_str()).expect("it");
        record.runs.push(dir.id().clone());
        bottle.save(&record).expect("saved");
        let mut meta = metadata(bottle.slug().as_str(), dir.id().as_str(), now);
        change(&mut meta);
        let place = dir.path().join("boxes/agent");
        std::fs::create_dir_all(&place).expect("a folder");
        let log = format!("reading the code\nrunning cargo test\n{HOSTILE}\n");
        std::fs::write(place.join("stdout.log"), log).expect("written");
        std::fs::write(place.join("stderr.log"), "warning: slow disk\n").expect("written");
        let spent = |seq: u64, usd: f64| {
            json!({
                "run": dir.id(), "seq": seq, "ts": now, "kind": "model", "host": "api.anthropic.com",
                "port": 443, "address": null, "verdict": "allowed", "reason": null, "bytes_up": 1,
                "bytes_down": 1, "ms": 1, "prev": "", "spend": {
                    "input": 1, "output": 1, "cache_read": 0, "cache_write": 0, "usd": usd,
                },
            })
        };
        let egress = format!("{}\n{}\n{{\"run\":", spent(1, 0.25), spent(2, 0.17));
        std::fs::write(place.join("egress.jsonl"), egress).expect("written");
        let redactor = Redactor::new([]);
        let operations = OperationLog::create(&dir, Arc::new(Redactor::new([]))).expect("a log");
        for (op, target, outcome) in [
            ("branch.push", "bot-bottle/work", OperationOutcome::Intended),
            ("branch.push", "bot-bottle/work", OperationOutcome::Done),
            ("comment.create", HOSTILE, OperationOutcome::Refused),
        ] {
            operations.append(&Operation::new(op, target, outcome)).expect("a line");
        }
        meta["operations_head"] = json!(operations.head().head);
        drop(operations);
        let meta: BottleRunRecord = serde_json::from_value(meta).expect("metadata");
        match meta.finished_at {
            Some(_) => dir.close(&redactor, &meta).expect("closed"),
            None => run_store::metadata::save_metadata(&dir, &redactor, &meta).expect("saved"),
        }
        dir
    }

    pub(super) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, 16 << 20).await.expect("a body");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Answer { status: head.status, headers: head.headers, text }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask(request("GET", path).body(Body::empty()).expect("a request")).await
    }

    /// As a program with the token.
    pub(super) async fn api(&self, method: &str, path: &str, body: &str) -> Answer {
        let request = request(method, path)
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json");
        self.ask(request.body(Body::from(body.to_owned())).expect("a request")).await
    }

    /// Logs in and returns the cookie.
    pub(super) async fn log_in(&self) -> String {
        let answer = self.post("/login", "", &format!("admin_token={TOKEN}")).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        assert_eq!(answer.header(LOCATION.as_str()), "/");
        let cookie = answer.header(SET_COOKIE.as_str());
        cookie.split(';').next().expect("a cookie").to_owned()
    }

    /// Sends a form, as a browser does from our own page.
    pub(super) async fn post(&self, path: &str, cookie: &str, form: &str) -> Answer {
        let request = request("POST", path)
            .header(COOKIE, cookie)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded");
        self.ask(request.body(Body::from(form.to_owned())).expect("a request")).await
    }

    pub(super) async fn get_with(&self, path: &str, cookie: &str) -> Answer {
        let request = request("GET", path).header(COOKIE, cookie);
        self.ask(request.body(Body::empty()).expect("a request")).await
    }

    /// The newest run of a bottle.
    /// A bottle whose agent asks, on an issue.
    pub(super) fn asking(&self, issue: u64, slug: &str, question: &str) {
        self.case(issue, slug, "Which database?", WorkStep::CallPerson);
        let (bottle, _) = Bottle::open(&self.service.home, slug).expect("a bottle");
        self.run(&bottle, |meta| {
            meta["done"] = json!({
                "run": meta["run"], "status": "blocked", "summary": question,
                "at": host::clock::now(),
            });
            meta["verdict"] =
                json!({ "kind": "unfinished", "how": "the agent waits for a person" });
        });
    }

    /// Deletes the work item of a destroyed bottle, as the reconciler does once its issue is closed.
    pub(super) fn forget(&self, issue: u64, slug: &str) {
        let (bottle, mut record) = Bottle::open(&self.service.home, slug).expect("a bottle");
        let work = self.service.store.work(&key(issue)).expect("read").expect("work");
        record.text = Some(IssueText { title: work.title, body: String::new() });
        bottle.save(&record).expect("saved");
        let row = ForgeState {
            key: key(issue),
            slug: slug.to_owned(),
            agent_name: record.agent,
            bottle_names: Vec::new(),
            backend_name: "bwrap".to_owned(),
            host: Some(LOCAL_HOST.to_owned()),
            saved: None,
            agent_git_user: String::new(),
            pr_number: None,
            status: BottleState::Destroyed,
            last_checkin_at: host::clock::now(),
        };
        let writer = Writer { host: LOCAL_HOST, claim: None };
        self.service.store.add_forge_state(&row, writer).expect("stored");
        self.service.store.forget_work(&key(issue), work.fence).expect("deleted");
        assert_eq!(self.service.store.work(&key(issue)).expect("read"), None);
    }

    /// Replaces the log of the newest run of a bottle.
    pub(super) fn write_log(&self, slug: &str, text: &str) {
        let (bottle, record) = Bottle::open(&self.service.home, slug).expect("a bottle");
        let dir = bottle.last_run(&record).expect("runs").expect("a run");
        std::fs::write(dir.path().join("boxes/agent/stdout.log"), text).expect("written");
    }

    /// Stores on which host the bottle of an issue is, and removes its folder from this one.
    pub(super) fn move_bottle(&self, issue: u64, slug: &str, host: &str) {
        let work = self.service.store.work(&key(issue)).expect("read").expect("work");
        let row = ForgeState {
            key: key(issue),
            slug: slug.to_owned(),
            agent_name: "worker".to_owned(),
            bottle_names: Vec::new(),
            backend_name: "bwrap".to_owned(),
            host: Some(host.to_owned()),
            saved: None,
            agent_git_user: String::new(),
            pr_number: None,
            status: match work.state {
                WorkState::Destroyed => BottleState::Destroyed,
                _ => BottleState::Frozen,
            },
            last_checkin_at: host::clock::now(),
        };
        let writer = Writer { host, claim: None };
        self.service.store.add_forge_state(&row, writer).expect("stored");
        std::fs::remove_dir_all(self.service.home.bottles.join(slug)).expect("removed");
    }

    /// The same folder after a restart of the server.
    pub(super) fn restart(&mut self) {
        self.router = super::super::router(Arc::clone(&self.service));
    }

    /// Signs the statements about the newest run of a bottle.
    pub(super) fn sign(&self, slug: &str) {
        let home = &self.service.home;
        let (bottle, record) = Bottle::open(home, slug).expect("a bottle");
        let dir = bottle.last_run(&record).expect("runs").expect("a run");
        let ui = Ui::log("test");
        mark_unsigned(&ui, home, &bottle, &dir);
        sign_statements(&ui, home);
    }

    pub(super) fn run_of(&self, slug: &str) -> String {
        let (_, record) = Bottle::open(&self.service.home, slug).expect("a bottle");
        record.runs.last().expect("a run").to_string()
    }
}

/// A request as it comes to this machine.
pub(super) fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header(HOST, "127.0.0.1:8473")
}

pub(super) fn key(issue: u64) -> IssueKey {
    IssueKey { owner: OWNER.to_owned(), repo: REPO.to_owned(), issue_number: issue }
}

fn forge_env(issue: u64) -> ForgeEnv {
    ForgeEnv {
        kind: forge::ForgeKind::Gitea,
        web: "https://git.example".to_owned(),
        owner: OWNER.to_owned(),
        repo: REPO.to_owned(),
        issue,
        pull: None,
        org: "bot-bottle".to_owned(),
        triggers: Vec::new(),
        watchdog_secs: 1800,
        allow_http: false,
    }
}

/// The metadata of a run that went well.
fn metadata(slug: &str, run: &str, now: Timestamp) -> Value {
    let sha = |letter: &str| letter.repeat(40);
    let started = now - SignedDuration::from_mins(34);
    json!({
        "version": 2, "run": run, "slug": slug, "phase": "closed",
        "started_at": started, "finished_at": now,
        "agent": "worker",
        "manifest": { "provider": "claude", "model": "anthropic/claude-sonnet" },
        "bottles": [], "bottle": {}, "backend": "bwrap", "backend_reason": "bubblewrap is here",
        "resumes_session": false, "prompt_sha256": "0".repeat(64),
        "pins": {
            "branch": format!("bot-bottle/{slug}"), "base_branch": "main",
            "start": sha("a"), "base": sha("a"), "base_is_new": false, "branch_is_new": false,
        },
        "box": {
            "ended": { "kind": "exited", "code": 0 }, "backend": "bwrap",
            "started_at": started + SignedDuration::from_secs(3), "finished_at": now,
            "wall_ms": 1_971_000, "output_bytes": 200, "dropped_bytes": 0,
            "peak_memory_bytes": 412_000_000_u64,
            "egress": {
                "summary": {
                    "per_host": [
                        { "host": "api.anthropic.com", "allowed": 41, "denied": 0, "failed": 0, "bytes_up": 921_000, "bytes_down": 381_000 },
                        { "host": HOSTILE, "allowed": 0, "denied": 2, "failed": 0, "bytes_up": 0, "bytes_down": 0 },
                    ],
                    "denials": [], "totals": {
                        "requests": 43, "allowed": 41, "denied": 2, "failed": 0, "unlogged": 0,
                        "bytes_up": 921_000, "bytes_down": 381_000,
                    },
                    "log_head": "", "complete": true,
                },
                "usage": {
                    "requests": 41, "input": 12_000, "output": 8_400, "cache_read": 640_000,
                    "cache_write": 30_000, "usd": 1.27, "estimated": 0, "by_status": { "200": 41 },
                },
            },
        },
        "agent_result": {
            "claim": { "kind": "finished" }, "answer": format!("Done: colons are kept now.\n{HOSTILE}"),
            "session": null, "tool_calls": 58, "input_tokens": 1, "output_tokens": 1, "cost_usd": 1.3,
        },
        "evidence": {
            "tip": sha("b"), "upstream_reachable": true, "base_reachable": true,
            "new_commits": [
                { "sha": sha("b"), "subject": "keep colons in passwords", "parents": 1 },
                { "sha": sha("c"), "subject": HOSTILE, "parents": 1 },
            ],
            "files_changed": 2, "files_made": [], "links_leaving": [], "gitlinks_made": [],
            "markers_left": [], "oversize": [], "foreign_identities": [],
        },
        "scans": [{ "engine": "built-in", "version": "1", "status": "clean" }],
        "verdict": { "kind": "publish" },
        "publication": {
            "branch": format!("bot-bottle/{slug}"), "commit": sha("b"), "pushed": true,
            "pull": { "number": 101, "url": "javascript:alert(4)" },
        },
        "exit_status": 0,
    })
}
