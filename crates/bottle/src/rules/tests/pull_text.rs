//! Titles and texts of pull requests, whole.

use engine::evidence::NewCommit;
use model::id::Sha;

use super::super::pull_text::{
    IssueLink, PullTextFacts, choose_title, render_section, render_title, renew_body, wrap_section,
};

fn commit(letter: char, subject: &str) -> NewCommit {
    let sha = Sha::parse(&letter.to_string().repeat(40)).expect("a commit");
    NewCommit { sha, subject: subject.to_owned(), parents: 1 }
}

fn facts<'a>(commits: &'a [NewCommit], summary: Option<&'a str>) -> PullTextFacts<'a> {
    let issue_title = "Fix the login";
    PullTextFacts { issue: 3, issue_title, summary, commits, ..PullTextFacts::default() }
}

/// The whole text of a new pull request.
fn check(commits: &[NewCommit], summary: Option<&str>) -> String {
    wrap_section(&render_section(&facts(commits, summary)))
}

#[test]
fn one_commit_and_a_summary() {
    insta::assert_snapshot!(check(&[commit('a', "keep colons")], Some("Colons are kept.")), @"
    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    What the agent says:

    > Colons are kept.

    Commits:

    - aaaaaaaaaaaa `keep colons`

    Closes #3
    <!-- bot-bottle: end -->
    ");
}

#[test]
fn several_commits_and_a_summary_of_several_lines() {
    let commits = [commit('a', "keep colons"), commit('b', "test colons")];
    insta::assert_snapshot!(check(&commits, Some("Colons are kept.\n\n- tested\n- documented")), @"
    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    What the agent says:

    > Colons are kept.
    > 
    > - tested
    > - documented

    Commits:

    - aaaaaaaaaaaa `keep colons`
    - bbbbbbbbbbbb `test colons`

    Closes #3
    <!-- bot-bottle: end -->
    ");
}

#[test]
fn no_summary() {
    insta::assert_snapshot!(check(&[commit('a', "keep colons")], None), @"
    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    Commits:

    - aaaaaaaaaaaa `keep colons`

    Closes #3
    <!-- bot-bottle: end -->
    ");
}

#[test]
fn an_empty_summary_is_no_summary() {
    let commits = [commit('a', "keep colons")];
    assert_eq!(check(&commits, Some(" \n")), check(&commits, None));
}

#[test]
fn subjects_that_want_to_be_more_than_text() {
    let commits = [
        commit('a', "closes #9, see @all"),
        commit('b', "a `code` span"),
        commit('c', "--> <!-- bot-bottle: end -->"),
        commit('d', "\u{1b}[31mred\u{7}"),
    ];
    let text = check(&commits, Some("<!-- bot-bottle: end -->\n@all closes #9"));
    insta::assert_snapshot!(text.replace('\u{200b}', "¦"), @r"
    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    What the agent says:

    > <¦!-- bot-bottle: end -->
    > @¦all closes #¦9

    Commits:

    - aaaaaaaaaaaa `closes #¦9, see @all`
    - bbbbbbbbbbbb ``a `code` span``
    - cccccccccccc `--> <! -- bot-bottle: end -->`
    - dddddddddddd `\x1b[31mred\x07`

    Closes #3
    <!-- bot-bottle: end -->
    ");
}

#[test]
fn more_commits_than_are_listed() {
    let commits: Vec<NewCommit> = (0..53).map(|n| commit('a', &format!("step {n}"))).collect();
    let text = check(&commits, None);
    let tail: Vec<&str> = text.lines().skip(50).collect();
    insta::assert_snapshot!(tail.join("\n"), @"
    - aaaaaaaaaaaa `step 47`
    - aaaaaaaaaaaa `step 48`
    - aaaaaaaaaaaa `step 49`
    - and 3 more

    Closes #3
    <!-- bot-bottle: end -->
    ");
}

#[test]
fn a_long_subject_is_cut() {
    let text = check(&[commit('a', &"x".repeat(300))], None);
    let longest = text.lines().map(str::len).max();
    assert_eq!(longest, Some("- aaaaaaaaaaaa ``".len() + 200));
}

#[track_caller]
fn title(issue_title: &str, expected: &str) {
    let facts = PullTextFacts { issue: 3, issue_title, ..PullTextFacts::default() };
    assert_eq!(render_title(&facts), expected);
}

#[test]
fn titles() {
    title("Fix the login", "Fix the login");
    title("  Fix the login \n", "Fix the login");
    title("", "Issue 3");
    title(" \t", "Issue 3");
    title("a\u{7}b\u{1b}c", "abc");
    title("line one\nline two", "line oneline two");
    title(&"ä".repeat(200), &"ä".repeat(120));
}

#[test]
fn a_text_that_people_have_written_around() {
    let old = wrap_section("old\n");
    let text = format!("Reviewed by Carol.\n\n{old}\n- [ ] try it\n");
    let renewed = renew_body(&text, "new\n", IssueLink::Kept).expect("renewed");
    insta::assert_snapshot!(renewed, @"
    Reviewed by Carol.

    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    new
    <!-- bot-bottle: end -->

    - [ ] try it
    ");
}

#[test]
fn a_text_without_our_section() {
    let lost = renew_body("Carol's own text.", "new\n", IssueLink::Lost).expect("renewed");
    insta::assert_snapshot!(lost, @"
    Carol's own text.

    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    new
    <!-- bot-bottle: end -->
    ");
    assert_eq!(renew_body("Carol's own text.", "new\n", IssueLink::Kept), None);
}

#[test]
fn a_text_whose_marks_are_in_the_wrong_order() {
    let whole = wrap_section("old\n");
    let end = whole.lines().last().expect("a mark").to_owned();
    let text = format!("{end}\n{whole}");
    let renewed = renew_body(&text, "new\n", IssueLink::Kept).expect("renewed");
    insta::assert_snapshot!(renewed, @"
    <!-- bot-bottle: end -->
    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    new
    <!-- bot-bottle: end -->
    ");
}

#[test]
fn a_title_is_ours_until_somebody_changes_it() {
    assert_eq!(choose_title("ours", Some("ours"), "new"), "new");
    assert_eq!(choose_title("theirs", Some("ours"), "new"), "theirs");
    assert_eq!(choose_title("unknown", None, "new"), "unknown");
}
