//! Runs the command blocks of every page. `sh` blocks must succeed; of `console` blocks the output is compared too.

use std::fs;

use testkit::part::{Part as MachinePart, require};

use super::is_recording;
use super::mask::mask;
use super::page::{Block, Page, Part, every_page, root};
use super::place::Place;

/// One test for each page with blocks that run.
macro_rules! pages {
    ($($name:ident: $path:literal;)+) => {
        const PAGES: &[&str] = &[$($path),+];
        $(#[test]
        fn $name() {
            run_page($path);
        })+
    };
}

pages! {
    blocks_of_the_readme_run: "README.md";
    blocks_of_the_book_run: "docs/README.md";
    blocks_on_forklift_run: "docs/forklift.md";
    blocks_on_wf_run: "docs/wf.md";
    blocks_on_bot_bottle_run: "docs/bot-bottle.md";
    blocks_on_cron_run: "docs/cron.md";
    blocks_on_serve_run: "docs/serve.md";
    blocks_on_a_fleet_run: "docs/fleet.md";
    blocks_on_the_page_run: "docs/page.md";
    blocks_on_provenance_run: "docs/provenance.md";
    blocks_on_support_run: "docs/support.md";
    blocks_on_telemetry_run: "docs/explanation/telemetry.md";
    blocks_on_gitea_run: "docs/how-to/gitea.md";
    blocks_on_a_local_model_run: "docs/how-to/local-model.md";
    blocks_on_a_proxy_run: "docs/how-to/proxy.md";
    blocks_on_the_inventory_run: "docs/how-to/delta.md";
    blocks_on_trains_run: "docs/how-to/train.md";
    blocks_of_the_tutorial_of_forklift_run: "docs/tutorial/forklift.md";
    blocks_of_the_tutorial_of_wf_run: "docs/tutorial/wf.md";
    blocks_of_the_tutorial_of_bot_bottle_run: "docs/tutorial/bot-bottle.md";
}

/// Runs the blocks of a page in order, in the places that it names.
fn run_page(path: &str) {
    if require(MachinePart::Bwrap).is_none() {
        return;
    }
    let mut page = Page::load(path);
    let mut place: Option<Place> = None;
    let mut failures = Vec::new();
    for part in &mut page.parts {
        let Part::Block(block) = part else { continue };
        if let Some(kind) = &block.place {
            place = Some(Place::new(kind));
        }
        if !block.is_shell() || block.not_run.is_some() {
            continue;
        }
        let place = place.get_or_insert_with(|| Place::new("home"));
        if let Err(reason) = run_block(place, block) {
            failures.push(format!("{path}:{}: {reason}", block.line));
            break;
        }
    }
    if is_recording() {
        fs::write(root().join(path), page.render()).expect("written");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run_block(place: &Place, block: &mut Block) -> Result<(), String> {
    match block.language.as_str() {
        "sh" => run_script(place, block),
        _ => run_session(place, block),
    }
}

fn run_script(place: &Place, block: &Block) -> Result<(), String> {
    let output = place.run(&block.lines.join("\n"));
    if output.status == Some(block.status) {
        return Ok(());
    }
    Err(format!(
        "the block ends with {:?}, not {}:\n{}",
        output.status, block.status, output.stdout
    ))
}

/// Runs each command after a `$`. The last one ends with the block's status, the others with 0.
fn run_session(place: &Place, block: &mut Block) -> Result<(), String> {
    let commands = parse_session(&block.lines);
    let last = commands.len().saturating_sub(1);
    let mut lines = Vec::new();
    for (at, (command, recorded)) in commands.iter().enumerate() {
        let output = place.run(&command.join("\n"));
        let expected = if at == last { block.status } else { 0 };
        if output.status != Some(expected) {
            let status = output.status;
            return Err(format!("{command:?} ends with {status:?}:\n{}", output.stdout));
        }
        let printed = output.stdout.trim_end().to_owned();
        let is_same = mask(&printed) == mask(&recorded.join("\n"));
        if !is_same && !is_recording() {
            return Err(format!("{command:?} prints:\n{printed}\nscripts/record writes it down"));
        }
        lines.extend(prompt(command));
        let printed: Vec<String> = printed.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.extend(if is_same { recorded.clone() } else { printed });
    }
    block.lines = lines;
    Ok(())
}

fn prompt(command: &[String]) -> Vec<String> {
    let mark = |(at, line): (usize, &String)| match at {
        0 => format!("$ {line}"),
        _ => line.clone(),
    };
    command.iter().enumerate().map(mark).collect()
}

/// A command with its continued lines, and the output that is recorded for it.
type Recorded = (Vec<String>, Vec<String>);

fn parse_session(lines: &[String]) -> Vec<Recorded> {
    let mut commands: Vec<Recorded> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((vec![command.to_owned()], Vec::new())),
            (None, Some((command, recorded))) => {
                let is_continued = command.last().is_some_and(|line| line.ends_with('\\'));
                if recorded.is_empty() && is_continued { command } else { recorded }
                    .push(line.clone());
            }
            (None, None) => panic!("{line:?} stands before the first command"),
        }
    }
    commands
}

/// No page with commands is forgotten.
#[test]
fn every_page_with_blocks_that_run_has_its_test() {
    let runs = |block: &Block| block.is_shell() && block.not_run.is_none();
    let with_blocks = every_page().into_iter().filter(|page| page.blocks().any(runs));
    let missing: Vec<String> =
        with_blocks.map(|page| page.path).filter(|path| !PAGES.contains(&path.as_str())).collect();
    assert!(missing.is_empty(), "no test runs the blocks of {missing:?}");
}

/// Blocks that are not run, each with its reason. A new one is added here in sight of a reviewer.
#[test]
fn blocks_that_are_not_run_are_listed_with_their_reason() {
    let mut list = Vec::new();
    let (mut run, mut not_run) = (0, 0);
    for page in every_page() {
        for block in page.blocks().filter(|block| block.is_shell()) {
            let Some(reason) = &block.not_run else {
                run += 1;
                continue;
            };
            not_run += 1;
            let first = block.lines.first().map(String::as_str).unwrap_or_default();
            let first = first.split("  ").next().unwrap_or_default();
            list.push(format!("{}: {first}: {reason}", page.path));
        }
    }
    insta::assert_snapshot!(list.join("\n"), @r#"
    docs/bot-bottle.md: bot-bottle agent check implementer: needs the program of an agent and its key; the tutorial does the same with a scripted agent
    docs/bot-bottle.md: export FORGE_GITEA_API=https://git.example/api/v1 FORGE_OWNER=me FORGE_REPO=app FORGE_ISSUE_NUMBER=317: needs a Gitea server and a token; serve.md does the same with a folder as the forge
    docs/bot-bottle.md: bot-bottle hook install me/app --url https://bottles.example: needs a forge and its token
    docs/cron.md: systemctl --user daemon-reload: needs a systemd of the user
    docs/fleet.md: systemctl --user daemon-reload: needs a systemd of the user
    docs/forklift.md: forklift agents install claude: needs the network and a key; the tutorial does the same with a scripted agent
    docs/how-to/docker.md: forklift image build: needs a container engine and the network
    docs/how-to/docker.md: make dist: needs a container engine and the network
    docs/how-to/gitea.md: forklift --forge-url https://git.example.org/me/app: needs a Gitea server and a token
    docs/how-to/gitea.md: bot-bottle hook install me/app --url https://bottles.example: needs a Gitea server and a token
    docs/how-to/local-model.md: forklift agents install opencode: needs the network, and a model server
    docs/how-to/local-model.md: forklift --provider opencode --model qwen3-coder --model-url http://127.0.0.1:11434: needs OpenCode, and a model server
    docs/how-to/security.md: cd my-fork: needs a clone of a database of advisories
    docs/how-to/security.md: forklift security land CVE-2020-26264: needs a fork with a missing fix
    docs/how-to/train.md: forklift first --check: the fork of this page has no check
    docs/page.md: curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8473/api/v1/bottles: needs a service with that bottle; the reference is made from a running one
    docs/provenance.md: git -c gpg.ssh.allowedSignersFile="$PWD/allowed-signers" verify-commit origin/bot-bottle/login: needs a repository with a signed commit
    docs/serve.md: export FORGE_GITEA_API=https://git.example/api/v1 FORGE_TOKEN=...: needs forges and their tokens
    docs/serve.md: bot-bottle serve --config serve.toml: runs until it is stopped
    docs/serve.md: bot-bottle dispatch acme/widget --agent worker --prompt 'Update the lock file': needs a forge
    docs/serve.md: systemctl --user daemon-reload: needs a systemd of the user
    docs/serve.md: bot-bottle doctor: its status depends on the machine; tests of each command run it in known ones
    docs/wf.md: $EDITOR ../my-product.ops/workflow/projects/my-product/workstreams/login/plan.md: needs an editor, an agent and its key; the tutorial does the same with scripted agents
    "#);
    assert!(run > 2 * not_run, "{run} blocks run, {not_run} do not");
}
