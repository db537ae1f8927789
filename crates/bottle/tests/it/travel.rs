//! Bottles that travel: what one host froze, another one goes on with, from a store of bottles.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;

use testkit::fake_forge::Room;
use testkit::fake_forge::hooks::{Hook, SECRET};
use testkit::postgresql::PostgresServer;
use testkit::wait::{wait_for, wait_until};

use crate::budget::get;
use crate::chaos::SELDOM;
use crate::serving::{Serving, launch};
use crate::support::{COMMIT, DONE, SLUG, Scene};

const DATABASE: &str = "bottles";
const LEASE: &str = "lease_secs = 3\n";

/// Leaves what only its folder has: an ignored file, one that is not committed, and the agent's own.
pub(crate) const LEAVE: &str = "[[step]]\nrun = \"echo '*.o' > .gitignore && git add -A && git commit -qm ignore && echo built > a.o && echo draft > draft.txt && echo said > /harness-state/said\"\n";

/// Finds all of that, or fails.
pub(crate) const FIND: &str = "[[step]]\nrun = \"test \\\"$(cat a.o)\\\" = built && test \\\"$(cat draft.txt)\\\" = draft && test \\\"$(cat /harness-state/said)\\\" = said && echo found > /harness-state/found && git status --porcelain > /harness-state/status\"\n";

/// A fleet of two hosts: a database, a store in a folder, and a scene.
struct Fleet {
    server: PostgresServer,
    serving: Serving,
    store: PathBuf,
}

/// Another host of the same configuration, with a home of its own.
struct OtherHost {
    child: Child,
    address: SocketAddr,
    home: PathBuf,
}

impl Fleet {
    /// Serves on the first host, until it dies at this moment if there is one.
    fn start(moment: Option<&str>) -> Option<Self> {
        let server = PostgresServer::start()?;
        server.create_database(DATABASE);
        let scene = Scene::new()?;
        scene.person.script(&format!("{COMMIT}{LEAVE}{DONE}"));
        let store = scene.person.hermetic.work().join("store");
        std::fs::create_dir_all(&store).expect("a folder");
        configure(&scene, &server, &store);
        let more = format!("{SELDOM}{LEASE}");
        let env: Vec<(&str, &str)> =
            moment.iter().map(|moment| ("BOTTLEWORKS_FAILPOINT", *moment)).collect();
        let serving = Serving::start_with(scene, &more, &env);
        Some(Self { server, serving, store })
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql_in(DATABASE, sql)
    }

    fn wait(&self, state: &str) {
        wait_until(state, || self.sql("SELECT state FROM work") == state);
    }

    /// The bottle's newest state as the row has it.
    fn saved(&self) -> String {
        self.sql("SELECT coalesce(saved, '') FROM forge_state")
    }

    fn host(&self) -> String {
        self.sql("SELECT host FROM forge_state")
    }

    /// Starts the other host, whose agent plays this script.
    fn start_other(&self, script: &str) -> OtherHost {
        self.start_other_to_die_at("", script)
    }

    /// The same, and it dies at this moment.
    fn start_other_to_die_at(&self, moment: &str, script: &str) -> OtherHost {
        let scene = &self.serving.scene;
        let home = scene.person.hermetic.work().join("other-home");
        let manifests = home.join(".bot-bottle/agents");
        std::fs::create_dir_all(&manifests).expect("a folder");
        for entry in
            std::fs::read_dir(scene.person.home().join("agents")).expect("manifests").flatten()
        {
            std::fs::copy(entry.path(), manifests.join(entry.file_name())).expect("a copy");
        }
        std::fs::write(manifests.join("worker-script.txt"), script).expect("written");
        let config = config_path(scene);
        let env = [
            ("HOME", home.to_str().expect("a path")),
            ("BOTTLEWORKS_CONFIG", &config),
            ("BOTTLEWORKS_FAILPOINT", moment),
        ];
        let (child, address) = launch(scene, &env);
        OtherHost { child, address, home }
    }

    /// Has a member say something, which the server at this address is told.
    fn say(&self, address: SocketAddr, text: &str) {
        let scene = &self.serving.scene;
        scene.forge.add_comment(Room::Issue, scene.issue, "alice", text);
        let hook = Hook::about("issue_comment_created", Room::Issue, scene.issue, SECRET);
        assert_eq!(hook.send(address, "/webhooks/gitea"), Some(202));
    }
}

impl OtherHost {
    fn id(&self) -> String {
        let id = std::fs::read_to_string(self.home.join(".bot-bottle/host-id")).expect("an id");
        id.trim().to_owned()
    }

    fn bottle(&self) -> PathBuf {
        self.home.join(".bot-bottle/cellar").join(SLUG)
    }
}

impl Drop for OtherHost {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn config_path(scene: &Scene) -> String {
    format!("{}/.config/bottleworks/config.toml", scene.person.hermetic.home().display())
}

fn configure(scene: &Scene, server: &PostgresServer, store: &Path) {
    let path = PathBuf::from(config_path(scene));
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    let lines = store_settings(scene, store);
    let text = format!("[fleet]\ndatabase = \"{}\"\n{lines}", server.address(DATABASE));
    std::fs::write(path, text).expect("written");
}

/// Settings of a fleet with a store in a folder.
pub(crate) fn store_settings(scene: &Scene, store: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;

    let key = scene.person.hermetic.work().join("fleet-key");
    std::fs::write(&key, "5e".repeat(32)).expect("written");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("private");
    format!("bottles = \"file://{}\"\nbottles_key_file = {key:?}\n", store.display())
}

#[test]
fn a_bottle_of_a_host_that_is_gone_is_resumed_on_another_one_with_all_that_was_in_it() {
    let Some(mut fleet) = Fleet::start(None) else { return };
    fleet.serving.label();
    fleet.wait("frozen");
    let (saved, first) = (fleet.saved(), fleet.host());
    assert!(saved.contains("/00000001-"), "{saved}");
    let shown = get(&fleet.serving, &format!("/api/v1/bottles/{SLUG}"));
    assert!(shown.contains("\"saved_at\":"), "{shown}");
    assert!(get(&fleet.serving, &format!("/bottles/{SLUG}")).contains(">saved<"));
    fleet.serving.kill();
    let other = fleet.start_other(&format!("{FIND}{COMMIT}{DONE}"));
    fleet.say(other.address, "Please go on.");
    wait_until("the other host", || fleet.host() == other.id());
    let found = other.bottle().join("harness-state/found");
    wait_for("what was left", || found.exists().then_some(()));
    wait_until("a second state", || fleet.saved().contains("/00000002-"));
    fleet.wait("frozen");
    let status = std::fs::read_to_string(other.bottle().join("harness-state/status"));
    assert_eq!(status.expect("git's words"), "?? draft.txt\n", "nothing else is changed");
    assert_eq!(fleet.serving.pulls(), 1);
    let runs = std::fs::read_dir(other.bottle().join("runs")).expect("runs").count();
    assert_eq!(runs, 2, "the first run came with it");
    // The first host comes back: its folder is older, and is neither used nor removed.
    drop(other);
    let again = &fleet.serving.scene.person;
    again.script(&format!("{FIND}{COMMIT}{DONE}"));
    fleet.serving.restart();
    fleet.say(fleet.serving.address, "And once more.");
    wait_until("a third state", || fleet.saved().contains("/00000003-"));
    fleet.wait("frozen");
    assert_eq!(fleet.host(), first);
    assert_eq!(fleet.serving.pulls(), 1);
    let home = fleet.serving.scene.person.home();
    let cellar = std::fs::read_dir(home.join("cellar")).expect("bottles").flatten();
    let names: Vec<String> =
        cellar.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(
        names.iter().filter(|it| it.starts_with(".old-worker-issue-1-")).count(),
        1,
        "{names:?}"
    );
    let doctor = fleet.serving.scene.person.run(&["doctor"]);
    assert!(doctor.stdout.contains("of several writers at once one won"), "{}", doctor.snapshot());
    assert!(doctor.stdout.contains(".old-worker-issue-1-"), "{}", doctor.snapshot());
    let old_folders = || {
        let entries = std::fs::read_dir(home.join("cellar")).expect("bottles").flatten();
        entries.filter(|it| it.file_name().to_string_lossy().starts_with(".old-")).count()
    };
    let person = &fleet.serving.scene.person;
    let asked = person.run(&["prune", "--old-states"]);
    assert_eq!((asked.status, old_folders()), (Some(2), 1), "{}", asked.snapshot());
    let pruned = person.run(&["prune", "--old-states", "--yes"]);
    assert_eq!((pruned.status, old_folders()), (Some(0), 0), "{}", pruned.snapshot());
    assert!(home.join("cellar").join(SLUG).exists(), "the newest one is not old");
}

#[test]
fn a_host_that_dies_anywhere_while_it_saves_leaves_an_issue_with_one_pull_request() {
    for moment in ["chunk-sent", "uploaded", "head-moved", "saved", "recorded"] {
        let Some(mut fleet) = Fleet::start(Some(moment)) else { return };
        fleet.serving.label();
        fleet.serving.wait_for_death();
        // It goes on itself: what it has put is there.
        fleet.serving.restart();
        fleet.wait("frozen");
        assert!(fleet.saved().contains("/0000000"), "{moment}");
        assert_eq!(fleet.sql("SELECT status FROM forge_state"), "frozen", "{moment}");
        assert_eq!(fleet.serving.pulls(), 1, "{moment}");
    }
}

#[test]
fn a_freeze_waits_for_a_store_that_is_down_and_says_so() {
    let Some(fleet) = Fleet::start(None) else { return };
    let away = fleet.store.with_extension("away");
    std::fs::rename(&fleet.store, &away).expect("moved");
    fleet.serving.label();
    wait_until("words", || fleet.sql("SELECT reason FROM work").contains("uploading its bottle"));
    let state = fleet.sql("SELECT state || ' ' || (holder IS NOT NULL) FROM work");
    assert_eq!(state, "running true", "it keeps its claim");
    assert_eq!(fleet.sql("SELECT status FROM forge_state"), "running");
    assert_eq!(fleet.serving.pulls(), 1, "what was published is");
    std::fs::rename(&away, &fleet.store).expect("moved");
    fleet.wait("frozen");
    assert_eq!(fleet.sql("SELECT status FROM forge_state"), "frozen");
    assert!(fleet.saved().contains("/00000001-"), "{}", fleet.saved());
}

#[test]
fn a_host_that_makes_room_fetches_what_it_needs_again() {
    let Some(mut fleet) = Fleet::start(None) else { return };
    fleet.serving.label();
    fleet.wait("frozen");
    let config = config_path(&fleet.serving.scene);
    let text = std::fs::read_to_string(&config).expect("the configuration");
    std::fs::write(&config, format!("{text}bottles_max_gb = 0\n")).expect("written");
    let bottle = fleet.serving.scene.person.bottle(SLUG);
    // Room is made at the first sweep.
    fleet.serving.restart();
    wait_until("room", || !bottle.join("workspace").exists());
    wait_until("all of it", || !bottle.join("harness-state").exists());
    assert!(bottle.join("runs").is_dir(), "the records of its runs stay");
    fleet.serving.scene.person.script(&format!("{FIND}{COMMIT}{DONE}"));
    fleet.say(fleet.serving.address, "Please go on.");
    wait_until("a second state", || fleet.saved().contains("/00000002-"));
    assert!(bottle.join("harness-state/found").exists(), "it had all that was in it");
    fleet.wait("frozen");
    assert_eq!(fleet.serving.pulls(), 1);
}

#[test]
fn a_host_that_dies_with_a_fetched_bottle_leaves_it_to_the_one_that_has_the_same_state() {
    for moment in ["fetched", "created"] {
        let Some(mut fleet) = Fleet::start(None) else { return };
        fleet.serving.label();
        fleet.wait("frozen");
        let first = fleet.host();
        fleet.serving.kill();
        let mut other = fleet.start_other_to_die_at(moment, DONE);
        fleet.say(other.address, "Please go on.");
        wait_for("its death", || other.child.try_wait().expect("a status"));
        let has_moved = fleet.host() == other.id();
        assert_eq!(has_moved, moment == "created", "{moment}");
        fleet.serving.scene.person.script(&format!("{FIND}{COMMIT}{DONE}"));
        fleet.serving.restart();
        wait_until("a second state", || fleet.saved().contains("/00000002-"));
        fleet.wait("frozen");
        assert_eq!((fleet.host(), fleet.serving.pulls()), (first, 1), "{moment}");
        let bottle = fleet.serving.scene.person.bottle(SLUG);
        assert!(bottle.join("harness-state/found").exists(), "{moment}");
        let cellar = std::fs::read_dir(fleet.serving.scene.person.home().join("cellar"));
        assert_eq!(cellar.expect("bottles").count(), 1, "its own folder was used: {moment}");
    }
}
