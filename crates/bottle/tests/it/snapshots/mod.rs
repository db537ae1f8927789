//! Whole outputs of the real binary: status, standard output and standard error, and the tree that it leaves on disk.

mod config;
mod errors;
mod forge;
mod help_of_bottles;
mod help_of_groups;
mod help_of_records;
mod hooks;
mod json;
mod keys;
mod lifecycle;
mod manifest_errors;
mod manifests;
mod provenance;
mod runs;
mod syntax;
mod tree;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use testkit::hermetic::Hermetic;
use testkit::tree::entries;

use crate::support::Person;

/// Output of a command in an empty home.
fn snapshot(args: &[&str]) -> String {
    let hermetic = Hermetic::new();
    let mut command = hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
    hermetic.run(command.args(args)).snapshot()
}

/// Outputs of several commands in one home, each under its command line.
fn transcript(person: &Person, lines: &[&[&str]]) -> String {
    let shown = |args: &&[&str]| {
        format!("$ bot-bottle {}\n{}", args.join(" "), person.run(args).snapshot())
    };
    let text = lines.iter().map(shown).collect::<Vec<_>>().join("\n");
    without_times(&person.hermetic.redact(&text))
}

/// Takes the durations of steps out of a log.
fn without_times(text: &str) -> String {
    let line = |line: &str| match (line.split_once("ms\":"), line.split_once("` (")) {
        (Some((before, _)), _) => format!("{before}ms\":…"),
        (None, Some((before, _))) => format!("{before}`"),
        (None, None) => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Makes the columns of tables as narrow as can be: their width depends on the forge's port.
fn without_padding(text: &str) -> String {
    let narrow = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let cells = line[indent..].split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        format!("{}{}", &line[..indent], cells.collect::<Vec<_>>().join("  "))
    };
    text.lines().map(narrow).collect::<Vec<_>>().join("\n") + "\n"
}

/// Entries below a folder, sorted: which are private to their owner, and which cannot be written. What git keeps for
/// itself is left out, and so are modes that depend on the umask.
fn tree(person: &Person, folder: &Path) -> String {
    let mut lines: Vec<String> = entries(folder)
        .into_iter()
        .filter_map(|path| {
            let name = path.strip_prefix(folder).ok()?.display().to_string();
            let mode = std::fs::symlink_metadata(&path).ok()?.permissions().mode();
            let hidden = name.contains(".git/") || name.contains("repo.git/");
            let note = match mode & 0o777 {
                bits if bits & 0o077 == 0 => " (private)",
                bits if bits & 0o222 == 0 => " (read-only)",
                _ => "",
            };
            // Events of the queue begin with the time.
            let name = match name.split_once("queue/0").and_then(|(_, rest)| rest.split_once('-')) {
                Some((_, event)) => format!("queue/[TIME]-{event}"),
                None => name,
            };
            (!hidden).then(|| format!("{name}{note}"))
        })
        .collect();
    lines.sort();
    person.hermetic.redact(&(lines.join("\n") + "\n"))
}
