//! A person at the agent's own terminal: keys go in, the screen comes out, and the box ends with the agent.

use testkit::fake_forge::TOKEN;
use testkit::screen::Screen;
use testkit::wait::{wait_for, wait_until};

use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

/// An agent that is a shell.
const SHELL: &str =
    "provider = \"command\"\ncommand = [\"bash\", \"--norc\", \"--noprofile\", \"-i\"]\n";

/// A token's shape, put together here so that no scanner takes this file for a leak.
fn leak() -> String {
    format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT")
}

/// Sits down: the command runs in a shell, which then says how it ended and waits.
fn sit<'a>(person: &'a Person, args: &str) -> Option<Screen<'a>> {
    sit_with(person, "", args)
}

/// The same with variables before the command.
fn sit_with<'a>(person: &'a Person, variables: &str, args: &str) -> Option<Screen<'a>> {
    let program = env!("CARGO_BIN_EXE_bot-bottle");
    let line = format!("{variables} {program} {args}; echo \"it was $?\"; read -r line");
    Screen::start(&person.hermetic, person.fork.checkout.dir(), &["sh", "-c", &line])
}

fn type_line(screen: &Screen<'_>, line: &str) {
    screen.press(&["-l", line]);
    screen.press(&["Enter"]);
}

/// Types a line until the answer to it is there: what it asks about may reach the box after the line.
fn type_until(screen: &Screen<'_>, line: &str, words: &str) {
    wait_until(words, || {
        type_line(screen, line);
        (0..20).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            screen.text().contains(words)
        })
    });
}

#[test]
fn the_agents_own_interface_is_on_the_terminal_until_it_ends() {
    let Some(person) = Person::new() else { return };
    person.manifest("agents", "shell", SHELL);
    let Some(screen) = sit(&person, "start shell --backend bwrap") else { return };
    screen.shows("bash-");
    type_line(&screen, "echo $((40+2)) $(stty size) $TERM $(tty)");
    screen.shows("42 24 80 screen /dev/pts/0");
    screen.resize(100, 30);
    type_until(&screen, "echo now $(stty size)", "now 30 100");
    // A key that is a signal is one in the box and not for whoever carries it.
    let sleeper = "sh -c 'trap \"echo woken $((2+2)); exit\" INT; echo asleep $((3+3)); while :; do sleep 0.1; done'";
    type_line(&screen, sleeper);
    screen.shows("asleep 6");
    screen.press(&["C-c"]);
    screen.shows("woken 4");
    type_line(&screen, "echo still $((1+1))");
    screen.shows("still 2");
    type_line(&screen, "echo x > made && git add -A && git commit -qm made");
    type_line(&screen, &format!("echo {}", leak()));
    type_line(&screen, "exit 5");
    let end = screen.shows("it was 5");
    assert!(end.contains("shell"), "{end}");
    // The terminal has its own mode again: what is typed is shown.
    screen.press(&["-l", "echoed"]);
    screen.shows("echoed");
    let log = person.log("shell");
    assert!(log.contains("42 24 80 screen") && log.contains("still 2"), "{log}");
    assert!(!log.contains(&leak()) && log.contains("***"), "{log}");
    let document = person.provenance("shell");
    assert_eq!(document["commits"]["new"].as_array().map(Vec::len), Some(1), "{document:#}");
    assert_eq!(document["exit"]["code"], 5);
    let launch = document["operations"][0].clone();
    assert_eq!(launch["detail"]["terminal"]["cols"], 80, "{launch}");
}

#[test]
fn a_secret_that_the_box_prints_is_masked_on_the_terminal() {
    let Some(person) = Person::new() else { return };
    let server = "[server]\nurl = \"http://127.0.0.1:9\"\nkey_env = \"OWN_KEY\"\n";
    person.manifest("agents", "shell", &format!("{SHELL}model = \"m\"\n{server}"));
    let Some(screen) = sit_with(&person, "OWN_KEY=correct-horse-1", "start shell --backend bwrap")
    else {
        return;
    };
    screen.shows("bash-");
    type_line(&screen, "echo correct-$(echo horse)-1 end");
    screen.shows("*************** end");
    assert!(!screen.text().contains("correct-horse-1"), "{}", screen.text());
    // The start of a secret is shown when nothing follows.
    screen.press(&["-l", "corr"]);
    screen.shows("$ corr");
    screen.press(&["C-u"]);
    type_line(&screen, "exit");
    screen.shows("it was 0");
}

#[test]
fn a_frozen_bottle_is_sat_at_again_with_its_files() {
    let Some(person) = Person::new() else { return };
    person.manifest("agents", "shell", SHELL);
    let args =
        ["start", "shell", "--headless", "--prompt", "x", "--backend", "bwrap", "--label", "again"];
    assert_eq!(person.run(&args).status, Some(0));
    let Some(screen) = sit(&person, "resume again") else { return };
    screen.shows("bash-");
    type_line(&screen, "pwd; ls -d /workspace/.git; exit 0");
    screen.shows("it was 0");
    assert_eq!(person.json(&["list"])[0]["state"], "frozen");
}

#[test]
fn a_closed_window_ends_the_agent_and_the_bottle_can_be_resumed() {
    let Some(person) = Person::new() else { return };
    person.manifest("agents", "shell", SHELL);
    let Some(screen) = sit(&person, "start shell --backend bwrap") else { return };
    screen.shows("bash-");
    type_line(&screen, "echo kept > kept && git add -A && git commit -qm kept && echo ready");
    screen.shows("\nready");
    screen.close();
    wait_for("the end of the run", || {
        let run = person.last_run("shell").join("boxes/agent/exit.json");
        run.exists().then_some(())
    });
    let args = ["resume", "shell", "--headless", "--prompt", "x"];
    let output = wait_for("the bottle", || {
        let output = person.run(&args);
        (output.status == Some(0)).then_some(output)
    });
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.run(&["exec", "shell", "test", "-f", "/workspace/kept"]).status, Some(0));
}

#[test]
fn a_person_decides_when_a_forge_run_is_over() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let person = &scene.person;
    person.manifest("agents", "worker", SHELL);
    let token = format!("FORGE_TOKEN={TOKEN}");
    let Some(screen) = sit_with(person, &token, &format!("resume {SLUG}")) else { return };
    screen.shows("bash-");
    type_line(&screen, "env | grep -c FORGE_; forge comment 2 'from the terminal'");
    wait_for("the comment", || scene.forge.comments().pop());
    type_line(&screen, "forge done success 'by hand'; echo said $?");
    screen.shows("said 0");
    type_line(&screen, "git commit -q --allow-empty -m more; exit 0");
    screen.shows("it was 0");
    assert_eq!(scene.forge.comments()[0].body, "from the terminal");
    assert_eq!(scene.provenance()["done"]["summary"], "by hand");
    assert_eq!(scene.provenance()["commits"]["new"].as_array().map(Vec::len), Some(1));
}

#[test]
fn without_a_terminal_one_is_told_what_to_do() {
    let Some(person) = Person::new() else { return };
    for args in
        [&["start", "worker"][..], &["resume", "worker"], &["start", "worker", "--prompt", "x"]]
    {
        let output = person.run(args);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains("no terminal"), "{}", output.stderr);
        assert!(output.stderr.contains("--headless and --prompt"), "{}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
    let output = person.run(&["start", "worker", "--headless"]);
    assert!(output.stderr.contains("--headless needs --prompt"), "{}", output.snapshot());
    assert!(!person.home().join("cellar").exists());
}
