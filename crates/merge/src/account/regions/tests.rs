//! Changes that are taken, adapted and dropped, region by region.

use super::*;

fn compare([base, fork, upstream, result]: [&str; 4]) -> TextAccount {
    let [base, fork, upstream, result] = [base, fork, upstream, result].map(str::as_bytes);
    compare_text(TextVersions { base, fork, upstream, result })
}

#[test]
fn a_change_of_blanks_that_loses_a_conflict_is_seen() {
    let (base, fork) = ("a\nROOMS -> 1\nz\n", "a\nROOMS -> 1\nALL -> 2\nz\n");
    let upstream = "a\nROOMS  -> 1\nz\n";
    let account = compare([base, fork, upstream, fork]);
    assert_eq!((account.upstream.adapted, account.upstream.dropped), (1, 0), "{account:?}");
    let both = "a\nROOMS  -> 1\nALL -> 2\nz\n";
    assert_eq!(compare([base, fork, upstream, both]).upstream.adapted, 0);
}

/// A text of numbered lines, with some of them replaced.
fn text(replaced: &[(usize, &str)]) -> String {
    let line = |at: usize| {
        let own = replaced.iter().find(|(place, _)| *place == at);
        own.map_or(format!("line {at}\n"), |(_, text)| (*text).to_owned())
    };
    (0..30).map(line).collect()
}

#[test]
fn a_change_that_is_there_in_another_form_is_adapted() {
    let base = text(&[]);
    let fork = text(&[(5, "line 5\nstate.share(chain.cache.share)\n")]);
    let adapted = text(&[(5, "line 5\nstate.share(chain.config.share)\n")]);
    let counts = |result: &str| {
        let account = compare([&base, &fork, &base, result]);
        assert!(account.lines_added + account.fork.lines_missing > 0, "{account:?}");
        (account.fork.adapted, account.fork.dropped)
    };
    assert_eq!(counts(&adapted), (1, 0));
    // Undone, another call, and a comment.
    for line in ["", "other.call(with.other.words)\n", "// state.share(chain.cache.share)\n"] {
        assert_eq!(counts(&text(&[(5, &format!("line 5\n{line}"))])), (0, 1), "{line}");
    }
}

#[test]
fn empty_lines_of_a_side_are_no_dropped_change() {
    let (base, fork) = (text(&[]), text(&[(5, "line 5\n\n")]));
    let account = compare([&base, &fork, &base, &base]);
    assert_eq!((account.fork.adapted, account.fork.dropped), (1, 0), "{account:?}");
    let brace = text(&[(5, "line 5\n}\n")]);
    assert_eq!(compare([&base, &brace, &base, &base]).fork.dropped, 1);
}

#[test]
fn what_is_rewritten_along_with_a_conflict_is_dropped_in_it() {
    let base = text(&[]);
    let upstream = |near: usize| text(&[(10, "upstream\n"), (near, "also upstream\n")]);
    let fork = text(&[(10, "fork\n")]);
    let clean = |near: usize| {
        let account = compare([&base, &fork, &upstream(near), &fork]);
        assert_eq!(account.upstream.dropped, 2, "{account:?}");
        account.upstream.dropped_clean
    };
    assert_eq!([13, 14, 15].map(clean), [0, 0, 1]);
}

#[test]
fn a_text_that_is_indented_otherwise_is_not_gutted() {
    let base = text(&[]);
    let indented: String = base.lines().map(|line| format!("\t{line}\n")).collect();
    assert!(!compare([&base, &base, &base, &indented]).gutted);
    assert!(compare([&base, &base, &base, "nothing\n"]).gutted);
    let others: String = base.lines().map(|line| format!("other {line}\n")).collect();
    assert!(compare([&base, &base, &base, &others]).gutted);
}

#[test]
fn lines_in_a_conflict_with_words_or_signs_of_nobody_are_told_apart() {
    let of = |[base, fork, upstream, result]: [&str; 4]| {
        let texts = [base, fork, upstream, result].map(|line| format!("x > y\n{line}\nz\n"));
        let account = compare(texts.each_ref().map(String::as_str));
        (account.lines_made, account.made_of_new_tokens)
    };
    let limit = |result| of(["limit = 1", "limit = 2", "most = 1", result]);
    assert_eq!(limit("most = 2"), (1, false));
    assert_eq!(limit("most = 9"), (1, true));
    assert_eq!(limit("most = 1"), (0, false));
    let check = |result| of(["if a < b", "if a < b + 1", "if a < c", result]);
    assert_eq!(check("if a < c + 1"), (1, false));
    assert_eq!(check("if a > c + 1"), (1, true));
}

#[test]
fn a_text_with_other_line_ends_differs_in_nothing_else() {
    let (base, fork) = ("a\nb\nc\nd\n", "a\nfork\nb\nc\nd\n");
    let account = compare([base, fork, base, &fork.replace('\n', "\r\n")]);
    assert!(account.only_blanks && account.lines_added == 0, "{account:?}");
    assert!(!compare([base, fork, base, "a\nfork2\nb\nc\nd\n"]).only_blanks);
}

#[test]
fn code_that_stands_elsewhere_with_another_indentation_or_comment_is_adapted() {
    let base = text(&[]);
    let fork = text(&[(5, "line 5\nkey: delete, // of the fork\n\tother: call,\n")]);
    let counts = |result: &str| {
        let account = compare([&base, &fork, &base, result]);
        (account.fork.adapted, account.fork.dropped)
    };
    let moved = |lines: &str| text(&[(25, &format!("line 25\n{lines}"))]);
    assert_eq!(counts(&moved("  key: delete,\n  other: call,\n")), (1, 0));
    // Turned off, changed, and gone.
    for lines in ["// key: delete,\n// other: call,\n", "key: keep,\nother: nothing,\n", ""] {
        assert_eq!(counts(&moved(lines)), (0, 1), "{lines}");
    }
    // What is there once does not stand for two.
    let twice = text(&[(5, "line 5\nrun(a); // one\n"), (15, "line 15\nrun(a); // two\n")]);
    let once = text(&[(15, "line 15\nrun(a); // two\n")]);
    assert_eq!(compare([&base, &twice, &base, &once]).fork.dropped, 1);
}

#[test]
fn a_move_within_a_file_that_is_undone_is_adapted_and_a_removal_that_is_undone_is_dropped() {
    let base = text(&[]);
    let counts = |fork: &str| {
        let account = compare([&base, fork, &base, &base]);
        (account.fork.adapted, account.fork.dropped)
    };
    assert_eq!(counts(&text(&[(5, ""), (25, "line 25\nline 5\n")])), (2, 0));
    assert_eq!(counts(&text(&[(5, "")])), (0, 1));
    assert_eq!(counts(&text(&[(5, ""), (25, "line 25\nline five\n")])), (0, 2));
}
