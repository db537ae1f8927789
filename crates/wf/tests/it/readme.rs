//! The README tells what the program does, and what it says to type works.

use crate::support::Person;

const README: &str = include_str!("../../../../docs/wf.md");

#[test]
fn every_command_is_in_the_readme() {
    let person = Person::new();
    let help = person.ok(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands.take_while(|line| !line.trim().is_empty());
    // What goes on in a second line stands further in.
    let names =
        names.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{help}");
    for name in names.iter().filter(|name| **name != "help") {
        assert!(README.contains(&format!("`wf {name}`")), "wf {name} is not in the README");
    }
}

#[test]
fn the_start_in_the_readme_works_up_to_the_agent() {
    let person = Person::unregistered();
    person.ok(&["interview", "--non-interactive", "--hitl-mode", "off"]);
    person.ok(&["new", "login", "Log in with a token", "src/login/ tests/"]);
    let blocks = README.split("```markdown\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut plans = blocks.filter(|block| block.starts_with("### COMMIT-"));
    person.plan("login", plans.next().expect("a plan"));
    let status = person.json(&["status", "login"]);
    assert_eq!(status["plan"]["commits"][0]["id"], "COMMIT-LOGIN-001");
    person.refused(&["run", "login"], 2, &["OPENAI_API_KEY"]);
}
