//! `forklift doctor`: what this machine offers, which backend would be used and why.

use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;
use shell::doctor::Machine;

use super::{Places, block_on};
use crate::exit::Outcome;

/// Looks around and reports; fails if no run could start here.
pub(crate) fn run(ui: &Ui, image: &str) -> Outcome {
    let places = Places::from_env()?;
    let machine = block_on(async { Ok(Machine::observe(image).await) })?;
    machine.show(ui);
    ui.result("runs", &places.runs.display().to_string());
    let found = &machine.found;
    ui.event(
        "doctor",
        &json!({
            "git": machine.git_text(), "bwrap": found.bwrap,
            "engine": found.engine.as_ref().map(|engine| &engine.version), "image": found.has_image,
            "backend": machine.chosen.as_ref().ok().map(|choice| choice.kind),
            "reason": machine.backend_text(), "runs": places.runs,
        }),
    );
    machine.check()?;
    Ok(ForkliftExit::Success)
}
