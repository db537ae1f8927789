//! Wrong command lines: one clear line, the right status, and the next step.

use testkit::refusal::refusals;
use testkit::repo::Fork;

use crate::support::{MERGE, Person};

fn refused(person: &Person, lines: &[&str]) -> String {
    refusals(&person.hermetic, "forklift", lines, |words| person.forklift(words))
}

#[test]
fn words_that_forklift_does_not_know() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(refused(&person, &[
        "runz",
        "runs --al",
        "doctor now",
        "completions",
        "completions tcsh",
        "merge-plan",
        "--all",
    ]), @"
    $ forklift runz
    error: unknown command 'runz'; did you mean 'runs'? See: forklift --help
    [2]
    $ forklift runs --al
    error: unknown option '--al'; see: forklift runs --help
    [2]
    $ forklift doctor now
    error: unexpected word 'now'; see: forklift doctor --help
    [2]
    $ forklift completions
    error: <SHELL> is missing; see: forklift completions --help
    [2]
    $ forklift completions tcsh
    error: the shell 'tcsh' is not one of bash, elvish, fish, powershell, zsh
    [2]
    $ forklift merge-plan
    error: --git-dir <DIR>, <OURS>, <THEIRS> are missing; see: forklift merge-plan --help
    [2]
    $ forklift --all
    error: --all needs a value; see: forklift --help
    [2]
    ");
}

#[test]
fn values_that_do_not_fit() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(refused(&person, &[
        "--timeout",
        "--timeout abc",
        "--timeout 0",
        "--timeout -5",
        "--silence 99999999999999999999",
        "--trust 2",
        "--agent-when sometimes",
        "--backend lxc",
        "--timeout 5 --timeout 6",
        "--timeout 5 runs",
        "--all a -C b",
        "replay --last 0",
        "replay --html /no/such/folder/x.html",
        "prune --older-than yesterday",
        "prune --keep many",
    ]), @"
    $ forklift --timeout
    error: --timeout needs a value; see: forklift --help
    [2]
    $ forklift --timeout abc
    error: --timeout needs a whole number, not 'abc'; see: forklift --help
    [2]
    $ forklift --timeout 0
    error: --timeout needs a number from 1 to 86400, not '0'; see: forklift --help
    [2]
    $ forklift --timeout -5
    error: --timeout cannot be '-5'; see: forklift --help
    [2]
    $ forklift --silence 99999999999999999999
    error: --silence cannot be as large as '99999999999999999999'; see: forklift --help
    [2]
    $ forklift --trust 2
    error: --trust: 2 is not a trust threshold: it must be a number from 0 to 1; see: forklift --help
    [2]
    $ forklift --agent-when sometimes
    error: 'sometimes' is not a value of --agent-when: choose one of conflict, always; see: forklift --help
    [2]
    $ forklift --backend lxc
    error: unknown backend 'lxc'; use docker or bwrap (podman is reached as docker)
    [2]
    $ forklift --timeout 5 --timeout 6
    error: --timeout is given more than once; see: forklift --help
    [2]
    $ forklift --timeout 5 runs
    error: options of a run do not go before a subcommand; see: forklift help <COMMAND>
    [2]
    $ forklift --all a -C b
    error: --all cannot be used with --directory; see: forklift --help
    [2]
    $ forklift replay --last 0
    error: --last needs a number of at least 1, not '0'; see: forklift replay --help
    [2]
    $ forklift replay --html /no/such/folder/x.html
    error: cannot write /no/such/folder/x.html: there is no folder /no/such/folder
    hint: name another file with --html FILE
    [2]
    $ forklift prune --older-than yesterday
    error: --older-than: 'yesterday' is no age; give a number and w, d, h or m, such as 30d; see: forklift prune --help
    [2]
    $ forklift prune --keep many
    error: --keep needs a whole number, not 'many'; see: forklift prune --help
    [2]
    ");
}

#[test]
fn agents_that_cannot_be_used() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(refused(&person, &[
        "--provider gpt5",
        "--provider command",
        "--provider scripted --agent-when always",
        "--provider scripted --agent-when always --script /no/such/script.toml",
        "agents install gpt5",
        "agents install command",
        "init --provider gpt5 --yes",
    ]), @r#"
    $ forklift --provider gpt5
    error: there is no agent "gpt5"; choose one of: opencode, codex, claude, pi, command, scripted
    [2]
    $ forklift --provider command
    error: the agent 'command' is not for forklift; choose one of: opencode, codex, claude, pi
    [2]
    $ forklift --provider scripted --agent-when always
    error: the scripted agent needs a script; name it with --script FILE
    [2]
    $ forklift --provider scripted --agent-when always --script /no/such/script.toml
    error: could not read the script /no/such/script.toml: No such file or directory (os error 2)
    [2]
    $ forklift agents install gpt5
    error: 'gpt5' is no agent with a program to install; choose one of: opencode, codex, claude, pi
    [2]
    $ forklift agents install command
    error: 'command' is no agent with a program to install; choose one of: opencode, codex, claude, pi
    [2]
    $ forklift init --provider gpt5 --yes
    error: there is no agent "gpt5"; choose one of: opencode, codex, claude, pi, command, scripted
    [2]
    "#);
}

#[test]
fn runs_and_keys_that_are_not_there() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(refused(&person, &[
        "show nothing",
        "show",
        "log nothing",
        "resume nothing",
        "retry nothing",
        "attach nothing",
        "publish nothing",
        "withdraw nothing",
        "config get nothing",
        "config set nothing 1",
    ]), @"
    $ forklift show nothing
    error: there is no run 'nothing'; see: forklift runs
    [2]
    $ forklift show
    error: this fork has no such run; see: forklift runs
    [2]
    $ forklift log nothing
    error: there is no run 'nothing'; see: forklift runs
    [2]
    $ forklift resume nothing
    error: there is no run 'nothing'; see: forklift runs
    [2]
    $ forklift retry nothing
    error: there is no run 'nothing'; see: forklift runs
    [2]
    $ forklift attach nothing
    error: there is no run 'nothing'; see: forklift runs
    [2]
    $ forklift publish nothing
    error: there is no run 'nothing'; see: forklift runs
    [2]
    $ forklift withdraw nothing
    error: there is no run 'nothing'; see: forklift runs
    [2]
    $ forklift config get nothing
    error: there is no key 'nothing'; the keys are listed by: forklift config list
    [2]
    $ forklift config set nothing 1
    error: there is no key 'nothing'; the keys are listed by: forklift config list
    [2]
    ");
}

#[test]
fn a_run_name_that_is_the_start_of_several() {
    let Some(person) = Person::new() else { return };
    for flags in [&[][..], &["--again"]] {
        assert_eq!(person.hermetic.run(&mut person.alone(flags)).status, Some(0));
    }
    let output = person.hermetic.run(&mut person.forklift(&["show", "20"]));
    let line = output.stderr.trim_end();
    assert_eq!((output.status, line.lines().count()), (Some(2), 1), "{}", output.snapshot());
    assert!(
        line.starts_with("error: \"20\" could be any of ")
            && line.ends_with("; give more of the name"),
        "{line}"
    );
}

#[test]
fn places_that_are_no_fork() {
    let Some(person) = Person::new() else { return };
    std::fs::create_dir(person.hermetic.root().join("elsewhere")).expect("made");
    insta::assert_snapshot!(refused(&person, &[
        "-C /no/such/folder",
        "-C ../../elsewhere",
        "--all @/no/such/list",
        "--main-branch trunk",
        "--target v99",
        "changelog --target v99",
        "merge-plan --git-dir .git HEAD nothing",
        "merge-plan --git-dir nowhere HEAD HEAD",
        "merge-plan --git-dir .. HEAD HEAD",
    ]), @"
    $ forklift -C /no/such/folder
    error: there is no folder /no/such/folder; name a checkout of your fork with -C DIR
    [2]
    $ forklift -C ../../elsewhere
    error: ../../elsewhere is not inside a git repository; run forklift in a checkout of your fork
    [2]
    $ forklift --all @/no/such/list
    error: could not read the list /no/such/list: No such file or directory (os error 2)
    [2]
    $ forklift --main-branch trunk
    error: the remote 'origin' has no branch 'trunk' (it has main); name another with --main-branch
    [2]
    $ forklift --target v99
    error: upstream has no tag, branch or commit 'v99'; see: git ls-remote upstream
    [2]
    $ forklift changelog --target v99
    error: upstream has no tag, branch or commit 'v99'; see: git ls-remote upstream
    [2]
    $ forklift merge-plan --git-dir .git HEAD nothing
    error: .git has no commit 'nothing'; see: git -C .git log --all
    [2]
    $ forklift merge-plan --git-dir nowhere HEAD HEAD
    error: cannot open the repository nowhere: No such file or directory (os error 2); name it with --git-dir DIR
    [2]
    $ forklift merge-plan --git-dir .. HEAD HEAD
    error: .. is not a git repository; name its .git folder with --git-dir DIR
    [2]
    ");
    person.fork.checkout.git(&["remote", "set-url", "upstream", "/no/such/upstream.git"]);
    insta::assert_snapshot!(refused(&person, &["-q"]), @"
    $ forklift -q
    error: cannot fetch upstream: '/no/such/upstream.git' does not appear to be a git repository; try: git fetch upstream
    [1]
    ");
    person.fork.checkout.git(&["remote", "remove", "upstream"]);
    insta::assert_snapshot!(refused(&person, &["-q"]), @"
    $ forklift -q
    error: this repository has no remote 'upstream' (the project it was forked from); add it with: git remote add upstream <url>, or name another with --remote-upstream
    [2]
    ");
}

#[test]
fn a_merge_plan_takes_a_relative_folder_and_names_of_commits() {
    let Some(person) = Person::new() else { return };
    let words = ["merge-plan", "--git-dir", ".git", "HEAD", "HEAD"];
    let output = person.hermetic.run(&mut person.forklift(&words));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("\"tree\""), "{}", output.snapshot());
}

#[test]
fn a_fork_file_with_a_wrong_key_names_its_line() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.write("FORK.md", "---\ncheck: make test\nchek-timeout: 5\n---\n");
    person.fork.fork_commit("rules");
    insta::assert_snapshot!(refused(&person, &["-q"]), @"
    $ forklift -q
    error: FORK.md on the fork's main branch: line 3: unknown field `chek-timeout`, expected one of setup, setup-timeout, check, check-timeout, compare-tests, target, strategy, protect, allow-paths, trust, resolve, regenerate-timeout, security, branches
    [2]
    ");
    person.fork.checkout.write("FORK.md", "---\ncheck: make test\n");
    person.fork.fork_commit("rules without an end");
    insta::assert_snapshot!(refused(&person, &["-q"]), @"
    $ forklift -q
    error: FORK.md on the fork's main branch: the rules at its top begin with '---' and never end; close them with another '---'
    [2]
    ");
}

#[test]
fn settings_that_cannot_be_read() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let folder = person.hermetic.home().join(".config/bottleworks");
    std::fs::create_dir_all(&folder).expect("made");
    for (text, line) in [
        ("agent = claude\n", "line 1: "),
        ("[limits]\ntimeout = \"soon\"\n", "line 2: "),
        ("[agnt]\n", "unknown field `agnt`, expected one of `agent`,"),
    ] {
        std::fs::write(folder.join("config.toml"), text).expect("written");
        let shown = refused(&person, &["-q"]);
        assert!(shown.contains("config.toml: ") && shown.contains(line), "{shown}");
        assert!(shown.ends_with("\n[2]\n"), "{shown}");
    }
    std::fs::remove_file(folder.join("config.toml")).expect("removed");
    insta::assert_snapshot!(refused(&person, &["-q"]), @"
    $ forklift -q
    error: an agent is needed, and none is installed that has a key
    hint: install one with: forklift agents install claude; then set ANTHROPIC_API_KEY, or run: forklift init
    [2]
    ");
}

#[test]
fn a_wrong_step_of_a_script_is_named() {
    let Some(person) = Person::new() else { return };
    let output = person.run(&MERGE.replace("run", "rum"), &["-q"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.snapshot());
    assert!(output.stderr.contains("agent.toml"), "{}", output.snapshot());
}
