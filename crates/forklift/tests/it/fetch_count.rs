//! A fetch that takes its time shows a count.

use testkit::slow_remote::SlowRemote;

use crate::support::Person;

#[test]
fn a_long_fetch_shows_how_many_objects_were_received() {
    let Some(person) = Person::new() else { return };
    SlowRemote::fill(&person.hermetic, &person.fork.upstream);
    let slow = SlowRemote::new(&person.hermetic, &person.fork.checkout, "upstream");
    let is_count = |line: &str| line.contains("upstream: ") && line.contains(" objects received");
    let (line, is_good) = slow.line_of(&mut person.alone(&["--dry-run"]), is_count);
    let line = line.expect("a count");
    let count = line.split("upstream: ").nth(1).and_then(|rest| rest.split_once(" of "));
    let (done, rest) = count.expect("n of m");
    let of = rest.split(' ').next().unwrap_or_default();
    let [done, of] = [done, of].map(|text| text.parse::<u32>().expect("a number"));
    assert!(0 < done && done < of && of > 400, "{line}");
    assert!(is_good, "the fetch goes on after the pause");
}
