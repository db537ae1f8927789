//! Player of a scripted agent in the workspace, which reports each step on stdout as one line of JSON.

mod step;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use guest::script::{PlayerEvent, Script};

use crate::complain;
use step::{ScriptDirs, StepOutcome};

/// A failure of the player, as opposed to a status of the script.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlayError {
    #[error("could not read the script {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the script {path} does not parse: {source}", path = path.display())]
    Parse { path: PathBuf, source: serde_json::Error },
    #[error("could not write {path}: {source}", path = path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("could not start the daemon: {0}")]
    Daemon(io::Error),
    #[error("could not print: {0}")]
    Print(io::Error),
}

/// Plays the script in the current folder and returns its status.
pub(crate) fn run(script: &Path, harness_state: &Path) -> u8 {
    let places = ScriptDirs { harness_state };
    match load_script(script).and_then(|script| play(&script, &places)) {
        Ok(status) => status,
        Err(error) => complain(error, guest::EXIT_GUEST_FAILED as u8),
    }
}

fn load_script(path: &Path) -> Result<Script, PlayError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| PlayError::Read { path: path.to_path_buf(), source })?;
    serde_json::from_str(&text)
        .map_err(|source| PlayError::Parse { path: path.to_path_buf(), source })
}

fn play(script: &Script, places: &ScriptDirs<'_>) -> Result<u8, PlayError> {
    let mut status = 0;
    for (index, step) in script.steps.iter().enumerate() {
        let (kind, detail) = (step.kind().to_owned(), step::render_detail(step));
        tell(&PlayerEvent::Step { index, kind, detail })?;
        let start = Instant::now();
        let outcome = step::run(step, places)?;
        let ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        tell(&PlayerEvent::StepDone { index, status: outcome.status(), ms })?;
        if let StepOutcome::End(end) = outcome {
            status = end;
            break;
        }
    }
    tell(&PlayerEvent::Result { status })?;
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}

/// Prints one line at once, so that observers see a step before it is done.
fn tell(event: &PlayerEvent) -> Result<(), PlayError> {
    print(&render_line(event)?)
}

fn render_line(event: &PlayerEvent) -> Result<String, PlayError> {
    let line = serde_json::to_string(event).map_err(|error| PlayError::Print(error.into()))?;
    Ok(line + "\n")
}

fn print(text: &str) -> Result<(), PlayError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(PlayError::Print)
}
