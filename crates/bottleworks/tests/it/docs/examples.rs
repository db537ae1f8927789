//! The files in `examples/`, each read by the program that it is for, and the JSON that agents print for `wf`, played.

use std::fs;
use std::path::Path;

use testkit::part::{Part as MachinePart, require};

use super::page::{Page, Part, root};
use super::place::Place;

fn example(path: &str) -> String {
    let text = fs::read_to_string(root().join("examples").join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Writes a file below the home of a place.
fn write(place: &Place, path: &str, text: &str) {
    let path = place.home().join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("written");
}

#[track_caller]
fn ends(place: &Place, script: &str, status: i32, words: &[&str]) {
    let output = place.run(script);
    assert_eq!(output.status, Some(status), "{script}\n{}", output.stdout);
    for word in words {
        assert!(output.stdout.contains(word), "{word} is not in\n{}", output.stdout);
    }
}

/// Every file is in the list, and the list has no other.
#[test]
fn every_example_is_in_the_list() {
    let list = example("README.md");
    let mut files = Vec::new();
    add_files(&root().join("examples"), "", &mut files);
    for file in files.iter().filter(|file| *file != "README.md") {
        assert!(list.contains(&format!("({file})")), "{file} is not in examples/README.md");
    }
}

fn add_files(folder: &Path, prefix: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => add_files(&entry.path(), &format!("{name}/"), files),
            false => files.push(name),
        }
    }
}

#[test]
fn forklift_reads_the_rules_of_every_kind_of_fork() {
    for (kind, words) in [
        ("vendored", &["check: make test", "protect"][..]),
        ("rebranded", &["check: npm test", "setup: npm ci"]),
        ("patched", &["check: cargo test --workspace"]),
    ] {
        changelog_with(&example(&format!("fork/{kind}/FORK.md")), words);
    }
}

/// Publishes a FORK.md, and a release of upstream for those that follow releases, and has forklift read both.
fn changelog_with(rules: &str, words: &[&str]) {
    let place = Place::new("fork");
    write(&place, "my-fork/FORK.md", rules);
    let publish = "cd my-fork && git commit --quiet -am rules && git push --quiet origin HEAD:main";
    ends(&place, publish, 0, &[]);
    let release =
        "git fetch -q upstream && git tag v1.0.0 upstream/main && git push -q upstream v1.0.0";
    ends(&place, release, 0, &[]);
    ends(&place, "forklift changelog", 0, words);
}

/// The first block of a page in a language that has these words.
fn block_with(path: &str, language: &str, words: &str) -> String {
    let page = Page::load(path);
    let blocks = page.blocks().filter(|block| block.language == language);
    let mut texts = blocks.map(|block| block.lines.join("\n") + "\n");
    texts.find(|text| text.contains(words)).unwrap_or_else(|| panic!("{path} has no {words}"))
}

/// Files that the guides show in part or in full.
#[test]
fn the_programs_read_the_files_that_the_guides_show() {
    changelog_with(&block_with("docs/forklift.md", "markdown", "check: npm test"), &["npm test"]);
    let place = Place::new("home");
    let config = block_with("docs/configuration.md", "toml", "[agents.claude]");
    write(&place, ".config/bottleworks/config.toml", &config);
    ends(&place, "forklift config get agents.claude.key_command", 0, &["pass show anthropic"]);
    let token = "umask 077; mkdir -p ~/.bot-bottle; echo 0123456789012345678901234567890123456789 > ~/.bot-bottle/admin-token";
    ends(&place, token, 0, &[]);
    let home = place.home().display().to_string();
    let login = block_with("docs/page.md", "toml", "admin_token_file").replace("/home/me", &home);
    let forge =
        "[[forge]]\nkind = \"gitea\"\nurl = \"https://git.example\"\nrepos = [\"me/app\"]\n";
    write(&place, "serve.toml", &format!("{login}{forge}"));
    ends(&place, "bot-bottle config check serve.toml", 0, &[]);
}

#[test]
fn the_three_commands_read_the_configuration() {
    let place = Place::new("home");
    write(&place, ".config/bottleworks/config.toml", &example("config.toml"));
    for name in ["forklift", "wf", "bot-bottle"] {
        ends(&place, &format!("{name} config get agents.local.url"), 0, &["127.0.0.1:11434"]);
    }
}

#[test]
fn wf_reads_the_profile_and_the_plan() {
    let place = Place::new("product");
    ends(&place, "cd my-product && wf init --yes && wf new login Login src/", 0, &[]);
    let project = "my-product.ops/workflow/projects/my-product";
    write(&place, &format!("{project}/project_profile.env"), &example("wf/project_profile.env"));
    write(&place, &format!("{project}/workstreams/login/plan.md"), &example("wf/plan.md"));
    ends(&place, "wf project show", 0, &["claude implements, codex reviews", "make test"]);
    ends(&place, "wf status login", 0, &["COMMIT-LOGIN-001"]);
    ends(&place, "wf doctor || true", 0, &["valid"]);
}

#[test]
fn bot_bottle_reads_the_manifests_and_the_configuration_of_serve() {
    let place = Place::new("home");
    for path in ["agents/implementer.toml", "bottles/node.toml"] {
        write(&place, &format!(".bot-bottle/{path}"), &example(&format!("bot-bottle/{path}")));
    }
    write(&place, "serve.toml", &example("serve/serve.toml"));
    ends(&place, "bot-bottle agent show implementer", 0, &["claude"]);
    ends(&place, "bot-bottle bottle check node", 0, &[]);
    ends(&place, "bot-bottle config check serve.toml", 0, &[]);
}

/// The page shows the file.
#[test]
fn the_workflow_on_the_page_is_the_example() {
    let page = Page::load("docs/how-to/actions.md");
    let shown = page.blocks().find(|block| block.language == "yaml").expect("a workflow");
    assert_eq!(shown.lines.join("\n"), example("actions/forklift.yml").trim_end());
}

/// The container has the options without which no box starts in one.
#[test]
fn the_container_has_what_boxes_need() {
    let compose = example("compose/compose.yaml");
    let support = fs::read_to_string(root().join("docs/support.md")).expect("the page");
    for option in ["seccomp=unconfined", "systempaths=unconfined"] {
        assert!(compose.contains(option) && support.contains(option), "{option}");
    }
}

/// Plays each object of the page as the implementer or the reviewer, and looks for what the page says of it.
#[test]
fn the_json_of_agents_is_what_wf_reads() {
    if require(MachinePart::Bwrap).is_none() {
        return;
    }
    let mut played = 0;
    let mut expected: Option<(String, String)> = None;
    for part in &Page::load("docs/reference/agent-json.md").parts {
        match part {
            Part::Text(lines) => {
                let comment = |line: &String| {
                    let (role, words) =
                        line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")?;
                    Some((role.to_owned(), words.to_owned()))
                };
                expected = lines.iter().rev().find_map(comment);
            }
            Part::Block(block) => {
                let (role, words) = expected.take().expect("a comment says what comes of it");
                play(&role, &block.lines.join("\n"), &words);
                played += 1;
            }
        }
    }
    assert!(played >= 5, "{played} objects");
}

fn play(role: &str, object: &str, words: &str) {
    let place = Place::new("product");
    ends(&place, "cd my-product && wf init --yes && wf new w Work src/", 0, &[]);
    let project = "my-product.ops/workflow/projects/my-product";
    let (success, approve) =
        (r#"{"status": "success"}"#, r#"{"version": 1, "decision": "approve", "blockers": []}"#);
    let (reply, review) = match role {
        "reply" => (object, approve),
        _ => (success, object),
    };
    let print = |text: &str| format!("[[step]]\nprint = '''{text}\n'''\n");
    let work = "[[step]]\nrun = \"mkdir src && echo x > src/x && git add . && git commit -qm 'COMMIT-W-001: Work'\"\n";
    let profile = "HITL_MODE=off\nMERGE_MODE=local\nAGENT_IMPLEMENT=scripted\nAGENT_IMPLEMENT_SCRIPT=i.toml\n\
                   AGENT_REVIEW=scripted\nAGENT_REVIEW_SCRIPT=r.toml\n";
    write(&place, &format!("{project}/project_profile.env"), profile);
    write(&place, &format!("{project}/i.toml"), &format!("{work}{}", print(reply)));
    write(&place, &format!("{project}/r.toml"), &print(review));
    let plan = "# Plan\n\n### COMMIT-W-001: Work\n\nAcceptance:\n- x\n\nDone: [ ]\n";
    write(&place, &format!("{project}/workstreams/w/plan.md"), plan);
    ends(&place, "wf run w || true", 0, &[words]);
}
