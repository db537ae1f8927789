//! project.env and meta.env: what is written, what is refused, and the choice of a project.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::env_file::EnvFile;
use model::id::{BranchName, WorkstreamId};

use crate::rules::choose::{ProjectCandidate, choose_project};
use crate::rules::meta::{NewMeta, parse_meta, render_new};
use crate::rules::project::{branch_of, parse_project, write_project};
use crate::rules::run_id::{RunTopic, run_name};
use crate::rules::schema::render_json;
use crate::rules::suggest::hint;
use crate::rules::test_env::is_passed;

use super::{META, commit_id, env, meta, sha};

#[test]
fn a_meta_file_as_json() {
    insta::assert_snapshot!(render_json(&meta()), @r#"
    {
      "id": "login",
      "title": "Log in",
      "branch": "feat/login",
      "worktree": "/ops/worktrees/login",
      "base_branch": "main",
      "base_sha": "cccccccccccccccccccccccccccccccccccccccc",
      "status": "implement",
      "expected_paths": [
        "src/"
      ],
      "created_at": "2025-01-15T10:00:00Z",
      "last_refreshed": "2025-01-15T12:00:00Z",
      "last_run_id": null,
      "last_commit_sha": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "last_result": null,
      "blocked_by": [],
      "approved_sha": null,
      "merge_pull": null,
      "merge_pull_sha": null,
      "touched_head": null,
      "touched_base": null
    }
    "#);
}

#[test]
fn a_new_meta_file() {
    let new = NewMeta {
        id: WorkstreamId::parse("login").unwrap(),
        title: "Log in: it's new".to_owned(),
        branch: BranchName::parse("feat/login").unwrap(),
        worktree: "/ops/worktrees/login".into(),
        base_branch: BranchName::parse("main").unwrap(),
        base_sha: sha('c'),
        expected_paths: vec!["src/".to_owned(), "tests/login".to_owned()],
        after: Vec::new(),
        sparse: Vec::new(),
        story: None,
        now: Timestamp::UNIX_EPOCH,
    };
    insta::assert_snapshot!(render_new(&new).unwrap().to_string(), @r#"
    ID=login
    TITLE="Log in: it's new"
    BRANCH=feat/login
    WORKTREE=/ops/worktrees/login
    BASE_BRANCH=main
    BASE_SHA=cccccccccccccccccccccccccccccccccccccccc
    STATUS=planning
    EXPECTED_PATHS="src/ tests/login"
    CREATED_AT=1970-01-01T00:00:00Z
    LAST_REFRESHED=1970-01-01T00:00:00Z
    "#);
}

#[test]
fn a_broken_meta_file_names_the_key() {
    let row = |(from, to): &(&str, &str)| {
        let file = EnvFile::parse(&META.replace(from, to)).unwrap();
        match parse_meta(&file, "login") {
            Ok(meta) => format!("{to:?}: valid, {}\n", meta.status),
            Err(error) => format!("{to:?}: {error}\n"),
        }
    };
    let rows: String = [
        ("ID=login", "ID=../x"),
        ("ID=login", "ID=other"),
        ("ID=login\n", ""),
        ("BRANCH=feat/login", "BRANCH=-x"),
        ("BASE_BRANCH=main", "BASE_BRANCH="),
        ("BASE_SHA=cccc", "BASE_SHA=xyz"),
        ("STATUS=implement", "STATUS=busy"),
        ("STATUS=implement", "STATUS=blocked:clarify"),
        ("WORKTREE=/ops", "WORKTREE=ops"),
        ("LAST_COMMIT_SHA=aaaa", "LAST_COMMIT_SHA=main"),
        ("EXPECTED_PATHS=src/", "MERGE_PULL=seven"),
    ]
    .iter()
    .map(row)
    .collect();
    insta::assert_snapshot!(rows, @r#"
    "ID=../x": ID: "../x" is not a valid workstream id: 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter
    "ID=other": ID is other, but the folder is called login
    "": missing or empty: ID
    "BRANCH=-x": BRANCH: "-x" is not a valid branch name: it must not start with '-'
    "BASE_BRANCH=": missing or empty: BASE_BRANCH
    "BASE_SHA=xyz": BASE_SHA: "xyzcccccccccccccccccccccccccccccccccccc" is not a valid object id: it must be 40 or 64 of 0-9 and a-f
    "STATUS=busy": STATUS is not one of planning, implement, blocked:clarification, blocked:review, blocked:test, docs, uat:pending, uat:failed, merge-ready, done
    "STATUS=blocked:clarify": valid, blocked:clarification
    "WORKTREE=ops": WORKTREE must be an absolute path
    "LAST_COMMIT_SHA=main": LAST_COMMIT_SHA: "mainaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" is not a valid object id: it must be 40 or 64 of 0-9 and a-f
    "MERGE_PULL=seven": MERGE_PULL must be a number
    "#);
}

#[test]
fn a_broken_project_file_names_the_key() {
    let good = "PROJECT_NAME=app\nREPO_PATH=/r\nDEFAULT_BRANCH=main\n";
    let row = |change: &(&str, &str)| {
        let text = good.replace(change.0, change.1);
        match parse_project(&env(&text), "app") {
            Ok(project) => format!("{:?}: valid, {:?}\n", change.1, project.branch_prefix),
            Err(error) => format!("{:?}: {error}\n", change.1),
        }
    };
    let rows: String = [
        ("PROJECT_NAME=app\n", ""),
        ("PROJECT_NAME=app", "PROJECT_NAME=a/b"),
        ("PROJECT_NAME=app", "PROJECT_NAME=other"),
        ("REPO_PATH=/r", "REPO_PATH=r"),
        ("REPO_PATH=/r", "REPO_PATH="),
        ("DEFAULT_BRANCH=main", "DEFAULT_BRANCH=a..b"),
        ("DEFAULT_BRANCH=main\n", "DEFAULT_BRANCH=main\nOPS_PATH=ops\n"),
        ("DEFAULT_BRANCH=main\n", "DEFAULT_BRANCH=main\nBRANCH_PREFIX=fix/\n"),
        ("DEFAULT_BRANCH=main\n", "DEFAULT_BRANCH=main\nBRANCH_PREFIX=\n"),
        ("DEFAULT_BRANCH=main\n", "DEFAULT_BRANCH=main\nBRANCH_PREFIX=-x\n"),
    ]
    .iter()
    .map(row)
    .collect();
    insta::assert_snapshot!(rows, @r#"
    "": missing or empty: PROJECT_NAME
    "PROJECT_NAME=a/b": PROJECT_NAME: "a/b" is not a valid project name: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', starting with a letter or digit, without '..'
    "PROJECT_NAME=other": PROJECT_NAME is other, but the folder is called app
    "REPO_PATH=r": REPO_PATH must be an absolute path
    "REPO_PATH=": missing or empty: REPO_PATH
    "DEFAULT_BRANCH=a..b": DEFAULT_BRANCH: "a..b" is not a valid branch name: it must not contain '..' or '@{'
    "DEFAULT_BRANCH=main\nOPS_PATH=ops\n": OPS_PATH must be an absolute path
    "DEFAULT_BRANCH=main\nBRANCH_PREFIX=fix/\n": valid, "fix"
    "DEFAULT_BRANCH=main\nBRANCH_PREFIX=\n": valid, ""
    "DEFAULT_BRANCH=main\nBRANCH_PREFIX=-x\n": BRANCH_PREFIX: "-x/x" is not a valid branch name: it must not start with '-'
    "#);
}

#[test]
fn a_project_is_written_into_its_file() {
    let mut file = env("# mine\nCOLOUR=blue\nPROJECT_NAME=old\n");
    let good =
        "PROJECT_NAME=app\nREPO_PATH=/r\nOPS_PATH=/r.ops\nDEFAULT_BRANCH=main\nBRANCH_PREFIX=\n";
    write_project(&mut file, &parse_project(&env(good), "app").unwrap()).unwrap();
    insta::assert_snapshot!(file.to_string(), @r#"
    # mine
    COLOUR=blue
    PROJECT_NAME=app
    REPO_PATH=/r
    OPS_PATH=/r.ops
    DEFAULT_BRANCH=main
    BRANCH_PREFIX=""
    "#);
}

#[test]
fn the_project_is_chosen_by_flag_variable_and_directory() {
    let candidate = |name: &str, folders: &[&str]| ProjectCandidate {
        name: name.to_owned(),
        folders: folders.iter().map(PathBuf::from).collect(),
    };
    let known = [
        candidate("app", &["/dev/app", "/flow/projects/app"]),
        candidate("vendor", &["/dev/app/vendor", "/ops/worktrees/x"]),
    ];
    let choose = |flag, variable, here: &str, known: &[ProjectCandidate]| {
        let chosen = choose_project(flag, variable, Path::new(here), known);
        let chosen = chosen.unwrap_or_else(|error| format!("error: {error}"));
        format!("flag {flag:?}, variable {variable:?}, in {here}: {chosen}\n")
    };
    let rows = [
        choose(Some("app"), Some("vendor"), "/ops/worktrees/x", &known),
        choose(None, Some("vendor"), "/dev/app", &known),
        choose(None, Some(""), "/dev/app/src", &known),
        choose(None, None, "/dev/app/vendor/src", &known),
        choose(None, None, "/dev/apple", &known),
        choose(None, None, "/", &known[..1]),
        choose(None, None, "/", &[]),
        choose(Some("ap"), None, "/", &known),
        choose(Some("zzz"), None, "/", &known),
    ];
    insta::assert_snapshot!(rows.concat(), @r#"
    flag Some("app"), variable Some("vendor"), in /ops/worktrees/x: app
    flag None, variable Some("vendor"), in /dev/app: vendor
    flag None, variable Some(""), in /dev/app/src: app
    flag None, variable None, in /dev/app/vendor/src: vendor
    flag None, variable None, in /dev/apple: error: several projects are registered (app, vendor); say which: --project NAME, or set AOS_PROJECT
    flag None, variable None, in /: app
    flag None, variable None, in /: error: no project is registered yet; in a checkout of your product run: wf init
    flag Some("ap"), variable None, in /: error: there is no project 'ap'; did you mean 'app'? See: wf project list
    flag Some("zzz"), variable None, in /: error: there is no project 'zzz'; see: wf project list
    "#);
}

#[test]
fn names_of_runs_branches_and_hints() {
    let id = commit_id();
    let stem = "20250115-120000_app_login";
    let topics = [
        RunTopic::Pending,
        RunTopic::None,
        RunTopic::Merge,
        RunTopic::Plan,
        RunTopic::MicroCommit(&id),
    ];
    let mut rows: Vec<String> = topics.iter().map(|&topic| run_name(stem, topic, 1)).collect();
    rows.push(run_name(stem, RunTopic::Merge, 3));
    for prefix in ["feat", "fix/", "", "a b", "-x"] {
        let branch = branch_of(prefix, "login");
        let branch = branch.map_or_else(|error| error.to_string(), |name| name.to_string());
        rows.push(format!("prefix {prefix:?}: {branch}"));
    }
    for typed in ["logni", "sear", "zzz", ""] {
        rows.push(format!("typed {typed:?}{}", hint(typed, ["login", "search"])));
    }
    insta::assert_snapshot!(rows.join("\n"), @r#"
    20250115-120000_app_login_pending
    20250115-120000_app_login_none
    20250115-120000_app_login_merge
    20250115-120000_app_login_plan
    20250115-120000_app_login_COMMIT-LG-001
    20250115-120000_app_login_merge-3
    prefix "feat": feat/login
    prefix "fix/": fix/login
    prefix "": login
    prefix "a b": "a b/login" is not a valid branch name: it must not contain blanks, control characters or any of ~ ^ : ? * [ \
    prefix "-x": "-x/login" is not a valid branch name: it must not start with '-'
    typed "logni"; did you mean 'login'?
    typed "sear"; did you mean 'search'?
    typed "zzz"
    typed ""
    "#);
}

#[test]
fn tests_on_the_host_see_these_variables() {
    let named = ["DATABASE_URL".to_owned()];
    let names = [
        "PATH",
        "HOME",
        "LANG",
        "LC_CTYPE",
        "LC_ALL",
        "XDG_RUNTIME_DIR",
        "CARGO_HOME",
        "GOPATH",
        "DATABASE_URL",
        "GH_TOKEN",
        "OPENAI_API_KEY",
        "AOS_FORGE_TOKEN",
        "SSH_AUTH_SOCK",
        "MAKEFLAGS",
        "AWS_SECRET_ACCESS_KEY",
        "PATHS",
    ];
    let row = |name: &&str| {
        format!("{name:<22} {}\n", if is_passed(name, &named) { "passed" } else { "kept back" })
    };
    insta::assert_snapshot!(names.iter().map(row).collect::<String>(), @"
    PATH                   passed
    HOME                   passed
    LANG                   passed
    LC_CTYPE               passed
    LC_ALL                 kept back
    XDG_RUNTIME_DIR        passed
    CARGO_HOME             passed
    GOPATH                 passed
    DATABASE_URL           passed
    GH_TOKEN               kept back
    OPENAI_API_KEY         kept back
    AOS_FORGE_TOKEN        kept back
    SSH_AUTH_SOCK          kept back
    MAKEFLAGS              kept back
    AWS_SECRET_ACCESS_KEY  kept back
    PATHS                  kept back
    ");
}
