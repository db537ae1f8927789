//! The reference, generated: flags from the command lines themselves, statuses from their tables, configuration from the
//! program, fields from the JSON schemas, metrics and the API from a running `bot-bottle serve`.

mod command;
mod document;
mod schema;
mod served;

use std::fs;

use model::exit::{BottleExit, ExitStatus, ForkliftExit, WfExit};
use testkit::part::{Part, require};

use super::is_recording;
use super::page::root;
use super::place::Place;

/// Opening of every generated page.
const NOTE: &str = "<!-- Generated from the code by scripts/record. -->\n";

/// Compares a page with the one in docs/reference, or writes it.
fn check(name: &str, title: &str, body: &str) {
    let path = root().join("docs/reference").join(name);
    let text = format!("{NOTE}# {title}\n\n{}\n", body.trim());
    if is_recording() {
        fs::write(&path, &text).expect("written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(text.lines()).position(|(old, new)| old != new);
    assert!(
        found == text,
        "docs/reference/{name} is out of date from line {}; scripts/record renews it",
        differs.map_or_else(|| found.lines().count().min(text.lines().count()), |at| at + 1)
    );
}

#[test]
fn the_pages_of_the_commands_are_those_of_the_command_lines() {
    for (name, command) in [
        ("forklift", forklift::command()),
        ("wf", wf::command()),
        ("bot-bottle", bottle::command()),
    ] {
        check(&format!("{name}.md"), &format!("Flags of {name}"), &command::render(command));
    }
}

#[test]
fn the_page_of_the_statuses_is_that_of_the_tables() {
    let mut text =
        "The status with which a command ends. Scripts may rely on the numbers.\n".to_owned();
    text += &statuses::<ForkliftExit>("forklift");
    text += &statuses::<WfExit>("wf");
    text += &statuses::<BottleExit>("bot-bottle");
    text += "\n`bot-bottle start`, `resume` and `orchestrate` return the agent's own status; 124 means out of time, 137 out of \
             memory or space, 143 stopped or frozen, 130 stopped by Ctrl-C.\n";
    check("statuses.md", "Exit statuses", &text);
}

fn statuses<T: ExitStatus>(name: &str) -> String {
    let row = |status: &T| {
        let row = status.row();
        format!("| {} | `{}` | {} |\n", row.code, row.name, row.meaning)
    };
    let rows: String = T::ALL.iter().map(row).collect();
    format!("\n## {name}\n\n| status | name in JSON | meaning |\n|---|---|---|\n{rows}")
}

#[test]
fn the_page_of_serve_toml_is_what_the_program_prints() {
    let place = Place::new("home");
    let output = place.run("bot-bottle config show");
    assert_eq!(output.status, Some(0), "{}", output.stdout);
    let text = format!(
        "The configuration of `bot-bottle serve`, as `bot-bottle config show` prints it. `bot-bottle config check FILE` reads a \
         file as `serve` would.\n\n```toml\n{}\n```",
        output.stdout.trim_end()
    );
    check("serve-toml.md", "serve.toml", &text);
}

#[test]
fn the_page_of_the_scripted_agent_is_what_the_program_prints() {
    let place = Place::new("home");
    let output = place.run("forklift script");
    assert_eq!(output.status, Some(0), "{}", output.stdout);
    let (title, body) = output.stdout.split_once('\n').expect("a title");
    check("script.md", title.trim_start_matches("# "), body);
}

#[test]
fn the_page_of_the_profile_is_that_of_the_crate() {
    let text = fs::read_to_string(root().join("crates/wf/PROFILE.md")).expect("the page");
    let (title, body) = text.split_once('\n').expect("a title");
    check("profile.md", title.trim_start_matches("# "), body);
}

#[test]
fn the_page_of_the_schemas_is_that_of_the_files() {
    check("schemas.md", "JSON files and their fields", &schema::render_all());
}

#[test]
fn the_page_of_documents_has_the_fields_that_are_printed() {
    if require(Part::Bwrap).is_some() {
        check("json.md", "What --json prints", &document::render_all());
    }
}

#[test]
fn the_pages_of_metrics_and_api_are_what_serve_answers() {
    if require(Part::Bwrap).is_none() {
        return;
    }
    let serve = served::Served::start();
    check("metrics.md", "Metrics", &served::render_metrics(&serve.get("/metrics")));
    check(
        "api.md",
        "API of bot-bottle serve",
        &served::render_api(&serve.get("/api/v1/openapi.json")),
    );
}
