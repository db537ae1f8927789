//! The specification of forklift, one test for each SHALL and each scenario, under their names. What a word of it means in
//! depth is tested elsewhere; here each promise is kept once, end to end.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;
use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::{MERGE, Person, with_env_file};

/// The one command of every box.
const HARNESS: &str = "/opt/forklift/harness/run.sh";

const STUCK: &str = "[[step]]\nstuck = \"Which auth flow?\"\n";

const COMPLETE: &str = "OPENCODE_API_KEY=k-123456789\nOPENCODE_MODEL=anthropic/some-model\n\
                        OPENCODE_VARIANT=high\nOPENCODE_AGENT=build\n";

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What the box of the only run was ordered to be.
fn order(person: &Person) -> Value {
    let path = person.only_run().join("boxes/agent/order.json");
    serde_json::from_slice(&std::fs::read(path).expect("an order")).expect("JSON")
}

fn launches(person: &Person) -> Vec<Value> {
    let log = std::fs::read_to_string(person.only_run().join("operations.jsonl")).expect("a log");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["op"] == "launch").collect()
}

/// Requirement: Run directory preparation. "SHALL, upon each invocation, create a new run directory at
/// `$XDG_STATE_HOME/forklift/runs/<project>_<YYYYMMDD_HHMMSS>`".
#[test]
fn run_directory_preparation_a_new_run_directory_upon_each_invocation() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    person.run(MERGE, &[]);
    let folder = person.hermetic.home().join(".local/state/forklift/runs");
    let runs = names(&folder);
    assert_eq!(runs.len(), 2, "{runs:?}");
    for run in runs {
        let stamp = run.strip_prefix("fork_").expect("the project's name");
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (day, time) = stamp.split_at(8);
        assert!(digits(day) && time.starts_with('_') && digits(&time[1..7]), "{run}");
    }
}

/// Requirement: Run directory preparation. "(defaults to `~/.local/state/forklift/runs/…`)".
#[test]
fn run_directory_preparation_defaults_to_the_home_folder() {
    let Some(person) = Person::new() else { return };
    let mut command = person.command(MERGE, &[]);
    let output = person.hermetic.run(command.env_remove("XDG_STATE_HOME"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(names(&person.hermetic.home().join(".local/state/forklift/runs")).len(), 1);
}

/// Requirement: Run directory preparation. "containing a duplicated workspace copy of the current fork along with empty
/// `harness-state` and metadata files".
#[test]
fn run_directory_preparation_has_workspace_harness_state_and_metadata() {
    let Some(person) = Person::new() else { return };
    person.run("[[step]]\nrun = \"ls -A /harness-state > seen\"\n", &[]);
    let run = person.only_run();
    assert_eq!(
        std::fs::read(run.join("workspace/README.md")).expect("copied"),
        std::fs::read(person.fork.checkout.dir().join("README.md")).expect("there"),
    );
    assert!(run.join("metadata.json").is_file());
    // What is there when the agent starts was put there by the host, for the agent.
    let seen = std::fs::read_to_string(run.join("workspace/seen")).expect("the list");
    let known = ["fork-context.md", "home", "instructions.txt", "logs", "run"];
    for name in seen.lines() {
        assert!(known.contains(&name), "{name} in the harness state: {seen}");
    }
}

/// Requirement: Run directory preparation. "The duplicated workspace MUST have all Git remotes removed before being handed
/// to the agent container."
#[test]
fn run_directory_preparation_the_workspace_has_no_remotes() {
    let Some(person) = Person::new() else { return };
    let script = "[[step]]\nrun = '''git remote -v > seen; git config --get-regexp 'remote|url' >> seen; true'''\n";
    person.run(script, &[]);
    let seen = std::fs::read_to_string(person.only_run().join("workspace/seen")).expect("seen");
    assert_eq!(seen, "", "the agent saw a remote");
}

/// Scenario: Fresh run setup.
#[test]
fn scenario_fresh_run_setup() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let run = person.only_run();
    for part in ["workspace", "harness-state", "metadata.json"] {
        assert!(run.join(part).exists(), "{part} is missing");
    }
    let config = std::fs::read_to_string(run.join("workspace/.git/config")).expect("a config");
    assert!(!config.contains("remote"), "{config}");
}

/// Requirement: Workspace ownership alignment. "SHALL adjust ownership or permissions of `workspace/` and
/// `harness-state/` so they are writable by the container's non-root user".
#[test]
fn workspace_ownership_alignment_both_folders_belong_to_the_user_of_the_box() {
    let Some(person) = Person::new() else { return };
    person.run("[[step]]\nrun = \"id -u > seen\"\n", &[]);
    let run = person.only_run();
    let user = std::fs::read_to_string(run.join("workspace/seen")).expect("the user");
    assert_ne!(user.trim(), "0", "the agent is root");
    for folder in ["workspace", "workspace/.git", "harness-state"] {
        let owner = run.join(folder).metadata().expect("there").uid();
        // Without root nobody can give folders away, and the box's user is the caller under another number.
        let caller = person.hermetic.root().metadata().expect("there").uid();
        assert_eq!(owner, if caller == 0 { 1000 } else { caller }, "{folder}");
    }
}

/// Scenario: Writable mounts.
#[test]
fn scenario_writable_mounts() {
    let Some(person) = Person::new() else { return };
    let script = format!(
        "[[step]]\nrun = '''touch /workspace/a && rm /workspace/a && touch /harness-state/b && test $(id -u) != 0'''\n{MERGE}"
    );
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

/// Requirement: Container execution with enforced timeout. "SHALL start exactly one containerized agent run per
/// invocation, mounting the run's `workspace` and `harness-state` directories read-write".
#[test]
fn container_execution_exactly_one_agent_box_with_two_writable_folders() {
    let Some(person) = Person::new() else { return };
    let script = format!("[[step]]\nrun = \"echo started >> /harness-state/starts\"\n{MERGE}");
    person.run(&script, &[]);
    let run = person.only_run();
    let starts = std::fs::read_to_string(run.join("harness-state/starts")).expect("it started");
    assert_eq!((starts.lines().count(), launches(&person).len()), (1, 1));
    let spec = &order(&person)["spec"];
    assert_eq!(spec["workspace"], run.join("workspace").to_str().expect("UTF-8"));
    assert_eq!(spec["harness_state"], run.join("harness-state").to_str().expect("UTF-8"));
    assert_eq!(spec["workspace_access"], "read-write");
}

/// Requirement: Container execution with enforced timeout. "SHALL terminate the container after eight minutes of
/// wall-clock time": the default, as it is given to whoever holds the clock.
#[test]
fn container_execution_eight_minutes_by_default() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    assert_eq!(order(&person)["spec"]["deadline_secs"], 8 * 60);
    assert_eq!(person.metadata("/settings/timeout_secs"), 8 * 60);
}

/// Requirement: Container execution with enforced timeout. "The container command MUST be fixed to the bundled harness
/// entrypoint; generic overrides such as `FORKLIFT_DOCKER_COMMAND` SHALL NOT be supported."
#[test]
fn container_execution_the_command_is_fixed() {
    let Some(person) = Person::new() else { return };
    let mut command = person.command(MERGE, &[]);
    command.env("FORKLIFT_DOCKER_COMMAND", "touch /workspace/overridden");
    let output = person.hermetic.run(command.env("FORKLIFT_COMMAND", "false"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(order(&person)["spec"]["argv"], serde_json::json!([HARNESS]));
    assert!(!person.only_run().join("workspace/overridden").exists());
}

/// Requirement: Container execution with enforced timeout. "Only the validated OpenCode environment variables … may be
/// forwarded".
#[test]
fn container_execution_no_other_variable_is_forwarded() {
    let Some(person) = Person::new() else { return };
    let script = format!("[[step]]\nrun = \"env > /harness-state/seen\"\n{MERGE}");
    let mut command = person.command(&script, &[]);
    command.env("AWS_SECRET_ACCESS_KEY", "canary-aws").env("OPENCODE_EXTRA", "canary-extra");
    person.hermetic.run(command.env("GITHUB_TOKEN", "canary-github"));
    let seen = std::fs::read_to_string(person.only_run().join("harness-state/seen"));
    let seen = seen.expect("the environment");
    assert!(seen.contains("HOME=/harness-state/home") && !seen.contains("canary"), "{seen}");
}

/// Scenario: Timeout enforcement.
#[test]
fn scenario_timeout_enforcement() {
    let Some(person) = Person::new() else { return };
    let output = person.run(&format!("{MERGE}[[step]]\nsleep = 600\n"), &["--timeout", "1"]);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert_eq!(person.metadata("/box/ended/kind"), "out-of-time");
    assert_eq!(person.published(), Vec::<String>::new());
    assert!(!person.only_run().join("PULL_REQUEST.md").exists());
    assert_eq!(launches(&person)[0]["detail"]["argv"], serde_json::json!([HARNESS]));
    let variables = order(&person)["spec"]["env"].as_object().expect("variables").clone();
    let known = [
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "USER",
    ];
    for name in variables.keys() {
        assert!(known.contains(&name.as_str()), "{name} went into the box");
    }
}

/// Requirement: Upstream verification before pull request. "SHALL verify that every commit in `upstream/main` is
/// reachable from `main` … before creating a pull request". One commit of two is not every commit.
#[test]
fn upstream_verification_every_commit_counts() {
    let Some(person) = Person::new() else { return };
    person.fork.upstream_commit("third.txt", "3\n", "third");
    let script = "[[step]]\nrun = \"git merge --no-edit upstream/main~1\"\n";
    let output = person.run(script, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "not-integrated");
}

/// Requirement: Upstream verification before pull request. "If verification fails, no pull request SHALL be created and
/// the maintainer SHALL inspect the run directory".
#[test]
fn upstream_verification_a_failure_makes_no_pull_request_and_names_the_run() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let output = on_forge(&person, &forge, "[[step]]\nprint = \"done\\n\"\n");
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!((forge.pulls().len(), person.published().len()), (0, 0));
    let run = person.only_run();
    assert!(output.stdout.contains(run.to_str().expect("UTF-8")), "{}", output.stdout);
}

/// Scenario: Verified merge result.
#[test]
fn scenario_verified_merge_result() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let output = on_forge(&person, &forge, MERGE);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    let published = person.published();
    assert_eq!(published.len(), 1, "{published:?}");
    let (upstream, tip) = (person.fork.upstream.sha("main"), person.fork.origin.sha(&published[0]));
    person.fork.origin.git(&["merge-base", "--is-ancestor", &upstream, &tip]);
}

/// Requirement: STUCK handoff. "SHALL leave that file within the run directory unchanged, skip pull-request creation, and
/// exit with a non-success status".
#[test]
fn stuck_handoff_the_file_is_unchanged_and_the_status_is_no_success() {
    let Some(person) = Person::new() else { return };
    let script = "[[step]]\nrun = '''printf 'tried:\\n\\tall of it\\n\\nwhich?' > STUCK.md; sha256sum STUCK.md > /harness-state/sum'''\n";
    let output = person.run(script, &[]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    let run = person.only_run();
    let mut command = person.hermetic.command("sha256sum");
    command.current_dir(run.join("workspace")).args(["-c", "../harness-state/sum"]);
    person.hermetic.run_ok(&mut command);
    assert!(!run.join("PULL_REQUEST.md").exists());
}

/// Scenario: Stuck outcome captured.
#[test]
fn scenario_stuck_outcome_captured() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let output = on_forge(&person, &forge, STUCK);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    assert!(output.stdout.contains("stuck") && output.stdout.contains("Which auth flow?"));
    assert!(person.only_run().join("workspace/STUCK.md").exists());
    assert_eq!(forge.pulls().len(), 0);
}

/// Requirement: OpenCode configuration handling. "SHALL read OpenCode credentials and defaults from
/// `~/.config/forklift/opencode.env`".
#[test]
fn opencode_configuration_is_read_from_its_usual_place() {
    let Some(person) = Person::new() else { return };
    let path = person.hermetic.home().join(".config/forklift/opencode.env");
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    std::fs::write(&path, "OPENCODE_API_KEY=k\n").expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
    let output = person.hermetic.run(&mut person.forklift(&[]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains(".config/forklift/opencode.env"), "{}", output.stderr);
    assert!(output.stderr.contains("OPENCODE_MODEL"), "{}", output.stderr);
}

/// Requirement: OpenCode configuration handling. "(or the path supplied via env override)".
#[test]
fn opencode_configuration_is_read_from_the_path_of_the_override() {
    let Some(person) = Person::new() else { return };
    let output = with_env_file(&person, "OPENCODE_MODEL=m\n", &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("my opencode.env"), "{}", output.stderr);
}

/// Requirement: OpenCode configuration handling. "validate that required keys … are present".
#[test]
fn opencode_configuration_each_required_key_is_required() {
    let Some(person) = Person::new() else { return };
    for key in ["OPENCODE_API_KEY", "OPENCODE_MODEL", "OPENCODE_VARIANT", "OPENCODE_AGENT"] {
        let rest: Vec<&str> = COMPLETE.lines().filter(|line| !line.starts_with(key)).collect();
        let output = with_env_file(&person, &format!("{}\n", rest.join("\n")), &[]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains(key), "{}", output.stderr);
    }
    assert_eq!(person.runs().len(), 0);
}

/// Requirement: OpenCode configuration handling. "SHALL provide typed options (`--model`, `--variant`, `--agent`) … MUST
/// reject any values containing characters outside the safe whitelist".
#[test]
fn opencode_configuration_options_are_held_to_the_whitelist() {
    let Some(person) = Person::new() else { return };
    for option in ["--model", "--variant", "--agent"] {
        for value in ["a;b", "a b", "$(id)", "a`b", "a\nb", "a'b", "a\\b", "ä", ""] {
            let output = with_env_file(&person, COMPLETE, &[option, value]);
            assert_eq!(output.status, Some(2), "{option} {value:?}: {}", output.snapshot());
            assert!(!output.stderr.contains("not installed"), "{option} {value:?} was accepted");
        }
        // One that keeps to it gets as far as the next thing that is missing here.
        let output = with_env_file(&person, COMPLETE, &[option, "anthropic/some-model_1.5"]);
        assert!(output.stderr.contains("not installed"), "{}", output.stderr);
    }
    assert_eq!(person.runs().len(), 0);
}

/// Requirement: OpenCode configuration handling, "export only those values", and Scenario: Validated configuration. A
/// stand-in for the program shows what it was given.
#[test]
fn scenario_validated_configuration() {
    let Some(person) = Person::new() else { return };
    install_stand_in(&person);
    let flags = [
        "--model",
        "claude-35-sonnet",
        "--model-url",
        "http://127.0.0.1:9",
        "--backend",
        "bwrap",
        "--agent-when",
        "always",
    ];
    let more = format!("{COMPLETE}OPENCODE_UNKNOWN=canary-unknown\n");
    let output = with_env_file(&person, &more, &flags);
    let run = person.only_run();
    let seen = std::fs::read(run.join("harness-state/seen"));
    let seen = seen.unwrap_or_else(|error| panic!("{error}: {}", output.snapshot()));
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("claude-35-sonnet"), "the override was not used: {seen}");
    assert!(!seen.contains("some-model"), "the default was used: {seen}");
    for secret in ["k-123456789", "canary"] {
        assert!(!seen.contains(secret), "{secret} went into the box: {seen}");
    }
}

/// Puts a program where OpenCode's would be installed: it notes its words and its variables, and ends.
fn install_stand_in(person: &Person) {
    let listed = person.hermetic.run(&mut person.forklift(&["agents", "list", "--json"])).stdout;
    let row = listed.lines().find(|line| line.contains("\"opencode\"")).expect("OpenCode");
    let row: Value = serde_json::from_str(row).expect("JSON");
    let version = row["version"].as_str().expect("a version");
    let folder =
        person.hermetic.home().join(".local/share/bottleworks/agents/opencode").join(version);
    for flavour in ["x64", "x64-baseline", "arm64"] {
        let program = folder.join(format!("node_modules/opencode-linux-{flavour}/bin/opencode"));
        std::fs::create_dir_all(program.parent().expect("a parent")).expect("made");
        std::fs::write(&program, "#!/bin/sh\n{ echo \"$@\"; env; cat /harness-state/run/* ; } > /harness-state/seen 2>/dev/null\n")
            .expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("set");
    }
}

fn on_forge(person: &Person, forge: &FakeGitea, script: &str) -> Output {
    let mut command = person.command(script, &["--forge-url", &forge.remote_url()]);
    person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN))
}

/// The early exit that the design adds to it: an upstream that is contained already costs nothing and is recorded.
#[test]
fn nothing_to_integrate_is_a_recorded_success() {
    let Some(person) = Person::with(Fork::new) else { return };
    let output = person.run(STUCK, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "up-to-date");
}
