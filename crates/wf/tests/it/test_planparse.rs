//! Plans as wf reads them: which micro-commit is next, and which mistakes are named.

use crate::support::{Person, read};

#[test]
fn fences_and_comments_are_no_plan() {
    let person = Person::with_plan(
        "# Plan\n\n```\n### COMMIT-TF-001: In a fence\nDone: [ ]\n```\n\n<!--\n### COMMIT-TF-002: In a comment\nDone: [ ]\n-->\n\n### COMMIT-TF-003: Real\n\nDone: [ ]\n",
    );
    let shown = person.json(&["status", "tf"]);
    assert!(shown.to_string().contains("COMMIT-TF-003"), "{shown}");
    person.ok(&["skip", "tf"]);
    let plan = read(&person.workstream_dir("tf").join("plan.md"));
    assert_eq!(plan.matches("Done: [x]").count(), 1);
    assert!(plan.ends_with("Done: [x]\n"));
}

#[test]
fn mistakes_are_named_by_their_line() {
    for (plan, words) in [
        ("### COMMIT-TF-0001: four digits\nDone: [ ]\n", "line 1"),
        ("### COMMIT-TF-001: a\n\n### COMMIT-TF-002: b\nDone: [ ]\n", "line 1"),
        ("### COMMIT-TF-001: a\nDone: [ ]\nDone: [x]\n", "line 3"),
        ("### COMMIT-TF-001: a\nDone: [ ]\n\n### COMMIT-TF-001: b\nDone: [ ]\n", "line 4"),
    ] {
        let person = Person::with_plan(plan);
        person.refused(&["run", "tf"], 2, &["plan.md", words]);
    }
}
