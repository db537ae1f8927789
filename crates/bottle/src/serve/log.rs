//! The log of `bot-bottle serve`: lines for people, or JSON for machines, on standard error.

use tracing_subscriber::filter::LevelFilter;

use super::settings::{LogFormat, Settings};

/// Starts it.
pub(crate) fn start(settings: &Settings) {
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(LevelFilter::INFO)
        .with_target(false)
        .with_ansi(false);
    match settings.log {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
