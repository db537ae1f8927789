//! The profile of a project: defaults, choices and errors.

use serde_json::{Value, json};

use crate::rules::profile::{Profile, SuiteRunner, parse_profile};
use crate::rules::schema::render_json;

use super::env;

fn profile(text: &str) -> Profile {
    parse_profile(&env(text)).unwrap()
}

/// The keys of a profile as a JSON document.
fn keys(profile: &Profile, wanted: &[&str]) -> String {
    let all = json!(profile);
    let pick = |key: &&str| ((*key).to_owned(), all[*key].clone());
    render_json(&wanted.iter().map(pick).collect::<serde_json::Map<String, Value>>())
}

#[test]
fn the_agents_of_an_empty_profile() {
    insta::assert_snapshot!(keys(&profile(""), &["implement", "review"]), @r#"
    {
      "implement": {
        "command": [],
        "key": "usual",
        "max_tokens": null,
        "max_usd": null,
        "model": null,
        "price": null,
        "provider": "codex",
        "script": null,
        "silence_secs": null,
        "url": null,
        "variant": null,
        "wire": null
      },
      "review": {
        "command": [],
        "key": "usual",
        "max_tokens": null,
        "max_usd": null,
        "model": null,
        "price": null,
        "provider": "claude",
        "script": null,
        "silence_secs": null,
        "url": null,
        "variant": null,
        "wire": null
      }
    }
    "#);
}

#[test]
fn the_suites_and_limits_of_an_empty_profile() {
    let wanted = [
        "suites",
        "makefile",
        "merge_gate_target",
        "test_in",
        "test_env",
        "test_timeout",
        "implement_timeout",
        "review_timeout",
        "breakdown_timeout",
        "max_files",
        "max_lines",
    ];
    insta::assert_snapshot!(keys(&profile(""), &wanted), @r#"
    {
      "breakdown_timeout": {
        "nanos": 0,
        "secs": 180
      },
      "implement_timeout": {
        "nanos": 0,
        "secs": 1200
      },
      "makefile": "Makefile",
      "max_files": 10,
      "max_lines": 200,
      "merge_gate_target": null,
      "review_timeout": {
        "nanos": 0,
        "secs": 600
      },
      "suites": [
        {
          "how": {
            "make": "test-unit"
          },
          "name": "unit"
        },
        {
          "how": {
            "make": "test-integration"
          },
          "name": "integration"
        },
        {
          "how": {
            "make": "test-smoke"
          },
          "name": "smoke"
        },
        {
          "how": {
            "make": "test-e2e"
          },
          "name": "e2e"
        }
      ],
      "test_env": [],
      "test_in": "box",
      "test_timeout": {
        "nanos": 0,
        "secs": 300
      }
    }
    "#);
}

#[test]
fn the_rest_of_an_empty_profile() {
    let wanted = [
        "pause",
        "merge_mode",
        "forge_url",
        "forbidden_paths",
        "allowed_paths",
        "test_egress",
        "agent_egress",
        "agent_allow",
        "permit_private",
        "box_backend",
        "box_image",
        "is_qa_strict",
        "docs_path",
        "raw_requirements",
        "notify_cmd",
        "secrets_implement",
        "secrets_test",
    ];
    insta::assert_snapshot!(keys(&profile(""), &wanted), @r#"
    {
      "agent_allow": [],
      "agent_egress": "model-only",
      "allowed_paths": [],
      "box_backend": null,
      "box_image": null,
      "docs_path": "docs",
      "forbidden_paths": [
        "secrets/",
        ".env"
      ],
      "forge_url": null,
      "is_qa_strict": false,
      "merge_mode": null,
      "notify_cmd": [],
      "pause": "gates",
      "permit_private": [],
      "raw_requirements": [
        "requirements/raw"
      ],
      "secrets_implement": [],
      "secrets_test": [],
      "test_egress": "none"
    }
    "#);
}

#[test]
fn an_agent_with_every_key() {
    let text = "AGENT_REVIEW=pi\nAGENT_REVIEW_MODEL=m\nAGENT_REVIEW_VARIANT=high\nAGENT_REVIEW_MODEL_URL=http://127.0.0.1:8080\nAGENT_REVIEW_WIRE=chat\nAGENT_REVIEW_KEY_CMD=\"pass show key\"\nAGENT_REVIEW_MAX_USD=2.5\nAGENT_REVIEW_PRICE=1,10\nAGENT_REVIEW_MAX_TOKENS=9\nAGENT_REVIEW_SILENCE=60\n";
    insta::assert_snapshot!(keys(&profile(text), &["review", "plan"]), @r#"
    {
      "plan": {
        "command": [],
        "key": {
          "command": [
            "pass",
            "show",
            "key"
          ]
        },
        "max_tokens": 9,
        "max_usd": 2.5,
        "model": "m",
        "price": [
          1.0,
          10.0
        ],
        "provider": "pi",
        "script": null,
        "silence_secs": 60,
        "url": "http://127.0.0.1:8080",
        "variant": "high",
        "wire": "chat"
      },
      "review": {
        "command": [],
        "key": {
          "command": [
            "pass",
            "show",
            "key"
          ]
        },
        "max_tokens": 9,
        "max_usd": 2.5,
        "model": "m",
        "price": [
          1.0,
          10.0
        ],
        "provider": "pi",
        "script": null,
        "silence_secs": 60,
        "url": "http://127.0.0.1:8080",
        "variant": "high",
        "wire": "chat"
      }
    }
    "#);
}

#[test]
fn commands_outrank_targets_and_an_empty_value_switches_a_suite_off() {
    let rows: String = [
        "",
        "MAKE_TARGET_TEST=check\n",
        "MAKE_TARGET_TEST=check\nMAKE_TARGET_UNIT=u\n",
        "TEST_CMD_UNIT=\"npm run test:unit\"\n",
        "MAKE_TARGET_UNIT=\nMAKE_TARGET_E2E=\n",
        "MAKEFILE_PATH=\n",
        "MAKEFILE_PATH=\nTEST_CMD_SMOKE=\"sh smoke.sh\"\n",
    ]
    .iter()
    .map(|text| {
        let suites = profile(text).suites;
        let how = suites.iter().map(|suite| match &suite.how {
            SuiteRunner::Command(argv) => format!("{}: runs {argv:?}", suite.name),
            SuiteRunner::Make(target) => format!("{}: makes {target}", suite.name),
            SuiteRunner::Skip(why) => format!("{}: skipped, {why}", suite.name),
        });
        format!("{text:?}\n  {}\n", how.collect::<Vec<_>>().join("\n  "))
    })
    .collect();
    insta::assert_snapshot!(rows, @r#"
    ""
      unit: makes test-unit
      integration: makes test-integration
      smoke: makes test-smoke
      e2e: makes test-e2e
    "MAKE_TARGET_TEST=check\n"
      unit: makes check
      integration: makes test-integration
      smoke: makes test-smoke
      e2e: makes test-e2e
    "MAKE_TARGET_TEST=check\nMAKE_TARGET_UNIT=u\n"
      unit: makes u
      integration: makes test-integration
      smoke: makes test-smoke
      e2e: makes test-e2e
    "TEST_CMD_UNIT=\"npm run test:unit\"\n"
      unit: runs ["npm", "run", "test:unit"]
      integration: makes test-integration
      smoke: makes test-smoke
      e2e: makes test-e2e
    "MAKE_TARGET_UNIT=\nMAKE_TARGET_E2E=\n"
      unit: skipped, no target configured
      integration: makes test-integration
      smoke: makes test-smoke
      e2e: skipped, no target configured
    "MAKEFILE_PATH=\n"
      unit: skipped, no command configured and make is not used
      integration: skipped, no command configured and make is not used
      smoke: skipped, no command configured and make is not used
      e2e: skipped, no command configured and make is not used
    "MAKEFILE_PATH=\nTEST_CMD_SMOKE=\"sh smoke.sh\"\n"
      unit: skipped, no command configured and make is not used
      integration: skipped, no command configured and make is not used
      smoke: runs ["sh", "smoke.sh"]
      e2e: skipped, no command configured and make is not used
    "#);
}

#[test]
fn supervision_has_two_keys() {
    let rows: String = [
        "",
        "HITL_MODE=strict\n",
        "HITL_MODE=stage-only\n",
        "HITL_MODE=exceptions\n",
        "HITL_MODE=off\n",
        "SUPERVISED_MODE=true\n",
        "SUPERVISED_MODE=false\nHITL_MODE=strict\n",
        "SUPERVISED_MODE=true\nHITL_MODE=off\n",
    ]
    .iter()
    .map(|text| format!("{text:?}: {:?}\n", profile(text).pause))
    .collect();
    insta::assert_snapshot!(rows, @r#"
    "": Gates
    "HITL_MODE=strict\n": EveryCommit
    "HITL_MODE=stage-only\n": Gates
    "HITL_MODE=exceptions\n": Gates
    "HITL_MODE=off\n": Gates
    "SUPERVISED_MODE=true\n": EveryCommit
    "SUPERVISED_MODE=false\nHITL_MODE=strict\n": EveryCommit
    "SUPERVISED_MODE=true\nHITL_MODE=off\n": EveryCommit
    "#);
}

fn errors(texts: &[&str]) -> String {
    let row = |text: &&str| match parse_profile(&env(text)) {
        Ok(_) => format!("{text:?}: valid\n"),
        Err(error) => format!("{text:?}: {error}\n"),
    };
    texts.iter().map(row).collect()
}

#[test]
fn wrong_values_of_the_project_name_their_key_and_the_rule() {
    let texts = [
        "TEST_TIMEOUT=0\n",
        "TEST_TIMEOUT=86400\n",
        "TEST_TIMEOUT=86401\n",
        "REVIEW_TIMEOUT=ten\n",
        "MERGE_MODE=svn\n",
        "MERGE_MODE=gitlab_mr\n",
        "HITL_MODE=maybe\n",
        "SUPERVISED_MODE=yes\n",
        "QA_STRICT=1\n",
        "MAKEFILE_PATH=../Makefile\n",
        "MAKEFILE_PATH=/Makefile\n",
        "DOCS_PATH=/etc\n",
        "DOCS_PATH=a/../b\n",
        "TEST_IN=vm\n",
        "TEST_EGRESS=all\n",
        "AGENT_EGRESS=internet\n",
        "BOX_BACKEND=podman\n",
        "COMMITSIZE_MAX_FILES=0\n",
        "COMMITSIZE_MAX_LOC=-1\n",
    ];
    insta::assert_snapshot!(errors(&texts), @r#"
    "TEST_TIMEOUT=0\n": TEST_TIMEOUT must be a number of seconds from 1 to 86400
    "TEST_TIMEOUT=86400\n": valid
    "TEST_TIMEOUT=86401\n": TEST_TIMEOUT must be a number of seconds from 1 to 86400
    "REVIEW_TIMEOUT=ten\n": REVIEW_TIMEOUT must be a number of seconds from 1 to 86400
    "MERGE_MODE=svn\n": MERGE_MODE must be local, gitea_pr, github_pr or gitlab_mr
    "MERGE_MODE=gitlab_mr\n": valid
    "HITL_MODE=maybe\n": HITL_MODE must be strict, stage-only, exceptions or off
    "SUPERVISED_MODE=yes\n": SUPERVISED_MODE must be true or false
    "QA_STRICT=1\n": QA_STRICT must be true or false
    "MAKEFILE_PATH=../Makefile\n": MAKEFILE_PATH must be a path inside the repository
    "MAKEFILE_PATH=/Makefile\n": MAKEFILE_PATH must be a path inside the repository
    "DOCS_PATH=/etc\n": DOCS_PATH must be a path inside the repository
    "DOCS_PATH=a/../b\n": DOCS_PATH must be a path inside the repository
    "TEST_IN=vm\n": TEST_IN must be box or host
    "TEST_EGRESS=all\n": TEST_EGRESS must be none, model-only, packages or open
    "AGENT_EGRESS=internet\n": AGENT_EGRESS must be none, model-only, packages or open
    "BOX_BACKEND=podman\n": BOX_BACKEND must be docker or bwrap
    "COMMITSIZE_MAX_FILES=0\n": COMMITSIZE_MAX_FILES must be a whole number of 1 or more
    "COMMITSIZE_MAX_LOC=-1\n": COMMITSIZE_MAX_LOC must be a whole number of 1 or more
    "#);
}

#[test]
fn wrong_values_of_an_agent_name_their_key_and_the_rule() {
    let texts = [
        "AGENT_REVIEW=gpt\n",
        "AGENT_REVIEW=command\n",
        "AGENT_REVIEW=scripted\n",
        "AGENT_REVIEW_WIRE=grpc\n",
        "AGENT_REVIEW_MAX_USD=1\n",
        "AGENT_REVIEW_MAX_USD=1\nAGENT_REVIEW_PRICE=1,2\n",
        "AGENT_REVIEW_PRICE=cheap\n",
        "AGENT_REVIEW_PRICE=1\n",
        "AGENT_REVIEW_PRICE=1,-2\n",
        "AGENT_REVIEW_MAX_TOKENS=0\n",
        "AGENT_REVIEW_SILENCE=0\n",
        "AGENT_REVIEW_KEY_VAR=A\nAGENT_REVIEW_KEY_FILE=/k\n",
        "AGENT_REVIEW_KEY_FILE=/k\nAGENT_REVIEW_KEY_CMD=\"pass show\"\n",
    ];
    insta::assert_snapshot!(errors(&texts), @r#"
    "AGENT_REVIEW=gpt\n": AGENT_REVIEW must be codex, claude, opencode, pi, scripted, command or a name of config.toml
    "AGENT_REVIEW=command\n": AGENT_REVIEW_CMD must be a command line, since the agent is 'command'
    "AGENT_REVIEW=scripted\n": AGENT_REVIEW_SCRIPT must be a file, since the agent is 'scripted'
    "AGENT_REVIEW_WIRE=grpc\n": AGENT_REVIEW_WIRE must be messages, chat or responses
    "AGENT_REVIEW_MAX_USD=1\n": AGENT_REVIEW_PRICE must be set as well, since dollars can only be counted by a price
    "AGENT_REVIEW_MAX_USD=1\nAGENT_REVIEW_PRICE=1,2\n": valid
    "AGENT_REVIEW_PRICE=cheap\n": AGENT_REVIEW_PRICE must be dollars for a million tokens as IN,OUT
    "AGENT_REVIEW_PRICE=1\n": AGENT_REVIEW_PRICE must be dollars for a million tokens as IN,OUT
    "AGENT_REVIEW_PRICE=1,-2\n": AGENT_REVIEW_PRICE must be dollars for a million tokens as IN,OUT
    "AGENT_REVIEW_MAX_TOKENS=0\n": AGENT_REVIEW_MAX_TOKENS must be a whole number of 1 or more
    "AGENT_REVIEW_SILENCE=0\n": AGENT_REVIEW_SILENCE must be a number of seconds, 1 or more
    "AGENT_REVIEW_KEY_VAR=A\nAGENT_REVIEW_KEY_FILE=/k\n": AGENT_REVIEW_KEY_VAR must be the only place of the key: a variable, a file or a command
    "AGENT_REVIEW_KEY_FILE=/k\nAGENT_REVIEW_KEY_CMD=\"pass show\"\n": AGENT_REVIEW_KEY_VAR must be the only place of the key: a variable, a file or a command
    "#);
}
