//! The log of `bot-bottle serve` on standard error, as lines of text or JSON. Values are escaped and redacted: no title of
//! an issue can forge a line, reverse its direction or reach a terminal.

use std::fmt::{Debug, Display, Write as _};
use std::io::Write as _;
use std::sync::Arc;

use model::escape::escape_line;
use model::redact::Redactor;
use model::secret::Secret;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::settings::{LogFormat, ServeSettings, read_secret};
use crate::flow::home::Home;
use crate::flow::hooks::all_secrets;

/// Starts the log of this process. Events of other crates are logged from warnings on.
pub(crate) fn start(settings: &ServeSettings, home: &Home) {
    let layer = Lines::new(settings.log, secrets_of(settings, home), |line: &str| {
        // A failed write to standard error cannot be reported anywhere.
        drop(writeln!(std::io::stderr().lock(), "{line}"));
    });
    let log = tracing_subscriber::registry().with(layer);
    #[cfg(feature = "otlp")]
    let (log, failed) = match settings.otlp_url.as_deref().map(super::otlp::layer).transpose() {
        Ok(layer) => (log.with(layer), None),
        Err(error) => (log.with(None), Some(error)),
    };
    // A second start in one process changes nothing; there is one log.
    drop(tracing::subscriber::set_global_default(log));
    #[cfg(feature = "otlp")]
    if let Some(error) = failed {
        tracing::warn!(error = model::error_chain(&error), "no spans are sent to the collector");
    }
}

/// Secrets to redact. An unreadable file is reported where it is needed.
fn secrets_of(settings: &ServeSettings, home: &Home) -> Vec<Secret> {
    let own = settings.admin_token_file.iter().chain([&home.token_file]);
    let of_forges =
        settings.forges.iter().flat_map(|forge| [&forge.token_file, &forge.secret_file]);
    let files = own.chain(of_forges.flatten());
    let mut secrets: Vec<Secret> =
        files.filter_map(|path| read_secret(path, "a secret").ok()).collect();
    secrets.extend(all_secrets(home));
    secrets
}

struct Lines<W> {
    format: LogFormat,
    redactor: Arc<Redactor>,
    write: W,
}

impl<W: Fn(&str)> Lines<W> {
    fn new(format: LogFormat, secrets: Vec<Secret>, write: W) -> Self {
        Self { format, redactor: Arc::new(Redactor::new(secrets)), write }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn(&str) + 'static,
{
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        let ours = meta.target().starts_with("bot_bottle");
        if *meta.level() > if ours { Level::INFO } else { Level::WARN } {
            return;
        }
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let at = host::clock::now().to_string();
        let line = match self.format {
            LogFormat::Json => render_json(&at, meta.level(), meta.target(), &fields.0),
            LogFormat::Text => render_text(&at, meta.level(), &fields.0),
        };
        (self.write)(&self.redactor.redact(&line));
    }
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.keep(field, &format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Fields {
    fn keep(&mut self, field: &Field, value: &dyn Display) {
        let text = value.to_string();
        self.0.insert(field.name().to_owned(), escape_line(&text).into_owned().into());
    }
}

fn render_json(at: &str, level: &Level, target: &str, fields: &Map<String, Value>) -> String {
    let mut line = Map::new();
    line.insert("at".to_owned(), at.into());
    line.insert("level".to_owned(), level.as_str().to_lowercase().into());
    line.insert("target".to_owned(), target.into());
    line.extend(fields.clone());
    Value::Object(line).to_string()
}

fn render_text(at: &str, level: &Level, fields: &Map<String, Value>) -> String {
    let message = fields.get("message").and_then(Value::as_str).unwrap_or_default();
    let mut line = format!("{at} {:<5} {message}", level.as_str().to_lowercase());
    for (name, value) in fields.iter().filter(|(name, _)| *name != "message") {
        // Quoted as in JSON, so that a value cannot look like another field. Writing to a text cannot fail.
        write!(line, " {name}={value}").ok();
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// The lines that `act` writes.
    fn written(format: LogFormat, act: impl FnOnce()) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let secrets = vec![Secret::new("correct-horse-battery")];
        let layer = Lines::new(format, secrets, move |line: &str| {
            kept.lock().expect("one thread").push(line.to_owned());
        });
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, act);
        lines.lock().expect("one thread").clone()
    }

    const TITLE: &str = "x\n2026-01-01T00:00:00Z info forged\u{202e}\u{1b}[31m";

    #[test]
    fn a_title_cannot_forge_a_line_nor_turn_it_round() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let lines = written(format, || tracing::info!(title = TITLE, "an issue"));
            assert_eq!(lines.len(), 1);
            let line = lines.first().expect("a line");
            assert!(!line.contains(['\n', '\u{1b}', '\u{202e}']), "{line}");
            assert!(line.contains(r"\u{202e}") && line.contains("forged"), "{line}");
        }
    }

    #[test]
    fn a_secret_does_not_reach_the_log() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let lines = written(format, || tracing::error!("token correct-horse-battery"));
            assert!(lines.concat().contains("token ***"), "{lines:?}");
        }
    }

    #[test]
    fn a_line_of_json_is_json() {
        let lines = written(LogFormat::Json, || tracing::warn!(seq = 3_u64, ok = true, "done"));
        let value: Value = serde_json::from_str(&lines.concat()).expect("it reads");
        assert_eq!(value["level"], "warn");
        assert_eq!(value["message"], "done");
        assert_eq!((&value["seq"], &value["ok"]), (&Value::from(3), &Value::from(true)));
    }

    #[test]
    fn only_what_matters_is_written() {
        let lines = written(LogFormat::Text, || {
            tracing::debug!("small talk");
            tracing::info!(target: "hyper", "chatter");
            tracing::warn!(target: "hyper", "trouble");
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}
