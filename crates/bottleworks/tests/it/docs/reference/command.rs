//! Markdown for a command line: each command with its usage and a table of its arguments.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

/// Renders a command with all of its subcommands.
pub(super) fn render(mut command: Command) -> String {
    command.build();
    let mut text = String::new();
    add(&command, 2, &mut text);
    text
}

fn add(command: &Command, level: usize, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(|about| prose(&about.to_string())).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    // Writing to a text cannot fail.
    writeln!(text, "{} {name}\n\n{about}\n\n```text\n{usage}\n```\n", "#".repeat(level)).ok();
    let rows: Vec<String> = command.get_arguments().filter(|it| is_shown(it)).map(row).collect();
    if !rows.is_empty() {
        writeln!(text, "| argument | meaning |\n|---|---|\n{}\n", rows.join("\n")).ok();
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        writeln!(text, "```text\n{}\n```\n", after.to_string().trim_end()).ok();
    }
    let shown = |it: &&Command| !it.is_hide_set() && it.get_name() != "help";
    for subcommand in command.get_subcommands().filter(shown) {
        add(subcommand, 3, text);
    }
}

/// Help and version are the same everywhere.
fn is_shown(arg: &Arg) -> bool {
    let is_usual = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    !arg.is_hide_set() && !is_usual
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut help = help.map(|help| cell(&help.to_string())).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() && arg.get_action().takes_values() {
        write!(help, ". One of {}", values.join(", ")).ok();
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|it| format!("`{}`", it.to_string_lossy())).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        write!(help, " (default {})", defaults.join(" ")).ok();
    }
    format!("| `{}` | {help} |", spelling(arg).replace('|', "\\|"))
}

/// `-C, --directory <DIR>`, or the name of a positional argument.
fn spelling(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|name| format!("<{name}>")).collect();
    let values = if arg.get_action().takes_values() { values.join(" ") } else { String::new() };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = [short, long].into_iter().flatten().collect();
    match (names.is_empty(), values.is_empty()) {
        (true, true) => format!("<{}>", arg.get_id()),
        (true, false) => values,
        (false, true) => names.join(", "),
        (false, false) => format!("{} {values}", names.join(", ")),
    }
}

/// One line for a cell of a table.
fn cell(text: &str) -> String {
    prose(text).split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Text in which nothing is HTML.
fn prose(text: &str) -> String {
    text.replace('<', "&lt;")
}
