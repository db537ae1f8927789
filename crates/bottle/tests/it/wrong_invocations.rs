//! Wrong command lines: one clear line, the right status, and the next step.

use std::os::unix::fs::PermissionsExt;

use testkit::hermetic::Hermetic;
use testkit::refusal::refusals;

use crate::support::Person;

fn refused(hermetic: &Hermetic, lines: &[&str]) -> String {
    refusals(hermetic, "bot-bottle", lines, |words| {
        let mut command = hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
        command.current_dir(hermetic.work()).args(words);
        command
    })
}

#[test]
fn words_that_bot_bottle_does_not_know() {
    insta::assert_snapshot!(refused(&Hermetic::new(), &[
        "strat",
        "list --al",
        "start",
        "logs",
        "exec ghost",
        "serve",
        "hook install a/b",
        "orchestrate start --agent a",
        "agent chek worker",
        "completions tcsh",
        "config get nothing",
        "init --provider gpt5",
        "init --provider gpt5 --yes",
    ]), @r#"
    $ bot-bottle strat
    error: unknown command 'strat'; did you mean 'start'? See: bot-bottle --help
    [2]
    $ bot-bottle list --al
    error: unknown option '--al'; see: bot-bottle list --help
    [2]
    $ bot-bottle start
    error: <AGENT> is missing; see: bot-bottle start --help
    [2]
    $ bot-bottle logs
    error: there are no bottles; start one with: bot-bottle start AGENT
    [3]
    $ bot-bottle exec ghost
    error: <COMMAND>... is missing; see: bot-bottle exec --help
    [2]
    $ bot-bottle serve
    error: --config <CONFIG> is missing; see: bot-bottle serve --help
    [2]
    $ bot-bottle hook install a/b
    error: --url <URL> is missing; see: bot-bottle hook install --help
    [2]
    $ bot-bottle orchestrate start --agent a
    error: --prompt <PROMPT> is missing; see: bot-bottle orchestrate start --help
    [2]
    $ bot-bottle agent chek worker
    error: unknown command 'chek'; did you mean 'check'? See: bot-bottle agent --help
    [2]
    $ bot-bottle completions tcsh
    error: the shell 'tcsh' is not one of bash, elvish, fish, powershell, zsh
    [2]
    $ bot-bottle config get nothing
    error: there is no key 'nothing'; the keys are listed by: bot-bottle config list
    [2]
    $ bot-bottle init --provider gpt5
    error: there is no agent "gpt5"; choose one of: opencode, codex, claude, pi, command, scripted
    [2]
    $ bot-bottle init --provider gpt5 --yes
    error: there is no agent "gpt5"; choose one of: opencode, codex, claude, pi, command, scripted
    [2]
    "#);
}

#[test]
fn names_that_are_not_there() {
    insta::assert_snapshot!(refused(&Hermetic::new(), &[
        "start ghost --headless --prompt x",
        "start worker",
        "resume ghost --headless --prompt x",
        "logs ghost",
        "diff ghost",
        "apply ghost",
        "checkout ghost",
        "freeze ghost",
        "destroy ghost",
    ]), @"
    $ bot-bottle start ghost --headless --prompt x
    error: there is no agent 'ghost' ([ROOT]/home/.bot-bottle/agents/ghost.toml); make one with: bot-bottle agent new ghost
    [125]
    $ bot-bottle start worker
    error: there is no terminal to show the agent on: give --headless and --prompt TEXT, @file or -; look into it with 'bot-bottle logs -f' and 'bot-bottle exec'
    [2]
    $ bot-bottle resume ghost --headless --prompt x
    error: there is no bottle 'ghost'; see: bot-bottle list
    [125]
    $ bot-bottle logs ghost
    error: there is no bottle 'ghost'; see: bot-bottle list
    [3]
    $ bot-bottle diff ghost
    error: there is no bottle 'ghost'; see: bot-bottle list
    [3]
    $ bot-bottle apply ghost
    error: there is no bottle 'ghost'; see: bot-bottle list
    [3]
    $ bot-bottle checkout ghost
    error: there is no bottle 'ghost'; see: bot-bottle list
    [3]
    $ bot-bottle freeze ghost
    error: there is no bottle 'ghost'; see: bot-bottle list
    [3]
    $ bot-bottle destroy ghost
    error: there is no bottle 'ghost'; see: bot-bottle list
    [3]
    ");
}

#[test]
fn records_and_files_that_are_not_there() {
    insta::assert_snapshot!(refused(&Hermetic::new(), &[
        "agent show ghost",
        "agent new Worker",
        "bottle check ghost",
        "key show",
        "provenance show ghost",
        "provenance verify nowhere/provenance.json",
        "serve --config nowhere.toml",
        "config check nowhere.toml",
        "hook install a/b --url https://bottles.example",
        "orchestrate start --agent a --prompt x",
    ]), @r#"
    $ bot-bottle agent show ghost
    error: there is no agent 'ghost' ([ROOT]/home/.bot-bottle/agents/ghost.toml); make one with: bot-bottle agent new ghost
    [2]
    $ bot-bottle agent new Worker
    error: "Worker" is not a valid agent name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit
    [2]
    $ bot-bottle bottle check ghost
    error: there is no bottle 'ghost' ([ROOT]/home/.bot-bottle/bottles/ghost.toml); make one with: bot-bottle bottle new ghost
    [2]
    $ bot-bottle key show
    error: there is no signing key ([ROOT]/home/.bot-bottle/attest/signing-key.pem); make one with: bot-bottle key create
    [3]
    $ bot-bottle provenance show ghost
    error: there is no bottle and no run 'ghost'; see: bot-bottle list
    [3]
    $ bot-bottle provenance verify nowhere/provenance.json
    error: could not read nowhere/provenance.json: No such file or directory (os error 2)
    [3]
    $ bot-bottle serve --config nowhere.toml
    error: could not read nowhere.toml: No such file or directory (os error 2); begin one with: bot-bottle config show > nowhere.toml
    [2]
    $ bot-bottle config check nowhere.toml
    error: could not read nowhere.toml: No such file or directory (os error 2); begin one with: bot-bottle config show > nowhere.toml
    [2]
    $ bot-bottle hook install a/b --url https://bottles.example
    error: the forge of a/b is not known: set FORGE_GITEA_API, or give the repository's whole address
    [2]
    $ bot-bottle orchestrate start --agent a --prompt x
    error: FORGE_GITEA_API is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    [125]
    "#);
}

#[test]
fn manifests_and_configurations_that_cannot_be_read() {
    let hermetic = Hermetic::new();
    let agents = hermetic.home().join(".bot-bottle/agents");
    std::fs::create_dir_all(&agents).expect("made");
    std::fs::write(agents.join("odd.toml"), "provder = \"claude\"\n").expect("written");
    std::fs::write(agents.join("worker.toml"), "provider = \"claude\"\nmodel = \"m\"\n")
        .expect("written");
    let work = hermetic.work();
    std::fs::write(work.join("open.toml"), "listen = \"0.0.0.0:1\n").expect("written");
    std::fs::write(work.join("shape.toml"), "[forge]\n").expect("written");
    std::fs::write(work.join("public.toml"), "listen = \"0.0.0.0:1\"\n").expect("written");
    insta::assert_snapshot!(refused(&hermetic, &[
        "agent check odd",
        "agent check worker",
        "agent new worker",
        "config check open.toml",
        "config check shape.toml",
        "config check public.toml",
        "serve --config public.toml",
    ]), @r#"
    $ bot-bottle agent check odd
    error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 1: unknown field `provder`, expected one of `provider`, `agent`, `model`, `variant`, `persona`, `prompt`, `bottle`, `command`, `script`, `protect`, `allow_paths`, `check`, `check_timeout_secs`, `check_rounds`, `plan`, `sign_commits`, `pull_labels`, `server`, `egress`, `limits`, `spend`
    [2]
    $ bot-bottle agent check worker
    error: the model's key is not there: set ANTHROPIC_API_KEY, or name a file that holds it
    hint: in the manifest: key_file or key_command below [server]
    [2]
    $ bot-bottle agent new worker
    error: [ROOT]/home/.bot-bottle/agents/worker.toml is there already; edit it, or choose another name
    [2]
    $ bot-bottle config check open.toml
    error: open.toml: line 1: listen = "0.0.0.0:1: invalid basic string, expected `"`
    [2]
    $ bot-bottle config check shape.toml
    error: shape.toml: line 1: [forge]: invalid type: map, expected a sequence
    [2]
    $ bot-bottle config check public.toml
    error: the page on 0.0.0.0:1 would be open to everyone; set admin_token_file or user_header, or listen on 127.0.0.1
    [2]
    $ bot-bottle serve --config public.toml
    error: the page on 0.0.0.0:1 would be open to everyone; set admin_token_file or user_header, or listen on 127.0.0.1
    [2]
    "#);
}

#[test]
fn places_that_are_no_checkout() {
    let Some(person) = Person::new() else { return };
    person.agent("worker", "");
    person.script("[[step]]\nprint = \"hello\"\n");
    insta::assert_snapshot!(refused(&person.hermetic, &[
        "start worker --headless --prompt x --backend lxc",
        "start worker --headless --prompt x --repo /no/such/folder",
        "start worker --headless --prompt x",
        "start worker --headless --prompt @/no/such/prompt",
    ]), @"
    $ bot-bottle start worker --headless --prompt x --backend lxc
    error: unknown backend 'lxc'; use docker or bwrap (podman is reached as docker)
    [125]
    $ bot-bottle start worker --headless --prompt x --repo /no/such/folder
    error: no git repository at /no/such/folder
    hint: run bot-bottle in a checkout, or name one with --repo
    [125]
    $ bot-bottle start worker --headless --prompt x
    error: [ROOT]/work is not inside a git repository; run bot-bottle in a checkout, or name one with --repo
    [125]
    $ bot-bottle start worker --headless --prompt @/no/such/prompt
    error: could not read the prompt /no/such/prompt: No such file or directory (os error 2)
    [2]
    ");
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let hermetic = Hermetic::new();
    let home = hermetic.home().join(".bot-bottle");
    std::fs::write(&home, "a file in the way").expect("written");
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o400)).expect("set");
    insta::assert_snapshot!(refused(&hermetic, &["agent new worker"]), @"
    $ bot-bottle agent new worker
    error: could not create [ROOT]/home/.bot-bottle/agents: Not a directory (os error 20)
    [1]
    ");
}
