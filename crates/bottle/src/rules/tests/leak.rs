//! Secrets in what is about to be published, and what another scanner's answer comes to.

use model::redact::Redactor;
use model::secret::Secret;

use super::super::leak::{AddedLine, added_lines, read_gitleaks, scan};

/// Outcome of the built-in scan over lines.
fn check(lines: &[&str]) -> String {
    let redactor = Redactor::new([Secret::new("canary-secret-1234")]);
    let added: Vec<AddedLine> = lines
        .iter()
        .map(|line| AddedLine {
            place: "c0ffee1 src/a.rs".to_owned(),
            line: line.as_bytes().to_vec(),
        })
        .collect();
    format!("{:#?}", scan(&added, &redactor))
}

#[test]
fn plain_lines_are_clean() {
    insta::assert_snapshot!(check(&["let key = load();", "", "// ghp_ is a prefix"]), @"Clean");
}

#[test]
fn shapes_of_tokens_are_found() {
    let github = format!("token = ghp_{}", "aB3dE6gH9jK2mN5pQ8sT");
    let pem = format!("-----BEGIN {} KEY-----", "PRIVATE");
    insta::assert_snapshot!(check(&[&github, &pem]), @r#"
    Findings {
        count: 2,
        listed: [
            "c0ffee1 src/a.rs: ***",
            "c0ffee1 src/a.rs: token = ***",
        ],
    }
    "#);
}

#[test]
fn the_runs_own_secret_is_found_anywhere() {
    insta::assert_snapshot!(check(&["x=canary-secret-1234;", "  \u{1b}[31m canary-secret-1234"]), @r#"
    Findings {
        count: 2,
        listed: [
            "c0ffee1 src/a.rs: \\u{1b}[31m ***",
            "c0ffee1 src/a.rs: x=***;",
        ],
    }
    "#);
}

#[test]
fn one_line_in_many_places_is_one_finding() {
    insta::assert_snapshot!(check(&["canary-secret-1234"; 5]), @r#"
    Findings {
        count: 1,
        listed: [
            "c0ffee1 src/a.rs: ***",
        ],
    }
    "#);
}

#[test]
fn a_long_line_is_cut() {
    let line = format!("{}canary-secret-1234", "x".repeat(500));
    let shown = check(&[&line]);
    assert!(shown.contains(&"x".repeat(100)) && !shown.contains(&"x".repeat(121)), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}

/// Added lines of a patch, one for each line.
fn added(patch: &str) -> String {
    let lines = added_lines(patch.as_bytes());
    lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn additions_of_two_files() {
    let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n+++ plus\n same\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+other\n\\ No newline at end of file\n";
    insta::assert_snapshot!(added(patch), @"
    ++ plus
    new
    other
    ");
}

#[test]
fn a_patch_without_hunks_adds_nothing() {
    assert_eq!(
        added("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"),
        ""
    );
}

#[test]
fn answers_of_gitleaks() {
    let finding = r#"[{"RuleID":"aws-key","Secret":"s3cr3t"},{"Secret":"x"}]"#;
    let answers: [(Option<i32>, &str); 9] = [
        (Some(0), "[]"),
        (Some(0), ""),
        (Some(0), finding),
        (Some(3), finding),
        (Some(3), "[]"),
        (Some(3), ""),
        (Some(1), "[]"),
        (None, "[]"),
        (Some(0), "{\"a\":1}"),
    ];
    let line = |(exit, report): &(Option<i32>, &str)| {
        let outcome = format!("{:?}", read_gitleaks(*exit, 3, report));
        assert!(!outcome.contains("s3cr3t"), "no secret is listed: {outcome}");
        format!("{exit:?} {report}\n  {outcome}")
    };
    let lines: Vec<String> = answers.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Some(0) []
      Clean
    Some(0) 
      Clean
    Some(0) [{"RuleID":"aws-key","Secret":"s3cr3t"},{"Secret":"x"}]
      Findings { count: 2, listed: ["aws-key", "a rule without a name"] }
    Some(3) [{"RuleID":"aws-key","Secret":"s3cr3t"},{"Secret":"x"}]
      Findings { count: 2, listed: ["aws-key", "a rule without a name"] }
    Some(3) []
      Findings { count: 1, listed: [] }
    Some(3) 
      Error { reason: "its report: EOF while parsing a value at line 1 column 0" }
    Some(1) []
      Error { reason: "it ended with status 1" }
    None []
      Error { reason: "it was ended by a signal or the clock" }
    Some(0) {"a":1}
      Error { reason: "its report: invalid type: map, expected a sequence at line 1 column 0" }
    "#);
}
