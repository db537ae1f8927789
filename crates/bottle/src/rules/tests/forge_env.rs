//! Variables of forge runs: what is read from them, what the sidecar gets, and every refusal.

use super::super::forge_env::{ForgeEnv, ForgeEnvFault, parse_forge_env};

const USUAL: [(&str, &str); 4] = [
    ("FORGE_GITEA_API", "https://git.example/api/v1"),
    ("FORGE_OWNER", "acme"),
    ("FORGE_REPO", "widget"),
    ("FORGE_ISSUE_NUMBER", "3"),
];

/// Reads the usual variables with changes; an empty value takes one away.
fn read(changes: &[(&str, &str)]) -> Result<ForgeEnv, ForgeEnvFault> {
    let all: Vec<_> = changes.iter().chain(&USUAL).collect();
    parse_forge_env(|name| all.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()))
}

/// Settings as they are read, and as the sidecar gets them.
fn check(changes: &[(&str, &str)]) -> String {
    let env = read(changes).expect("it reads");
    let variables = env.variables();
    let lines: Vec<String> =
        variables.iter().map(|(name, value)| format!("  {name}={value}")).collect();
    format!(
        "remote {}\nissue {}\npull {}\n{}",
        env.remote_url(),
        env.issue_url(),
        env.pull_url(4),
        lines.join("\n")
    )
}

/// Why it is refused.
fn refused(changes: &[(&str, &str)]) -> String {
    let words: Vec<String> =
        changes.iter().map(|(name, value)| format!("{name}={}", value.escape_debug())).collect();
    format!("{}\n  {}", words.join(" "), read(changes).expect_err("refused"))
}

#[test]
fn gitea() {
    insta::assert_snapshot!(check(&[]), @"
    remote https://git.example/acme/widget.git
    issue https://git.example/acme/widget/issues/3
    pull https://git.example/acme/widget/pulls/4
      FORGE_GITEA_API=https://git.example/api/v1
      FORGE_KIND=gitea
      FORGE_OWNER=acme
      FORGE_REPO=widget
      FORGE_ISSUE_NUMBER=3
      FORGE_ORG=bot-bottle
      FORGE_WATCHDOG_TIMEOUT=1800
    ");
}

#[test]
fn gitea_below_a_path_with_everything_set() {
    let changes = [
        ("FORGE_GITEA_API", "https://git.example:3000/sub/api/v1/"),
        ("FORGE_PR_NUMBER", "4"),
        ("FORGE_ORG", "agents"),
        ("FORGE_TRIGGERS", " ann, ,bob "),
        ("FORGE_WATCHDOG_TIMEOUT", "60"),
        ("FORGE_ALLOW_HTTP", "1"),
    ];
    insta::assert_snapshot!(check(&changes), @"
    remote https://git.example:3000/sub/acme/widget.git
    issue https://git.example:3000/sub/acme/widget/issues/3
    pull https://git.example:3000/sub/acme/widget/pulls/4
      FORGE_GITEA_API=https://git.example:3000/sub/api/v1
      FORGE_KIND=gitea
      FORGE_OWNER=acme
      FORGE_REPO=widget
      FORGE_ISSUE_NUMBER=3
      FORGE_ORG=agents
      FORGE_WATCHDOG_TIMEOUT=60
      FORGE_TRIGGERS=ann,bob
      FORGE_ALLOW_HTTP=1
      FORGE_PR_NUMBER=4
    ");
}

#[test]
fn github() {
    let changes = [("FORGE_KIND", "github"), ("FORGE_URL", "https://github.com/")];
    insta::assert_snapshot!(check(&changes), @"
    remote https://github.com/acme/widget.git
    issue https://github.com/acme/widget/issues/3
    pull https://github.com/acme/widget/pull/4
      FORGE_URL=https://github.com
      FORGE_KIND=github
      FORGE_OWNER=acme
      FORGE_REPO=widget
      FORGE_ISSUE_NUMBER=3
      FORGE_ORG=bot-bottle
      FORGE_WATCHDOG_TIMEOUT=1800
    ");
}

#[test]
fn gitlab_with_groups_in_groups() {
    let changes = [
        ("FORGE_KIND", "gitlab"),
        ("FORGE_URL", "https://lab.example"),
        ("FORGE_OWNER", "acme/tools/cli"),
    ];
    insta::assert_snapshot!(check(&changes), @"
    remote https://lab.example/acme/tools/cli/widget.git
    issue https://lab.example/acme/tools/cli/widget/-/issues/3
    pull https://lab.example/acme/tools/cli/widget/-/merge_requests/4
      FORGE_URL=https://lab.example
      FORGE_KIND=gitlab
      FORGE_OWNER=acme/tools/cli
      FORGE_REPO=widget
      FORGE_ISSUE_NUMBER=3
      FORGE_ORG=bot-bottle
      FORGE_WATCHDOG_TIMEOUT=1800
    ");
}

#[test]
fn a_folder() {
    let changes = [("FORGE_GITEA_API", ""), ("FORGE_URL", "file:///srv/git")];
    insta::assert_snapshot!(check(&changes), @"
    remote file:///srv/git/acme/widget.git
    issue file:///srv/git/acme/widget.git.forge/threads/000003.json
    pull file:///srv/git/acme/widget.git.forge/threads/000004.json
      FORGE_URL=file:///srv/git
      FORGE_KIND=folder
      FORGE_OWNER=acme
      FORGE_REPO=widget
      FORGE_ISSUE_NUMBER=3
      FORGE_ORG=bot-bottle
      FORGE_WATCHDOG_TIMEOUT=1800
    ");
}

#[test]
fn a_front_page_of_gitea_in_the_place_of_its_api() {
    let changes = [("FORGE_GITEA_API", ""), ("FORGE_URL", "https://git.example")];
    assert_eq!(check(&changes), check(&[]));
}

#[test]
fn variables_that_are_missing() {
    let all = [
        refused(&[("FORGE_GITEA_API", "")]),
        refused(&[("FORGE_KIND", "github")]),
        refused(&[("FORGE_KIND", "folder")]),
        refused(&[("FORGE_OWNER", "")]),
        refused(&[("FORGE_REPO", " \t")]),
        refused(&[("FORGE_ISSUE_NUMBER", "")]),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    FORGE_GITEA_API=
      FORGE_GITEA_API is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    FORGE_KIND=github
      FORGE_URL is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    FORGE_KIND=folder
      FORGE_URL is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    FORGE_OWNER=
      FORGE_OWNER is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    FORGE_REPO= \t
      FORGE_REPO is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    FORGE_ISSUE_NUMBER=
      FORGE_ISSUE_NUMBER is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    ");
}

#[test]
fn addresses_that_cannot_be() {
    let all = [
        refused(&[("FORGE_GITEA_API", "https://git.example")]),
        refused(&[("FORGE_GITEA_API", "git.example/api/v1")]),
        refused(&[("FORGE_GITEA_API", "ssh://git.example/api/v1")]),
        refused(&[("FORGE_GITEA_API", "https://u:p@git.example/api/v1")]),
        refused(&[("FORGE_GITEA_API", "https:///api/v1")]),
        refused(&[("FORGE_KIND", "github"), ("FORGE_URL", "https://github.com/?x")]),
        refused(&[("FORGE_KIND", "github"), ("FORGE_URL", "file:///srv")]),
        refused(&[("FORGE_KIND", "folder"), ("FORGE_URL", "https://h")]),
        refused(&[("FORGE_KIND", "svn")]),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    FORGE_GITEA_API=https://git.example
      FORGE_GITEA_API cannot be 'https://git.example': give http(s)://host[:port][/path]/api/v1
    FORGE_GITEA_API=git.example/api/v1
      FORGE_GITEA_API cannot be 'git.example/api/v1': give http(s)://host[:port][/path]/api/v1
    FORGE_GITEA_API=ssh://git.example/api/v1
      FORGE_GITEA_API cannot be 'ssh://git.example/api/v1': give http(s)://host[:port][/path]/api/v1
    FORGE_GITEA_API=https://u:p@git.example/api/v1
      FORGE_GITEA_API cannot be 'https://***@git.example/api/v1': give http(s)://host[:port][/path]/api/v1
    FORGE_GITEA_API=https:///api/v1
      FORGE_GITEA_API cannot be 'https:///api/v1': give http(s)://host[:port][/path]/api/v1
    FORGE_KIND=github FORGE_URL=https://github.com/?x
      FORGE_URL cannot be 'https://github.com/?x': give http(s)://host[:port][/path]
    FORGE_KIND=github FORGE_URL=file:///srv
      FORGE_URL cannot be 'file:///srv': give http(s)://host[:port][/path]
    FORGE_KIND=folder FORGE_URL=https://h
      FORGE_URL cannot be 'https://h': give file:///absolute/path
    FORGE_KIND=svn
      FORGE_KIND cannot be 'svn': gitea, github, gitlab or folder
    ");
}

#[test]
fn names_and_numbers_that_cannot_be() {
    let all = [
        refused(&[("FORGE_OWNER", "../x")]),
        refused(&[("FORGE_OWNER", "a//b")]),
        refused(&[("FORGE_REPO", "a b")]),
        refused(&[("FORGE_REPO", "x\u{202e}y")]),
        refused(&[("FORGE_REPO", &"x/".repeat(60))]),
        refused(&[("FORGE_ISSUE_NUMBER", "0")]),
        refused(&[("FORGE_ISSUE_NUMBER", "-1")]),
        refused(&[("FORGE_ISSUE_NUMBER", "#3")]),
        refused(&[("FORGE_PR_NUMBER", "0")]),
        refused(&[("FORGE_WATCHDOG_TIMEOUT", "18446744073709551616")]),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    FORGE_OWNER=../x
      FORGE_OWNER cannot be '../x': letters, digits, '-', '_' and '.'
    FORGE_OWNER=a//b
      FORGE_OWNER cannot be 'a//b': letters, digits, '-', '_' and '.'
    FORGE_REPO=a b
      FORGE_REPO cannot be 'a b': letters, digits, '-', '_' and '.'
    FORGE_REPO=x\u{202e}y
      FORGE_REPO cannot be 'x\u{202e}y': letters, digits, '-', '_' and '.'
    FORGE_REPO=x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/
      FORGE_REPO cannot be 'x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/': letters, digits, '-', '_' and '.'
    FORGE_ISSUE_NUMBER=0
      FORGE_ISSUE_NUMBER cannot be '0': give a number from 1
    FORGE_ISSUE_NUMBER=-1
      FORGE_ISSUE_NUMBER cannot be '-1': give a number from 1
    FORGE_ISSUE_NUMBER=#3
      FORGE_ISSUE_NUMBER cannot be '#3': give a number from 1
    FORGE_PR_NUMBER=0
      FORGE_PR_NUMBER cannot be '0': give a number from 1
    FORGE_WATCHDOG_TIMEOUT=18446744073709551616
      FORGE_WATCHDOG_TIMEOUT cannot be '18446744073709551616': give a number from 1
    ");
}
