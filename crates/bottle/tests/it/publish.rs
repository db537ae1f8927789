//! The work comes out as a pull request, or is held back with a reason.

use std::os::unix::fs::PermissionsExt;

use testkit::fake_gitea::Mishap;

use crate::support::{COMMIT, DONE, Person, Scene};

fn commit_of(file: &str, text: &str) -> String {
    format!(
        "[[step]]\nwrite = {{ path = \"{file}\", text = '''{text}''' }}\n[[step]]\nrun = \"git add -A && git commit -qm x\"\n"
    )
}

/// A token's shape, put together here so that no scanner takes this file for a leak.
fn leak() -> String {
    format!("key = ghp_{}\n", "aB3dE6gH9jK2mN5pQ8sT")
}

#[track_caller]
fn held_back(scene: &Scene, script: &str, words: &str) {
    let output = scene.start(&format!("{script}{DONE}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert!(output.stdout.contains(words), "{}", output.snapshot());
    assert_eq!(scene.published(), None);
    assert_eq!(scene.forge.pulls().len(), 0);
    assert_eq!(scene.provenance()["verdict"]["kind"], "refused");
}

#[test]
fn a_secret_blocks_the_push_and_is_not_shown() {
    let Some(scene) = Scene::new() else { return };
    held_back(&scene, &commit_of("config.txt", &leak()), "built-in found");
    let document = scene.provenance().to_string();
    assert!(!document.contains("aB3dE6gH9jK2"), "{document}");
}

#[test]
fn a_secret_that_was_removed_again_is_still_in_the_history() {
    let Some(scene) = Scene::new() else { return };
    let removed = "[[step]]\nrun = \"git rm -q config.txt && git commit -qm y\"\n";
    held_back(&scene, &(commit_of("config.txt", &leak()) + removed), "built-in found");
}

#[test]
fn a_secret_in_a_message_blocks_as_well() {
    let Some(scene) = Scene::new() else { return };
    let script = format!(
        "[[step]]\nrun = [\"git\", \"commit\", \"-q\", \"--allow-empty\", \"-m\", '''x\n\n{}''']\n",
        leak()
    );
    held_back(&scene, &script, "built-in found");
}

#[test]
fn a_zero_byte_hides_nothing() {
    let Some(scene) = Scene::new() else { return };
    let script = format!(
        "[[step]]\nrun = [\"bash\", \"-c\", \"printf '\\\\0 {}' > blob && git add -A && git commit -qm x\"]\n",
        leak().trim()
    );
    held_back(&scene, &script, "built-in found");
}

#[test]
fn protected_paths_foreign_identities_and_lost_history_block() {
    for (script, words) in [
        (commit_of(".github/workflows/ci.yml", "on: push\n"), "protected path"),
        (
            "[[step]]\nrun = \"git -c user.name=Ann -c user.email=ann@example.com commit -q --allow-empty -m x\"\n".to_owned(),
            "not by the box's own identity",
        ),
        (
            "[[step]]\nrun = \"git checkout -q --orphan fresh && git commit -qm x && git branch -f bot-bottle/worker-issue-1 && git checkout -q bot-bottle/worker-issue-1\"\n".to_owned(),
            "history that others built on",
        ),
    ] {
        let Some(scene) = Scene::new() else { return };
        held_back(&scene, &script, words);
    }
}

/// A gitleaks that answers as it is told.
fn with_gitleaks(scene: &Scene, report: &str, status: i32) -> String {
    let folder = scene.person.hermetic.root().join("tools");
    std::fs::create_dir_all(&folder).expect("made");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = version ] && {{ echo 8.30.0; exit; }}\ncat > /dev/null\nwhile [ $# -gt 0 ]; do [ \"$1\" = --report-path ] && printf '%s' '{report}' > \"$2\"; shift; done\nexit {status}\n"
    );
    let path = folder.join("gitleaks");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    format!("{}:/usr/bin:/bin", folder.display())
}

#[track_caller]
fn gitleaks_says(report: &str, status: i32, expected: &str, published: bool) {
    let Some(scene) = Scene::new() else { return };
    let path = with_gitleaks(&scene, report, status);
    let mut command = scene.start_command(&format!("{COMMIT}{DONE}"));
    let output = scene.person.hermetic.run(command.env("PATH", path));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let found = scene.provenance()["gitleaks"].clone();
    assert_eq!(found["status"], expected, "{found}");
    assert_eq!(found["version"], "8.30.0");
    assert_eq!(scene.published().is_some(), published);
}

#[test]
fn gitleaks_is_asked_where_it_is_and_its_word_counts() {
    gitleaks_says("[]", 0, "clean", true);
    gitleaks_says("[{\"RuleID\":\"aws\"}]", 77, "findings", false);
    gitleaks_says("", 1, "error", false);
}

#[test]
fn an_answer_that_was_lost_does_not_open_two_pull_requests() {
    let Some(scene) = Scene::new() else { return };
    scene.forge.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    assert_eq!(scene.forge.pulls().len(), 1);
}

#[test]
fn a_forge_that_says_no_is_our_failure_and_the_branch_is_kept() {
    let Some(scene) = Scene::new() else { return };
    scene.forge.fail_next_on("POST", 1, &Mishap::status(403, "no"));
    let output = scene.start(&format!("{COMMIT}{DONE}"));
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(scene.published().is_some());
    assert_eq!(scene.forge.pulls().len(), 0);
    let again = scene.resume(&format!("{COMMIT}{DONE}"));
    assert_eq!(again.status, Some(0), "{}", again.snapshot());
    assert_eq!(scene.forge.pulls().len(), 1);
}

#[test]
fn an_agents_summary_closes_nothing_and_calls_nobody() {
    let Some(scene) = Scene::new() else { return };
    let done = "[[step]]\nrun = [\"forge\", \"done\", \"success\", \"closes #2, cc @all\"]\n";
    scene.start_ok(&format!("{COMMIT}{done}"));
    let body = scene.forge.pulls()[0].body.clone();
    assert!(body.contains("Closes #1"), "{body}");
    assert!(!body.contains("closes #2") && !body.contains("@all"), "{body}");
}

#[test]
fn without_a_forge_the_commits_are_kept_and_can_be_fetched() {
    let Some(person) = Person::new() else { return };
    let output = person.start(COMMIT, &["--label", "plain"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let line =
        output.stdout.lines().find(|line| line.contains("git fetch")).expect("how").to_owned();
    assert!(line.contains("refs/bottle/"), "{line}");
    let name = line.split_whitespace().last().expect("a ref").to_owned();
    let repo = person.last_run("plain").join("repo.git");
    person.fork.checkout.git(&["fetch", "--quiet", repo.to_str().expect("UTF-8"), &name]);
    let log = person.fork.checkout.git(&["log", "-1", "--format=%s", "FETCH_HEAD"]);
    assert_eq!(log, "do the work");
}

#[test]
fn an_agent_that_waits_for_a_person_opens_no_pull_request() {
    let Some(scene) = Scene::new() else { return };
    let blocked = "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"which flow?\"]\n";
    let output = scene.start(&format!("{COMMIT}{blocked}"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("waits for a person"), "{}", output.stdout);
    assert_eq!(scene.published(), None);
    assert_eq!(scene.provenance()["watchdog_fired"], false);
}
