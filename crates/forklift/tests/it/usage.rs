//! Bad input: one clear line, status 2, nothing started.

use std::os::unix::fs::PermissionsExt;

use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::{MERGE, Person, with_env_file};

/// One line on standard error that has all the words, status 2, and no run.
fn check(person: &Person, output: &Output, words: &[&str]) {
    check_line(output, words);
    assert_eq!(person.runs().len(), 0, "a run was started");
}

fn check_line(output: &Output, words: &[&str]) {
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    let errors: Vec<&str> =
        output.stderr.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors.len(), 1, "{}", output.stderr);
    for word in words {
        assert!(errors[0].contains(word), "{word:?} is not in {:?}", errors[0]);
    }
}

#[test]
fn a_folder_that_is_no_repository() {
    let Some(person) = Person::new() else { return };
    let elsewhere = person.hermetic.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("made");
    let output = person.run(MERGE, &["-C", elsewhere.to_str().expect("UTF-8")]);
    check(&person, &output, &["elsewhere", "not inside a git repository"]);
}

#[test]
fn a_folder_that_is_not_there() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &["-C", "/no/such/folder"]);
    check(&person, &output, &["there is no folder /no/such/folder"]);
}

#[test]
fn a_missing_remote() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.git(&["remote", "remove", "upstream"]);
    let output = person.run(MERGE, &[]);
    check(&person, &output, &["no remote 'upstream'", "git remote add upstream"]);
}

#[test]
fn a_branch_that_a_remote_does_not_have() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &["--main-branch", "trunk"]);
    check(&person, &output, &["'origin'", "'trunk'", "--main-branch"]);
}

#[test]
fn an_unknown_backend() {
    let Some(person) = Person::new() else { return };
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "lxc"]);
    let output = person.hermetic.run(&mut command);
    check(&person, &output, &["'lxc'", "docker or bwrap"]);
}

#[test]
fn an_unknown_provider() {
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(&mut person.forklift(&["--provider", "gpt"]));
    check(&person, &output, &["gpt", "scripted"]);
}

#[test]
fn a_forbidden_character_in_an_override() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &["--model", "x;rm -rf /"]);
    check(&person, &output, &["';'"]);
}

#[test]
fn a_shallow_clone() {
    let Some(person) = Person::with(|hermetic| Fork::shallow(hermetic).clean_merge()) else {
        return;
    };
    check_line(&person.run(MERGE, &[]), &["shallow clone", "--unshallow"]);
}

#[test]
fn an_env_file_that_is_missing_where_it_is_named_and_one_that_others_can_read() {
    let Some(person) = Person::new() else { return };
    let mut command = person.forklift(&[]);
    let output = person.hermetic.run(command.env("FORKLIFT_OPENCODE_ENV", "/no/such/opencode.env"));
    check(&person, &output, &["/no/such/opencode.env"]);
    let path = person.hermetic.root().join("open.env");
    std::fs::write(&path, "OPENCODE_API_KEY=k\n").expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("set");
    let mut command = person.forklift(&[]);
    let output = person.hermetic.run(command.env("FORKLIFT_OPENCODE_ENV", path));
    check(&person, &output, &["open.env", "chmod 600"]);
}

#[test]
fn a_bad_line_in_the_env_file_is_told_by_number_and_without_its_value() {
    let Some(person) = Person::new() else { return };
    let output = with_env_file(&person, "# keys\nOPENCODE_API_KEY=sk-secret`id`\n", &[]);
    check(&person, &output, &["opencode.env", "line 2"]);
    assert!(!output.stderr.contains("sk-secret"), "{}", output.stderr);
}

#[test]
fn missing_keys_in_the_env_file_are_named() {
    let Some(person) = Person::new() else { return };
    let output = with_env_file(&person, "OPENCODE_API_KEY=k\nOPENCODE_MODEL=m\n", &[]);
    check(&person, &output, &["OPENCODE_VARIANT", "OPENCODE_AGENT"]);
}

#[test]
fn a_script_that_does_not_parse() {
    let Some(person) = Person::new() else { return };
    let output = person.run("[[step]]\nprint = \"a\"\n\n[[step]]\ndance = true\n", &[]);
    check(&person, &output, &["agent.toml", "dance", "line"]);
}

#[test]
fn an_empty_repository() {
    let Some(person) = Person::with(Fork::empty) else { return };
    check(&person, &person.run(MERGE, &[]), &["no branch 'main'"]);
}

#[test]
fn a_run_that_does_not_exist() {
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(&mut person.forklift(&["attach", "nothing"]));
    check(&person, &output, &["nothing"]);
}

#[test]
fn help_teaches_and_version_answers() {
    let Some(person) = Person::new() else { return };
    let help = person.hermetic.run(&mut person.forklift(&["--help"]));
    assert_eq!(help.status, Some(0));
    for word in ["upstream", "--timeout", "Exit status", "4    the agent is stuck"] {
        assert!(help.stdout.contains(word), "{word} is not in the help");
    }
    let version = person.hermetic.run(&mut person.forklift(&["--version"]));
    assert!(version.stdout.starts_with("forklift "), "{}", version.stdout);
}

/// Runs a real agent's command line with these flags.
fn claude(person: &Person, flags: &[&str]) -> Output {
    let mut command = person.forklift(&["--provider", "claude"]);
    person.hermetic.run(command.args(flags).env("ANTHROPIC_API_KEY", "k-123456789"))
}

#[test]
fn an_agent_that_is_not_installed() {
    let Some(person) = Person::new() else { return };
    check(
        &person,
        &claude(&person, &[]),
        &["claude is not installed", "forklift agents install claude"],
    );
}

#[test]
fn an_unknown_profile_and_a_malformed_rule() {
    let Some(person) = Person::new() else { return };
    check(&person, &claude(&person, &["--egress", "everything"]), &["everything", "packages"]);
    check(&person, &claude(&person, &["--allow", "*"]), &["*", "open"]);
    check(&person, &claude(&person, &["--allow", "10.0.0.1"]), &["10.0.0.1"]);
}

#[test]
fn a_key_file_that_others_can_read() {
    let Some(person) = Person::new() else { return };
    let path = person.hermetic.root().join("key");
    std::fs::write(&path, "k-123456789\n").expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("set");
    let output = claude(&person, &["--key-file", path.to_str().expect("UTF-8")]);
    check(&person, &output, &["chmod 600"]);
}

#[test]
fn a_model_address_that_is_none_and_a_price_that_is_none() {
    let Some(person) = Person::new() else { return };
    check(&person, &claude(&person, &["--model-url", "ftp://x"]), &["ftp://x"]);
    check(&person, &claude(&person, &["--price", "cheap"]), &["'cheap'", "IN,OUT"]);
}

#[test]
fn a_key_that_is_not_there() {
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(&mut person.forklift(&["--provider", "codex"]));
    check(&person, &output, &["OPENAI_API_KEY"]);
    assert!(
        output.stderr.ends_with("hint: name a file with the key: --key-file FILE\n"),
        "{}",
        output.stderr
    );
}

/// Unrelated histories are for the agent to deal with; git inside refuses, and that is what is told.
#[test]
fn unrelated_histories_are_judged_like_any_other_result() {
    let Some(person) = Person::with(Fork::unrelated) else { return };
    let output = person.run(MERGE, &["--allow-unrelated"]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
}
