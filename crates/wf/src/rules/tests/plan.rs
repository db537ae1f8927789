//! Plans: what is read, what is refused, what is only warned about.

use crate::rules::plan::{commit_prefix, mark_done, mark_undone, parse_plan, render_new_plan};
use model::id::MicroCommitId;

fn read(text: &str) -> String {
    match parse_plan(text) {
        Ok(plan) => {
            let commit = |commit: &crate::rules::plan::MicroCommit| {
                format!(
                    "line {}: {} {:?}, done: {}, acceptance: {:?}\n",
                    commit.line, commit.id, commit.title, commit.is_done, commit.acceptance
                )
            };
            let commits: String = plan.commits.iter().map(commit).collect();
            let warnings = plan.warnings.iter().map(|warning| format!("warning: {warning}\n"));
            format!("{commits}{}", warnings.collect::<String>())
        }
        Err(error) => format!("error: {error}\n"),
    }
}

fn table(plans: &[(&str, &str)]) -> String {
    let row = |(name, text): &(&str, &str)| {
        let read = read(text);
        let read = if read.is_empty() { "no micro-commits\n".to_owned() } else { read };
        format!("# {name}\n{read}")
    };
    plans.iter().map(row).collect()
}

#[test]
fn plans_that_are_read() {
    insta::assert_snapshot!(table(&[
        ("two micro-commits", "### COMMIT-A-001: a\nDone: [x]\n### COMMIT-A-002:   b  \n\nwords\n\nDone: [ ]\n"),
        ("a capital mark and blanks", "### COMMIT-A-001: a\nDone:\t[X]  \n"),
        ("line ends of Windows", "### COMMIT-A-001: a\r\nDone: [ ]\r\n"),
        ("a heading of a lower level inside", "### COMMIT-A-001: a\n#### Detail\nDone: [x]\n"),
        ("another heading ends the block", "### COMMIT-A-001: a\nDone: [ ]\n## Notes\nDone: [x]\n"),
        ("acceptance criteria", "### COMMIT-A-001: a\n**Acceptance criteria:**\n\n- [ ] it runs\n* it stops\n  at once\n\nDone: [ ]\n- not this\n"),
        ("a title with a colon", "### COMMIT-A-001: a: b\nDone: [ ]\n"),
        ("nothing", "# Plan\n"),
    ]), @r#"
    # two micro-commits
    line 1: COMMIT-A-001 "a", done: true, acceptance: []
    line 3: COMMIT-A-002 "b", done: false, acceptance: []
    # a capital mark and blanks
    line 1: COMMIT-A-001 "a", done: true, acceptance: []
    # line ends of Windows
    line 1: COMMIT-A-001 "a", done: false, acceptance: []
    # a heading of a lower level inside
    line 1: COMMIT-A-001 "a", done: true, acceptance: []
    # another heading ends the block
    line 1: COMMIT-A-001 "a", done: false, acceptance: []
    # acceptance criteria
    line 1: COMMIT-A-001 "a", done: false, acceptance: ["it runs", "it stops at once"]
    # a title with a colon
    line 1: COMMIT-A-001 "a: b", done: false, acceptance: []
    # nothing
    no micro-commits
    "#);
}

#[test]
fn text_that_is_not_a_plan() {
    insta::assert_snapshot!(table(&[
        ("in a fence", "```md\n### COMMIT-X-001: x\nDone: [ ]\n```\n"),
        ("in a comment", "<!--\n### COMMIT-X-001: x\nDone: [ ]\n-->\n"),
        ("indented code", "text\n\n    ### COMMIT-X-001: x\n    Done: [ ]\n"),
        ("in a quotation", "> ### COMMIT-X-001: x\n> Done: [ ]\n"),
        ("in a list", "- ### COMMIT-X-001: x\n  Done: [ ]\n"),
        ("a mark in a fence does not count", "### COMMIT-A-001: a\n```\nDone: [x]\n```\nDone: [ ]\n"),
    ]), @r#"
    # in a fence
    no micro-commits
    # in a comment
    no micro-commits
    # indented code
    no micro-commits
    # in a quotation
    no micro-commits
    # in a list
    no micro-commits
    # a mark in a fence does not count
    line 1: COMMIT-A-001 "a", done: false, acceptance: []
    "#);
}

#[test]
fn plans_that_are_refused() {
    insta::assert_snapshot!(table(&[
        ("four digits", "\n### COMMIT-A-0001: a\nDone: [ ]\n"),
        ("no colon", "### COMMIT-A-001 a\nDone: [ ]\n"),
        ("no title", "### COMMIT-A-001:\nDone: [ ]\n"),
        ("no number", "### COMMIT: a\nDone: [ ]\n"),
        ("no blank after the marks", "###COMMIT-A-001: a\nDone: [ ]\n"),
        ("digits of another script", "### COMMIT-A-٠٠١: a\nDone: [ ]\n"),
        ("no Done line", "### COMMIT-A-001: a\nwords\n"),
        ("the Done line of the next block", "### COMMIT-A-001: a\n### COMMIT-A-002: b\nDone: [ ]\n"),
        ("two Done lines", "### COMMIT-A-001: a\nDone: [ ]\n\nDone: [x]\n"),
        ("the same id twice", "### COMMIT-A-001: a\nDone: [ ]\n### COMMIT-A-001: b\nDone: [ ]\n"),
    ]), @"
    # four digits
    error: line 2: a micro-commit heading must read '### COMMIT-XX-001: title'
    # no colon
    error: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    # no title
    error: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    # no number
    error: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    # no blank after the marks
    error: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    # digits of another script
    error: line 1: a micro-commit heading must read '### COMMIT-XX-001: title'
    # no Done line
    error: line 1: COMMIT-A-001 has no line 'Done: [ ]'; add one
    # the Done line of the next block
    error: line 1: COMMIT-A-001 has no line 'Done: [ ]'; add one
    # two Done lines
    error: line 4: COMMIT-A-001 has a second Done line; keep one
    # the same id twice
    error: line 3: COMMIT-A-001 was already planned on line 1; give it another number
    ");
}

#[test]
fn near_misses_are_warned_about() {
    insta::assert_snapshot!(table(&[
        ("headings of another level", "# COMMIT-B-001: b\n## COMMIT-B-002: b\n#### COMMIT-B-003: b\n"),
        ("Done lines", "### COMMIT-A-001: a\n- Done: [ ]\nDone []\n**Done:** [x]\ndone: [x]\nDone: [y]\nDone: [ ]\n"),
    ]), @r#"
    # headings of another level
    warning: line 1: this heading names a micro-commit but is not of level 3, so it is ignored
    warning: line 2: this heading names a micro-commit but is not of level 3, so it is ignored
    warning: line 3: this heading names a micro-commit but is not of level 3, so it is ignored
    # Done lines
    line 1: COMMIT-A-001 "a", done: false, acceptance: []
    warning: line 2: this is nearly a Done line; it must read 'Done: [ ]' or 'Done: [x]'
    warning: line 3: this is nearly a Done line; it must read 'Done: [ ]' or 'Done: [x]'
    warning: line 4: this is nearly a Done line; it must read 'Done: [ ]' or 'Done: [x]'
    warning: line 5: this is nearly a Done line; it must read 'Done: [ ]' or 'Done: [x]'
    warning: line 6: this is nearly a Done line; it must read 'Done: [ ]' or 'Done: [x]'
    "#);
}

#[test]
fn a_mark_changes_one_byte() {
    let text = "### COMMIT-A-001: a\r\nDone: [ ]\r\n\r\n### COMMIT-A-002: b\nDone:  [X]\n\nno newline at the end";
    let mark = |id: &str| {
        let id = MicroCommitId::parse(id).unwrap();
        let (done, undone) = (mark_done(text, &id).unwrap(), mark_undone(text, &id).unwrap());
        format!("{id} done: {done:?}\n{id} undone: {undone:?}\n")
    };
    let marks = ["COMMIT-A-001", "COMMIT-A-002", "COMMIT-A-003"].map(mark);
    insta::assert_snapshot!(marks.concat(), @r####"
    COMMIT-A-001 done: Some("### COMMIT-A-001: a\r\nDone: [x]\r\n\r\n### COMMIT-A-002: b\nDone:  [X]\n\nno newline at the end")
    COMMIT-A-001 undone: Some("### COMMIT-A-001: a\r\nDone: [ ]\r\n\r\n### COMMIT-A-002: b\nDone:  [X]\n\nno newline at the end")
    COMMIT-A-002 done: Some("### COMMIT-A-001: a\r\nDone: [ ]\r\n\r\n### COMMIT-A-002: b\nDone:  [X]\n\nno newline at the end")
    COMMIT-A-002 undone: Some("### COMMIT-A-001: a\r\nDone: [ ]\r\n\r\n### COMMIT-A-002: b\nDone:  [ ]\n\nno newline at the end")
    COMMIT-A-003 done: None
    COMMIT-A-003 undone: None
    "####);
}

#[test]
fn the_plan_of_a_new_workstream() {
    insta::assert_snapshot!(render_new_plan("user_auth", "Log in"), @"
    # Plan: Log in

    ## Goal

    ## Micro-commits

    <!--
    One block per micro-commit, in the order in which they are to be made. For example:

    ### COMMIT-UA-001: What this commit does

    Why, and how it should be done.

    Acceptance:
    - what a person sees when it works

    Done: [ ]

    Then: wf run user_auth
    -->
    ");
}

#[test]
fn ids_have_the_initials_of_the_workstream() {
    let ids =
        ["tf", "test_framework", "x-1", "user_auth", "a_b_c", "login", "averyveryverylongname"];
    let row = |id: &&str| format!("{id}: COMMIT-{}-001\n", commit_prefix(id));
    insta::assert_snapshot!(ids.iter().map(row).collect::<String>(), @"
    tf: COMMIT-TF-001
    test_framework: COMMIT-TF-001
    x-1: COMMIT-X1-001
    user_auth: COMMIT-UA-001
    a_b_c: COMMIT-ABC-001
    login: COMMIT-LOGIN-001
    averyveryverylongname: COMMIT-AVERYVERYVER-001
    ");
}
