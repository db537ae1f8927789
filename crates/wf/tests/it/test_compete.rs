//! Several agents on one micro-commit: the best result is kept, and the evidence of all of them.

use crate::play::{APPROVE, GOOD, PROFILE, person_with_one};
use crate::support::{ONE, Person, read, result, write};

/// Settings of three competitors by script.
const THREE: &str = "COMPETE=first,second,third\nAGENT_FIRST=scripted\nAGENT_FIRST_SCRIPT=first.toml\nAGENT_SECOND=scripted\nAGENT_SECOND_SCRIPT=second.toml\nAGENT_THIRD=scripted\nAGENT_THIRD_SCRIPT=third.toml\n";

fn cast(person: &Person, scripts: [&str; 3]) {
    person.profile(&format!("{PROFILE}{THREE}"));
    for (name, script) in ["first", "second", "third"].into_iter().zip(scripts) {
        write(&person.project_dir().join(format!("{name}.toml")), script);
    }
}

/// What the result says of the competitors, without the names of folders.
fn notes(person: &Person) -> Vec<String> {
    let notes = result(&person.last_run())["notes"].as_str().expect("notes").to_owned();
    let lines =
        notes.split(['\n', ';']).map(str::trim).filter(|line| line.starts_with("compete: "));
    lines.map(|line| line.split(" (compete/").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn tests_come_before_the_review_and_the_smaller_change_wins() {
    let Some(person) = person_with_one() else { return };
    let broken = GOOD.replace("mkdir -p mk", "touch broken && mkdir -p mk");
    let large = GOOD.replace("mkdir -p mk", "seq 9 > many && mkdir -p mk");
    cast(&person, [&broken, &large, GOOD]);
    person.run_once(0);
    insta::assert_snapshot!(notes(&person).join("\n"), @r"
    compete: not kept: first: 1 suite failed, approved, 1 line
    compete: not kept: second: tests passed, approved, 10 lines
    compete: kept: third: tests passed, approved, 1 line
    ");
    assert_eq!(
        person.worktree("tf").git(&["show", "--name-only", "--format=", "HEAD"]),
        "mk/test.mk"
    );
    let run = person.last_run();
    assert!(read(&run.join("claude_review.json")).contains("approve"));
    assert!(run.join("tests/unit/output.log").is_file());
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(run.join("compete")).expect("competitors").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (name, _) = name.split_once('.').expect("a name");
        for file in ["implement.log", "diff.patch", "test_manifest.json", "claude_review.json"] {
            assert!(entry.path().join(file).is_file(), "{name} {file}");
        }
        assert!(
            !entry.path().join("workspace").exists() && !entry.path().join("repo.git").exists()
        );
        kept.push(name.to_owned());
    }
    kept.sort();
    assert_eq!(kept, ["first", "second", "third"]);
}

#[test]
fn a_competitor_that_weakens_the_tests_loses_to_one_that_does_not() {
    let Some(person) = person_with_one() else { return };
    // A test that was there before the workstream.
    person.ok(&["delete", "tf", "--confirm"]);
    let text = "def test_x():\n    assert 1 == 1\n    assert 2 == 2\n";
    person.repo.write("tests/test_x.py", text).commit("tests");
    person.ok(&["new", "tf", "Test framework", "mk/ tests/"]);
    person.plan("tf", ONE);
    let check =
        GOOD.replace("mkdir -p mk", "sed -i 's/assert 1 == 1/pass/' tests/test_x.py && true");
    let check = check.replace("echo harness >> mk/test.mk", "true");
    let recipe = GOOD.replace("mkdir -p mk", "sed -i 's/test ! -e broken/true/' Makefile && true");
    let recipe = recipe.replace("echo harness >> mk/test.mk", "true");
    let honest = GOOD.replace("mkdir -p mk", "seq 9 > many && mkdir -p mk");
    cast(&person, [&check, &recipe, &honest]);
    person.run_once(0);
    insta::assert_snapshot!(notes(&person).join("\n"), @r"
    compete: not kept: first: tests passed (weakened), approved, 2 lines
    compete: not kept: second: tests passed (weakened), approved, 2 lines
    compete: kept: third: tests passed, approved, 10 lines
    ");
}

#[test]
fn a_competitor_without_a_result_is_named_and_the_others_go_on() {
    let Some(person) = person_with_one() else { return };
    let gives_up = "[[step]]\nprint = '''{\"status\": \"failure\", \"notes\": \"too hard\"}\n'''\n";
    let forbidden = GOOD.replace("mkdir -p mk", "echo x > .env && mkdir -p mk");
    cast(&person, [gives_up, &forbidden, GOOD]);
    person.run_once(0);
    insta::assert_snapshot!(notes(&person).join("\n"), @r"
    compete: not kept: first: the agent gave up: too hard
    compete: not kept: second: .env was changed, but .env is forbidden
    compete: kept: third: tests passed, approved, 1 line
    ");
    let Some(person) = person_with_one() else { return };
    cast(&person, [gives_up, gives_up, gives_up]);
    let output = person.run_once(4);
    assert!(
        output
            .stdout
            .contains("none of the agents has a result: first: the agent gave up: too hard;"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_killed_competition_leaves_no_box_and_is_held_again() {
    let Some(person) = person_with_one() else { return };
    cast(&person, [GOOD, GOOD, GOOD]);
    for point in ["wf-implement-box", "wf-judged", "wf-landed"] {
        let mut command = person.command(&["run", "tf"]);
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point));
        assert_ne!(output.status, Some(0), "{point}: {}", output.snapshot());
    }
    person.run_once(0);
    let subjects = person.subjects();
    let count = subjects.iter().filter(|subject| subject.starts_with("COMMIT-TF-001")).count();
    assert_eq!(count, 1, "{subjects:?}");
    person.cast(GOOD, APPROVE);
}
