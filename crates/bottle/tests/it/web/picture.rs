//! Pictures of the page for the documentation: three issues, one in each state that a visitor meets first.
//!
//! `scripts/record pictures` writes them; it needs Chromium.

use std::path::{Path, PathBuf};

use testkit::fake_forge::{FakeGitea, Room};
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{DONE, Person, SLUG, Scene};
use testkit::browser::{Browser, Light};

const GREETS: &str = "[[step]]\nrun = \"printf '#!/bin/sh\\\\necho \\\"Hello, ${1:-world}\\\"\\\\n' > greeter.sh && git add -A && git commit -qm 'Greet by name'\"\n";
const TESTS: &str = "[[step]]\nrun = \"echo 'test result: FAILED. 3 passed; 1 failed; 0 ignored'; exit 1\"\nexpect = 1\n";
const ASKS: &str =
    "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"Which limit: 10 or 100 MiB?\"]\n";
const WORKS: &str = "[[step]]\nrun = \"echo translating chapter 3 of 12; sleep 600\"\n";

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images")
}

fn is_recording() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a switch of the test itself")]
    std::env::var("RECORD_DOCS").is_ok_and(|value| value == "1")
}

/// A service with three issues, each for an agent of its own.
fn serving() -> Option<Serving> {
    let person = Person::new()?;
    let forge = FakeGitea::start();
    forge.add_member("bot-bottle", "bot1");
    forge.add_member("bot-bottle", "alice");
    let issue = forge.add_issue("Greet by name", "As asked.", &["bot-bottle:worker"], &["bot1"]);
    for (agent, title, script) in [
        ("careful", "Raise the limit of uploads", ASKS),
        ("translator", "Translate the manual into French", WORKS),
    ] {
        person.agent(agent, "");
        let path = person.home().join(format!("agents/{agent}-script.txt"));
        std::fs::write(path, script).expect("written");
        forge.add_issue(title, "As asked.", &[&format!("bot-bottle:{agent}")], &["bot1"]);
    }
    person.script(&format!("{TESTS}{GREETS}{DONE}"));
    Some(Serving::start(Scene { person, forge, issue }, "sweep_secs = 3600\n"))
}

#[test]
fn pictures_of_the_documentation_show_what_needs_a_person_first() {
    let Some(browser) = Browser::start() else { return };
    let Some(serving) = serving() else { return };
    for (issue, state) in [(1, "frozen"), (2, "needs-attention"), (3, "running")] {
        serving.tell("issue_opened_labeled_assigned-label_updated", Room::Issue, issue);
        wait_for(state, || serving.work_on(issue).filter(|(found, _)| found == state));
    }
    browser.open(&format!("http://{}/", serving.address));
    browser.wait_for_text("main", "Translate the manual into French");
    let titles = browser.text("main");
    let place = |title: &str| titles.find(title).unwrap_or_else(|| panic!("{titles}"));
    assert!(place("Raise the limit of uploads") < place("Greet by name"), "{titles}");
    keep(&browser, "serve-home.png");
    let run = serving.scene.person.last_run(SLUG);
    let run = run.file_name().expect("a name").to_string_lossy();
    browser.open(&format!("http://{}/runs/{SLUG}/{run}", serving.address));
    browser.wait_for_text("body", "Greet by name");
    keep(&browser, "serve-run.png");
    browser.open(&format!("http://{}/runs/{SLUG}/{run}#find", serving.address));
    browser.wait_for_text(".errors", "Error 1");
    let log = "document.querySelector('main').replaceChildren(...[...document.querySelectorAll('main > section')].slice(0, 1)); return true";
    browser.script(log);
    keep(&browser, "serve-steps.png");
    browser.open(&format!("http://{}/history", serving.address));
    browser.wait_for_text("main", "Newest runs");
    keep(&browser, "serve-history.png");
}

/// Takes a picture if that is wanted; one must be there either way.
fn keep(browser: &Browser, name: &str) {
    if is_recording() {
        std::fs::create_dir_all(images()).expect("a folder");
        browser.look(1000, Light::Day);
        browser.picture(&images().join(name));
    }
    assert!(images().join(name).is_file(), "docs/images/{name} is not there");
}
