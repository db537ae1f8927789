//! Player of a scripted agent in the workspace, which reports each step on stdout as one line of JSON.

mod step;

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use guest::script::{PlayerEvent, Script};

use crate::{GuestError, complain};
use step::StepOutcome;

/// Plays the script in the current folder and returns its status.
pub(crate) fn run(script: &Path, harness_state: &Path) -> u8 {
    match load_script(script).and_then(|script| play(&script, harness_state)) {
        Ok(status) => status,
        Err(error) => complain(error, guest::EXIT_GUEST_FAILED as u8),
    }
}

fn load_script(path: &Path) -> Result<Script, GuestError> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(GuestError::could_not(format!("read the script {name}")))?;
    serde_json::from_str(&text)
        .map_err(|error| GuestError(format!("the script {name} does not parse: {error}")))
}

fn play(script: &Script, harness_state: &Path) -> Result<u8, GuestError> {
    let mut status = 0;
    for (index, step) in script.steps.iter().enumerate() {
        let (kind, detail) = (step.kind().to_owned(), step::render_detail(step));
        print_event(&PlayerEvent::Step { index, kind, detail })?;
        let start = Instant::now();
        let outcome = step::run(step, harness_state)?;
        let ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        print_event(&PlayerEvent::StepDone { index, status: outcome.status(), ms })?;
        if let StepOutcome::End(end) = outcome {
            status = end;
            break;
        }
    }
    print_event(&PlayerEvent::Result { status })?;
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}

/// Prints one line at once, so that observers see a step before it is done.
fn print_event(event: &PlayerEvent) -> Result<(), GuestError> {
    print(&render_line(event)?)
}

fn render_line(event: &PlayerEvent) -> Result<String, GuestError> {
    let line = serde_json::to_string(event).map_err(GuestError::could_not("print"))?;
    Ok(line + "\n")
}

fn print(text: &str) -> Result<(), GuestError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(GuestError::could_not("print"))
}
