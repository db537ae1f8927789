//! `bot-bottle show`: one bottle and its newest run, with what is known about them.

use clap::Args;
use serde_json::json;
use shell::Ui;
use shell::agent_facts::{AgentFacts, render_duration};

use super::bottle_name::BottleNameArgs;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::bottle::Bottle;
use crate::flow::home::Home;
use crate::flow::run_record::{BottleRunRecord, load_run};
use crate::flow::show::show_end;

/// Show a bottle and its newest run: agent, model, tokens, cost, times, result
#[derive(Debug, Args)]
pub(crate) struct ShowBottleArgs {
    #[command(flatten)]
    name: BottleNameArgs,
}

/// Shows them; as JSON, the bottle's record and the run's.
pub(crate) fn cmd_show(ui: &Ui, args: &ShowBottleArgs) -> Outcome {
    let home = Home::from_env()?;
    let (bottle, record) = Bottle::open(&home, &args.name.find(ui, &home)?)?;
    let last = bottle.last_run(&record)?;
    let meta = last.as_ref().map(load_run).transpose()?;
    if ui.is_json() {
        ui.document(&json!({ "bottle": record, "run": meta }));
        return Ok(SUCCESS);
    }
    ui.result("state", record.state.name());
    ui.result("repository", &record.repo.display().to_string());
    ui.result("branch", &format!("{} from {}", record.branch, record.base_branch));
    ui.result("runs", &record.runs.len().to_string());
    match (&last, &meta) {
        (Some(dir), Some(meta)) => {
            show_agent(ui, meta);
            show_end(ui, dir, meta);
        }
        _ => ui.line("It has no run yet."),
    }
    Ok(SUCCESS)
}

fn show_agent(ui: &Ui, meta: &BottleRunRecord) {
    ui.result("agent", &format!("{} ({}) on {}", meta.agent, meta.manifest.provider, meta.backend));
    ui.result("started", &host::clock::local(meta.started_at));
    if let Some(finished) = meta.finished_at {
        let millis = finished.duration_since(meta.started_at).as_millis();
        ui.result("took", &render_duration(u64::try_from(millis).unwrap_or(0)));
    }
    let model = meta.manifest.model.as_deref();
    let (exit, result) = (meta.agent_box.as_ref(), meta.agent_result.as_ref());
    let facts = AgentFacts { model, exit, result };
    facts.show(ui);
    if let Some(cost) = facts.cost() {
        ui.result("cost", &cost);
    }
}
