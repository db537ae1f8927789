//! `wf init`: everything is decided before anything is written, and a folder that cannot be a project is named.

use std::path::Path;

use testkit::hermetic::Hermetic;
use testkit::refusal::refusals;
use testkit::repo::Repo;

use crate::support::{Person, read, write};

/// Installs a stand-in for an agent's program: a file at the path where its own would be.
fn stand_in(person: &Person, provider: agent::Provider) {
    let program = provider.program().expect("it can be installed");
    for cpu in
        [agent::program::Cpu::X64, agent::program::Cpu::X64Baseline, agent::program::Cpu::Arm64]
    {
        let folder = std::path::Path::new(program.name).join(program.version);
        person.hermetic.install_agent(folder.join(program.entry(cpu)));
    }
}

/// Runs wrong command lines in a folder, and checks that none of them leaves anything.
fn refused_in(hermetic: &Hermetic, dir: &Path, lines: &[&str]) -> String {
    let text = refusals(hermetic, "wf", lines, |words| {
        let mut command = hermetic.command(env!("CARGO_BIN_EXE_wf"));
        command.current_dir(dir).args(words);
        command
    });
    assert!(!hermetic.home().join(".config/bottleworks").exists(), "a configuration was written");
    let ops = std::fs::read_dir(hermetic.work()).expect("the work folder").flatten();
    let ops: Vec<_> = ops.map(|entry| entry.file_name()).collect();
    assert!(!ops.iter().any(|name| name.to_string_lossy().ends_with(".ops")), "{ops:?}");
    text
}

#[test]
fn an_init_that_cannot_complete_writes_nothing() {
    let person = Person::unregistered();
    insta::assert_snapshot!(refused_in(&person.hermetic, person.repo.dir(), &[
        "init",
        "init --yes --provider scripted",
        "init --yes --provider command",
        "init --yes --provider gpt5",
        "init --yes --provider claude --name a/b",
        "init --yes --provider claude --model-url nowhere",
    ]), @r#"
    $ wf init
    error: there is no terminal to ask on
    hint: take flags and defaults with: wf init --yes
    [2]
    $ wf init --yes --provider scripted
    error: the agent 'scripted' cannot be the default: it needs a script, which init does not ask for
    hint: choose another (opencode, codex, claude or pi), or name it in the profile that wf init writes: AGENT_IMPLEMENT=scripted and AGENT_IMPLEMENT_SCRIPT
    [2]
    $ wf init --yes --provider command
    error: the agent 'command' cannot be the default: it needs a command line, which init does not ask for
    hint: choose another (opencode, codex, claude or pi), or name it in the profile that wf init writes: AGENT_IMPLEMENT=command and AGENT_IMPLEMENT_CMD
    [2]
    $ wf init --yes --provider gpt5
    error: there is no agent "gpt5"; choose one of: opencode, codex, claude, pi, command, scripted
    [2]
    $ wf init --yes --provider claude --name a/b
    error: "a/b" is not a valid project name: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', starting with a letter or digit, without '..'
    [2]
    $ wf init --yes --provider claude --model-url nowhere
    error: [ROOT]/home/.config/bottleworks/config.toml: agents.claude.url: "nowhere" is not the base address of a model server, such as https://api.example.com
    [2]
    "#);
}

#[test]
fn folders_that_cannot_be_a_project() {
    let hermetic = Hermetic::new();
    let lines = ["init --yes --provider claude", "interview --non-interactive", "list"];
    let place = |name: &str| hermetic.work().join(name);
    std::fs::create_dir_all(place("plain")).expect("a folder");
    let unborn = Repo::init(place("unborn"));
    let source = Repo::init(place("source"));
    source.write("a", "a").commit("start");
    let bare = place("bare.git").display().to_string();
    source.git(&["clone", "--quiet", "--bare", ".", &bare]);
    let places =
        [place("plain"), unborn.dir().into(), place("bare.git"), source.dir().join(".git")];
    let refused = places.map(|dir| refused_in(&hermetic, &dir, &lines));
    insta::assert_snapshot!(refused.concat(), @"
    $ wf init --yes --provider claude
    error: [ROOT]/work/plain is not inside a git repository; run wf in a checkout of your product, or make one: git init
    [2]
    $ wf interview --non-interactive
    error: [ROOT]/work/plain is not inside a git repository; run wf in a checkout of your product, or make one: git init
    [2]
    $ wf list
    error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf init --yes --provider claude
    error: the branch 'main' of [ROOT]/work/unborn has no commit yet; make the first one: git commit --allow-empty -m start
    [2]
    $ wf interview --non-interactive
    error: the branch 'main' of [ROOT]/work/unborn has no commit yet; make the first one: git commit --allow-empty -m start
    [2]
    $ wf list
    error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf init --yes --provider claude
    error: [ROOT]/work/bare.git is a bare repository, and wf needs a checkout; make one: git clone [ROOT]/work/bare.git, and run wf in it
    [2]
    $ wf interview --non-interactive
    error: [ROOT]/work/bare.git is a bare repository, and wf needs a checkout; make one: git clone [ROOT]/work/bare.git, and run wf in it
    [2]
    $ wf list
    error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf init --yes --provider claude
    error: [ROOT]/work/source/.git is not the checkout; run wf in [ROOT]/work/source
    [2]
    $ wf interview --non-interactive
    error: [ROOT]/work/source/.git is not the checkout; run wf in [ROOT]/work/source
    [2]
    $ wf list
    error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    ");
}

#[test]
fn a_subfolder_registers_the_whole_repository() {
    let person = Person::unregistered();
    person.repo.write("src/a", "a").commit("a folder");
    let mut command = person.command(&["init", "--yes", "--provider", "claude"]);
    let output = person.hermetic.run(command.current_dir(person.repo.dir().join("src")));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("work/app/src is a folder in it"), "{}", output.snapshot());
    let project = read(&person.project_dir().join("project.env"));
    assert!(project.contains(&format!("REPO_PATH={}\n", person.repo.dir().display())), "{project}");
    let profile = read(&person.project_dir().join("project_profile.env"));
    assert!(profile.contains("AGENT_IMPLEMENT=claude\n"), "{profile}");
}

#[test]
fn a_project_without_a_profile_is_finished_by_init() {
    let person = Person::unregistered();
    let repo = person.repo.dir().to_str().expect("UTF-8").to_owned();
    person.ok(&["project", "add", "app", "--repo-path", &repo]);
    let doctor = person.wf(&["doctor"]).stdout;
    let rows: Vec<&str> = doctor
        .lines()
        .filter(|line| line.starts_with("profile ") || line.starts_with("tests "))
        .collect();
    insta::assert_snapshot!(rows.join("\n"), @"
    profile        odd  not written, so defaults hold; write it: wf init
    tests          ok   unit
    ");
    person.ok(&["init", "--yes", "--provider", "claude"]);
    let profile = read(&person.project_dir().join("project_profile.env"));
    assert!(profile.contains("MAKE_TARGET_UNIT=test-unit\n"), "{profile}");
    let after = read(&person.project_dir().join("project.env"));
    person.ok(&["init", "--yes"]);
    assert_eq!(read(&person.project_dir().join("project_profile.env")), profile);
    assert_eq!(read(&person.project_dir().join("project.env")), after);
}

#[test]
fn a_profile_that_is_wrong_stops_init_before_it_writes() {
    let person = Person::unregistered();
    write(&person.project_dir().join("project_profile.env"), "ROUNDS=many\n");
    let output = person.wf(&["init", "--yes", "--provider", "claude"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(!person.hermetic.home().join(".config/bottleworks").exists());
    assert!(!person.hermetic.home().join(".config/wf").exists());
    assert!(!person.project_dir().join("project.env").exists());
}

#[test]
fn another_repository_is_told_that_it_is_not_the_project() {
    let person = Person::new();
    let other = Repo::init(person.hermetic.work().join("other"));
    other.write("a", "a").commit("start");
    let list = |dir: &Path| {
        let mut command = person.command(&["list"]);
        person.hermetic.run(command.current_dir(dir)).stderr
    };
    assert_eq!(
        list(other.dir()),
        "warning: this repository is not registered, and 'app' is the only project; register this one: wf init\n"
    );
    assert_eq!(list(person.repo.dir()), "");
    assert_eq!(list(&person.hermetic.work()), "");
}

#[test]
fn a_repository_has_one_name() {
    let person = Person::new();
    let path = person.repo.dir().to_str().expect("UTF-8").to_owned();
    let again = ["project", "add", "again", "--repo-path", &path];
    person.refused(&again, 2, &["is the project app already", "wf project remove app"]);
    person.refused(&["interview", "--non-interactive", "--name", "again"], 2, &["app already"]);
    assert!(!person.ok(&["project", "list"]).contains("again"));
    // The same name is the same project.
    person.ok(&["project", "add", "app", "--repo-path", &path]);
    person.ok(&["project", "remove", "app"]);
    person.ok(&again);
}

/// Rows of `doctor` about the agents of the stages.
fn stage_rows(person: &Person, variables: &[(&str, &str)]) -> Vec<String> {
    let mut command = person.command(&["doctor"]);
    let output = person.hermetic.run(command.envs(variables.iter().copied()));
    let lines = output.stdout.lines().map(str::to_owned);
    lines.filter(|line| line.starts_with("implement ") || line.starts_with("review ")).collect()
}

#[test]
fn an_agent_of_the_configuration_works_by_its_name() {
    let person = Person::unregistered();
    for (key, value) in
        [("provider", "opencode"), ("model", "qwen3-coder"), ("url", "http://127.0.0.1:11434")]
    {
        person.ok(&["config", "set", &format!("agents.local.{key}"), value]);
    }
    person.ok(&["init", "--yes", "--provider", "local"]);
    let profile = read(&person.project_dir().join("project_profile.env"));
    assert!(profile.contains("AGENT_IMPLEMENT=local\n"), "{profile}");
    assert_eq!(
        stage_rows(&person, &[]).join("\n"),
        "\
        implement      BAD  local: opencode is not installed; run: forklift agents install opencode\n\
        review         BAD  local: opencode is not installed; run: forklift agents install opencode"
    );
    stand_in(&person, agent::Provider::OpenCode);
    assert_eq!(
        stage_rows(&person, &[]).join("\n"),
        "implement      ok   local\nreview         ok   local"
    );
}

#[test]
fn a_model_and_its_server_that_init_was_given_are_used() {
    let person = Person::unregistered();
    let words = ["init", "--yes", "--provider", "opencode", "--model", "qwen3-coder"];
    person.ok(&[&words[..], &["--model-url", "http://127.0.0.1:11434"]].concat());
    stand_in(&person, agent::Provider::OpenCode);
    assert_eq!(
        stage_rows(&person, &[]).join("\n"),
        "implement      ok   opencode\nreview         ok   opencode"
    );
}

#[test]
fn a_profile_without_agents_takes_what_is_installed_and_has_a_key() {
    let person = Person::unregistered();
    person.ok(&["interview", "--non-interactive"]);
    stand_in(&person, agent::Provider::Codex);
    let key = [("OPENAI_API_KEY", "k-123456789")];
    let both = "implement      ok   codex\nreview         ok   codex";
    assert_eq!(stage_rows(&person, &key).join("\n"), both);
    stand_in(&person, agent::Provider::Claude);
    let keys = [key[0], ("ANTHROPIC_API_KEY", "k-987654321")];
    let usual = "implement      ok   codex\nreview         ok   claude";
    assert_eq!(stage_rows(&person, &keys).join("\n"), usual);
}

#[test]
fn init_keeps_no_guess_as_a_choice() {
    let person = Person::unregistered();
    let text = person.ok(&["init", "--yes"]);
    assert!(text.contains("none is chosen yet"), "{text}");
    assert!(!person.hermetic.home().join(".config/bottleworks").exists(), "a guess was written");
    let profile = read(&person.project_dir().join("project_profile.env"));
    assert!(!profile.contains("AGENT_"), "{profile}");
    person.refused(&["init", "--yes", "--model", "m"], 2, &["none is named", "--provider"]);
    stand_in(&person, agent::Provider::Codex);
    let mut command = person.command(&["init", "--yes"]);
    let output = person.hermetic.run(command.env("OPENAI_API_KEY", "k-123456789"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.ok(&["config", "get", "agent"]), "codex\n");
}
