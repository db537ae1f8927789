//! Whole outputs of the real binary: status, standard output and standard error, and the tree that it leaves on disk.

mod config;
mod errors;
mod forge;
mod help_of_bottles;
mod help_of_groups;
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
    person.hermetic.redact(&lines.iter().map(shown).collect::<Vec<_>>().join("\n"))
}

/// Entries below a folder with their modes, sorted; what git keeps for itself is left out.
fn tree(person: &Person, folder: &Path) -> String {
    let mut lines: Vec<String> = entries(folder)
        .into_iter()
        .filter_map(|path| {
            let name = path.strip_prefix(folder).ok()?.display().to_string();
            let mode = std::fs::symlink_metadata(&path).ok()?.permissions().mode();
            let hidden = name.contains(".git/") || name.contains("repo.git/");
            (!hidden).then(|| format!("{name} {mode:o}"))
        })
        .collect();
    lines.sort();
    person.hermetic.redact(&(lines.join("\n") + "\n"))
}
