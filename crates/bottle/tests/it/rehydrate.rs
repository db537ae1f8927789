//! Frozen bottles come back: with their workspace, with what happened at origin since, and with what people said.

use testkit::fake_forge::Room;

use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

/// Somebody commits to a branch at origin.
fn somebody_pushes(scene: &Scene, branch: &str, file: &str) -> String {
    let checkout = &scene.person.fork.checkout;
    checkout.git(&["fetch", "--quiet", "origin"]);
    checkout.git(&["checkout", "--quiet", "--detach", &format!("origin/{branch}")]);
    checkout.write(file, "by a person\n");
    let sha = checkout.commit("a person's work");
    checkout.git(&["push", "--quiet", "origin", &format!("HEAD:refs/heads/{branch}")]);
    checkout.git(&["checkout", "--quiet", "main"]);
    sha
}

#[test]
fn what_happened_at_origin_is_brought_in_as_refs_and_never_as_a_remote() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let branch = format!("bot-bottle/{SLUG}");
    let on_main = somebody_pushes(&scene, "main", "main.txt");
    let on_branch = somebody_pushes(&scene, &branch, "branch.txt");
    let script = format!(
        "[[step]]\nrun = \"test -z \\\"$(git remote)\\\" && test -f work.txt\"\n\
         [[step]]\nrun = \"git merge --no-edit origin/{branch} && git merge --no-edit origin/main\"\n\
         [[step]]\nrun = \"test -f main.txt && test -f branch.txt\"\n{COMMIT}{DONE}"
    );
    let output = scene.resume(&script);
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    let tip = scene.published().expect("published");
    let origin = &scene.person.fork.origin;
    for sha in [&on_main, &on_branch] {
        origin.git(&["merge-base", "--is-ancestor", sha, &tip]);
    }
    assert_eq!(scene.forge.pulls().len(), 1);
    let told = scene.person.hermetic.run(
        scene
            .person
            .hermetic
            .command("cat")
            .arg(scene.person.bottle(SLUG).join("harness-state/instructions.txt")),
    );
    assert!(told.stdout.contains("the base branch moved on: origin/main"), "{}", told.stdout);
}

#[test]
fn work_that_leaves_out_what_others_committed_is_not_published() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let theirs = somebody_pushes(&scene, &format!("bot-bottle/{SLUG}"), "branch.txt");
    let output = scene.resume(&format!("{COMMIT}{DONE}"));
    assert!(output.stdout.contains("history that others built on"), "{}", output.snapshot());
    assert_eq!(scene.published(), Some(theirs));
}

#[test]
fn the_agent_is_given_the_whole_thread_with_the_new_words_marked() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let pull = scene.forge.pulls()[0].number;
    scene.forge.add_comment(Room::Pull, pull, "alice", "please rename it");
    let script = format!(
        "[[step]]\nrun = \"grep -q 'What is wanted' /harness-state/instructions.txt && grep -q '> please rename it' /harness-state/instructions.txt && grep -q 'pull request is #{pull}' /harness-state/instructions.txt\"\n{DONE}"
    );
    let output = scene.resume(&script);
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
}

#[test]
fn workspace_and_harness_state_survive_the_freezer() {
    let Some(person) = Person::new() else { return };
    let first = "[[step]]\nrun = \"echo x > uncommitted && echo y > $HOME/memory\"\n";
    assert_eq!(person.start(first, &["--label", "keep"]).status, Some(0));
    let second = "[[step]]\nrun = \"test -f uncommitted && test -f $HOME/memory\"\n";
    let output = person.resume("keep", second);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let document = person.provenance("keep");
    assert!(document["parent"].is_string(), "{document:#}");
}

#[test]
fn the_host_writes_nowhere_through_a_link_that_an_agent_left() {
    let Some(scene) = Scene::new() else { return };
    let target = scene.person.hermetic.root().join("outside");
    std::fs::create_dir(&target).expect("made");
    let trap = format!(
        "[[step]]\nrun = \"rm -rf .git/refs/remotes && ln -s {0} .git/refs/remotes && rm -rf .git/objects/pack.x\"\n",
        target.display()
    );
    scene.start_ok(&format!("{COMMIT}{trap}{DONE}"));
    somebody_pushes(&scene, "main", "main.txt");
    // Inside the box the link leads nowhere, so bringing in what is new fails there, and says so.
    let output = scene.resume(DONE);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stdout.contains("could not take in what is new"), "{}", output.snapshot());
    assert_eq!(std::fs::read_dir(&target).expect("a folder").count(), 0);
    let mend = scene.person.run(&["exec", SLUG, "rm", ".git/refs/remotes"]);
    assert_eq!(mend.status, Some(0), "{}", mend.snapshot());
    let output =
        scene.resume(&format!("[[step]]\nrun = \"git merge --no-edit origin/main\"\n{DONE}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
}
