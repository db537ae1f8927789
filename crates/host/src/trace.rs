//! Commands as they are started, for `--verbose`. Without an observer nothing is rendered.

use std::path::Path;
use std::sync::OnceLock;

use model::command::{CommandSpec, render_command};

/// Receives each line. It has to redact and to escape: a command line may hold anything.
pub type TraceObserver = fn(&str);

static OBSERVER: OnceLock<TraceObserver> = OnceLock::new();

/// Sends every line from now on to `observer`. The first observer of a process stays.
pub fn observe(observer: TraceObserver) {
    OBSERVER.set(observer).unwrap_or_default();
}

/// Sends a line to the observer, if there is one.
pub fn line(render: impl FnOnce() -> String) {
    if let Some(observer) = OBSERVER.get() {
        observer(&render());
    }
}

/// Reports a program that is about to start.
pub(crate) fn command(spec: &CommandSpec) {
    line(|| render_started(&render_command(spec), &spec.cwd));
}

pub(crate) fn render_started(command: &str, cwd: &Path) -> String {
    let command = command.split(' ').map(hide_password).collect::<Vec<_>>().join(" ");
    format!("$ {command}  # in {}", cwd.display())
}

/// Hides the password of a URL.
fn hide_password(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://***@{}", &rest[at + 1..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_command_and_its_folder_and_no_password() {
        let line = render_started("git fetch https://ada:pw@git.example/x y", Path::new("/a"));
        assert_eq!(line, "$ git fetch https://***@git.example/x y  # in /a");
    }
}
