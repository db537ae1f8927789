//! Conflicts that need nobody: resolved as far as the fork's rules and past allow, with receipts, and the rest handed to the
//! agent.

use testkit::model_server::Turn;

use crate::agents::{CODEX, Scene};
use crate::support::{THEIRS, run_if_needed as run, two_conflicts};

/// Finds the merge begun, resolves what is left and concludes it.
const FINISHES: &str = "[[step]]\nrun = '''set -e
test -f .git/MERGE_HEAD && grep -q shared.txt /harness-state/conflicts.md
test \"$(git diff --name-only --diff-filter=U)\" = shared.txt
grep -qx theirs ruled.txt
sed -i '/^[<=>]\\{7\\}/d' shared.txt && git add shared.txt && git commit -q --no-edit'''\n";

#[test]
fn what_is_ruled_is_resolved_and_the_agent_finishes_the_rest() {
    let Some(person) = two_conflicts(THEIRS) else { return };
    let output = run(&person, FINISHES, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("1 of 2 conflicts resolved"), "{}", output.stderr);
    let receipts = person.metadata("/resolver/receipts");
    assert_eq!(receipts.as_array().map(Vec::len), Some(1), "{receipts}");
    assert_eq!(receipts[0]["path"], "ruled.txt");
    assert_eq!(person.metadata("/resolver/changed_after").as_array().map(Vec::len), Some(0));
    let text = std::fs::read_to_string(person.only_run().join("PULL_REQUEST.md")).expect("text");
    for row in
        ["| `ruled.txt` | content | rule | theirs | 100 % |", "| `shared.txt` | content | agent |"]
    {
        assert!(text.contains(row), "{row}: {text}");
    }
    let branch = person.published().pop().expect("published");
    assert_eq!(
        person.fork.origin.git(&["show", &format!("{branch}:ruled.txt")]),
        "one\ntheirs\nthree"
    );
}

#[test]
fn what_the_agent_does_beside_its_task_is_shown() {
    let Some(person) = two_conflicts(THEIRS) else { return };
    let meddles = format!(
        "{FINISHES}\n[[step]]\nrun = \"echo meddled > ruled.txt; echo more >> README.md; git commit -qam more\"\n"
    );
    let output = run(&person, &meddles, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/resolver/changed_after/0"), "ruled.txt");
    assert_eq!(
        person.metadata("/resolver/outside/0"),
        "README.md",
        "{}",
        person.metadata("/resolver")
    );
    let text = std::fs::read_to_string(person.only_run().join("PULL_REQUEST.md")).expect("text");
    for words in
        ["`README.md`: not as git merges it", "| `ruled.txt` | content | agent, over rule |"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_merge_that_is_all_ruled_needs_no_agent() {
    let rules = "---\nresolve:\n  - {path: ruled.txt, take: theirs}\n  - {path: shared.txt, take: ours}\n---\n";
    let Some(person) = two_conflicts(rules) else { return };
    let output = run(&person, "[[step]]\nexit = 9\n", &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("every conflict is resolved"), "{}", output.stderr);
    assert_eq!(person.metadata("/merged_alone"), true);
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_rule_that_gives_the_forks_work_away_is_named() {
    let rules = "---\nresolve:\n  - {path: ruled.txt, take: theirs}\n  - {path: shared.txt, take: theirs}\n---\n";
    let Some(person) = two_conflicts(rules) else { return };
    let output = run(&person, "[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("2 changes left out by rules"), "{}", output.stdout);
    let text = std::fs::read_to_string(person.only_run().join("PULL_REQUEST.md")).expect("text");
    for rule in ["resolve: ruled.txt", "resolve: shared.txt"] {
        assert!(text.contains(rule), "{text}");
    }
}

#[test]
fn no_trust_at_all_leaves_everything_to_the_agent() {
    let Some(person) = two_conflicts(THEIRS) else { return };
    let script = "[[step]]\nrun = \"test ! -e .git/MERGE_HEAD && mkdir -p .git/info && echo '* merge=union' > .git/info/attributes && git merge --no-edit upstream/main\"\n";
    let output = run(&person, script, &["--trust", "1"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/resolver"), serde_json::Value::Null);
}

/// Half of the conflicts fall to the rules, the other half to a real agent.
#[test]
fn codex_finishes_what_the_resolver_left() {
    let turns = vec![
        Turn::shell("cat /harness-state/conflicts.md; git status --short"),
        Turn::shell(
            "sed -i '/^[<=>]\\{7\\}/d' shared.txt && git add shared.txt && git commit --no-edit",
        ),
        Turn::text("shared.txt was in conflict; I kept both sides."),
    ];
    let Some(mut scene) = Scene::new(&CODEX, turns) else { return };
    let Some(person) = two_conflicts(THEIRS) else { return };
    scene.person = person;
    let output = scene.run(&CODEX, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text =
        std::fs::read_to_string(scene.person.only_run().join("PULL_REQUEST.md")).expect("text");
    assert!(
        text.contains("| `ruled.txt` | content | rule |") && text.contains("I kept both sides"),
        "{text}"
    );
}
