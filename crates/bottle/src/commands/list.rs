//! `bot-bottle list`: the bottles of this user.

use serde_json::{Value, json};
use shell::Ui;

use crate::exit::{Outcome, SUCCESS};
use crate::flow::bottle::{Bottle, NamedBottle};
use crate::flow::home::Home;

pub(crate) fn cmd_list(ui: &Ui) -> Outcome {
    let bottles = Bottle::all(&Home::from_env()?)?;
    if ui.is_json() {
        let rows: Vec<Value> = bottles.iter().map(document).collect();
        ui.document(&rows);
        return Ok(SUCCESS);
    }
    if bottles.is_empty() {
        ui.line("No bottles yet. Start one with: bot-bottle start AGENT (agents: bot-bottle agent list)");
        return Ok(SUCCESS);
    }
    let rows = bottles.iter().map(|(name, opened)| match opened {
        Ok((_, record)) => vec![
            name.clone(),
            record.state.name().to_owned(),
            record.agent.clone(),
            record.runs.len().to_string(),
            record.pull.map_or_else(|| "-".to_owned(), |number| format!("#{number}")),
            record.repo.display().to_string(),
        ],
        Err(failure) => {
            let none = String::new;
            vec![name.clone(), "unreadable".to_owned(), none(), none(), none(), failure.to_string()]
        }
    });
    ui.table(&["SLUG", "STATE", "AGENT", "RUNS", "PULL", "REPOSITORY"], rows);
    Ok(SUCCESS)
}

fn document((name, opened): &NamedBottle) -> Value {
    match opened {
        Ok((_, record)) => json!(record),
        Err(failure) => json!({ "slug": name, "error": failure.to_string() }),
    }
}
