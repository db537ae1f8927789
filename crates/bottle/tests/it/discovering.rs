//! Repositories that are found in organisations.

use testkit::fake_forge::{FakeRepository, Mishap};
use testkit::wait::wait_for;

use crate::serving::{Serving, config_path};
use crate::support::{COMMIT, DONE, Scene};

fn repository(name: &str, archived: bool) -> FakeRepository {
    FakeRepository { full_name: format!("alice/{name}"), archived, may_push: true }
}

/// A server for everything that `alice` has, but for what is excluded.
fn serving() -> Option<Serving> {
    let scene = Scene::new()?;
    scene.person.script(&format!("{COMMIT}{DONE}"));
    scene.forge.add_repository(repository("hooks", false));
    scene.forge.add_repository(repository("old", true));
    scene.forge.add_repository(repository("test-1", false));
    let serving = Serving::start(scene, "sweep_secs = 3600\ndiscovery_secs = 1\n");
    let path = config_path(&serving.scene);
    let text = std::fs::read_to_string(&path).expect("the configuration");
    let star = "repos = [\"alice/*\"]\nexclude = [\"alice/test-*\"]";
    std::fs::write(&path, text.replace("repos = [\"alice/hooks\"]", star)).expect("written");
    wait_for("the list", || (!found(&serving).is_empty()).then_some(()));
    Some(serving)
}

fn found(serving: &Serving) -> Vec<String> {
    let database = serving.database();
    let sql = "SELECT full_name FROM found_repository ORDER BY full_name";
    let mut statement = database.prepare(sql).expect("a statement");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.map(|row| row.expect("a name")).collect()
}

fn dispatch(serving: &Serving, repo: &str) -> String {
    let args = ["dispatch", repo, "--agent", "worker", "--prompt", "Do it."];
    let output = serving.scene.person.run(&args);
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn an_issue_of_a_repository_that_was_found_becomes_a_pull_request() {
    let Some(mut serving) = serving() else { return };
    assert_eq!(found(&serving), ["alice/hooks", "alice/test-1"], "what is archived is left out");
    // The sweep after the new configuration finds it, without a webhook.
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    assert!(dispatch(&serving, "alice/test-1").contains("alice/test-1 is not served"));

    serving.scene.forge.add_repository(repository("new", false));
    wait_for("the new one", || found(&serving).contains(&"alice/new".to_owned()).then_some(()));

    // A list that is suddenly empty takes nothing away, and neither does a forge that is down at the start.
    serving.scene.forge.remove_repositories("alice");
    serving.restart();
    serving.scene.forge.fail_next(2, &Mishap::status(500, "down"));
    serving.restart();
    assert_eq!(found(&serving), ["alice/hooks", "alice/new", "alice/test-1"]);
    let said = dispatch(&serving, "alice/hooks");
    assert!(said.contains("dispatched") || said.contains("queued"), "{said}");
}
