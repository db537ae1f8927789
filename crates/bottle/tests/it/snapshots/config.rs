//! `config show` and `config check`: the explained file, and what is wrong with others.

use crate::support::Person;

/// Output of `config check` for a file with this text.
fn check(text: &str) -> String {
    let hermetic = testkit::Hermetic::new();
    std::fs::write(hermetic.work().join("serve.toml"), text).expect("written");
    let mut command = hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
    hermetic.run(command.args(["config", "check", "serve.toml"])).snapshot()
}

/// A forge's table.
fn forge(lines: &str) -> String {
    format!("[[forge]]\nkind = \"gitea\"\nurl = \"https://git.example\"\n{lines}\n")
}

#[test]
fn the_explained_file_is_a_good_one() {
    let Some(person) = Person::new() else { return };
    let shown = person.run(&["config", "show"]);
    assert_eq!(shown.status, Some(0), "{}", shown.snapshot());
    insta::assert_snapshot!(check(&shown.stdout), @"
    status: 0
    --- stdout
    good        0 repositories are served
    --- stderr
    ");
}

#[test]
fn an_empty_file() {
    insta::assert_snapshot!(check(""), @"
    status: 0
    --- stdout
    good        0 repositories are served
    --- stderr
    ");
}

#[test]
fn one_forge_with_two_repositories() {
    insta::assert_snapshot!(check(&forge("repos = [\"acme/widget\", \"acme/group/gadget\"]")), @"
    status: 0
    --- stdout
    good        2 repositories are served
    --- stderr
    ");
}

#[test]
fn a_file_that_is_not_toml() {
    insta::assert_snapshot!(check("listen = \n"), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: line 1: listen =: string values must be quoted, expected literal string
    ");
}

#[test]
fn a_misspelt_key() {
    insta::assert_snapshot!(check("max_bottels = 3\n"), @r"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: line 1: max_bottels = 3: unknown field `max_bottels`, expected one of `listen`, `public_url`, `worker_listen`, `max_bottles`, `backend`, `sweep_secs`, `retention_days`, `delivery_days`, `drain_secs`, `lease_secs`, `watchdog_secs`, `body_max_bytes`, `status_comment`, `max_wakeups`, `update_branches`, `discovery_secs`, `max_found`, `admin_token_file`, `user_header`, `log`, `otlp_url`, `priorities`, `budget`, `forge`, `schedule`, `notify`
    ");
}

#[test]
fn a_number_in_quotes() {
    insta::assert_snapshot!(check("max_bottles = \"three\"\n"), @r#"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: line 1: max_bottles = "three": invalid type: string "three", expected usize
    "#);
}

#[test]
fn no_bottles_at_all() {
    insta::assert_snapshot!(check("max_bottles = 0\n"), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: max_bottles cannot be 0
    ");
}

#[test]
fn no_time_between_sweeps() {
    insta::assert_snapshot!(check("sweep_secs = 0\n"), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: sweep_secs cannot be 0
    ");
}

#[test]
fn an_address_without_a_port() {
    insta::assert_snapshot!(check("listen = \"127.0.0.1\"\n"), @r#"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: line 1: listen = "127.0.0.1": invalid socket address syntax
    "#);
}

#[test]
fn an_unknown_log_format() {
    insta::assert_snapshot!(check("log = \"xml\"\n"), @r#"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: line 1: log = "xml": unknown variant `xml`, expected `text` or `json`
    "#);
}

#[test]
fn a_forge_without_repositories() {
    insta::assert_snapshot!(check(&forge("")), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: line 1: [[forge]]: missing field `repos`
    ");
}

#[test]
fn a_forge_of_an_unknown_kind() {
    let text = "[[forge]]\nkind = \"svn\"\nurl = \"https://git.example\"\nrepos = []\n";
    insta::assert_snapshot!(check(text), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: kind cannot be 'svn': use gitea, github, gitlab or folder
    ");
}

#[test]
fn a_forge_with_credentials_in_its_address() {
    let text = "[[forge]]\nkind = \"gitea\"\nurl = \"https://u:p@git.example\"\nrepos = []\n";
    insta::assert_snapshot!(check(text), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: url cannot be 'https://u:***@git.example': give http(s)://host[:port][/path], or file:///path for a folder
    ");
}

#[test]
fn a_repository_without_an_owner() {
    insta::assert_snapshot!(check(&forge("repos = [\"widget\"]")), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: 'widget' is not owner/name, or owner/*
    ");
}

#[test]
fn a_repository_that_is_named_twice() {
    insta::assert_snapshot!(check(&forge("repos = [\"a/b\", \"a/b\"]")), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: 'a/b' is named twice
    ");
}

#[test]
fn a_negative_retention() {
    insta::assert_snapshot!(check("retention_days = -1\n"), @"
    status: 2
    --- stdout
    --- stderr
    error: serve.toml: line 1: retention_days = -1: invalid value: integer `-1`, expected u32
    ");
}

#[test]
fn init_writes_the_agent_and_a_manifest_and_nothing_the_second_time() {
    let hermetic = testkit::Hermetic::new();
    let run = |args: &[&str]| {
        let mut command = hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
        let output = hermetic.run(command.args(args));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        output.stdout
    };
    let words = ["init", "--yes", "--provider", "pi", "--model", "openai/gpt-5"];
    run(&[&words[..], &["--manifest", "worker", "--forge", "git.example"]].concat());
    let manifest = hermetic.home().join(".bot-bottle/agents/worker.toml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    assert!(text.contains("provider = \"pi\"\nmodel = \"openai/gpt-5\"\n"), "{text}");
    run(&["init", "--yes", "--manifest", "worker"]);
    assert_eq!(std::fs::read_to_string(&manifest).expect("the manifest"), text);
    assert_eq!(run(&["config", "get", "agent"]), "pi\n");
    assert!(run(&["config", "list"]).contains("agents.pi.model"), "the agent's entry is listed");
}

#[test]
fn an_agent_of_the_configuration_works_by_its_name() {
    let hermetic = testkit::Hermetic::new();
    let run =
        |args: &[&str]| hermetic.run(hermetic.command(env!("CARGO_BIN_EXE_bot-bottle")).args(args));
    for (key, value) in
        [("provider", "opencode"), ("model", "qwen3-coder"), ("url", "http://127.0.0.1:11434")]
    {
        let set = run(&["config", "set", &format!("agents.local.{key}"), value, "--json"]);
        let written: serde_json::Value = serde_json::from_str(&set.stdout).expect("a document");
        assert_eq!((&written["value"], &written["is_changed"]), (&value.into(), &true.into()));
    }
    let made = run(&["init", "--yes", "--provider", "local", "--json"]);
    let event: serde_json::Value = serde_json::from_str(&made.stdout).expect("an event");
    assert_eq!((&event["event"], &event["agent"]), (&"init".into(), &"local".into()));
    let path = hermetic.home().join(".bot-bottle/agents/local.toml");
    let text = std::fs::read_to_string(path).expect("the manifest");
    assert!(text.contains("provider = \"local\"\n") && !text.contains("\nmodel ="), "{text}");
    let checked = run(&["agent", "check", "local"]);
    assert!(checked.stderr.contains("opencode is not installed"), "{}", checked.snapshot());
    let program = agent::Provider::OpenCode.program().expect("it can be installed");
    for cpu in
        [agent::program::Cpu::X64, agent::program::Cpu::X64Baseline, agent::program::Cpu::Arm64]
    {
        let folder = std::path::Path::new(program.name).join(program.version);
        hermetic.install_agent(folder.join(program.entry(cpu)));
    }
    let checked = run(&["agent", "check", "local"]);
    assert_eq!(checked.status, Some(0), "{}", checked.snapshot());
    let made = run(&["agent", "new", "more", "--json"]);
    assert!(made.stdout.contains("\"event\":\"made\""), "{}", made.snapshot());
    let shown = run(&["agent", "show", "more", "--json"]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("a document");
    assert_eq!((&shown["provider"], &shown["agent"]), (&"opencode".into(), &"local".into()));
}

#[test]
fn init_without_an_agent_writes_nothing() {
    let hermetic = testkit::Hermetic::new();
    let mut command = hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
    let output = hermetic.run(command.args(["init", "--yes"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("none is chosen yet"), "{}", output.snapshot());
    assert!(!hermetic.home().join(".config/bottleworks").exists(), "a guess was written");
    assert!(!hermetic.home().join(".bot-bottle/agents").exists(), "a manifest was written");
}

#[test]
fn an_init_that_cannot_complete_writes_nothing() {
    let hermetic = testkit::Hermetic::new();
    let lines = [
        "init --yes --provider scripted",
        "init --yes --provider command --manifest worker",
        "init --yes --provider claude --manifest a/b",
        "init --yes --provider claude --model-url nowhere",
    ];
    let text = testkit::refusal::refusals(&hermetic, "bot-bottle", &lines, |words| {
        let mut command = hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
        command.args(words);
        command
    });
    insta::assert_snapshot!(text, @r#"
    $ bot-bottle init --yes --provider scripted
    error: the agent 'scripted' cannot be the default: it needs a script, which init does not ask for
    hint: write its manifest, with provider = "scripted" and script: bot-bottle agent new NAME
    [2]
    $ bot-bottle init --yes --provider command --manifest worker
    error: the agent 'command' cannot be the default: it needs a command line, which init does not ask for
    hint: write its manifest, with provider = "command" and command: bot-bottle agent new NAME
    [2]
    $ bot-bottle init --yes --provider claude --manifest a/b
    error: "a/b" is not a valid agent name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit
    [2]
    $ bot-bottle init --yes --provider claude --model-url nowhere
    error: [ROOT]/home/.config/bottleworks/config.toml: agents.claude.url: "nowhere" is not the base address of a model server, such as https://api.example.com
    [2]
    "#);
    assert!(!hermetic.home().join(".config/bottleworks").exists(), "a configuration was written");
    assert!(!hermetic.home().join(".bot-bottle").exists(), "a manifest was written");
}
