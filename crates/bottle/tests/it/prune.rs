//! Removing old bottles, and never the wrong ones.

use testkit::screen::Screen;

use crate::support::Person;

/// An agent that commits one file.
const WORK: &str =
    "[[step]]\nrun = \"echo hello > hello.txt && git add . && git commit -qm 'Say hello'\"\n";

/// The same with another file: equal commits of one second would be one commit.
const OTHER_WORK: &str =
    "[[step]]\nrun = \"echo other > other.txt && git add . && git commit -qm 'Say more'\"\n";

/// An agent that changes nothing.
const IDLE: &str = "[[step]]\nprint = \"nothing to do\"\n";

/// An agent that gives up.
const FAILS: &str = "[[step]]\nexit = 7\n";

const ALL: [&str; 5] = ["prune", "--older-than", "0d", "--keep", "0"];

/// Bottles of each kind, by name: `idle`, `taken` (its work is in the checkout), `work`, `failed`.
fn person_with_bottles() -> Option<Person> {
    let person = Person::new()?;
    for (label, script) in
        [("idle", IDLE), ("taken", WORK), ("work", OTHER_WORK), ("failed", FAILS)]
    {
        person.start(script, &["--label", label]);
    }
    let output = person.run(&["checkout", "taken"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

#[test]
fn without_a_terminal_and_without_consent_nothing_goes_and_the_command_is_named() {
    let Some(person) = person_with_bottles() else { return };
    insta::assert_snapshot!(person.run(&ALL).snapshot(), @"
    status: 2
    --- stdout
    would go    taken
    would go    idle
    kept        failed: it has work that neither origin nor the checkout has (see: bot-bottle diff; --unpublished)
    kept        work: it has work that neither origin nor the checkout has (see: bot-bottle diff; --unpublished)
    --- stderr
    error: nothing was deleted, because nobody can be asked here; to delete: bot-bottle prune --older-than 0d --keep 0 --yes
    ");
    insta::assert_snapshot!(person.run(&[&ALL[..], &["--json"]].concat()).snapshot(), @r#"
    status: 2
    --- stdout
    {"dry_run":true,"event":"prune","kept":[{"kind":"unpublished","reason":"it has work that neither origin nor the checkout has (see: bot-bottle diff; --unpublished)","slug":"failed"},{"kind":"unpublished","reason":"it has work that neither origin nor the checkout has (see: bot-bottle diff; --unpublished)","slug":"work"}],"removed":["taken","idle"]}
    --- stderr
    error: nothing was deleted, because nobody can be asked here; to delete: bot-bottle prune --older-than 0d --keep 0 --json --yes
    "#);
    assert!(person.bottle("idle").exists() && person.bottle("taken").exists());
}

#[test]
fn what_is_elsewhere_goes_and_work_that_is_nowhere_else_stays() {
    let Some(person) = person_with_bottles() else { return };
    insta::assert_snapshot!(person.run(&[&ALL[..], &["--yes"]].concat()).snapshot(), @"
    status: 0
    --- stdout
    removed     taken
    removed     idle
    kept        failed: it has work that neither origin nor the checkout has (see: bot-bottle diff; --unpublished)
    kept        work: it has work that neither origin nor the checkout has (see: bot-bottle diff; --unpublished)
    --- stderr
    ");
    assert!(!person.bottle("idle").exists() && !person.bottle("taken").exists());
    assert!(person.bottle("work").exists() && person.bottle("failed").exists());
    insta::assert_snapshot!(person.run(&[&ALL[..], &["--unpublished", "-y"]].concat()).snapshot(), @"
    status: 0
    --- stdout
    removed     failed (with work that is nowhere else)
    removed     work (with work that is nowhere else)
    --- stderr
    ");
    assert!(!person.bottle("work").exists() && !person.bottle("failed").exists());
    insta::assert_snapshot!(person.run(&["prune"]).snapshot(), @"
    status: 0
    --- stdout
    There are no bottles. Start one with: bot-bottle start AGENT
    --- stderr
    ");
}

#[test]
fn young_bottles_and_the_newest_stay() {
    let Some(person) = Person::new() else { return };
    person.start(IDLE, &["--label", "idle"]);
    insta::assert_snapshot!(person.run(&["prune", "--yes"]).snapshot(), @"
    status: 0
    --- stdout
    kept        idle: it is young (--older-than)
    --- stderr
    ");
    let words = ["prune", "--yes", "--older-than", "0d", "--keep", "1"];
    insta::assert_snapshot!(person.run(&words).snapshot(), @"
    status: 0
    --- stdout
    kept        idle: it is among the newest (--keep)
    --- stderr
    ");
    assert!(person.bottle("idle").exists());
}

#[test]
fn at_a_terminal_prune_and_destroy_ask_first() {
    let Some(person) = Person::new() else { return };
    person.start(IDLE, &["--label", "idle"]);
    let program = env!("CARGO_BIN_EXE_bot-bottle");
    for (command, question, answer, said) in [
        ("prune --older-than 0d --keep 0", "remove 1 bottle? [y/N]", "n", "nothing was deleted"),
        ("destroy idle", "[y/N]", "n", "nothing was deleted"),
        ("destroy idle", "[y/N]", "y", "destroyed"),
        ("prune --older-than 0d --keep 0", "remove 1 bottle? [y/N]", "y", "removed"),
    ] {
        let script = format!("{program} {command}; echo [$?]; exec cat");
        let words = ["sh", "-c", &script];
        let Some(screen) = Screen::start(&person.hermetic, person.hermetic.root(), &words) else {
            return;
        };
        screen.shows(question);
        screen.press(&[answer, "Enter"]);
        screen.shows("[0]");
        assert!(screen.text().contains(said), "{}", screen.text());
        screen.close();
    }
    assert!(!person.bottle("idle").exists());
}

#[test]
fn a_dry_run_of_destroy_names_the_folders() {
    let Some(person) = Person::new() else { return };
    person.start(IDLE, &["--label", "idle"]);
    insta::assert_snapshot!(person.run(&["destroy", "idle", "--dry-run"]).snapshot(), @"
    status: 0
    --- stdout
    would go    [ROOT]/home/.bot-bottle/cellar/idle/workspace
    would go    [ROOT]/home/.bot-bottle/cellar/idle/harness-state
    --- stderr
    nothing was deleted; to delete: bot-bottle destroy idle --yes
    ");
    assert!(person.bottle("idle").join("workspace").exists());
}
