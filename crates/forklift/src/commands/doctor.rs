//! `forklift doctor`: what this machine offers, which backend would be used and why.

use clap::Args;
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::doctor::{MachineReport, memory_text};

use super::{ForkliftDirs, block_on};
use crate::exit::Outcome;

/// Show what this machine offers, which backend would be used and why
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The image to look for
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    image: String,
}

/// Shows the findings; fails if no run could start here.
pub(crate) fn cmd_doctor(ui: &Ui, args: &DoctorArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let machine = block_on(async { Ok(MachineReport::observe(&args.image).await) })?;
    machine.show(ui);
    ui.result("runs", &places.runs.display().to_string());
    let found = &machine.found;
    ui.event(
        "doctor",
        &json!({
            "git": machine.git_text(), "bwrap": found.bwrap,
            "engine": found.engine.as_ref().map(|engine| &engine.version), "image": found.has_image,
            "backend": machine.chosen.as_ref().ok().map(|choice| choice.kind),
            "reason": machine.backend_text(), "memory": memory_text(), "runs": places.runs,
        }),
    );
    machine.check()?;
    Ok(ForkliftExit::Success)
}
