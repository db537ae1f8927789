//! `serve` with its database in PostgreSQL: an issue becomes a pull request, and of two servers the second goes on when the
//! first one dies.

use std::path::{Path, PathBuf};
use std::process::Child;

use testkit::postgresql::PostgresServer;
use testkit::wait::{wait_for, wait_until};

use crate::chaos::SELDOM;
use crate::serving::{Serving, launch};
use crate::support::{COMMIT, DONE, Scene};

pub(crate) const DATABASE: &str = "bottles";

/// A scene whose configuration names a database on this server.
pub(crate) fn scene(server: &PostgresServer) -> Option<Scene> {
    let scene = Scene::new()?;
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let folder = scene.person.hermetic.home().join(".config/bottleworks");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!("[fleet]\ndatabase = \"{}\"\n", server.address(DATABASE));
    std::fs::write(folder.join("config.toml"), text).expect("written");
    Some(scene)
}

/// The configuration that all homes of a scene use.
pub(crate) fn shared_config(scene: &Scene) -> PathBuf {
    scene.person.hermetic.home().join(".config/bottleworks/config.toml")
}

/// A home beside the scene's with the same manifests; the variables by which a process uses it.
pub(crate) fn other_home(scene: &Scene, name: &str) -> (PathBuf, [(String, String); 2]) {
    let home = scene.person.hermetic.work().join(name);
    let manifests = home.join(".bot-bottle/agents");
    std::fs::create_dir_all(&manifests).expect("a folder");
    let own = scene.person.home().join("agents");
    for entry in std::fs::read_dir(own).expect("manifests").flatten() {
        std::fs::copy(entry.path(), manifests.join(entry.file_name())).expect("a copy");
    }
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let env = [
        ("HOME".to_owned(), text(&home)),
        ("BOTTLEWORKS_CONFIG".to_owned(), text(&shared_config(scene))),
    ];
    (home, env)
}

/// Waits until the work on an issue has come to this state.
pub(crate) fn wait(server: &PostgresServer, issue: u64, state: &str) {
    let sql = format!("SELECT state FROM work WHERE issue_number = {issue}");
    wait_for(state, || (server.sql_in(DATABASE, &sql) == state).then_some(()));
}

/// The host whose server has the turn; empty without one.
fn holder(server: &PostgresServer) -> String {
    server.sql_in(DATABASE, "SELECT split_part(holder, '/', 1) FROM chore")
}

/// A second server of the same configuration with a home of its own.
struct Standby(Child);

impl Standby {
    fn start(scene: &Scene, name: &str) -> (Self, PathBuf) {
        let (home, env) = other_home(scene, name);
        let env = env.each_ref().map(|(key, value)| (key.as_str(), value.as_str()));
        (Self(launch(scene, &env).0), home)
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn an_issue_becomes_a_pull_request_with_the_database_in_postgresql() {
    let Some(server) = PostgresServer::start() else { return };
    server.create_database(DATABASE);
    let Some(scene) = scene(&server) else { return };
    let mut serving = Serving::start(scene, SELDOM);
    assert_eq!(serving.label(), Some(202));
    wait(&server, serving.scene.issue, "frozen");
    assert_eq!(serving.pulls(), 1);
    let person = &serving.scene.person;
    assert!(!person.home().join("bot-bottle.db").exists(), "nothing is in a file");
    let doctor = person.run(&["doctor"]);
    assert!(doctor.stdout.contains("accepts writes, schema 4"), "{}", doctor.snapshot());
    assert!(doctor.stdout.contains("work waits while the server is down"), "{}", doctor.snapshot());
    assert_eq!(serving.stop(), Some(0));
    let turns = server.sql_in(DATABASE, "SELECT count(*) FROM chore");
    assert_eq!(turns, "0", "a server that ends gives its turn up");
}

#[test]
fn a_second_server_goes_on_when_the_first_one_dies() {
    let Some(server) = PostgresServer::start() else { return };
    server.create_database(DATABASE);
    let Some(scene) = scene(&server) else { return };
    let more = format!("{SELDOM}lease_secs = 3\n");
    let mut serving = Serving::start_to_die_at(scene, "claimed", &more);
    wait_until("its turn", || !holder(&server).is_empty());
    serving.label();
    serving.wait_for_death();
    let (_standby, home) = Standby::start(&serving.scene, "other-home");
    // It takes the turn when its lease ends, and the claim when that of the claim ends.
    wait(&server, serving.scene.issue, "frozen");
    assert_eq!(serving.pulls(), 1);
    let own = std::fs::read_to_string(home.join(".bot-bottle/host-id")).expect("an id");
    assert_eq!(holder(&server), own.trim(), "the second server has the turn");
    let bottle = server.sql_in(DATABASE, "SELECT host FROM forge_state");
    assert_eq!(bottle, own.trim(), "the bottle is in the second home");
}
