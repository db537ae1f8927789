//! The test lists of the document's "Implementation chunks", by name. Chunks 2, 3 and 4 are the crates `orchestrator_db`, `forge`
//! and `sidecar`, whose own suites have their lists; here they are met through the binary.

use testkit::fake_forge::TOKEN;

use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

#[test]
fn chunk_1_forge_env_reaches_the_sidecar_and_not_the_guests_environment() {
    let Some(scene) = Scene::new() else { return };
    let script =
        format!("[[step]]\nrun = \"! env | grep -q FORGE_ && forge read-issue 1\"\n{DONE}");
    scene.start_ok(&script);
    let order = scene.person.last_run(SLUG).join("boxes/agent/order.json");
    let order = std::fs::read_to_string(order).expect("an order");
    assert!(!order.contains("FORGE_") && !order.contains(TOKEN), "{order}");
    assert!(scene.forge.requests().iter().any(|it| it.path.ends_with("/issues/1")));
}

#[test]
fn chunk_1_resume_headless_asks_nothing_and_returns_the_agents_exit_code() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "again"]).status, Some(0));
    let output = person.resume("again", "[[step]]\nexit = 42\n");
    assert_eq!(output.status, Some(42), "{}", output.snapshot());
}

#[test]
fn chunk_2_a_state_is_kept_replaced_and_listed_across_processes() {
    let Some(mut scene) = Scene::new() else { return };
    scene.start_ok(DONE);
    assert_eq!(scene.person.run(&["destroy", SLUG]).status, Some(0));
    scene.start_ok(DONE);
    scene.issue = scene.forge.add_issue("Second", "", &["bot-bottle:worker"], &["bot1"]);
    scene.start_ok(DONE);
    let rows = scene.person.json(&["orchestrate", "status"]);
    let shown: Vec<_> =
        rows.as_array().expect("a list").iter().map(|row| row["issue"].clone()).collect();
    assert_eq!(shown, [1, scene.issue]);
    assert_eq!(rows[0]["slug"], format!("{SLUG}-2"));
}

#[test]
fn chunk_3_membership_is_asked_of_the_forge_and_a_404_is_a_no() {
    let Some(scene) = Scene::new() else { return };
    let mut command = scene.start_command(DONE);
    let output = scene.person.hermetic.run(command.env("FORGE_ORG", "others"));
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(scene.forge.requests().iter().any(|it| it.path.contains("/orgs/others/members/bot1")));
}

#[test]
fn chunk_4_each_method_reaches_the_forge_and_each_call_is_a_line() {
    let Some(scene) = Scene::new() else { return };
    let pull = scene.forge.add_pull("Theirs", "topic", "main");
    let script = format!(
        "[[step]]\nrun = \"forge read-issue 1 && forge read-pr {pull} && forge comments 1 && forge comment 1 hi && forge describe 1 'new text'\"\n\
         [[step]]\nrun = \"forge comment {pull} no\"\nexpect = 3\n{DONE}"
    );
    scene.start_ok(&script);
    let said = scene.sentences();
    for words in [
        "read issue #1".to_owned(),
        format!("read PR #{pull} description"),
        "read comments on #1".to_owned(),
        "posted comment to #1".to_owned(),
        "updated description of #1".to_owned(),
        format!("refused comment to #{pull}: out of scope"),
        "signalled done: success".to_owned(),
    ] {
        assert!(said.contains(&words), "{words}: {said:?}");
    }
    assert_eq!(scene.forge.issues()[0].body, "new text");
    let queue = scene.person.last_run(SLUG).join("queue");
    assert_eq!(std::fs::read_dir(queue).expect("a queue").count(), 1);
}

#[test]
fn chunk_5_orchestrate_delegates_to_the_same_start_and_resume() {
    let Some(scene) = Scene::new() else { return };
    assert_eq!(scene.start("[[step]]\nexit = 6\n").status, Some(6));
    assert_eq!(scene.resume("[[step]]\nexit = 4\n").status, Some(4));
    let mut command =
        scene.person.command(&["orchestrate", "start", "--agent", "worker", "--prompt", "x"]);
    let output = scene.person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stderr.contains("FORGE_GITEA_API is not set"), "{}", output.stderr);
}

#[test]
fn chunk_5_the_token_may_be_in_a_file_that_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let Some(scene) = Scene::new() else { return };
    let path = scene.person.home().join("forge-token");
    std::fs::write(&path, format!("{TOKEN}\n")).expect("written");
    let set =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    set(0o644);
    let mut command = scene.start_command(DONE);
    let output = scene.person.hermetic.run(command.env_remove("FORGE_TOKEN"));
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    set(0o600);
    let mut command = scene.start_command(DONE);
    let output = scene.person.hermetic.run(command.env_remove("FORGE_TOKEN"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}
