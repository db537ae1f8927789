//! Markdown for what `--json` prints: the fields of a document, as the programs print it in a known place.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use crate::docs::place::Place;

/// Commands with a document, by the place in which they are run and what is done there first.
const DOCUMENTS: &[(&str, &str, &[&str])] = &[
    (
        "fork",
        "cd my-fork && forklift --dry-run",
        &[
            "forklift changelog",
            "forklift files",
            "forklift runs",
            "forklift status",
            "forklift agents list",
            "forklift config list",
        ],
    ),
    (
        "product",
        "cd my-product && wf init --yes && wf new login 'Log in' src/",
        &["wf project list", "wf list", "wf status login", "wf conflicts login", "wf uat list"],
    ),
    (
        "bottle",
        "true",
        &["bot-bottle list", "bot-bottle agent list", "bot-bottle provenance verify login"],
    ),
];

/// Renders the events of a run and the documents of other commands.
pub(super) fn render_all() -> String {
    let mut text = "With `--json` a command prints JSON on its standard output and nothing else there. The tables have the fields that \
                    were printed in a small example; a field that was null there has no type. New fields may come, so \
                    programs should ignore those that they do not know.\n"
        .to_owned();
    add_events(&mut text);
    for (kind, first, commands) in DOCUMENTS {
        let place = Place::new(kind);
        run(&place, first);
        for command in *commands {
            let printed = run(&place, &format!("{command} --json 2>/dev/null"));
            // Events about progress may come before it.
            let values = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
            let document = values.last().and_then(Result::ok);
            let document = document.unwrap_or_else(|| panic!("{command}: {printed}"));
            writeln!(text, "\n## {command}\n").ok();
            add_table(&document, &mut text);
        }
    }
    text
}

/// A run prints one object a line; `event` says what it is.
fn add_events(text: &mut String) {
    let place = Place::new("fork");
    let printed = run(&place, "cd my-fork && forklift --json 2>/dev/null");
    let mut events: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in printed.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let name = event["event"].as_str().unwrap_or_default().to_owned();
        // A slow machine tells more of its steps than a fast one.
        if matches!(name.as_str(), "note" | "phase" | "verdict") {
            events.entry(name).or_default().push(event);
        }
    }
    text.push_str(
        "\n## forklift\n\nA run prints one object a line: `event` says what it is, and the last one is the verdict. Steps that take long have further \
         events.\n",
    );
    for (name, of_name) in events {
        writeln!(text, "\n### Event {name}\n").ok();
        add_table(&Value::Array(of_name), text);
    }
}

fn run(place: &Place, script: &str) -> String {
    let output = place.run(script);
    assert_eq!(output.status, Some(0), "{script}\n{}", output.stdout);
    output.stdout
}

fn add_table(document: &Value, text: &mut String) {
    let mut fields = BTreeMap::new();
    add_fields(document, "", &mut fields);
    text.push_str("| field | type |\n|---|---|\n");
    for (name, kind) in fields {
        writeln!(text, "| `{name}` | {kind} |").ok();
    }
}

/// Adds the fields of a value by their paths. Of the elements of a list all are looked at.
fn add_fields(value: &Value, path: &str, fields: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Null => "",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    if !path.is_empty() {
        let known = fields.entry(path.to_owned()).or_default();
        *known = if known.is_empty() { kind } else { known };
    }
    match value {
        Value::Array(items) => {
            let path = if path.is_empty() { String::new() } else { format!("{path}[]") };
            items.iter().filter(|item| item.is_object()).for_each(|item| {
                add_members(item, &path, fields);
            });
        }
        Value::Object(_) => add_members(value, path, fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn add_members(value: &Value, path: &str, fields: &mut BTreeMap<String, &'static str>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let dot = if path.is_empty() { "" } else { "." };
        add_fields(member, &format!("{path}{dot}{name}"), fields);
    }
}
