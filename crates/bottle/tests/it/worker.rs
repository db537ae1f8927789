//! `bot-bottle worker`: a server that runs no bottles itself, and workers with homes of their own on one database.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::Value;
use testkit::fake_forge::Room;
use testkit::postgresql::PostgresServer;
use testkit::wait::{wait_for, wait_until};

use crate::chaos::{GATE, SELDOM};
use crate::fleet::{DATABASE, other_home, scene, shared_config, wait};
use crate::serving::{Serving, config_path};
use crate::support::{COMMIT, DONE, SLUG, Scene};
use crate::travel::{FIND, LEAVE, store_settings};

/// A lease that ends soon.
const SHORT: &str = "sweep_secs = 3600\nlease_secs = 3\n";

/// A database, and a server that leaves bottles to the workers.
struct Fleet {
    serving: Serving,
    server: PostgresServer,
}

impl Fleet {
    fn start(script: &str, more: &str) -> Option<Self> {
        Self::start_with(script, more, |_scene| String::new())
    }

    /// The same with a store of bottles.
    fn start_with_store(script: &str, more: &str) -> Option<Self> {
        Self::start_with(script, more, |scene| {
            let store = scene.person.hermetic.work().join("store");
            std::fs::create_dir_all(&store).expect("a folder");
            store_settings(scene, &store)
        })
    }

    /// The same with more settings of the fleet.
    fn start_with(script: &str, more: &str, settings: impl Fn(&Scene) -> String) -> Option<Self> {
        let server = PostgresServer::start()?;
        server.create_database(DATABASE);
        let scene = scene(&server)?;
        scene.person.script(script);
        let config = shared_config(&scene);
        let text = std::fs::read_to_string(&config).expect("a configuration");
        std::fs::write(&config, format!("{text}run_bottles = false\n{}", settings(&scene)))
            .expect("written");
        let serving = Serving::start(scene, more);
        Some(Self { serving, server })
    }

    fn scene(&self) -> &Scene {
        &self.serving.scene
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql_in(DATABASE, sql)
    }

    fn wait(&self, state: &str) -> String {
        wait(&self.server, self.scene().issue, state);
        self.sql("SELECT reason FROM work")
    }

    fn comment(&self, text: &str) {
        let Scene { forge, issue, .. } = self.scene();
        forge.add_comment(Room::Issue, *issue, "alice", text);
        let told = self.serving.tell("issue_comment_created", Room::Issue, *issue);
        assert_eq!(told, Some(202));
    }

    fn claims(&self) -> String {
        self.sql("SELECT claims FROM work")
    }

    /// The claim that the fence at the forge names.
    fn fence_at_forge(&self) -> String {
        let text = self.scene().person.fork.origin.git(&[
            "cat-file",
            "blob",
            &format!("refs/bottleworks/fence/{}", self.scene().issue),
        ]);
        text.split(' ').nth(1).expect("a claim").to_owned()
    }

    fn log(&self) -> String {
        let work = self.scene().person.hermetic.work();
        std::fs::read_dir(work)
            .expect("a folder")
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|it| it == "log"))
            .map(|entry| {
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                format!("== {}\n{text}", entry.path().display())
            })
            .collect()
    }
}

/// A worker with a home of its own.
struct Worker {
    name: String,
    home: PathBuf,
    env: [(String, String); 2],
    child: Child,
}

impl Worker {
    fn start(fleet: &Fleet, name: &str) -> Self {
        let (home, env) = other_home(fleet.scene(), name);
        let child = Self::launch(fleet.scene(), name, &env, &[]);
        Self { name: name.to_owned(), home, env, child }
    }

    /// One that uses the database with a login of its own.
    fn start_with_login(fleet: &Fleet, name: &str) -> Self {
        let made = fleet.scene().person.run(&["fleet", "role", name]);
        assert_eq!(made.status, Some(0), "{}", made.snapshot());
        fleet.sql(&made.stdout);
        let (home, mut env) = other_home(fleet.scene(), name);
        let text = std::fs::read_to_string(shared_config(fleet.scene())).expect("a configuration");
        let config = home.join("config.toml");
        std::fs::write(&config, text.replace("user=postgres", &format!("user={name}")))
            .expect("written");
        config.to_str().expect("a path").clone_into(&mut env[1].1);
        let child = Self::launch(fleet.scene(), name, &env, &[]);
        Self { name: name.to_owned(), home, env, child }
    }

    /// Starts the process and waits until it works.
    fn launch(scene: &Scene, name: &str, env: &[(String, String)], more: &[(&str, &str)]) -> Child {
        let config = config_path(scene);
        let config = config.to_str().expect("a path");
        let work = scene.person.hermetic.work();
        let log = work.join(format!("{name}.log"));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let facts = work.join(format!("{name}.json"));
        let out = std::fs::File::create(&facts).expect("a file");
        let mut command = scene.person.command(&["worker", "--json", "--config", config]);
        command.envs(env.iter().map(|(key, value)| (key, value))).envs(more.iter().copied());
        command.stdin(Stdio::null()).stdout(out).stderr(log);
        let child = command.spawn().expect("it starts");
        wait_until("a worker", || {
            let text = std::fs::read_to_string(&facts).unwrap_or_default();
            text.lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .any(|event| event["event"] == "working")
        });
        child
    }

    fn restart(&mut self, fleet: &Fleet) {
        self.kill();
        self.child = Self::launch(fleet.scene(), &self.name, &self.env, &[]);
    }

    fn host_id(&self) -> String {
        let id = std::fs::read_to_string(self.home.join(".bot-bottle/host-id")).expect("an id");
        id.trim().to_owned()
    }

    fn bottle(&self) -> PathBuf {
        self.home.join(".bot-bottle/cellar").join(SLUG)
    }

    /// Lets the agent go on that waits at the gate.
    fn open_gate(&self) {
        std::fs::write(self.bottle().join("harness-state/go"), "").expect("the gate");
    }

    fn runs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.bottle().join("runs"));
        let mut runs: Vec<PathBuf> =
            entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        runs.sort();
        runs
    }

    fn signal(&self, fleet: &Fleet, signal: &str) {
        fleet.serving.signal(signal, &self.child.id().to_string());
    }

    fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn has_begun(worker: &Worker) {
    let begun = worker.bottle().join("harness-state/begun");
    wait_until("the agent", || begun.exists());
}

/// A step by which the agent shows that it runs.
const BEGUN: &str = "[[step]]\nrun = \"touch /harness-state/begun\"\n";

fn gated() -> String {
    format!("{BEGUN}{GATE}{COMMIT}{DONE}")
}

#[test]
fn a_webhook_to_one_host_becomes_a_pull_request_of_a_worker_on_another() {
    let Some(fleet) = Fleet::start(&format!("{COMMIT}{DONE}"), SELDOM) else { return };
    assert_eq!(fleet.serving.label(), Some(202));
    wait(&fleet.server, fleet.scene().issue, "queued");
    let worker = Worker::start(&fleet, "w1");
    let reason = fleet.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}\n{}", fleet.log());
    assert_eq!(fleet.serving.pulls(), 1);
    assert_eq!(fleet.sql("SELECT host FROM forge_state"), worker.host_id());
    assert!(worker.bottle().exists() && !fleet.scene().person.bottle(SLUG).exists());
    assert_eq!(fleet.fence_at_forge(), fleet.sql("SELECT fence FROM work"));
    // The server knows the bottle by its row alone: it sees what is new, and the worker goes on.
    fleet.comment("One more thing, please.");
    wait_until("a second run", || worker.runs().len() == 2);
    fleet.wait("frozen");
    assert_eq!((fleet.serving.pulls(), fleet.claims().as_str()), (1, "2"));
    let status =
        || fleet.scene().forge.comments().iter().any(|it| it.body.contains("up for review"));
    wait_until("the status comment", status);
    let pull = fleet.sql("SELECT pr_number FROM forge_state");
    fleet.scene().forge.merge_pull(pull.parse().expect("a number"));
    fleet.serving.tell("pull_request_merged-closed", Room::Pull, pull.parse().expect("a number"));
    wait_until("the end of the bottle", || {
        fleet.sql("SELECT status FROM forge_state") == "destroyed"
    });
    wait_until("the end of its folder", || !worker.bottle().join("workspace").exists());
}

#[test]
fn a_worker_with_a_login_of_its_own_does_an_issue_from_end_to_end() {
    let Some(fleet) = Fleet::start(&format!("{COMMIT}{DONE}"), SELDOM) else { return };
    let worker = Worker::start_with_login(&fleet, "w1");
    fleet.serving.label();
    let reason = fleet.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}\n{}", fleet.log());
    fleet.comment("One more thing, please.");
    wait_until("a second run", || worker.runs().len() == 2);
    fleet.wait("frozen");
    assert_eq!((fleet.serving.pulls(), fleet.claims().as_str()), (1, "2"));
    let logins = fleet.sql("SELECT string_agg(login || ' ' || role, ',' ORDER BY role) FROM host");
    assert_eq!(logins, "postgres serve,w1 worker");
    let listed = fleet.scene().person.json(&["fleet", "status"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed:#}");
    let pull: u64 = fleet.sql("SELECT pr_number FROM forge_state").parse().expect("a number");
    fleet.scene().forge.merge_pull(pull);
    fleet.serving.tell("pull_request_merged-closed", Room::Pull, pull);
    wait_until("the end of its folder", || !worker.bottle().join("workspace").exists());
    assert!(!fleet.log().contains("permission denied"), "{}", fleet.log());
}

/// Two logins that see nothing of each other but what the store of bottles hands on.
#[test]
fn a_bottle_of_a_worker_that_is_gone_goes_on_at_another_one_with_its_own_login() {
    let script = format!("{COMMIT}{LEAVE}{DONE}");
    let Some(fleet) = Fleet::start_with_store(&script, SELDOM) else { return };
    let mut first = Worker::start_with_login(&fleet, "w1");
    fleet.serving.label();
    fleet.wait("frozen");
    let saved = || fleet.sql("SELECT coalesce(saved, '') FROM forge_state");
    let host = || fleet.sql("SELECT host FROM forge_state");
    assert!(saved().contains("/00000001-"), "{}\n{}", saved(), fleet.log());
    assert_eq!(host(), first.host_id());
    first.kill();
    fleet.scene().person.script(&format!("{FIND}{COMMIT}{DONE}"));
    let second = Worker::start_with_login(&fleet, "w2");
    fleet.comment("Please go on.");
    wait_until("the other worker", || host() == second.host_id());
    wait_until("a second state", || saved().contains("/00000002-"));
    fleet.wait("frozen");
    assert!(second.bottle().join("harness-state/found").exists(), "{}", fleet.log());
    assert_eq!((fleet.serving.pulls(), fleet.claims().as_str()), (1, "2"));
    assert_eq!(fleet.fence_at_forge(), fleet.sql("SELECT fence FROM work"), "the newest claim");
    let pull: u64 = fleet.sql("SELECT pr_number FROM forge_state").parse().expect("a number");
    fleet.scene().forge.merge_pull(pull);
    fleet.serving.tell("pull_request_merged-closed", Room::Pull, pull);
    fleet.wait("destroyed");
    wait_until("the end of its folder", || !second.bottle().join("workspace").exists());
    assert!(!fleet.log().contains("permission denied"), "{}", fleet.log());
}

/// Every host could fetch the bottle; the one that has it removes it.
#[test]
fn of_hosts_with_one_store_one_forgets_a_bottle() {
    let Some(fleet) = Fleet::start_with_store(&format!("{COMMIT}{DONE}"), SELDOM) else { return };
    let workers = ["w1", "w2"].map(|name| Worker::start(&fleet, name));
    fleet.serving.label();
    fleet.wait("frozen");
    let host = fleet.sql("SELECT host FROM forge_state");
    let own = workers.iter().find(|it| it.host_id() == host).expect("the one that ran it");
    fleet.comment("/forget");
    fleet.wait("destroyed");
    wait_until("the end of its folder", || !own.bottle().join("workspace").exists());
    let ended = "SELECT count(*) FROM work_event WHERE state = 'destroyed'";
    assert_eq!(fleet.sql(ended), "1", "{}", fleet.log());
    assert_eq!(fleet.sql("SELECT host FROM forge_state"), host);
}

#[test]
fn a_stop_and_a_resume_reach_the_worker_that_has_the_box() {
    let Some(fleet) = Fleet::start(&gated(), SELDOM) else { return };
    fleet.serving.label();
    let worker = Worker::start(&fleet, "w1");
    has_begun(&worker);
    wait(&fleet.server, fleet.scene().issue, "running");
    let run = worker.runs().pop().expect("a run");
    let begun = Instant::now();
    fleet.comment("/stop");
    let exit = run.join("boxes/agent/exit.json");
    wait_until("the end of the box", || exit.exists());
    println!("the box had ended {:?} after the webhook", begun.elapsed());
    assert_eq!(fleet.wait("needs-attention"), "alice stopped it", "{}", fleet.log());
    assert_eq!(fleet.serving.pulls(), 0);
    worker.open_gate();
    fleet.comment("/resume Go on, please.");
    let reason = fleet.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}");
    assert_eq!((fleet.serving.pulls(), worker.runs().len()), (1, 2));
}

#[test]
fn another_worker_goes_on_when_one_dies_before_its_bottle_is_made() {
    let Some(fleet) = Fleet::start(&format!("{COMMIT}{DONE}"), SHORT) else { return };
    fleet.serving.label();
    let (home, env) = other_home(fleet.scene(), "w1");
    let mut first =
        Worker::launch(fleet.scene(), "w1", &env, &[("BOTTLEWORKS_FAILPOINT", "claimed")]);
    wait_for("its death", || first.try_wait().expect("a status"));
    let second = Worker::start(&fleet, "w2");
    fleet.wait("frozen");
    // By the clock of the database: the claim, the end of its lease, and the next claim.
    let late = fleet.sql(
        "SELECT extract(epoch FROM max(at) FILTER (WHERE state = 'running') - min(at) \
         FILTER (WHERE state = 'claimed')) FROM work_event",
    );
    println!("running {late} s after the claim of the one that died, with a lease of 3 s");
    assert_eq!(fleet.sql("SELECT host FROM forge_state"), second.host_id());
    assert!(!home.join(".bot-bottle/cellar").join(SLUG).exists());
    assert_eq!(fleet.serving.pulls(), 1);
    assert_eq!(fleet.fence_at_forge(), fleet.sql("SELECT fence FROM work"));
    let branches = fleet.scene().person.fork.origin.git(&["branch", "--list", "bot-bottle/*"]);
    assert_eq!(branches.lines().count(), 1, "{branches}");
}

#[test]
fn a_worker_that_died_beside_its_box_finds_it_again_and_no_other_one_takes_its_bottle() {
    let Some(fleet) = Fleet::start(&gated(), SHORT) else { return };
    fleet.serving.label();
    let mut worker = Worker::start(&fleet, "w1");
    has_begun(&worker);
    wait(&fleet.server, fleet.scene().issue, "running");
    worker.kill();
    let other = Worker::start(&fleet, "w2");
    let reason = fleet.wait("queued");
    assert!(reason.contains("the host that has its bottle"), "{reason}");
    worker.restart(&fleet);
    wait_until("the next claim", || fleet.claims() == "2");
    worker.open_gate();
    let reason = fleet.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}\n{}", fleet.log());
    assert_eq!(fleet.serving.pulls(), 1);
    assert!(!other.bottle().exists());
    assert_eq!(fleet.fence_at_forge(), fleet.sql("SELECT fence FROM work"));
}

/// The forge holds the push of a worker; it is stopped until its lease is over and a newer claim is at the forge.
#[test]
fn a_worker_that_hangs_inside_a_push_is_refused_by_the_forge_and_writes_nothing() {
    let Some(fleet) = Fleet::start(&format!("{COMMIT}{DONE}"), SHORT) else { return };
    let origin = &fleet.scene().person.fork.origin;
    let (came, gate) = (origin.git_dir().join("came"), origin.git_dir().join("gate"));
    hold_pushes(&fleet, &came, &gate);
    fleet.serving.label();
    let worker = Worker::start(&fleet, "w1");
    wait_until("a push of the branch", || came.exists());
    worker.signal(&fleet, "-STOP");
    fleet.wait("queued");
    let newer = "40";
    let blob = fleet.scene().person.hermetic.work().join("fence");
    std::fs::write(&blob, format!("claim {newer} write 0\n")).expect("written");
    let id = origin.git(&["hash-object", "-w", blob.to_str().expect("a path")]);
    let name = format!("refs/bottleworks/fence/{}", fleet.scene().issue);
    origin.git(&["update-ref", &name, id.trim()]);
    let events = fleet.sql("SELECT count(*) FROM work_event");
    std::fs::write(&gate, "").expect("the gate");
    // The server answers the push whether or not its sender listens.
    let reflog = origin.git_dir().join("refused");
    wait_until("the forge's answer", || reflog.exists() || !is_pushing(&came));
    let branches = origin.git(&["branch", "--list", "bot-bottle/*"]);
    assert_eq!(branches, "", "the forge took no commit of the older claim");
    assert_eq!(fleet.sql("SELECT count(*) FROM work_event"), events);
    worker.signal(&fleet, "-CONT");
    // It is the only host with the bottle, so it goes on under a claim that is above the forge's.
    let reason = fleet.wait("frozen");
    assert!(reason.contains("up for review"), "{reason}\n{}", fleet.log());
    assert_eq!(fleet.serving.pulls(), 1);
    let fence: u64 = fleet.fence_at_forge().parse().expect("a number");
    assert!(fence > 40, "{fence}: {}\n{}", fleet.sql("SELECT fence FROM work"), fleet.log());
    assert_eq!(fence.to_string(), fleet.sql("SELECT fence FROM work"));
    assert!(fleet.log().contains("its lease is lost"), "{}", fleet.log());
}

/// Has the forge hold the first push of a branch, after it has announced its refs, until the gate is open.
fn hold_pushes(fleet: &Fleet, came: &Path, gate: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let hook = fleet.scene().person.fork.origin.git_dir().join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("hooks");
    let (came, gate) = (came.display(), gate.display());
    let script = format!(
        "#!/bin/sh\nif grep -q refs/heads/ && ! [ -e '{came}' ]; then\n\
         echo $$ > '{came}.part' && mv '{came}.part' '{came}'\n\
         until [ -e '{gate}' ]; do sleep 0.05; done\nfi\n"
    );
    std::fs::write(&hook, script).expect("a hook");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a program");
}

/// True while the hook of the push that was held runs.
fn is_pushing(came: &Path) -> bool {
    let pid = std::fs::read_to_string(came).unwrap_or_default();
    Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn the_box_of_a_worker_that_hangs_ends_with_its_lease() {
    let Some(fleet) = Fleet::start(&gated(), SHORT) else { return };
    fleet.serving.label();
    let worker = Worker::start(&fleet, "w1");
    has_begun(&worker);
    wait(&fleet.server, fleet.scene().issue, "running");
    let run = worker.runs().pop().expect("a run");
    worker.signal(&fleet, "-STOP");
    wait_until("the end of the box", || run.join("boxes/agent/exit.json").exists());
    fleet.wait("queued");
    assert_eq!(fleet.serving.pulls(), 0);
    worker.open_gate();
    worker.signal(&fleet, "-CONT");
    fleet.wait("frozen");
    assert_eq!(fleet.serving.pulls(), 1);
}

#[test]
fn a_copied_home_is_refused_while_the_first_one_works() {
    let Some(fleet) = Fleet::start("", SELDOM) else { return };
    let worker = Worker::start(&fleet, "w1");
    wait_until("its report", || {
        fleet.sql("SELECT count(*) FROM host WHERE role = 'worker'") == "1"
    });
    let (copy, env) = other_home(fleet.scene(), "copy");
    let id = copy.join(".bot-bottle/host-id");
    std::fs::copy(worker.home.join(".bot-bottle/host-id"), &id).expect("a copy");
    let config = config_path(fleet.scene());
    let args = ["worker", "--config", config.to_str().expect("a path")];
    let start = || {
        let mut command = fleet.scene().person.command(&args);
        command.envs(env.iter().map(|(key, value)| (key, value)));
        fleet.scene().person.hermetic.run(&mut command)
    };
    let refused = start();
    assert_ne!(refused.status, Some(0));
    assert!(refused.stderr.contains("another home has the name"), "{}", refused.snapshot());
    assert!(refused.stderr.contains("remove"), "{}", refused.snapshot());
    let host =
        format!("SELECT count(*) FROM host WHERE name = '{}' AND until > now()", worker.host_id());
    assert_eq!(fleet.sql(&host), "1", "the first one goes on");
}

#[test]
fn a_worker_without_a_shared_database_is_refused_with_the_next_command() {
    let Some(scene) = Scene::new() else { return };
    let output = scene.person.run(&["worker", "--config", "serve.toml"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("config set fleet.database"), "{}", output.snapshot());
}

/// Both get every webhook; one of them acts on it, and sweeps alone.
#[test]
fn of_two_servers_one_acts_on_a_delivery_and_asks_the_forge() {
    let Some(fleet) = Fleet::start(&format!("{COMMIT}{DONE}"), "sweep_secs = 1\n") else {
        return;
    };
    assert_eq!(fleet.serving.label(), Some(202));
    let (_, env) = other_home(fleet.scene(), "second");
    let env = env.each_ref().map(|(key, value)| (key.as_str(), value.as_str()));
    let (mut second, address) = crate::serving::launch(fleet.scene(), &env);
    let _worker = Worker::start(&fleet, "w1");
    let event = "issue_opened_labeled_assigned-label_updated";
    let hook = testkit::fake_forge::hooks::Hook::about(
        event,
        Room::Issue,
        fleet.scene().issue,
        testkit::fake_forge::hooks::SECRET,
    );
    assert_eq!(hook.send(address, "/webhooks/gitea"), Some(202));
    assert_eq!(hook.send(fleet.serving.address, "/webhooks/gitea"), Some(200), "it is known");
    fleet.wait("frozen");
    assert_eq!((fleet.serving.pulls(), fleet.claims().as_str()), (1, "1"));
    wait_until("an empty inbox", || {
        fleet.sql("SELECT count(*) FROM delivery WHERE handled_at IS NULL") == "0"
    });
    assert_eq!(fleet.sql("SELECT count(*) FROM chore"), "1");
    // The sweeps of one second each: as many lists of issues as one server asks for.
    let lists = || {
        let requests = fleet.scene().forge.requests();
        requests.iter().filter(|it| it.method == "GET" && it.path.ends_with("/issues")).count()
    };
    let (before, begun) = (lists(), Instant::now());
    wait_until("some sweeps", || lists() >= before + 5);
    let sweeps = begun.elapsed().as_secs_f64();
    assert!(sweeps >= 3.5, "five lists in {sweeps} s are those of two servers");
    drop(second.kill());
    drop(second.wait());
}
