//! The life of a bottle at the command line: freeze, stop, destroy, list, logs, exec, doctor.

use std::process::{Child, Stdio};

use testkit::wait::wait_for;

use crate::support::{COMMIT, FIRST_STEP_DONE, Person};

/// Starts a bottle that works for a long time, and waits until its agent is at work.
fn busy(person: &Person, slug: &str) -> Child {
    person.script("[[step]]\nrun = \"touch left\"\n[[step]]\nsleep = 600\n");
    let args =
        ["start", "worker", "--headless", "--prompt", "x", "--label", slug, "--backend", "bwrap"];
    let mut command = person.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("it starts");
    wait_for("the agent", || {
        let run =
            std::fs::read_dir(person.bottle(slug).join("runs")).ok()?.flatten().next()?.path();
        let log = std::fs::read_to_string(run.join("boxes/agent/stdout.log")).ok()?;
        log.contains(FIRST_STEP_DONE).then_some(())
    });
    child
}

fn state(person: &Person, slug: &str) -> String {
    let rows = person.json(&["list"]);
    let rows = rows.as_array().expect("a list");
    let row = rows.iter().find(|row| row["slug"] == slug).expect("the bottle");
    row["state"].as_str().expect("a state").to_owned()
}

#[test]
fn freeze_ends_the_agent_and_keeps_everything() {
    let Some(person) = Person::new() else { return };
    let mut child = busy(&person, "busy");
    assert_eq!(state(&person, "busy"), "running");
    let output = person.run(&["freeze", "busy"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(child.wait().expect("ended").code(), Some(143));
    assert_eq!(state(&person, "busy"), "frozen");
    assert_eq!(person.provenance("busy")["exit"]["class"], "frozen");
    let output = person.resume("busy", "[[step]]\nrun = \"test -f left\"\n");
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn stop_says_that_somebody_stopped_it() {
    let Some(person) = Person::new() else { return };
    let mut child = busy(&person, "busy");
    assert_eq!(person.run(&["stop", "busy"]).status, Some(0));
    assert_eq!(child.wait().expect("ended").code(), Some(143));
    assert_eq!(person.provenance("busy")["exit"]["class"], "stopped");
}

#[test]
fn a_bottle_in_use_is_not_resumed_and_not_destroyed() {
    let Some(person) = Person::new() else { return };
    let mut child = busy(&person, "busy");
    let output = person.run(&["resume", "busy", "--headless", "--prompt", "x"]);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stderr.contains("in use"), "{}", output.stderr);
    assert_eq!(person.run(&["destroy", "busy"]).status, Some(3));
    assert_eq!(person.run(&["stop", "busy"]).status, Some(0));
    child.wait().expect("ended");
}

#[test]
fn destroy_removes_the_folders_and_keeps_the_records() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "old"]).status, Some(0));
    assert_eq!(person.run(&["destroy", "old"]).status, Some(0));
    assert!(!person.bottle("old").join("workspace").exists());
    assert_eq!(person.provenance("old")["commits"]["new"].as_array().map(Vec::len), Some(1));
    let output = person.resume("old", COMMIT);
    assert_eq!(output.status, Some(125));
    assert!(output.stderr.contains("destroyed"), "{}", output.stderr);
}

#[test]
fn exec_runs_in_a_box_on_the_workspace_and_returns_its_status() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "box"]).status, Some(0));
    let output = person.run(&["exec", "box", "sh", "-c", "cat work.txt; ls /home; exit 5"]);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert!(output.stdout.starts_with("work\n"), "{}", output.stdout);
    for name in ["bo", "last"] {
        assert_eq!(person.run(&["exec", name, "test", "-f", "work.txt"]).status, Some(0), "{name}");
    }
    assert_eq!(person.run(&["stop", "bo"]).status, Some(0));
}

#[test]
fn exec_writes_nothing_beside_an_agent_whose_starter_was_killed() {
    let Some(person) = Person::new() else { return };
    let mut child = busy(&person, "busy");
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(state(&person, "busy"), "running");
    let output = person.run(&["exec", "busy", "sh", "-c", "echo intruder >> left"]);
    assert_ne!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("read-only here"), "{}", output.stderr);
    assert_eq!(person.run(&["stop", "busy"]).status, Some(0));
    let output = person.run(&["exec", "busy", "sh", "-c", "echo mine >> left"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn logs_show_what_the_agent_printed() {
    let Some(person) = Person::new() else { return };
    let script = "[[step]]\nprint = \"a word from inside\\n\"\n";
    assert_eq!(person.start(script, &["--label", "talk"]).status, Some(0));
    for args in [&["logs", "talk"][..], &["logs", "-f", "talk"]] {
        let output = person.run(args);
        assert!(output.stdout.contains("a word from inside"), "{}", output.snapshot());
    }
}

#[test]
fn what_is_not_there_is_named() {
    let Some(person) = Person::new() else { return };
    let output = person.run(&["freeze", "ghost"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stderr.contains("bot-bottle list"), "{}", output.stderr);
    let output = person.run(&["start", "ghost", "--headless", "--prompt", "x"]);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stderr.contains("bot-bottle agent new ghost"), "{}", output.stderr);
    assert_eq!(person.run(&["provenance", "show", "ghost"]).status, Some(3));
    person.script(COMMIT);
    assert_eq!(person.run(&["doctor"]).status, Some(0));
}

#[test]
fn a_prompt_comes_from_a_file_or_from_standard_input() {
    let Some(person) = Person::new() else { return };
    let file = person.hermetic.root().join("task.md");
    std::fs::write(&file, "Words from a file.").expect("written");
    person.script(
        "[[step]]\nrun = \"grep -q 'Words from a file' /harness-state/instructions.txt\"\n",
    );
    let word = format!("@{}", file.display());
    let output =
        person.run(&["start", "worker", "--headless", "--prompt", &word, "--backend", "bwrap"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let mut command =
        person.command(&["start", "worker", "--headless", "--prompt", "-", "--backend", "bwrap"]);
    command.stdin(std::fs::File::open(&file).expect("open"));
    assert_eq!(person.hermetic.run(&mut command).status, Some(0));
    let output = person.run(&["start", "worker", "--headless", "--prompt", " "]);
    assert!(output.stderr.contains("prompt is empty"), "{}", output.stderr);
}

#[test]
fn a_start_that_fails_before_the_agent_leaves_a_bottle_that_can_be_resumed() {
    let Some(scene) = crate::support::Scene::new() else { return };
    let file = scene.person.hermetic.root().join("long.md");
    std::fs::write(&file, "x".repeat(200_000)).expect("written");
    scene.person.manifest(
        "agents",
        "worker",
        "provider = \"command\"\ncommand = [\"true\", \"{prompt}\"]\n",
    );
    let word = format!("@{}", file.display());
    let args =
        ["orchestrate", "start", "--agent", "worker", "--prompt", &word, "--backend", "bwrap"];
    let output = scene.person.hermetic.run(&mut scene.command(&args));
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert_eq!(scene.person.json(&["orchestrate", "status"])[0]["status"], "frozen");
    scene.person.agent("worker", "");
    let output = scene.resume(&format!("{COMMIT}{}", crate::support::DONE));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert_eq!(scene.forge.pulls().len(), 1);
}

#[test]
fn help_teaches_by_example() {
    let Some(person) = Person::new() else { return };
    for (args, words) in [
        (&["start", "--help"][..], &["Examples:", "own interface", "--prompt @task.md", "125"][..]),
        (&["resume", "--help"], &["Examples:", "bot-bottle list", "at your terminal"]),
        (
            &["orchestrate", "start", "--help"],
            &["FORGE_TOKEN", "FORGE_ISSUE_NUMBER", "bot-bottle:<agent>"],
        ),
    ] {
        let help = person.run(args).stdout;
        for word in words {
            assert!(help.contains(word), "{word}: {help}");
        }
    }
}

#[test]
fn wrong_input_gets_one_line_that_says_what_to_do() {
    let Some(person) = Person::new() else { return };
    let headless = ["--headless", "--prompt", "x"];
    for (args, words) in [
        (vec!["start", "nobody"], "bot-bottle agent new nobody"),
        (vec!["start", "../x"], "not a valid agent name"),
        (vec!["start", "worker", "--bottle", "nope"], "bot-bottle bottle new nope"),
        (vec!["start", "worker", "--backend", "lxc"], "use docker or bwrap"),
        (vec!["resume", "nobody"], "bot-bottle list"),
    ] {
        let output = person.run(&[&args[..], &headless].concat());
        assert_eq!(output.status, Some(125), "{}", output.snapshot());
        assert!(output.stderr.contains(words), "{}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
    for (args, words) in [
        (
            &["start", "worker", "--headless", "--prompt", "@/nowhere"][..],
            "could not read the prompt /nowhere",
        ),
        (&["start", "worker", "--headless", "--prompt", " "], "the prompt is empty"),
        (&["provenance", "show", "nobody"], "bot-bottle list"),
        (&["agent", "new", "worker"], "choose another name"),
    ] {
        let output = person.run(args);
        assert!(matches!(output.status, Some(2 | 3)), "{}", output.snapshot());
        assert!(output.stderr.contains(words), "{}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
}
