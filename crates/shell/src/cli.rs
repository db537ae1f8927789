//! Flags and commands that every program has: output, completions, the manual page, the table of exit statuses.

use std::path::Path;

use clap::{Args, Command};
use clap_complete::env::{CompleteEnv, Shells};
use model::exit::ExitStatus;

use crate::failure::{Failure, OrExit};
use crate::manual::{self, Manual};
use crate::start::Program;
use crate::ui::Ui;

/// Variable by which a shell requests completions.
const COMPLETE_VARIABLE: &str = "COMPLETE";

#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OutputArgs {
    /// Print events and results as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only errors, warnings and the result
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print every program as it is started (git, boxes, tools), and where settings come from, on standard error
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// Print completions for a shell
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell: bash, zsh, fish, elvish or powershell
    shell: String,
}

/// Prints the script that connects a shell with this program; the program answers what to complete.
pub fn cmd_completions<S: ExitStatus>(
    ui: &Ui,
    program: &Program,
    args: &CompletionsArgs,
) -> Result<(), Failure<S>> {
    let page = render_completions::<S>(program.name, &args.shell)?;
    ui.page(&String::from_utf8_lossy(&page));
    Ok(())
}

fn render_completions<S: ExitStatus>(name: &str, shell: &str) -> Result<Vec<u8>, Failure<S>> {
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or_else(|| {
        let known: Vec<&str> = shells.names().collect();
        Failure::usage(format!("the shell '{shell}' is not one of {}", known.join(", ")))
    })?;
    let mut page = Vec::new();
    completer
        .write_registration(COMPLETE_VARIABLE, name, name, name, &mut page)
        .or_exit(S::GENERAL)?;
    Ok(page)
}

/// Shells that get completions in [`write_share`]: folder and file below `share`.
const COMPLETION_FILES: [(&str, &str, &str, &str); 3] = [
    ("bash", "bash-completion/completions", "", ""),
    ("zsh", "zsh/site-functions", "_", ""),
    ("fish", "fish/vendor_completions.d", "", ".fish"),
];

/// Writes what a package installs below `share` beside a program: a manual page for it and for each of its subcommands,
/// and completions for bash, zsh and fish.
///
/// `P` has the exit statuses of that program.
pub fn write_share<P: ExitStatus, S: ExitStatus>(
    command: &Command,
    manual: &Manual,
    share: &Path,
) -> Result<(), Failure<S>> {
    let pages = share.join("man/man1");
    make_dir(&pages)?;
    manual::write_pages::<P>(command, manual, &pages).or_exit(S::GENERAL)?;
    let name = command.get_name();
    for (shell, folder, before, after) in COMPLETION_FILES {
        let folder = share.join(folder);
        make_dir(&folder)?;
        let script = render_completions::<S>(name, shell)?;
        std::fs::write(folder.join(format!("{before}{name}{after}")), script)
            .or_exit(S::GENERAL)?;
    }
    Ok(())
}

fn make_dir<S: ExitStatus>(path: &Path) -> Result<(), Failure<S>> {
    std::fs::create_dir_all(path).map_err(|error| {
        Failure::new(S::GENERAL, format!("could not create {}: {error}", path.display()))
    })
}

/// Prints the manual page, made from the help texts.
pub fn cmd_man<S: ExitStatus>(
    ui: &Ui,
    program: &Program,
    command: Command,
) -> Result<(), Failure<S>> {
    let page = manual::render_page::<S>(command, program.manual, "").or_exit(S::GENERAL)?;
    ui.page(&String::from_utf8_lossy(&page));
    Ok(())
}

/// Adds the examples, and the help text that names the program, which the shared [`CompletionsArgs`] cannot do.
pub(crate) fn with_program(command: Command, program: &Program) -> Command {
    let name = program.name;
    let command = manual::with_examples(command, program.manual);
    command.mut_subcommand("completions", |completions| {
        completions.long_about(format!(
            "Print completions for a shell\n\nAdd `source <({name} completions bash)` to the shell's start-up file."
        ))
    })
}

/// Answers a shell that asks for completions; returns whether one did.
pub(crate) fn answer_shell(command: fn() -> Command) -> clap::error::Result<bool> {
    let here = host::env::current_dir().ok();
    CompleteEnv::with_factory(command)
        .var(COMPLETE_VARIABLE)
        .try_complete(std::env::args_os(), here.as_deref())
}

/// The table of exit statuses for the end of `--help`.
pub fn exit_table<S: ExitStatus>() -> String {
    let rows: Vec<_> = S::ALL.iter().map(|status| status.row()).collect();
    let width = rows.iter().map(|row| row.code.to_string().len()).max().unwrap_or(0);
    let lines: Vec<String> =
        rows.iter().map(|row| format!("  {:<width$}  {}", row.code, row.meaning)).collect();
    format!("Exit status:\n{}", lines.join("\n"))
}
