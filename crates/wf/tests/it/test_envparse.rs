//! Env files are data: what the grammar forbids is refused with its line, by every command that reads one.

use crate::support::{ONE, Person, read, write};

#[test]
fn forbidden_values_are_refused_by_their_line() {
    let person = Person::with_plan(ONE);
    for (value, line) in [
        ("DOCS_PATH=`id`", "line 2"),
        ("DOCS_PATH=$(id)", "line 2"),
        ("DOCS_PATH=\"a;b\"", "line 2"),
        ("DOCS_PATH=\"a|b\"", "line 2"),
        ("DOCS_PATH=\"a && b\"", "line 2"),
        ("DOCS_PATH=\"unbalanced", "line 2"),
        ("DOCS_PATH=a b", "line 2"),
        ("docs=x", "line 2"),
        ("no assignment", "line 2"),
        ("TEST_IN=host", "line 2"),
    ] {
        person.profile(&format!("TEST_IN=host\n{value}\n"));
        person.refused(&["run", "tf"], 2, &[line]);
    }
}

#[test]
fn comments_order_and_unknown_keys_survive_a_change() {
    let person = Person::with_plan(ONE);
    let path = person.workstream_dir("tf").join("meta.env");
    write(&path, &format!("# mine\n{}MY_KEY=kept # and why\n", read(&path)));
    person.ok(&["refresh", "tf"]);
    let text = read(&path);
    assert!(text.starts_with("# mine\n") && text.contains("MY_KEY=kept # and why"), "{text}");
}
