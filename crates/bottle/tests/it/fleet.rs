//! `serve` with its database in PostgreSQL: an issue becomes a pull request, and of two servers the second goes on when the
//! first one dies.

use std::path::Path;
use std::process::Child;

use testkit::postgresql::PostgresServer;
use testkit::wait::{wait_for, wait_until};

use crate::chaos::SELDOM;
use crate::serving::{Serving, launch};
use crate::support::{COMMIT, DONE, Scene};

const DATABASE: &str = "bottles";

/// A scene whose configuration names a database on this server.
fn scene(server: &PostgresServer) -> Option<Scene> {
    let scene = Scene::new()?;
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let folder = scene.person.hermetic.home().join(".config/bottleworks");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!("[fleet]\ndatabase = \"{}\"\n", server.address(DATABASE));
    std::fs::write(folder.join("config.toml"), text).expect("written");
    Some(scene)
}

/// Waits until the work on an issue has come to this state.
fn wait(server: &PostgresServer, issue: u64, state: &str) {
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
    fn start(scene: &Scene, home: &Path) -> Self {
        let manifests = home.join(".bot-bottle/agents");
        std::fs::create_dir_all(&manifests).expect("a folder");
        let own = scene.person.home().join("agents");
        for entry in std::fs::read_dir(own).expect("manifests").flatten() {
            std::fs::copy(entry.path(), manifests.join(entry.file_name())).expect("a copy");
        }
        let home = home.to_str().expect("a path");
        let config =
            format!("{}/.config/bottleworks/config.toml", scene.person.hermetic.home().display());
        let env = [("HOME", home), ("BOTTLEWORKS_CONFIG", &config)];
        Self(launch(scene, &env).0)
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
    assert!(doctor.stdout.contains("accepts writes, schema 2"), "{}", doctor.snapshot());
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
    let home = serving.scene.person.hermetic.work().join("other-home");
    let _standby = Standby::start(&serving.scene, &home);
    serving.label();
    serving.wait_for_death();
    // It takes the turn when its lease ends, and the claim when that of the claim ends.
    wait(&server, serving.scene.issue, "frozen");
    assert_eq!(serving.pulls(), 1);
    let own = std::fs::read_to_string(home.join(".bot-bottle/host-id")).expect("an id");
    assert_eq!(holder(&server), own.trim(), "the second server has the turn");
    let bottle = server.sql_in(DATABASE, "SELECT host FROM forge_state");
    assert_eq!(bottle, own.trim(), "the bottle is in the second home");
}
