//! `bot-bottle show`, and the names that shells complete.

use crate::support::Person;

const WORK: &str =
    "[[step]]\nrun = \"echo hello > hello.txt && git add . && git commit -qm 'Say hello'\"\n";

/// Takes out what differs from run to run: times and durations.
fn steady(text: &str) -> String {
    let line = |line: &str| match ["started", "took", "agent time"]
        .iter()
        .find(|it| line.starts_with(**it))
    {
        Some(label) => {
            let unit = line.rsplit(' ').next().unwrap_or_default();
            format!("{label:<11} [TIME] {unit}")
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_bottle_is_shown_with_its_newest_run() {
    let Some(person) = Person::new() else { return };
    person.start(WORK, &["--label", "hello"]);
    let mut command = person.command(&["show", "hello"]);
    let output = person.hermetic.run(command.env("TZ", "TST-3"));
    insta::assert_snapshot!(steady(&output.snapshot()), @"
    status: 0
    --- stdout
    state       frozen
    repository  [ROOT]/work/fork
    branch      bot-bottle/hello from main
    runs        1
    agent       worker (scripted) on bwrap
    started     [TIME] TST
    took        [TIME] s
    agent time  [TIME] s
    bottle      hello
    run         [ROOT]/home/.bot-bottle/cellar/hello/runs/hello_[STAMP]
    verdict     the work holds
    commits     [SHA] is kept; look at it with: bot-bottle diff hello; take it with: bot-bottle apply hello, or bot-bottle checkout hello
    --- stderr
    ");
    let json = person.json(&["show", "hello"]);
    assert_eq!(json["bottle"]["slug"], "hello", "{json}");
    assert!(json["run"]["started_at"].as_str().expect("a time").ends_with('Z'), "{json}");
}

#[test]
fn a_bottle_that_is_not_there_is_not_shown() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(person.run(&["show", "ghost"]).snapshot(), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn shells_complete_bottles_and_agents() {
    let Some(person) = Person::new() else { return };
    person.start(WORK, &["--label", "hello"]);
    for (words, expected) in [
        (&["logs", ""][..], "hello\tfrozen\n"),
        (&["destroy", "h"], "hello\tfrozen\n"),
        (&["start", "w"], "worker\n"),
        (&["agent", "check", "w"], "worker\n"),
        (&["orchestrate", "resume", "--slug", ""], "hello\tfrozen\n"),
    ] {
        let mut command = person.command(&["--", "bot-bottle"]);
        let output = person.hermetic.run(command.args(words).env("COMPLETE", "fish"));
        assert!(output.stdout.starts_with(expected.trim_end()), "{words:?}: {}", output.snapshot());
    }
}

#[test]
fn empty_lists_say_what_to_do() {
    let hermetic = testkit::hermetic::Hermetic::new();
    let shown = |words: &[&str]| {
        let mut command = hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
        let output = hermetic.run(command.args(words));
        format!("$ bot-bottle {}\n{}", words.join(" "), output.snapshot())
    };
    let lists = [
        &["list"][..],
        &["agent", "list"],
        &["bottle", "list"],
        &["hook", "list"],
        &["orchestrate", "status"],
        &["prune"],
    ];
    insta::assert_snapshot!(lists.iter().map(|words| shown(words)).collect::<String>(), @"
    $ bot-bottle list
    status: 0
    --- stdout
    No bottles yet. Start one with: bot-bottle start AGENT (agents: bot-bottle agent list)
    --- stderr
    $ bot-bottle agent list
    status: 0
    --- stdout
    No manifests of agents yet. Write one with: bot-bottle agent new NAME
    --- stderr
    $ bot-bottle bottle list
    status: 0
    --- stdout
    No manifests of bottles yet. Write one with: bot-bottle bottle new NAME
    --- stderr
    $ bot-bottle hook list
    status: 0
    --- stdout
    No webhooks yet. Install one with: bot-bottle hook install OWNER/REPO --url URL
    --- stderr
    $ bot-bottle orchestrate status
    status: 0
    --- stdout
    No bottle works for a forge. Start one with: bot-bottle orchestrate start, or bot-bottle serve
    --- stderr
    $ bot-bottle prune
    status: 0
    --- stdout
    There are no bottles. Start one with: bot-bottle start AGENT
    --- stderr
    ");
}
