//! `bot-bottle serve` beside a fake forge: started, told things by webhooks, looked at, killed and started again.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::Value;
use testkit::fake_forge::hooks::{Hook, SECRET};
use testkit::fake_forge::{OWNER, REPO, Room, TOKEN};
use testkit::part::missing;
use testkit::wait::{PATIENCE, wait_for};

use crate::support::{SLUG, Scene};

/// A scene with an orchestrator.
pub(crate) struct Serving {
    pub(crate) scene: Scene,
    pub(crate) address: SocketAddr,
    child: Option<Child>,
}

/// Lines that the tests want in the configuration: quick, and nothing kept.
const QUICK: &str =
    "listen = \"127.0.0.1:0\"\nbackend = \"bwrap\"\nretention_days = 0\ndrain_secs = 1\n";

impl Serving {
    /// Serves the scene's repository with more lines in the configuration.
    pub(crate) fn start(scene: Scene, more: &str) -> Self {
        Self::start_with(scene, more, &[])
    }

    /// The same with more in its environment.
    pub(crate) fn start_with(scene: Scene, more: &str, env: &[(&str, &str)]) -> Self {
        configure(&scene, more);
        let (child, address) = launch(&scene, env);
        Self { scene, address, child: Some(child) }
    }

    /// The same with an engine, and with no backend but what the lines say.
    pub(crate) fn start_in_engine(scene: Scene, more: &str, host: &str) -> Self {
        configure(&scene, more);
        let path = config_path(&scene);
        let text = std::fs::read_to_string(&path).expect("the configuration");
        std::fs::write(&path, text.replacen("backend = \"bwrap\"\n", "", 1)).expect("written");
        let (child, address) = launch(&scene, &[("DOCKER_HOST", host)]);
        Self { scene, address, child: Some(child) }
    }

    /// The same with a home on a disk of its own that is soon full; `None` where none can be mounted.
    pub(crate) fn start_on_small_disk(scene: Scene, more: &str) -> Option<Self> {
        configure(&scene, more);
        let home = scene.person.home();
        let script = "cp -a \"$1\" \"$1.kept\" && mount -t tmpfs -o size=8m,mode=700 none \"$1\" && \
                      cp -a \"$1.kept/.\" \"$1/\" && shift && exec \"$@\"";
        let words: &[&str] = match host::env::uid() {
            0 => &["--mount"],
            _ => &["--mount", "--user", "--map-root-user"],
        };
        let mut probe = scene.person.hermetic.command("unshare");
        if !probe.args(words).arg("true").status().is_ok_and(|status| status.success()) {
            missing("unshare", "namespaces for mounts are not allowed");
            return None;
        }
        let mut command = scene.person.hermetic.command("unshare");
        command.args(words).args(["sh", "-c", script, "sh"]).arg(&home);
        command.arg(env!("CARGO_BIN_EXE_bot-bottle"));
        command.args(["serve", "--json", "--config"]).arg(config_path(&scene));
        let (child, address) = launch_command(&scene, command, &[]);
        Some(Self { scene, address, child: Some(child) })
    }

    /// A path as the orchestrator sees it.
    pub(crate) fn seen_inside(&self, path: &Path) -> PathBuf {
        let pid = self.child.as_ref().expect("it runs").id();
        let path = path.strip_prefix("/").expect("a whole path");
        PathBuf::from(format!("/proc/{pid}/root")).join(path)
    }

    /// The same, and it dies at this moment as if by kill -9.
    pub(crate) fn start_to_die_at(scene: Scene, moment: &str, more: &str) -> Self {
        Self::start_with(scene, more, &[("BOTTLEWORKS_FAILPOINT", moment)])
    }

    /// The process that serves.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Sends a webhook about a change of the scene's issue by an account.
    pub(crate) fn tell_text(&self, action: &str, sender: &str, title: &str, text: &str) {
        let event = "issue_opened_labeled_assigned-label_updated";
        let hook = Hook::about(event, Room::Issue, self.scene.issue, SECRET);
        let mut hook = hook.with_text(action, sender, title, text);
        hook.sign(SECRET);
        assert_eq!(hook.send(self.address, "/webhooks/gitea"), Some(202));
    }

    /// Waits until every stored delivery is handled.
    pub(crate) fn wait_handled(&self) {
        wait_for("the deliveries to be handled", || {
            let unhandled = "SELECT count(*) FROM delivery WHERE handled_at IS NULL";
            (self.count(unhandled) == 0).then_some(())
        });
    }

    /// The number of runs of the scene's bottle.
    pub(crate) fn runs(&self) -> usize {
        self.scene.person.json(&["list"])[0]["runs"].as_array().map_or(0, Vec::len)
    }

    /// The prompt of the newest run.
    pub(crate) fn last_prompt(&self) -> String {
        let run = self.scene.person.last_run(SLUG);
        let plan = std::fs::read_to_string(run.join("plan.json")).unwrap_or_default();
        plan.replace("\\n", "\n")
    }

    /// Sends a webhook about an issue or a pull request; the status, if any came back.
    pub(crate) fn tell(&self, event: &str, room: Room, number: u64) -> Option<u16> {
        Hook::about(event, room, number, SECRET).send(self.address, "/webhooks/gitea")
    }

    /// Says that the scene's issue was labelled.
    pub(crate) fn label(&self) -> Option<u16> {
        self.tell("issue_opened_labeled_assigned-label_updated", Room::Issue, self.scene.issue)
    }

    /// The state of the work on the scene's issue, and why.
    pub(crate) fn work(&self) -> Option<(String, String)> {
        self.work_on(self.scene.issue)
    }

    pub(crate) fn work_on(&self, issue: u64) -> Option<(String, String)> {
        let sql = "SELECT state, reason FROM work WHERE issue_number = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.database().query_row(sql, [issue], read).ok()
    }

    pub(crate) fn database(&self) -> Connection {
        let connection = Connection::open(self.scene.person.home().join("bot-bottle.db"));
        let connection = connection.expect("the database");
        connection.busy_timeout(PATIENCE).expect("a limit");
        connection
    }

    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.database().query_row(sql, [], |row| row.get(0)).expect("a number")
    }

    /// Waits until the work on the scene's issue has come to this state.
    pub(crate) fn wait(&self, state: &str) -> String {
        wait_for(state, || self.work().filter(|(now, _)| now == state).map(|(_, reason)| reason))
    }

    /// Waits until all of these issues are frozen.
    pub(crate) fn wait_for_all(&self, issues: &[u64]) {
        let start = Instant::now();
        loop {
            let all: Vec<_> = issues.iter().map(|issue| self.work_on(*issue)).collect();
            if all.iter().all(|work| work.as_ref().is_some_and(|(state, _)| state == "frozen")) {
                return;
            }
            if start.elapsed() > PATIENCE {
                let log =
                    std::fs::read_to_string(self.scene.person.hermetic.work().join("serve.log"));
                panic!("not all are frozen: {all:?}\n{}", log.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the orchestrator has died by itself.
    pub(crate) fn wait_for_death(&mut self) {
        let mut child = self.child.take().expect("it runs");
        wait_for("its death", || child.try_wait().expect("a status"));
    }

    /// Ends it as a power failure would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
    }

    /// Ends it as a service manager does; its status.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        self.signal("-TERM", &child.id().to_string());
        child.wait().expect("ended").code()
    }

    /// Sends a signal to a process.
    pub(crate) fn signal(&self, signal: &str, pid: &str) {
        let hermetic = &self.scene.person.hermetic;
        let sent = hermetic.run(hermetic.command("kill").args([signal, pid]));
        assert_eq!(sent.status, Some(0), "{}", sent.snapshot());
    }

    /// Has the next start listen where this one does.
    pub(crate) fn stay_at_address(&self) {
        let path = config_path(&self.scene);
        let text = std::fs::read_to_string(&path).expect("the configuration");
        let listen = format!("listen = \"{}\"", self.address);
        std::fs::write(&path, text.replace("listen = \"127.0.0.1:0\"", &listen)).expect("written");
    }

    /// Starts it again.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let (child, address) = launch(&self.scene, &[]);
        (self.child, self.address) = (Some(child), address);
    }

    /// Starts it again with its clock put forward or back, such as `+1h`. The library is named and not its wrapper, which
    /// would stand between us and whom we have to end.
    pub(crate) fn restart_with_clock(&mut self, jump: &str) {
        self.kill();
        let folders = std::fs::read_dir("/usr/lib").expect("a folder").flatten();
        let library = folders
            .map(|folder| folder.path().join("faketime/libfaketime.so.1"))
            .find(|path| path.exists())
            .expect("the library of faketime");
        let library = library.to_str().expect("a path");
        let (child, address) = launch(&self.scene, &[("LD_PRELOAD", library), ("FAKETIME", jump)]);
        (self.child, self.address) = (Some(child), address);
    }

    /// Starts it again, to die at this moment.
    pub(crate) fn restart_to_die_at(&mut self, moment: &str) {
        self.kill();
        let (child, address) = launch(&self.scene, &[("BOTTLEWORKS_FAILPOINT", moment)]);
        (self.child, self.address) = (Some(child), address);
    }

    pub(crate) fn pulls(&self) -> usize {
        self.scene.forge.pulls().len()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn config_path(scene: &Scene) -> PathBuf {
    scene.person.home().join("serve.toml")
}

fn configure(scene: &Scene, more: &str) {
    let home = scene.person.home();
    let private = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = home.join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("private");
        path
    };
    let token = private("forge-token", TOKEN);
    let secret = private("hook-secret", SECRET);
    let text = format!(
        "{QUICK}{more}\n[[forge]]\nkind = \"gitea\"\nurl = \"{}\"\ntoken_file = {token:?}\n\
         secret_file = {secret:?}\nrepos = [\"{OWNER}/{REPO}\"]\n\
         checkouts = {{ \"{OWNER}/{REPO}\" = {:?} }}\n",
        scene.forge.url(),
        scene.person.fork.checkout.dir(),
    );
    std::fs::write(config_path(scene), text).expect("written");
}

/// Starts it and waits until it listens.
pub(crate) fn launch(scene: &Scene, env: &[(&str, &str)]) -> (Child, SocketAddr) {
    let config = config_path(scene);
    let command =
        scene.person.command(&["serve", "--json", "--config", config.to_str().expect("a path")]);
    launch_command(scene, command, env)
}

fn launch_command(
    scene: &Scene,
    mut command: Command,
    env: &[(&str, &str)],
) -> (Child, SocketAddr) {
    let log = scene.person.hermetic.work().join("serve.log");
    let log = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
    command.envs(env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            if event["event"] == "listening" {
                let address = event["address"].as_str().expect("an address");
                sender.send(address.parse().expect("an address")).expect("somebody waits");
            }
        }
    });
    let address = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let said = std::fs::read_to_string(scene.person.hermetic.work().join("serve.log"));
        panic!("it does not listen: {}", said.unwrap_or_default())
    });
    (child, address)
}
