//! The only printer. Results go to standard output, everything else to standard error; both are escaped and redacted,
//! coloured only on a terminal, and JSON on request.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use engine::report::Reporter;
use model::escape::{escape_line, escape_terminal};
use model::exit::ExitStatus;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::OutputArgs;
use crate::failure::Failure;
use crate::manual::Manual;
use crate::start::{JsonOutput, Program};
use crate::terminal;

#[derive(Debug, Clone)]
pub struct Ui {
    program: &'static Program,
    mode: Mode,
    volume: Volume,
    /// True if scripts get events; otherwise a document is the whole output.
    has_events: bool,
    /// Subject of each line and event, where several things are done at once.
    subject: Option<Arc<str>>,
}

/// True once an event is on standard output.
static EVENT_WAS_PRINTED: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Clone)]
enum Mode {
    Plain,
    Terminal {
        coloured: bool,
    },
    Json,
    /// Lines of the log of a server, each about this subject.
    Log(Arc<str>),
    /// Another part of the program owns the terminal.
    Mute,
    /// The command runs for another program, which gets its output.
    Kept(Arc<Mutex<KeptOutput>>),
}

/// Output of a command that runs for another program, redacted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptOutput {
    pub documents: Vec<Value>,
    /// Warnings and other messages outside of the result.
    pub messages: Vec<String>,
}

/// Output besides the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    Errors,
    Warnings,
    Normal,
}

/// The program of [`Ui::log`]: nothing is printed under its name.
static LOG: Program = Program {
    name: "log",
    label_width: 0,
    json: JsonOutput::Events,
    manual: &Manual { examples: &[], files: &[], environment: &[] },
};

impl Ui {
    /// Output by the flags, `NO_COLOR` and the two streams.
    pub fn new(program: &'static Program, args: OutputArgs) -> Self {
        let mode = match (args.json, io::stderr().is_terminal()) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Terminal { coloured: wants_colour() },
            (false, false) => Mode::Plain,
        };
        let volume = if args.quiet { Volume::Warnings } else { Volume::Normal };
        let has_events = program.json == JsonOutput::Events;
        Self { program, mode, volume, has_events, subject: None }
    }

    /// Reports settings that are not the default, and from now on every program that is started.
    pub(crate) fn be_verbose(&self) {
        host::trace::observe(|line| terminal::print_error(&escape_line(line)));
        for line in crate::config::trace_settings() {
            host::trace::line(|| line);
        }
    }

    /// Output of work inside a server: it goes to the log, with `subject` beside each line.
    pub fn log(subject: &str) -> Self {
        let mode = Mode::Log(subject.into());
        Self { program: &LOG, mode, volume: Volume::Normal, has_events: false, subject: None }
    }

    /// The same with `subject` before each line, and as `about` in each event: for one of several things that are done at
    /// once.
    #[must_use]
    pub fn about(&self, subject: &str) -> Self {
        Self { subject: Some(subject.into()), ..self.clone() }
    }

    #[must_use]
    pub fn at_most(self, volume: Volume) -> Self {
        Self { volume: self.volume.min(volume), ..self }
    }

    /// The same before a document: a script that asks for a document gets nothing else.
    #[must_use]
    pub fn without_events(&self) -> Self {
        Self { has_events: false, ..self.clone() }
    }

    /// The same without any output, for work behind a full-screen interface.
    #[must_use]
    pub fn silent(&self) -> Self {
        Self { mode: Mode::Mute, volume: Volume::Errors, ..self.clone() }
    }

    /// The same with all output kept, documents as for a script.
    pub fn kept(&self) -> (Self, Arc<Mutex<KeptOutput>>) {
        let kept = Arc::default();
        let ui = Self { mode: Mode::Kept(Arc::clone(&kept)), ..self.clone() };
        (ui, kept)
    }

    /// Strikes the known secrets out of a text.
    pub fn redacted(text: &str) -> String {
        terminal::redactor().redact(text).into_owned()
    }

    /// The flags by which another call of the program prints as this one does.
    pub(crate) fn flags(&self) -> &'static [&'static str] {
        match (&self.mode, self.volume < Volume::Normal) {
            (Mode::Json, _) => &["--json"],
            (_, true) => &["--quiet"],
            _ => &[],
        }
    }

    /// Words of the command line that was typed, after the program's own name.
    pub fn command_line(&self) -> Vec<String> {
        let words = crate::start::arguments(self.program).into_iter().skip(1);
        let words = words.map(|word| word.to_string_lossy().into_owned());
        [self.program.name.to_owned()].into_iter().chain(words).collect()
    }

    pub fn is_json(&self) -> bool {
        matches!(self.mode, Mode::Json | Mode::Kept(_))
    }

    pub fn phase(&self, name: &str, message: &str) {
        self.event("phase", &json!({ "phase": name, "text": message }));
        let message = self.with_subject(&escape_line(message));
        self.aside(&format!("{} {message}", self.painted("36", ">")));
        self.spin(&message);
        if matches!(self.mode, Mode::Plain) && self.volume == Volume::Normal {
            terminal::begin_step(&message);
        }
    }

    /// Shows progress beside the spinner, or as an event.
    pub fn progress(&self, kind: &str, message: &str) {
        self.event("progress", &json!({ "kind": kind, "text": message }));
        self.spin(&self.with_subject(&escape_line(message)));
    }

    /// Shows progress that is worth a line: beside the spinner, as an event, or as a line where there is no spinner.
    pub fn progress_line(&self, kind: &str, message: &str) {
        self.progress(kind, message);
        if matches!(self.mode, Mode::Plain) {
            self.aside(&format!("  {}", self.with_subject(&escape_line(message))));
            terminal::hold_reports();
        }
    }

    pub fn note(&self, message: &str) {
        self.event("note", &json!({ "text": message }));
        self.aside(&format!("  {}", self.with_subject(&escape_line(message))));
    }

    /// Prints a message outside of the result.
    pub fn status(&self, message: &str) {
        self.aside(&self.with_subject(&escape_line(message)));
    }

    pub fn warn(&self, message: &str) {
        self.event("warning", &json!({ "text": message }));
        let text = self.with_subject(&escape_line(message));
        let line = format!("{}: {text}", self.painted("33", "warning"));
        match &self.mode {
            Mode::Log(subject) => {
                tracing::warn!(target: "bot_bottle::ui", about = &**subject, "{}", escape_line(message));
            }
            Mode::Kept(kept) => keep_message(kept, &line),
            _ if self.volume >= Volume::Warnings => terminal::print_error(&line),
            _ => {}
        }
    }

    pub fn event(&self, name: &str, fields: &Value) {
        if !self.is_json() || !self.has_events {
            return;
        }
        let mut object = json!({ "event": name });
        if let Some(subject) = &self.subject {
            object["about"] = json!(**subject);
        }
        if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
            object.extend(fields.clone());
        }
        EVENT_WAS_PRINTED.store(true, Ordering::Relaxed);
        terminal::print(&format!("{object}\n"));
    }

    pub fn result(&self, label: &str, value: &str) {
        let (width, value) = (self.program.label_width, escape_line(value));
        match &self.mode {
            Mode::Log(subject) => {
                tracing::info!(target: "bot_bottle::ui", about = &**subject, "{label}: {value}");
            }
            _ => self.print(&self.with_subject(&format!("{label:<width$} {value}\n"))),
        }
    }

    /// Prints one of several items that belong to the line of the result above.
    pub fn item(&self, text: &str) {
        self.print(&self.with_subject(&format!("  {}\n", escape_line(text))));
    }

    /// Prints a sentence as the result.
    pub fn line(&self, text: &str) {
        self.print(&self.with_subject(&format!("{}\n", escape_line(text))));
    }

    /// Prints a table as the result; without a heading where `head` is empty. On a terminal long cells are wrapped to its
    /// width; other readers get one line for each row, whatever its length.
    pub fn table(&self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let mut table = Table::new();
        table.load_style(NOTHING);
        if let Some(width) = terminal::width() {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        if !head.is_empty() {
            table.set_header(head);
        }
        for row in rows {
            table.add_row(row.iter().map(|cell| escape_line(cell).into_owned()));
        }
        self.print(&format!("{}\n", table.trim_fmt()));
    }

    /// Prints a text of several lines as it is, escaped: help, previews, an agent's output. Scripts get it too.
    pub fn page(&self, text: &str) {
        match &self.mode {
            Mode::Mute => {}
            Mode::Kept(kept) => keep_message(kept, &escape_terminal(text)),
            _ => {
                terminal::stop_spinner();
                let text = escape_terminal(text);
                match self.subject {
                    None => terminal::print(&text),
                    Some(_) => {
                        let lines = text.lines().map(|line| self.with_subject(line) + "\n");
                        terminal::print(&lines.collect::<String>());
                    }
                }
            }
        }
    }

    /// Prints a JSON document as the whole result, if the output is for a script.
    pub fn document(&self, value: &impl Serialize) {
        if self.is_json() {
            self.json(value);
        }
    }

    /// Prints a JSON document, with or without `--json`.
    pub fn json(&self, value: &impl Serialize) {
        // After an event the whole output is one value for each line.
        let text = match EVENT_WAS_PRINTED.load(Ordering::Relaxed) {
            true => serde_json::to_string(value).unwrap_or_default(),
            false => serde_json::to_string_pretty(value).unwrap_or_default(),
        };
        if let Mode::Kept(kept) = &self.mode {
            let document = serde_json::from_str(&Self::redacted(&text)).unwrap_or_default();
            return lock_kept(kept).documents.push(document);
        }
        terminal::print(&format!("{text}\n"));
    }

    /// Reports a failure with its remedy.
    pub fn failure<S: ExitStatus>(&self, failure: &Failure<S>) {
        terminal::stop_spinner();
        let text = failure.to_string();
        self.failure_document(failure, &text);
        match &self.mode {
            Mode::Log(subject) => {
                tracing::error!(target: "bot_bottle::ui", about = &**subject, "{}", escape_line(&text));
            }
            _ => {
                self.error_line(&text);
                if let Some(remedy) = failure.remedy() {
                    let hint = self.painted("36", "hint");
                    terminal::print_error(&format!("{hint}: {}", escape_line(remedy)));
                }
            }
        }
    }

    /// Prints an error on standard error, in one line.
    pub(crate) fn error_line(&self, text: &str) {
        let error = self.painted("31", "error");
        let text = self.with_subject(&escape_line(text));
        terminal::print_error(&format!("{error}: {text}"));
    }

    /// Prints a failure for scripts.
    pub(crate) fn failure_document<S: ExitStatus>(&self, failure: &Failure<S>, text: &str) {
        let row = failure.status.row();
        let mut fields = json!({ "status": row.code, "name": row.name, "text": text });
        if let Some(remedy) = failure.remedy() {
            fields["remedy"] = json!(remedy);
        }
        match self.program.json {
            JsonOutput::Events => Self { has_events: true, ..self.clone() }.event("error", &fields),
            JsonOutput::Documents => self.document(&json!({ "error": fields })),
        }
    }

    pub fn finish(&self) {
        terminal::stop_spinner();
    }

    /// Part of the result that scripts get as events or as a document.
    fn print(&self, text: &str) {
        if matches!(self.mode, Mode::Plain | Mode::Terminal { .. }) {
            terminal::stop_spinner();
            terminal::print(text);
        }
    }

    fn aside(&self, line: &str) {
        match &self.mode {
            Mode::Log(subject) => {
                tracing::info!(target: "bot_bottle::ui", about = &**subject, "{line}");
            }
            Mode::Kept(kept) => keep_message(kept, line),
            Mode::Json if self.program.json == JsonOutput::Events => {}
            _ if self.volume < Volume::Normal => {}
            _ => terminal::print_error(line),
        }
    }

    fn spin(&self, message: &str) {
        if matches!(self.mode, Mode::Terminal { .. }) && self.volume == Volume::Normal {
            terminal::spin(message);
        }
    }

    fn with_subject(&self, text: &str) -> String {
        match &self.subject {
            Some(subject) => format!("{}: {text}", escape_line(subject)),
            None => text.to_owned(),
        }
    }

    fn painted(&self, colour: &str, word: &str) -> String {
        match self.mode {
            Mode::Terminal { coloured: true } => format!("\u{1b}[{colour}m{word}\u{1b}[0m"),
            _ => word.to_owned(),
        }
    }
}

fn lock_kept(kept: &Mutex<KeptOutput>) -> std::sync::MutexGuard<'_, KeptOutput> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_message(kept: &Mutex<KeptOutput>, message: &str) {
    lock_kept(kept).messages.push(Ui::redacted(message));
}

impl Reporter for Ui {
    fn phase(&self, name: &str, message: &str) {
        Self::phase(self, name, message);
    }

    fn note(&self, message: &str) {
        Self::note(self, message);
    }

    fn progress(&self, kind: &str, message: &str) {
        Self::progress(self, kind, message);
    }

    fn event(&self, name: &str, fields: &Value) {
        Self::event(self, name, fields);
    }

    fn release_terminal(&self) {
        self.finish();
    }
}

pub(crate) fn wants_colour() -> bool {
    host::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
