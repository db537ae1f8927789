//! The only printer. Results go to standard output, everything else to standard error; all of it is escaped, and JSON
//! when asked for.

use std::io::{self, Write};
use std::process::ExitCode;

use model::escape::{escape_line, escape_terminal};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::OutputArgs;
use crate::exit::Failure;

/// Talks to whoever started the command.
pub(crate) struct Ui {
    args: OutputArgs,
    /// What this is about, where it goes to the log of the orchestrator.
    about: Option<String>,
}

impl Ui {
    /// As the flags say.
    pub(crate) fn new(args: OutputArgs) -> Self {
        Self { args, about: None }
    }

    /// For work that nobody watches: what is said goes to the log.
    pub(crate) fn log(about: &str) -> Self {
        let args = OutputArgs { json: false, quiet: true };
        Self { args, about: Some(about.to_owned()) }
    }

    /// Whether a script reads.
    pub(crate) fn is_json(&self) -> bool {
        self.args.json
    }

    /// A step of a run begins.
    pub(crate) fn phase(&self, name: &str, words: &str) {
        self.event("phase", &json!({ "phase": name, "text": words }));
        self.aside(&format!("> {words}"));
    }

    /// Something worth knowing happened.
    pub(crate) fn note(&self, words: &str) {
        self.event("note", &json!({ "text": words }));
        self.aside(&format!("  {words}"));
    }

    /// An event for machines alone.
    pub(crate) fn event(&self, name: &str, fields: &Value) {
        if !self.args.json {
            return;
        }
        let mut object = json!({ "event": name });
        if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
            object.extend(fields.clone());
        }
        print(&format!("{object}\n"));
    }

    /// A line of the result.
    pub(crate) fn result(&self, label: &str, value: &str) {
        match &self.about {
            Some(about) => tracing::info!(about, "{label}: {}", escape_line(value)),
            None if self.args.json => {}
            None => print(&format!("{label:<11} {}\n", escape_line(value))),
        }
    }

    /// A text of several lines, as it is to be read. Only escaped.
    pub(crate) fn page(&self, text: &str) {
        print(&escape_terminal(text));
    }

    /// A JSON document as the whole result.
    pub(crate) fn document(&self, value: &impl Serialize) {
        print(&format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default()));
    }

    /// Why the command could not do its work.
    pub(crate) fn failure(&self, failure: &Failure) {
        let (status, text) = (failure.status, failure.to_string());
        let fields = json!({ "status": status.code(), "name": status.name(), "text": text });
        self.event("error", &fields);
        say(&format!("error: {}", escape_line(&text)));
    }

    fn aside(&self, line: &str) {
        match &self.about {
            Some(about) => tracing::info!(about, "{}", escape_line(line)),
            None if self.args.json || self.args.quiet => {}
            None => say(&escape_line(line)),
        }
    }
}

/// A complaint from before there is anybody to ask how to talk.
pub(crate) fn complain(words: &str) {
    say(&format!("bot-bottle: {}", escape_line(words)));
}

/// Shows what the argument parser has to say: help on standard output, mistakes on standard error with status 2.
pub(crate) fn show_usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is no reason to fail after the answer is known.
    drop(error.print());
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn say(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Whoever reads may stop reading: that is not an error.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
