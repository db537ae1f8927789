//! The check before publishing: what fails goes back to the agent, and then becomes a draft.

use crate::support::{DONE, Person, SLUG, Scene};

/// Works in each run, and repairs in the second.
const REPAIRS: &str = "[[step]]\nrun = \"if [ -e work.txt ]; then touch fixed; fi; echo work >> work.txt; git add -A; git commit -qm work\"\n";

/// Brings a file to origin's main branch.
pub(crate) fn commit_to_main(person: &Person, path: &str, text: &str) {
    person.fork.checkout.write(path, text);
    person.fork.checkout.commit("settings of the repository");
    person.fork.checkout.git(&["push", "--quiet", "origin", "HEAD:main"]);
}

fn runs(scene: &Scene) -> usize {
    scene.person.json(&["list"])[0]["runs"].as_array().map_or(0, Vec::len)
}

fn last_prompt(scene: &Scene) -> String {
    let plan = std::fs::read_to_string(scene.person.last_run(SLUG).join("plan.json"));
    plan.expect("a plan").replace("\\n", "\n")
}

#[test]
fn a_failing_check_goes_back_to_the_agent_with_its_output() {
    let Some(scene) = Scene::new() else { return };
    commit_to_main(&scene.person, ".bot-bottle.toml", "check = \"echo looking; test -e fixed\"\n");
    scene.start_ok(&format!("{REPAIRS}{DONE}"));
    assert_eq!(runs(&scene), 2);
    let prompt = last_prompt(&scene);
    for words in ["the check of this repository fails", "test -e fixed", "looking", "status 1"] {
        assert!(prompt.contains(words), "{words}: {prompt}");
    }
    let pulls = scene.forge.pulls();
    assert_eq!((pulls.len(), pulls[0].draft), (1, false));
    let passed = "Checked with `echo looking; test -e fixed` on a fresh copy, in a box: passed";
    assert!(pulls[0].body.contains(passed), "{}", pulls[0].body);
}

#[test]
fn after_its_rounds_a_failing_result_is_a_draft_with_the_failure_on_top() {
    let Some(scene) = Scene::new() else { return };
    commit_to_main(&scene.person, ".bot-bottle.toml", "check = \"echo it is red; false\"\n");
    scene.person.agent("worker", "check_rounds = 1\npull_labels = [\"by-agent\"]\n");
    scene.start(&format!("{REPAIRS}{DONE}"));
    assert_eq!(runs(&scene), 2, "one more run after the first");
    let pulls = scene.forge.pulls();
    assert_eq!((pulls.len(), pulls[0].draft), (1, true));
    assert_eq!(pulls[0].labels, ["by-agent"]);
    let text = pulls[0].body.lines().skip(1).collect::<Vec<_>>().join("\n");
    assert!(
        text.starts_with("**The check fails.** Checked with `echo it is red; false`"),
        "{text}"
    );
    assert!(text.contains("````text\nit is red\n````"), "{text}");
    let shown = scene.person.run(&["show", SLUG]);
    assert!(shown.stdout.contains("a draft: the check fails (status 1)"), "{}", shown.stdout);
    // Once it passes, the pull request is ready.
    scene.person.agent("worker", "check = \"true\"\n");
    scene.resume(&format!("{REPAIRS}{DONE}"));
    let pulls = scene.forge.pulls();
    assert_eq!((pulls.len(), pulls[0].draft), (1, false), "{}", scene.log());
    assert_eq!(pulls[0].title, "Do it", "the mark of a draft is not part of the title");
}

#[test]
fn an_agent_cannot_rewrite_its_own_check() {
    let Some(scene) = Scene::new() else { return };
    commit_to_main(&scene.person, "check.sh", "echo the real check; test -e fixed\n");
    scene.person.agent("worker", "check = \"sh check.sh\"\ncheck_rounds = 0\n");
    let cheat = "[[step]]\nrun = \"echo true > check.sh; git add -A; git commit -qm cheat\"\n";
    scene.start(&format!("{cheat}{DONE}"));
    let pulls = scene.forge.pulls();
    assert!(pulls[0].draft, "{}", pulls[0].body);
    for words in ["the real check", "`check.sh`", "it ran with those of the base branch"] {
        assert!(pulls[0].body.contains(words), "{words}: {}", pulls[0].body);
    }
}

#[test]
fn a_result_without_a_forge_that_fails_is_kept_and_not_taken_for_good() {
    let Some(person) = Person::new() else { return };
    person.agent("worker", "check = \"echo red; false\"\ncheck_rounds = 0\n");
    person.start(REPAIRS, &[]);
    let applied = person.run(&["apply", "worker"]);
    assert_eq!(applied.status, Some(2), "{}", applied.snapshot());
    assert!(applied.stderr.contains("the check fails (status 1)"), "{}", applied.stderr);
}

#[test]
fn a_file_of_the_repository_that_cannot_be_read_is_named_and_nothing_is_published() {
    let Some(scene) = Scene::new() else { return };
    commit_to_main(&scene.person, ".bot-bottle.toml", "chekc = \"true\"\n");
    scene.start(&format!("{REPAIRS}{DONE}"));
    assert_eq!(scene.forge.pulls().len(), 0);
    let shown = scene.person.run(&["show", SLUG]);
    assert!(
        shown.stdout.contains(".bot-bottle.toml of the base branch: line 1"),
        "{}",
        shown.stdout
    );
}

#[test]
fn the_repositorys_template_is_filled_and_assignees_come_along() {
    let Some(scene) = Scene::new() else { return };
    let template = "## Description\n\n## Checklist\n- [ ] tests\n";
    commit_to_main(&scene.person, ".gitea/pull_request_template.md", template);
    scene.forge.change_issue(scene.issue, |issue| issue.assignees.push("alice".to_owned()));
    scene.start_ok(&format!("{REPAIRS}{DONE}"));
    let pull = &scene.forge.pulls()[0];
    assert!(pull.body.starts_with("## Description\n\n<!-- bot-bottle: each run"), "{}", pull.body);
    assert!(pull.body.trim_end().ends_with("## Checklist\n- [ ] tests"), "{}", pull.body);
    let run =
        "Size: 1 file, 1 line added, 0 removed.\nMade by the agent `worker` in under a minute.";
    assert!(pull.body.contains(run), "{}", pull.body);
    assert_eq!(pull.assignees, ["alice"], "the bot itself reviews nothing");
}
