//! Markdown for the JSON schemas: a table of fields for each file.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::docs::page::root;

pub(super) fn render_all() -> String {
    let folder = fs::read_dir(root().join("schemas")).expect("the schemas");
    let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut text = "Files that runs leave, and the answers of agents. The schemas are in the folder `schemas` of the source; \
                    `*` marks a field that must be there.\n"
        .to_owned();
    for path in paths {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let schema = fs::read_to_string(&path).expect("a schema");
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        let title = schema["title"].as_str().unwrap_or_default();
        // Writing to a text cannot fail.
        writeln!(text, "\n## {name}\n\n{title}\n\n| field | type |\n|---|---|").ok();
        add_fields(&schema, &schema, "", &mut text);
    }
    text
}

/// Adds a row for each property, and those of objects and lists below it.
fn add_fields(root: &Value, schema: &Value, prefix: &str, text: &mut String) {
    let empty = serde_json::Map::new();
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().unwrap_or(&empty) {
        let field = resolve(root, field);
        let mark = if required.contains(&name.as_str()) { " *" } else { "" };
        let path = format!("{prefix}{name}");
        writeln!(text, "| `{path}`{mark} | {} |", type_of(root, field)).ok();
        let items = resolve(root, &field["items"]);
        add_fields(root, field, &format!("{path}."), text);
        add_fields(root, items, &format!("{path}[]."), text);
    }
}

fn resolve<'a>(root: &'a Value, field: &'a Value) -> &'a Value {
    let pointer = field["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(field)
}

fn type_of(root: &Value, field: &Value) -> String {
    if let Some(value) = field.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(" or ");
    }
    let names: Vec<&str> = match &field["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    };
    let items = resolve(root, &field["items"]);
    let mut text = names.join(" or ");
    if names.contains(&"array") && items.is_object() {
        text = text.replace("array", &format!("list of {}", type_of(root, items)));
    }
    match (field["format"].as_str(), field["pattern"].as_str()) {
        (Some(format), _) => write!(text, " ({format})").ok(),
        (None, Some(pattern)) => write!(text, " (`{}`)", pattern.replace('|', "\\|")).ok(),
        (None, None) => None,
    };
    if text.is_empty() { "any value".to_owned() } else { text }
}
