//! `forklift init` and `forklift config`.

use testkit::hermetic::Output;
use testkit::refusal::refusals;

use crate::support::Person;

fn forklift(person: &Person, args: &[&str]) -> Output {
    person.hermetic.run(&mut person.forklift(args))
}

#[test]
fn init_prepares_a_fork_and_changes_nothing_the_second_time() {
    let Some(person) = Person::new() else { return };
    let url = person.fork.checkout.git(&["remote", "get-url", "upstream"]).trim().to_owned();
    person.fork.checkout.git(&["remote", "remove", "upstream"]);
    let refused = forklift(&person, &["init", "--yes"]);
    assert_eq!(refused.status, Some(2), "{}", refused.snapshot());
    assert!(refused.stderr.contains("forklift init --upstream URL"), "{}", refused.stderr);
    let words = ["init", "--yes", "--upstream", &url, "--provider", "claude"];
    let words = [&words[..], &["--key-command", "echo k-123456789"]].concat();
    let first = forklift(&person, &words);
    assert_eq!(first.status, Some(0), "{}", first.snapshot());
    assert_eq!(person.fork.checkout.git(&["remote", "get-url", "upstream"]).trim(), url);
    let config = person.hermetic.home().join(".config/bottleworks/config.toml");
    let fork_file = person.fork.checkout.dir().join("FORK.md");
    let read = || {
        let text = |path: &std::path::Path| std::fs::read_to_string(path).expect("a file");
        (text(&config), text(&fork_file))
    };
    let after_first = read();
    assert_eq!(
        after_first.0,
        "agent = \"claude\"\n\n[agents.claude]\nkey_command = \"echo k-123456789\"\n"
    );
    assert!(
        first.stdout.contains("next        forklift agents install claude"),
        "{}",
        first.stdout
    );
    let second = forklift(&person, &["init", "--yes"]);
    assert_eq!(second.status, Some(0), "{}", second.snapshot());
    assert_eq!(read(), after_first);
    let clean = forklift(&person, &["--backend", "bwrap"]);
    assert_eq!(clean.status, Some(0), "{}", clean.snapshot());
}

#[test]
fn an_init_that_cannot_complete_writes_nothing() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.git(&["remote", "remove", "upstream"]);
    let lines = [
        "init --yes",
        "init --yes --provider claude",
        "init --yes --upstream /x --provider scripted",
        "init --yes --upstream /x --provider command",
        "init --yes --upstream /x --provider claude --model-url nowhere",
    ];
    let refused = |lines: &[&str]| {
        let text = refusals(&person.hermetic, "forklift", lines, |words| person.forklift(words));
        assert!(
            !person.hermetic.home().join(".config/bottleworks").exists(),
            "a configuration was written"
        );
        assert_eq!(person.fork.checkout.git(&["status", "--porcelain"]), "", "a file was written");
        assert!(!person.fork.checkout.git(&["remote"]).contains("upstream"));
        text
    };
    insta::assert_snapshot!(refused(&lines), @r#"
    $ forklift init --yes
    error: this repository has no remote 'upstream' (the project it was forked from)
    hint: name it with: forklift init --upstream URL
    [2]
    $ forklift init --yes --provider claude
    error: this repository has no remote 'upstream' (the project it was forked from)
    hint: name it with: forklift init --upstream URL
    [2]
    $ forklift init --yes --upstream /x --provider scripted
    error: the agent 'scripted' cannot be the default: it needs a script, which init does not ask for
    hint: use it for one run: forklift --provider scripted --script FILE
    [2]
    $ forklift init --yes --upstream /x --provider command
    error: the agent 'command' cannot be the default: it needs a command line, which init does not ask for
    hint: choose another: opencode, codex, claude or pi
    [2]
    $ forklift init --yes --upstream /x --provider claude --model-url nowhere
    error: [ROOT]/home/.config/bottleworks/config.toml: agents.claude.url: "nowhere" is not the base address of a model server, such as https://api.example.com
    [2]
    "#);
    person.fork.checkout.git(&["remote", "remove", "origin"]);
    insta::assert_snapshot!(refused(&["init --yes --upstream /x --provider claude"]), @"
    $ forklift init --yes --upstream /x --provider claude
    error: this repository has no remote 'origin' (your fork)
    hint: add it with: git remote add origin URL
    [2]
    ");
}

#[test]
fn without_a_terminal_init_names_the_flag() {
    let Some(person) = Person::new() else { return };
    let output = forklift(&person, &["init"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("forklift init --yes"), "{}", output.stderr);
}

#[test]
fn config_shows_where_each_value_comes_from() {
    let Some(person) = Person::new() else { return };
    let path = forklift(&person, &["config", "path"]);
    let expected = person.hermetic.home().join(".config/bottleworks/config.toml");
    assert_eq!(path.stdout.trim(), expected.display().to_string());
    assert_eq!(forklift(&person, &["config", "set", "limits.timeout_secs", "60"]).status, Some(0));
    let mut list = person.forklift(&["config", "list", "--json"]);
    list.env("BOTTLEWORKS_PROVIDER", "codex").env("BOTTLEWORKS_FORGE_TOKEN", "t-123456789");
    let output = person.hermetic.run(&mut list);
    let rows: serde_json::Value = serde_json::from_str(&output.stdout).expect("a list");
    let row = |key: &str| {
        let rows = rows.as_array().expect("rows").iter();
        let row = rows.clone().find(|row| row["key"] == key).expect("the key");
        (row["value"].clone(), row["origin"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(row("agent"), ("codex".into(), "environment".to_owned()));
    assert_eq!(row("limits.timeout_secs"), ("60".into(), "file".to_owned()));
    assert_eq!(row("identity.sign_off"), (serde_json::Value::Null, "default".to_owned()));
    assert!(!output.stdout.contains("t-123456789") && !output.stderr.contains("t-123456789"));
    assert_eq!(forklift(&person, &["config", "get", "limits.timeout_secs"]).stdout, "60\n");
    assert_eq!(forklift(&person, &["config", "unset", "limits.timeout_secs"]).status, Some(0));
    let unset = forklift(&person, &["config", "get", "limits.timeout_secs"]);
    assert_eq!(unset.status, Some(1), "{}", unset.snapshot());
    let wrong = forklift(&person, &["config", "set", "agnet", "claude"]);
    assert_eq!(wrong.status, Some(2), "{}", wrong.snapshot());
    assert!(wrong.stderr.contains("there is no key 'agnet'"), "{}", wrong.stderr);
}
