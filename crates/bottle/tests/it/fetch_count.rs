//! A fetch that takes its time shows a count.

use testkit::slow_remote::SlowRemote;

use crate::support::Person;

#[test]
fn a_long_fetch_shows_how_many_objects_were_received() {
    let Some(person) = Person::new() else { return };
    SlowRemote::fill(&person.hermetic, &person.fork.upstream);
    let url = person.fork.upstream.dir().display().to_string();
    person.fork.checkout.git(&["remote", "set-url", "origin", &url]);
    let slow = SlowRemote::new(&person.hermetic, &person.fork.checkout, "origin");
    person.script("[[step]]\nrun = \"test -e filler/1\"\n");
    let words = ["start", "worker", "--headless", "--prompt", "Do it.", "--backend", "bwrap"];
    let mut command = person.command(&[&words[..], &["--base", "origin/main"]].concat());
    let is_count = |line: &str| line.contains("origin: ") && line.contains(" objects received");
    let (line, is_good) = slow.line_of(&mut command, is_count);
    assert!(line.is_some_and(|line| line.starts_with("  fetching origin: ")), "a count");
    assert!(is_good, "the fetch goes on after the pause");
}
