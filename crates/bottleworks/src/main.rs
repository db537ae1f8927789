//! `bottleworks`: forklift, wf and bot-bottle in one program, chosen by the name that it is called by. It is what packages
//! install: one file is three fifths of three, and link-time optimisation is done once.

mod cli;

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use shell::manual::Manual;
use shell::start::{JsonOutput, MULTI_CALL, Program};

use crate::cli::BottleworksCli;

static PROGRAM: Program = Program {
    name: MULTI_CALL,
    label_width: 11,
    json: JsonOutput::Documents,
    manual: &Manual {
        examples: &[
            ("link", "bottleworks link\nbottleworks link ~/.local/bin"),
            ("share", "bottleworks share /usr/local/share"),
            ("completions", "bottleworks completions bash"),
        ],
        files: &[],
        environment: &[],
    },
};

/// The main function of a command.
type CommandMain = fn() -> ExitCode;

/// The commands that this program is, by name.
const COMMANDS: [(&str, CommandMain); 3] =
    [("forklift", forklift::main), ("wf", wf::main), ("bot-bottle", bottle::main)];

fn main() -> ExitCode {
    let mut words = env::args_os();
    let called = words.next().unwrap_or_default();
    let called = Path::new(&called).file_name().unwrap_or_default();
    let first = words.next().unwrap_or_default();
    match choose(called, &first) {
        Some(main) => main(),
        None => shell::start::start(
            &PROGRAM,
            &[],
            |cli: &BottleworksCli| cli.output,
            |ui, cli| cli::dispatch(ui, &cli),
        ),
    }
}

/// Chooses a command by the name that this program is called by, or by the first word.
fn choose(called: &OsStr, first: &OsStr) -> Option<fn() -> ExitCode> {
    let by_name = |name: &OsStr| COMMANDS.iter().find(|command| name == command.0);
    let chosen = by_name(called).or_else(|| by_name(first)).map(|command| command.1);
    // A command starts itself in a hidden role under the program's own name. bot-bottle has every role that there is.
    chosen.or_else(|| first.as_encoded_bytes().starts_with(b"__").then_some(bottle::main as _))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(called: &str, first: &str, expected: Option<&str>) {
        let chosen = choose(called.as_ref(), first.as_ref());
        let address = |name| COMMANDS.iter().find(|it| it.0 == name).map(|it| it.1 as usize);
        assert_eq!(
            chosen.map(|main| main as usize),
            expected.and_then(address),
            "{called} {first}"
        );
    }

    #[test]
    fn the_name_decides_and_then_the_first_word() {
        check("forklift", "", Some("forklift"));
        check("wf", "forklift", Some("wf"));
        check("bottleworks", "wf", Some("wf"));
        check("anything", "bot-bottle", Some("bot-bottle"));
        check("bottleworks", "__shim", Some("bot-bottle"));
        check("bottleworks", "link", None);
        check("bottleworks", "", None);
    }
}
