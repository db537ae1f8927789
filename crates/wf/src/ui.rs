//! The only printer. Results go to standard output, everything else to standard error; both are escaped, coloured only
//! on a terminal, and JSON when asked for.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use model::escape::{escape_line, escape_terminal};
use model::redact::Redactor;
use model::secret::Secret;
use serde::Serialize;
use serde_json::json;

use crate::cli::OutputArgs;
use crate::disk::project_dirs::LOG_VARIABLE;
use crate::exit::Failure;

/// What must not be seen on a terminal. Set once, as soon as it is known which project is meant; there is one terminal and
/// this is its only printer, and so there is one redactor (D7).
static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Hides these from now on.
pub(crate) fn hide(secrets: Vec<Secret>) {
    // A second project in one process does not occur; the first one's secrets stay hidden.
    drop(REDACTOR.set(Redactor::new(secrets)));
}

fn redacted(text: &str) -> Cow<'_, str> {
    REDACTOR.get().map_or(Cow::Borrowed(text), |redactor| redactor.redact(text))
}

/// Talks to whoever started the command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    mode: Mode,
    volume: Volume,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Coloured,
    Json,
    /// No results: somebody else has the terminal.
    Mute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Volume {
    Normal,
    Quiet,
    /// Not even warnings.
    Silent,
}

impl Ui {
    /// Looks at the flags, at `NO_COLOR` and at where the output goes.
    pub(crate) fn new(args: OutputArgs) -> Self {
        let allowed = host::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let colour = io::stderr().is_terminal() && allowed;
        let mode = match (args.json, colour) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Coloured,
            (false, false) => Mode::Plain,
        };
        Self { mode, volume: volume_of(args, host::env::var(LOG_VARIABLE).as_deref()) }
    }

    /// The same, saying nothing.
    pub(crate) fn silent(self) -> Self {
        Self { mode: Mode::Mute, volume: Volume::Silent }
    }

    /// Whether a script reads.
    pub(crate) fn is_json(self) -> bool {
        self.mode == Mode::Json
    }

    /// Something worth knowing happened.
    pub(crate) fn note(self, words: &str) {
        if self.volume == Volume::Normal {
            say(&escape_line(words));
        }
    }

    /// Something is odd, and the work goes on.
    pub(crate) fn warn(self, words: &str) {
        if self.volume != Volume::Silent {
            say(&format!("{}: {}", self.painted("33", "warning"), escape_line(words)));
        }
    }

    /// A line of the result.
    pub(crate) fn result(self, label: &str, value: &str) {
        if matches!(self.mode, Mode::Plain | Mode::Coloured) {
            print(&format!("{label:<14} {}\n", escape_line(value)));
        }
    }

    /// A sentence as result.
    pub(crate) fn line(self, words: &str) {
        if matches!(self.mode, Mode::Plain | Mode::Coloured) {
            print(&format!("{}\n", escape_line(words)));
        }
    }

    /// A text of several lines, as it is to be read. Only escaped.
    pub(crate) fn page(self, text: &str) {
        print(&escape_terminal(text));
    }

    /// A table as result.
    pub(crate) fn table(self, head: &[&str], rows: &[Vec<String>]) {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(head);
        for row in rows {
            table.add_row(row.iter().map(|cell| escape_line(cell).into_owned()));
        }
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        print(&format!("{}\n", lines.join("\n")));
    }

    /// A JSON document as the whole result, when a script reads.
    pub(crate) fn document(self, value: &impl Serialize) {
        if self.is_json() {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            print(&format!("{text}\n"));
        }
    }

    /// Why the command could not do its work.
    pub(crate) fn failure(self, failure: &Failure) {
        let text = failure.to_string();
        if self.is_json() {
            let (code, name) = (failure.status.code(), failure.status.name());
            self.document(&json!({"error": {"status": code, "name": name, "text": text}}));
        }
        say(&format!("{}: {}", self.painted("31", "error"), escape_line(&text)));
    }

    fn painted(self, colour: &str, word: &str) -> String {
        if self.mode == Mode::Coloured {
            format!("\u{1b}[{colour}m{word}\u{1b}[0m")
        } else {
            word.to_owned()
        }
    }
}

/// The flag asks for quiet, the variable for a level (1.2); the quieter one counts.
fn volume_of(args: OutputArgs, level: Option<&str>) -> Volume {
    match (args.quiet, level) {
        (_, Some("error")) => Volume::Silent,
        (true, _) | (_, Some("warn")) => Volume::Quiet,
        (false, _) => Volume::Normal,
    }
}

/// Shows what the argument parser has to say: help on standard output, mistakes on standard error with status 2.
pub(crate) fn show_usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is no reason to fail after the answer is known.
    drop(error.print());
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// A complaint from before there is anybody to ask how to talk.
pub(crate) fn complain(words: &str) {
    say(&format!("error: {}", escape_line(words)));
}

fn say(line: &str) {
    drop(writeln!(io::stderr().lock(), "{}", redacted(line)));
}

/// Whoever reads may stop reading: that is not an error.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    drop(out.write_all(redacted(text).as_bytes()).and_then(|()| out.flush()));
}
