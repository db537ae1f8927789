//! The only printer. Results go to standard output, everything else to standard error; both are escaped, coloured
//! only on a terminal, and JSON when asked for.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use model::escape::{escape_line, escape_terminal};
use serde_json::{Value, json};

use crate::cli::OutputArgs;
use crate::exit::Failure;

/// Talks to whoever started the command.
pub(crate) struct Ui {
    mode: Mode,
    quiet: bool,
    spinner: Option<ProgressBar>,
    /// Whether scripts hear of events.
    has_events: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Coloured,
    Json,
}

impl Ui {
    /// Looks at the flags, at `NO_COLOR` and at where the output goes.
    pub(crate) fn new(args: OutputArgs) -> Self {
        let terminal = io::stderr().is_terminal();
        let colour = terminal && host::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mode = match (args.json, colour) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Coloured,
            (false, false) => Mode::Plain,
        };
        let spinner = (terminal && mode != Mode::Json && !args.quiet).then(new_spinner);
        Self { mode, quiet: args.quiet, spinner, has_events: true }
    }

    /// The same on the way to a document: a script that asked for the document gets nothing else.
    pub(crate) fn before_document(&self) -> Self {
        Self {
            mode: self.mode,
            quiet: self.quiet,
            spinner: self.spinner.clone(),
            has_events: false,
        }
    }

    /// Whether a script reads.
    pub(crate) fn is_json(&self) -> bool {
        self.mode == Mode::Json
    }

    /// A phase begins.
    pub(crate) fn phase(&self, name: &str, words: &str) {
        match self.mode {
            Mode::Json => self.event("phase", &json!({"phase": name, "text": words})),
            Mode::Plain | Mode::Coloured if self.quiet => {}
            Mode::Plain | Mode::Coloured => match &self.spinner {
                Some(spinner) => {
                    spinner.println(self.phase_line(words));
                    spinner.set_message(escape_line(words).into_owned());
                }
                None => say(&self.phase_line(words)),
            },
        }
    }

    /// The agent did something: shown beside the spinner, or as an event.
    pub(crate) fn progress(&self, kind: &str, words: &str) {
        match (self.mode, &self.spinner) {
            (Mode::Json, _) => self.event("progress", &json!({"kind": kind, "text": words})),
            (_, Some(spinner)) => spinner.set_message(escape_line(words).into_owned()),
            (_, None) => {}
        }
    }

    /// Something worth knowing happened.
    pub(crate) fn note(&self, words: &str) {
        match self.mode {
            Mode::Json => self.event("note", &json!({"text": words})),
            Mode::Plain | Mode::Coloured if self.quiet => {}
            Mode::Plain | Mode::Coloured => {
                self.above_spinner(&format!("  {}", escape_line(words)));
            }
        }
    }

    /// An event for machines alone.
    pub(crate) fn event(&self, name: &str, fields: &Value) {
        if self.mode != Mode::Json || !self.has_events {
            return;
        }
        let mut object = json!({"event": name});
        if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
            object.extend(fields.clone());
        }
        print(&format!("{object}\n"));
    }

    /// A line of the result.
    pub(crate) fn result(&self, label: &str, value: &str) {
        if self.mode != Mode::Json {
            self.stop_spinner();
            print(&format!("{:<11} {}\n", label, escape_line(value)));
        }
    }

    /// One of several things that belong to the line of the result above.
    pub(crate) fn item(&self, words: &str) {
        if self.mode != Mode::Json {
            print(&format!("  {}\n", escape_line(words)));
        }
    }

    /// A text of several lines, as it is to be read: help, tables, previews. Only escaped.
    pub(crate) fn page(&self, text: &str) {
        self.stop_spinner();
        print(&escape_terminal(text));
    }

    /// A JSON document as the whole result.
    pub(crate) fn document(&self, value: &impl serde::Serialize) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        print(&format!("{text}\n"));
    }

    /// Why the command could not do its work.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.stop_spinner();
        let text = failure.to_string();
        if self.mode == Mode::Json {
            let status = failure.status;
            let fields = json!({"status": status.code(), "name": status.name(), "text": text});
            self.event("error", &fields);
        }
        let word = if self.mode == Mode::Coloured { "\u{1b}[31merror\u{1b}[0m" } else { "error" };
        say(&format!("{word}: {}", escape_line(&text)));
    }

    /// Leaves the terminal tidy.
    pub(crate) fn finish(&self) {
        self.stop_spinner();
    }

    fn phase_line(&self, words: &str) -> String {
        let arrow = if self.mode == Mode::Coloured { "\u{1b}[36m>\u{1b}[0m" } else { ">" };
        format!("{arrow} {}", escape_line(words))
    }

    fn above_spinner(&self, line: &str) {
        match &self.spinner {
            Some(spinner) => spinner.println(line),
            None => say(line),
        }
    }

    fn stop_spinner(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// A complaint from before there is anybody to ask how to talk.
pub(crate) fn complain(words: &str) {
    say(&format!("forklift: {}", escape_line(words)));
}

/// Shows what the argument parser has to say: help on standard output, mistakes on standard error with status 2.
pub(crate) fn show_usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is no reason to fail after the answer is known.
    drop(error.print());
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn new_spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(120));
    spinner
}

fn say(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Whoever reads may stop reading: that is not an error.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
