//! The first run of a person who has configured nothing: what is not needed is not asked for.

use std::path::PathBuf;

use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::Person;

const BWRAP: [&str; 2] = ["--backend", "bwrap"];

fn conflicting() -> Option<Person> {
    Person::with(|hermetic| Fork::new(hermetic).conflicting_merge())
}

/// Installs a stand-in for an agent's program: a file at the path where its own would be.
pub(crate) fn install(person: &Person, provider: agent::Provider) {
    let program = provider.program().expect("it can be installed");
    for cpu in
        [agent::program::Cpu::X64, agent::program::Cpu::X64Baseline, agent::program::Cpu::Arm64]
    {
        let folder = std::path::Path::new(program.name).join(program.version);
        person.hermetic.install_agent(folder.join(program.entry(cpu)));
    }
}

fn run(person: &Person, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = person.forklift(&BWRAP);
    person.hermetic.run(command.args(args).envs(variables.iter().copied()))
}

/// The lines about the failure.
fn errors(output: &Output) -> Vec<&str> {
    output
        .stderr
        .lines()
        .filter(|line| line.starts_with("error") || line.starts_with("hint"))
        .collect()
}

#[test]
fn a_clean_merge_needs_no_settings_no_agent_and_no_key() {
    let Some(person) = Person::new() else { return };
    let output = run(&person, &[], &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    let shown = person.about(&person.only_run(), &["show"]);
    assert!(shown.stdout.contains("agent       none was needed\n"), "{}", shown.stdout);
}

#[test]
fn a_conflict_without_an_agent_says_how_to_get_one_and_leaves_no_run() {
    let Some(person) = conflicting() else { return };
    let output = run(&person, &[], &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert_eq!(
        errors(&output),
        [
            "error: an agent is needed, and none is installed that has a key",
            "hint: install one with: forklift agents install claude; then set ANTHROPIC_API_KEY, or run: forklift init",
        ]
    );
    assert_eq!(person.runs(), Vec::<PathBuf>::new());
}

#[test]
fn an_agent_with_a_key_that_is_not_installed_is_named() {
    let Some(person) = conflicting() else { return };
    let output = run(&person, &[], &[("OPENAI_API_KEY", "k-123456789")]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert_eq!(
        errors(&output),
        [
            "error: an agent is needed: codex has a key (OPENAI_API_KEY) and is not installed for boxes",
            "hint: install it with: forklift agents install codex",
        ]
    );
}

#[test]
fn the_only_agent_that_is_ready_is_taken_and_said() {
    let Some(person) = conflicting() else { return };
    install(&person, agent::Provider::Claude);
    install(&person, agent::Provider::Codex);
    let output = run(&person, &[], &[("ANTHROPIC_API_KEY", "k-123456789")]);
    // The stand-in fails; what counts is that it was started.
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    let reason = "using claude: the only agent that is installed and has a key (ANTHROPIC_API_KEY)";
    assert!(output.stderr.contains(reason), "{}", output.stderr);
    assert_eq!(person.metadata("/settings/provider"), "claude");
    let retry = person.about(&person.only_run(), &["show", "--json"]);
    assert!(!retry.stdout.contains("k-123456789"), "{}", retry.stdout);
}

#[test]
fn several_agents_are_listed_and_the_flag_the_variable_or_the_file_decides() {
    let Some(person) = conflicting() else { return };
    install(&person, agent::Provider::Claude);
    install(&person, agent::Provider::Codex);
    let keys = [("ANTHROPIC_API_KEY", "k-123456789"), ("OPENAI_API_KEY", "k-987654321")];
    let output = run(&person, &[], &keys);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert_eq!(
        errors(&output),
        [
            "error: an agent is needed, and several could be used: codex (OPENAI_API_KEY), claude (ANTHROPIC_API_KEY)",
            "hint: choose one with --provider codex, or for good with: forklift config set agent codex",
        ]
    );
    assert_eq!(person.runs(), Vec::<PathBuf>::new());
    let variable = [keys[0], keys[1], ("BOTTLEWORKS_PROVIDER", "claude")];
    assert_eq!(run(&person, &[], &variable).status, Some(6));
    assert_eq!(person.metadata("/settings/provider"), "claude");
    let set = person.hermetic.run(&mut person.forklift(&["config", "set", "agent", "codex"]));
    assert_eq!(set.status, Some(0), "{}", set.snapshot());
    assert_eq!(run(&person, &["--again"], &keys).status, Some(6));
    let chosen = person.runs().into_iter().map(|run| {
        let text = std::fs::read(run.join("metadata.json")).expect("metadata");
        let value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        value["settings"]["provider"].as_str().unwrap_or_default().to_owned()
    });
    assert_eq!(chosen.collect::<Vec<_>>(), ["claude", "codex"]);
}

/// The keys and the agent of the configuration are used, and a mistake in it is one line.
#[test]
fn the_configuration_names_agents_of_ones_own() {
    let Some(person) = conflicting() else { return };
    install(&person, agent::Provider::OpenCode);
    let file = person.hermetic.home().join(".config/bottleworks/config.toml");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    std::fs::write(
        &file,
        "agent = 'local'\n[agents.local]\nprovider = 'opencode'\nmodel = 'qwen'\nurl = 'http://127.0.0.1:9'\n\
         key_command = 'echo k-123456789'\n[limits]\ntimeout_secs = 77\n",
    )
    .expect("written");
    let output = run(&person, &[], &[]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert_eq!(person.metadata("/settings/provider"), "opencode");
    assert_eq!(person.metadata("/settings/model"), "qwen");
    assert_eq!(person.metadata("/settings/timeout_secs"), 77);
    std::fs::write(&file, "agent = 'local'\n[limit]\n").expect("written");
    let output = run(&person, &[], &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    let error = errors(&output)[0];
    assert!(
        error.contains("config.toml: line 2: unknown field `limit`, expected one of"),
        "{error}"
    );
}

/// A private address that the user typed is permitted, exactly; a server of one's own needs no key.
#[test]
fn a_model_server_that_was_typed_may_be_reached() {
    let Some(person) = conflicting() else { return };
    install(&person, agent::Provider::Claude);
    let output = run(&person, &["--model-url", "http://127.0.0.1:9/v1"], &[]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    let plan = std::fs::read(person.only_run().join("plan.json")).expect("the plan");
    let plan: serde_json::Value = serde_json::from_slice(&plan).expect("JSON");
    assert_eq!(plan["egress"]["policy"]["permit_private"], serde_json::json!(["127.0.0.1:9"]));
    assert_eq!(plan["key"], "nowhere");
}

/// A key that comes through a pipe is read once and reaches the agent's proxy, not its plan.
#[test]
fn a_key_may_come_through_a_pipe() {
    let Some(person) = conflicting() else { return };
    install(&person, agent::Provider::Claude);
    let mut command = person.hermetic.command("bash");
    command.current_dir(person.fork.checkout.dir());
    let line = "exec \"$0\" --backend bwrap --provider claude --key-file <(echo k-123456789)";
    command.args(["-c", line]).arg(env!("CARGO_BIN_EXE_forklift"));
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    let plan = std::fs::read_to_string(person.only_run().join("plan.json")).expect("the plan");
    assert!(plan.contains("/dev/fd/") && !plan.contains("k-123456789"), "{plan}");
}
