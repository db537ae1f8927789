//! `forklift doctor`: what this machine offers, and whether a run would work: a box is started, and agents are asked.

use clap::Args;
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::doctor::{
    DoctorOptions, Finding, MachineReport, check_findings, memory_text, show_findings,
};

use super::{ForkliftDirs, block_on};
use crate::exit::Outcome;

/// Try what a run needs: git, a box, its egress and limits, installed agents
///
/// Ends with a status other than 0 if a run would fail, with the reason and the remedy.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The image to look for
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    image: String,
}

/// Shows the findings; fails if no run could start here.
pub(crate) fn cmd_doctor(ui: &Ui, args: &DoctorArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let options = DoctorOptions {
        backend: None,
        image: &args.image,
        runs: &places.runs,
        agents: &places.agents,
    };
    let machine = block_on(async { Ok(MachineReport::observe(options).await) })?;
    let mut findings = machine.findings();
    findings.push(Finding::good("runs", places.runs.display().to_string()));
    show_findings(ui, &findings);
    let found = &machine.found;
    ui.event(
        "doctor",
        &json!({
            "git": machine.git_text(), "bwrap": found.bwrap,
            "engine": found.engine.as_ref().map(|engine| &engine.version), "image": found.has_image,
            "backend": machine.chosen.as_ref().ok().map(|choice| choice.kind),
            "reason": machine.backend_text(), "memory": memory_text(), "runs": places.runs,
            "checks": findings,
        }),
    );
    check_findings(&findings)?;
    Ok(ForkliftExit::Success)
}
