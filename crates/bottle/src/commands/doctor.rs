//! `bot-bottle doctor`: this machine, the backend that would be used, and whether forge and models answer.

use serde_json::json;
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::doctor::{FindingState, MachineReport, memory_text};

use super::block_on;
use crate::exit::{Failure, Outcome, SUCCESS};
use crate::flow::checkup::{check_egress, check_forge};
use crate::flow::home::{Home, ManifestKind};

/// Reports the checks; fails if runs would fail here.
pub(crate) fn cmd_doctor(ui: &Ui) -> Outcome {
    let home = Home::from_env()?;
    let (machine, others) = block_on(async {
        let mut others = check_forge(&home).await;
        others.extend(check_egress(&home).await?);
        Ok((MachineReport::observe(DEFAULT_IMAGE).await, others))
    })?;
    machine.show(ui);
    let gitleaks = host::tool::which("gitleaks").map(|path| path.display().to_string());
    let alone = "not found; the built-in scan runs alone";
    ui.result("gitleaks", gitleaks.as_deref().unwrap_or(alone));
    let (agents, bottles) = (home.names(ManifestKind::Agents)?, home.names(ManifestKind::Bottles)?);
    ui.result("agents", &agents.join(", "));
    ui.result("bottles", &bottles.join(", "));
    for finding in &others {
        ui.result(&finding.name, &finding.text);
    }
    ui.event(
        "doctor",
        &json!({
            "git": machine.git_text(), "bwrap": machine.found.bwrap,
            "engine": machine.found.engine.as_ref().map(|_| machine.engine_text()),
            "backend": machine.backend_text(), "memory": memory_text(), "gitleaks": gitleaks, "agents": agents, "bottles": bottles, "checks": others,
        }),
    );
    machine.check()?;
    let bad = others.iter().filter(|finding| finding.state == FindingState::Bad);
    let names: Vec<&str> = bad.map(|finding| finding.name.as_str()).collect();
    match names.is_empty() {
        true => Ok(SUCCESS),
        false => Err(Failure::usage(format!("runs on the forge would fail: {}", names.join(", ")))),
    }
}
