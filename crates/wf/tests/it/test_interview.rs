//! Registering projects.

use testkit::repo::Repo;
use testkit::wait::wait_for;

use crate::support::{Person, read, write};
use crate::terminal;

#[test]
fn an_interview_without_questions_writes_both_files() {
    let person = Person::unregistered();
    let said = person.ok(&[
        "interview",
        "--non-interactive",
        "--hitl-mode",
        "off",
        "--make-target-e2e",
        "",
    ]);
    assert!(said.contains("Project configured successfully!"), "{said}");
    let dir = person.project_dir();
    assert!(read(&dir.join("project.env")).contains("PROJECT_NAME=app"));
    let profile = read(&dir.join("project_profile.env"));
    assert!(
        profile.contains("HITL_MODE=off") && profile.contains("MAKE_TARGET_UNIT=test-unit"),
        "{profile}"
    );
    assert!(dir.join("project_profile.md").is_file());
    person.ok(&["new", "tf", "Found again from the product"]);
}

#[test]
fn a_second_interview_takes_the_values_of_the_first_as_defaults() {
    let person = Person::unregistered();
    person.ok(&["interview", "--non-interactive", "--hitl-mode", "off", "--docs-path", "manual"]);
    let path = person.project_dir().join("project_profile.env");
    let first = read(&path);
    person.ok(&["interview", "--non-interactive"]);
    assert_eq!(read(&path), first);
}

#[test]
fn init_registers_the_project_and_the_agent_and_changes_nothing_the_second_time() {
    let person = Person::unregistered();
    person.ok(&["init", "--yes", "--provider", "claude", "--key-command", "echo k"]);
    let profile = person.project_dir().join("project_profile.env");
    let first = read(&profile);
    assert!(first.contains("AGENT_IMPLEMENT=claude\nAGENT_REVIEW=claude\n"), "{first}");
    person.ok(&["init", "--yes"]);
    assert_eq!(read(&profile), first);
    assert_eq!(person.ok(&["config", "get", "agent"]).trim(), "claude");
    assert_eq!(person.ok(&["config", "get", "agents.claude.key_command"]).trim(), "echo k");
}

#[test]
fn a_second_interview_keeps_what_it_does_not_ask_about() {
    let person = Person::unregistered();
    person.ok(&["interview", "--non-interactive"]);
    let path = person.project_dir().join("project_profile.env");
    write(&path, &format!("# mine\nQA_STRICT=true\n{}", read(&path)));
    person.ok(&["interview", "--non-interactive", "--docs-path", "manual"]);
    let profile = read(&path);
    assert!(
        profile.starts_with("# mine\nQA_STRICT=true\n") && profile.contains("DOCS_PATH=manual"),
        "{profile}"
    );
}

#[test]
fn bad_answers_are_refused_and_write_nothing_9_2() {
    let person = Person::unregistered();
    person.refused(&["interview"], 2, &["--non-interactive"]);
    for (flags, word) in [
        (["--hitl-mode", "maybe"], "maybe"),
        (["--makefile-path", "nowhere.mk"], "nowhere.mk"),
        (["--makefile-path", "../Makefile"], "MAKEFILE_PATH"),
        (["--docs-path", "/etc"], "DOCS_PATH"),
        (["--default-branch", "trunk"], "trunk"),
        (["--name", "a/b"], "project name"),
        (["--repo-path", "/nonexistent"], "/nonexistent"),
    ] {
        person.refused(&[&["interview", "--non-interactive"], &flags[..]].concat(), 2, &[word]);
    }
    assert!(!person.ops().exists());
}

#[test]
fn several_projects_need_a_name_or_a_place() {
    let person = Person::new();
    let other = testkit::repo::Repo::init(person.hermetic.work().join("other"));
    other.write("a", "a").commit("start");
    let path = other.dir().to_str().expect("UTF-8").to_owned();
    person.ok(&["project", "add", "other", "--repo-path", &path]);
    assert!(person.ok(&["project", "list"]).contains("other"));
    person.ok(&["new", "tf", "By place"]);
    assert!(person.workstream_dir("tf").exists());
    let at = |dir: &std::path::Path, args: &[&str]| {
        let mut command = person.command(args);
        person.hermetic.run(command.current_dir(dir))
    };
    assert_eq!(
        at(other.dir(), &["list"]).stdout,
        "No active workstreams. Start one: wf new <id> \"<title>\" \"<paths>\"\n"
    );
    assert!(at(person.worktree("tf").dir(), &["status"]).stdout.contains("By place"));
    let lost = at(person.hermetic.root(), &["list"]);
    assert_eq!(lost.status, Some(2), "{}", lost.snapshot());
    assert!(lost.stderr.contains("--project"), "{}", lost.stderr);
    for args in [["--project", "app", "list"], ["list", "--project", "app"]] {
        assert!(at(person.hermetic.root(), &args).stdout.contains("By place"));
    }
    person.refused(&["list", "--project", "ap"], 2, &["did you mean 'app'"]);
}

#[test]
fn no_workflow_repository_is_one_clear_line() {
    let person = Person::unregistered();
    person.refused(&["list"], 2, &["no project is registered yet", "wf init", "AOS_WORKFLOW_REPO"]);
}

#[test]
fn an_interview_asks_in_a_terminal_and_takes_defaults_and_answers() {
    let person = Person::unregistered();
    let Some(terminal) = terminal::start(&person, &["interview"]) else { return };
    terminal.shows("Product repository path");
    terminal.press(&["Enter"]);
    terminal.shows("Project name");
    terminal.press(&["2", "Enter"]);
    for question in [
        "Default branch name",
        "Prefix of workstream branches",
        "Ops directory",
        "Makefile location",
        "Unit tests target",
        "Integration tests target",
        "Smoke tests target",
        "E2E tests target",
        "Documentation path",
    ] {
        terminal.shows(question);
        terminal.press(&["Enter"]);
    }
    terminal.shows("HITL mode");
    terminal.press(&["Down", "Enter"]);
    terminal.shows("Raw requirements");
    terminal.press(&["Enter"]);
    terminal.ends();
    let profile = person.ops().join("workflow/projects/app2/project_profile.env");
    let profile = wait_for("the profile", || profile.is_file().then(|| read(&profile)));
    assert!(profile.contains("HITL_MODE=stage-only"), "{profile}");
    assert!(profile.contains("MAKE_TARGET_UNIT=test-unit"), "{profile}");
}

#[test]
fn an_interview_that_is_broken_off_writes_nothing() {
    let person = Person::unregistered();
    let Some(terminal) = terminal::start(&person, &["interview"]) else { return };
    terminal.shows("Product repository path");
    terminal.press(&["C-c"]);
    terminal.ends();
    assert!(!person.ops().exists());
}

#[test]
fn a_second_product_of_the_same_folder_name_does_not_take_the_name_of_the_first() {
    let person = Person::unregistered();
    person.ok(&["interview", "--non-interactive"]);
    let first = read(&person.project_dir().join("project.env"));
    let second = Repo::init(person.hermetic.work().join("elsewhere/app"));
    second.write("README.md", "app\n").commit("start");
    let interview = |more: &[&str]| {
        let mut command = person.command(&["interview", "--non-interactive"]);
        person.hermetic.run(command.args(more).current_dir(second.dir()))
    };
    let output = interview(&[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    for part in ["'app' belongs to ", "work/app;", "elsewhere/app", "wf interview --name NAME"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.snapshot());
    }
    assert_eq!(read(&person.project_dir().join("project.env")), first, "nothing was rewritten");
    let output = interview(&["--name", "app2"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    person.ok(&["project", "show", "app"]);
}

#[test]
fn a_repository_that_was_moved_is_registered_again() {
    let person = Person::unregistered();
    person.ok(&["interview", "--non-interactive"]);
    let moved = person.hermetic.work().join("new/app");
    std::fs::create_dir_all(moved.parent().expect("a parent")).expect("a folder");
    std::fs::rename(person.repo.dir(), &moved).expect("moved");
    let mut command = person.command(&["interview", "--non-interactive"]);
    let output = person.hermetic.run(command.current_dir(&moved));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_folder_whose_name_cannot_be_recorded_is_named() {
    let person = Person::unregistered();
    let odd = person.hermetic.work().join("a$b");
    std::fs::rename(person.repo.dir(), &odd).expect("moved");
    let mut command = person.command(&["interview", "--non-interactive"]);
    let output = person.hermetic.run(command.current_dir(&odd));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("rename the folder"), "{}", output.snapshot());
}
