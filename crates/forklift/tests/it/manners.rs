//! Words and statuses: what to type next, what is in the way, progress, signals, lists.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::fake_forge::FakeGitea;
use testkit::repo::Fork;
use testkit::screen::Screen;
use testkit::wait::wait_until;

use crate::crash::killed_at;
use crate::support::{MERGE, Person, name_of, run_if_needed, two_conflicts};

fn forklift(person: &Person, words: &[&str]) -> testkit::hermetic::Output {
    person.hermetic.run(&mut person.forklift(words))
}

#[test]
fn a_result_ends_with_the_command_to_type_next() {
    for (script, flags, next) in [
        (MERGE, &[][..], "git fetch origin && git diff origin/main...origin/forklift/"),
        ("[[step]]\nstuck = \"help\"\n", &[], "forklift resume RUN --answer"),
        ("[[step]]\nsleep = 60\n", &["--timeout", "1"], "forklift resume RUN --timeout 2"),
        ("[[step]]\nexit = 3\n", &[], "forklift log RUN; forklift resume RUN"),
        ("[[step]]\nprint = \"nothing\"\n", &[], "forklift resume RUN --instruction"),
    ] {
        let Some(person) = Person::new() else { return };
        let output = person.run(script, flags);
        let run = name_of(&person.only_run());
        let last = output.stdout.lines().last().expect("a line");
        let expected = format!("next        {}", next.replace("RUN", &run));
        assert!(last.starts_with(&expected), "{expected}: {}", output.snapshot());
    }
}

#[test]
fn a_remote_that_is_away_is_named_without_the_options_of_git() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.git(&["remote", "set-url", "upstream", "/no/such/upstream.git"]);
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    let error = output.stderr.lines().find(|line| line.starts_with("error")).expect("an error");
    assert!(error.starts_with("error: cannot fetch upstream: '/no/such/upstream.git'"), "{error}");
    assert!(!error.contains("--"), "{error}");
    assert!(error.ends_with("; try: git fetch upstream"), "{error}");
}

#[test]
fn a_pull_request_that_could_not_be_opened_for_want_of_a_token_is_not_a_success() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let url = forge.remote_url();
    let output = person.hermetic.run(&mut person.alone(&["-q", "--forge-url", &url]));
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert!(output.stdout.contains("set BOTTLEWORKS_FORGE_TOKEN"), "{}", output.stdout);
    assert_eq!(person.published().len(), 1);
    let flags = ["--again", "--no-pull-request", "--forge-url", &url];
    let output = person.hermetic.run(&mut person.alone(&flags));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn another_run_names_the_one_that_is_not_finished() {
    let Some(person) = Person::new() else { return };
    killed_at(&person, "judged", MERGE, &[]);
    let open = name_of(&person.only_run());
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    let output = person.run(MERGE, &["-q"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains(&format!("forklift attach {open}")), "{}", output.stderr);
}

#[test]
fn the_preview_counts_conflicts_as_the_run_does() {
    let Some(person) = two_conflicts(crate::support::THEIRS) else { return };
    let output = forklift(&person, &["changelog"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let words = "2 conflicts: 1 resolved without a model, 1 for an agent to resolve";
    assert!(output.stdout.contains(words), "{}", output.stdout);
    let run = run_if_needed(&person, "[[step]]\nexit = 3\n", &[]);
    assert!(run.stderr.contains("1 of 2 conflicts resolved without a model"), "{}", run.stderr);
}

#[test]
fn a_replay_of_nothing_or_into_nowhere_is_refused_at_once() {
    let Some(person) = Person::new() else { return };
    for words in [&["replay", "--last", "0"][..], &["replay", "--html", "/no/such/folder/x.html"]] {
        let output = forklift(&person, words);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(!output.stderr.contains("replaying"), "{}", output.stderr);
    }
}

#[test]
fn an_empty_list_says_what_to_do() {
    let Some(person) = Person::with(Fork::new) else { return };
    for word in ["runs", "status"] {
        let output = forklift(&person, &[word]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.ends_with("with: forklift\n"), "{}", output.stdout);
        let json = forklift(&person, &[word, "--json"]);
        assert_eq!(json.stdout.trim(), "[]");
    }
}

#[test]
fn the_status_shows_every_fork_and_what_to_do_next() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    let other = Fork::named(&person.hermetic, "other").clean_merge();
    let folder = other.checkout.dir().to_str().expect("UTF-8");
    let mut command = person.command("[[step]]\nstuck = \"help\"\n", &["-C", folder]);
    assert_eq!(person.hermetic.run(&mut command).status, Some(4));
    let output = forklift(&person, &["status"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let blocks: Vec<&str> = output.stdout.split("\n\n").collect();
    assert_eq!(blocks.len(), 2, "{}", output.stdout);
    for (block, words) in [
        (blocks[0], ["other (main)", "by 1 commit,", "blocked", "--answer"]),
        (blocks[1], ["(main)", "by 1 commit,", "last good", " fetch origin && git -C "]),
    ] {
        for word in words {
            assert!(block.contains(word), "{word}: {}", output.stdout);
        }
    }
    let json = forklift(&person, &["status", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(rows[0]["verdict"]["kind"], "stuck", "{rows}");
    assert_eq!(rows[1]["behind"], 1, "{rows}");
    assert_eq!((&rows[0]["missed"], &rows[1]["missed"]), (&1.into(), &0.into()), "{rows}");
}

#[test]
fn the_status_is_red_after_two_missed_syncs_and_when_none_was_good_for_too_long() {
    let Some(person) = Person::new() else { return };
    let stuck = "[[step]]\nstuck = \"help\"\n";
    for expected in [Some(0), Some(3)] {
        assert_eq!(person.run(stuck, &["--again"]).status, Some(4));
        let output = forklift(&person, &["status"]);
        assert_eq!(output.status, expected, "{}", output.snapshot());
    }
    let output = forklift(&person, &["status"]);
    assert!(output.stdout.contains("2 syncs in a row without a result"), "{}", output.stdout);
    assert_eq!(person.run(crate::support::MERGE, &[]).status, Some(0));
    assert_eq!(forklift(&person, &["status"]).status, Some(0));
    assert_eq!(forklift(&person, &["status", "--max-days", "0"]).status, Some(0));
}

/// Puts a git before the real one that does something first at one of its commands. Returns its folder.
fn git_that(person: &Person, word: &str, act: &str) -> PathBuf {
    let folder = person.hermetic.root().join("slow");
    std::fs::create_dir_all(&folder).expect("made");
    let git = person.hermetic.command("sh").args(["-c", "command -v git"]).output().expect("sh");
    let git = String::from_utf8(git.stdout).expect("UTF-8");
    let text = format!(
        "#!/bin/sh\nfor word; do if [ \"$word\" = {word} ]; then {act}; fi; done\nexec {} \"$@\"\n",
        git.trim()
    );
    let path = folder.join("git");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("set");
    folder
}

fn in_path(mut command: Command, folder: &Path) -> Command {
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, it)| it);
    let path = format!("{}:{}", folder.display(), path.expect("a path").to_string_lossy());
    command.env("PATH", path);
    command
}

/// Starts a run that hangs at a command of git and sends it a signal there.
fn stopped_at(person: &Person, word: &str, signal: &str) -> (Option<i32>, String) {
    let reached = person.hermetic.root().join("reached");
    let folder = git_that(person, word, &format!(": > '{}'; exec sleep 600", reached.display()));
    let mut command = in_path(person.alone(&[]), &folder);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("forklift starts");
    wait_until("the hanging git", || reached.exists());
    let pid = child.id().to_string();
    person.hermetic.run_ok(person.hermetic.command("kill").args([signal, &pid]));
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_signal_ends_a_run_at_once_before_any_box_is_started() {
    for (word, signal, status) in
        [("fetch", "-INT", 130), ("pack-objects", "-TERM", 143), ("merge-tree", "-TERM", 143)]
    {
        let Some(person) = Person::new() else { return };
        let (code, stderr) = stopped_at(&person, word, signal);
        assert_eq!(code, Some(status), "{word}: {stderr}");
        assert!(stderr.contains("stopped: "), "{word}: {stderr}");
        let Some(run) = person.runs().pop() else { continue };
        assert!(!run.join("boxes").exists(), "{word}: a box was started");
        assert!(stderr.contains(&format!("forklift attach {}", name_of(&run))), "{stderr}");
        let output = forklift(&person, &["attach"]);
        assert_eq!(output.status, Some(0), "{word}: {}", output.snapshot());
        assert_eq!(person.published().len(), 1);
    }
}

#[test]
fn a_stopped_agent_has_the_status_of_the_signal_also_later() {
    let Some(person) = Person::new() else { return };
    let mut child = person.start("[[step]]\nsleep = 600\n", &[]);
    person.wait_for_box(&mut child);
    let pid = child.id().to_string();
    person.hermetic.run_ok(person.hermetic.command("kill").args(["-INT", &pid]));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let output = forklift(&person, &["attach"]);
    assert_eq!(output.status, Some(130), "{}", output.snapshot());
    assert!(output.stdout.contains("next        forklift resume "), "{}", output.stdout);
}

#[test]
fn a_list_fits_the_window_and_is_one_line_for_a_program() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    let line = format!("stty cols 60; {} runs; cat", env!("CARGO_BIN_EXE_forklift"));
    let dir = person.fork.checkout.dir();
    let Some(screen) = Screen::start(&person.hermetic, dir, &["sh", "-c", &line]) else { return };
    let text = screen.shows("verified");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    let listed = forklift(&person, &["runs"]);
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    let run = name_of(&person.only_run());
    assert!(listed.stdout.contains(&format!("forklift/{run}")), "{}", listed.stdout);
}

#[test]
fn a_step_that_takes_long_says_so_where_there_is_no_terminal() {
    let Some(person) = Person::new() else { return };
    let gate = person.hermetic.root().join("gate");
    let wait = format!("until [ -e '{}' ]; do sleep 0.05; done", gate.display());
    let folder = git_that(&person, "fetch", &wait);
    let mut command = in_path(person.alone(&[]), &folder);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("forklift starts");
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut lines = stderr.lines().map(|line| line.expect("UTF-8"));
    assert!(lines.any(|line| line.contains("no answer yet")), "it said nothing");
    std::fs::write(&gate, "").expect("opened");
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{rest:?}");
}

/// The fields of `show` by their labels, with a zone three hours east of Greenwich.
fn shown(person: &Person) -> Vec<(String, String)> {
    let output = person.hermetic.run(person.forklift(&["show"]).env("TZ", "TST-3"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let field = |line: &str| {
        let (label, value) = line.split_at_checked(12)?;
        Some((label.trim().to_owned(), value.to_owned()))
    };
    output.stdout.lines().filter_map(field).collect()
}

#[track_caller]
fn value<'a>(fields: &'a [(String, String)], label: &str) -> &'a str {
    let found = fields.iter().find(|(name, _)| name == label);
    found.map_or_else(|| panic!("{label} is not in {fields:?}"), |(_, value)| value.as_str())
}

#[test]
fn a_run_is_shown_with_its_agent_its_times_and_its_zone() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let fields = shown(&person);
    assert_eq!(value(&fields, "agent"), "scripted on bwrap");
    assert!(value(&fields, "started").ends_with(" TST"), "{fields:?}");
    for label in ["took", "agent time"] {
        assert!(value(&fields, label).ends_with(" s"), "{fields:?}");
    }
    let json = forklift(&person, &["show", "--json"]);
    let record: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(record["started_at"].as_str().expect("a time").ends_with('Z'), "{record}");
}

#[test]
fn a_run_without_an_agent_says_so_and_names_no_box() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    let fields = shown(&person);
    assert_eq!(value(&fields, "agent"), "none was needed");
    assert!(!fields.iter().any(|(label, _)| label == "agent time"), "{fields:?}");
}

#[test]
fn shells_complete_the_names_of_agents() {
    let Some(person) = Person::new() else { return };
    let folder = person.hermetic.home().join(".config/bottleworks");
    std::fs::create_dir_all(&folder).expect("made");
    let text = "[agents.local]\nprovider = \"opencode\"\n";
    std::fs::write(folder.join("config.toml"), text).expect("written");
    for (words, expected) in [
        (&["--provider", ""][..], "local\nopencode\ncodex\nclaude\npi\ncommand\nscripted"),
        (&["agents", "install", ""], "opencode\ncodex\nclaude\npi"),
    ] {
        let mut command = person.forklift(&["--", "forklift"]);
        let output = person.hermetic.run(command.args(words).env("COMPLETE", "fish"));
        assert!(output.stdout.starts_with(expected), "{words:?}: {}", output.snapshot());
    }
}
