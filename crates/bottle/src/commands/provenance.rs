//! `bot-bottle provenance show`: what a run was, from its records.

use serde_json::Value;
use store::metadata::load_metadata;
use store::operation_log::verify;
use store::run_dir::RunDir;

use crate::exit::{Failure, OrExit, Outcome, SUCCESS};
use crate::flow::bottle::{Bottle, find_run};
use crate::flow::home::Home;
use crate::flow::metadata::Metadata;
use crate::rules::provenance::{Chain, render_provenance};
use crate::ui::Ui;

/// Shows the newest run of a bottle, or the run of this name.
pub(crate) fn show(ui: &Ui, name: &str) -> Outcome {
    let home = Home::from_env()?;
    let none = || {
        Failure::not_found(format!("there is no bottle and no run '{name}'; see: bot-bottle list"))
    };
    let dir = match Bottle::open(&home, name) {
        Ok((bottle, record)) => bottle.last_run(&record)?,
        Err(_) => find_run(&home, name)?,
    };
    let dir = dir.ok_or_else(none)?;
    let meta: Metadata = load_metadata(&dir).or_general()?;
    let operations = load_operations(&dir)?;
    let document = render_provenance(&meta, &operations, &check_chain(&dir, &meta));
    match ui.is_json() {
        true => ui.document(&document),
        false => tell(ui, &document, &operations),
    }
    Ok(SUCCESS)
}

fn load_operations(dir: &RunDir) -> Result<Vec<Value>, Failure> {
    let text = match std::fs::read_to_string(dir.operations()) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).or_general(),
    };
    // Half a line at the end is what a crash leaves; the chain's check tells of it.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn check_chain(dir: &RunDir, meta: &Metadata) -> Chain {
    match (verify(&dir.operations(), dir.id()), &meta.operations_head) {
        (Err(fault), _) => Chain::Broken(fault.to_string()),
        (Ok(_), None) => Chain::Open,
        (Ok(end), Some(head)) if end.head == *head => Chain::Whole,
        (Ok(_), Some(_)) => {
            Chain::Broken("its end is not the one that was written down".to_owned())
        }
    }
}

fn tell(ui: &Ui, document: &Value, operations: &[Value]) {
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    for (label, pointer) in [
        ("run", "/run"),
        ("bottle", "/slug"),
        ("agent", "/agent"),
        ("started", "/timing/started_at"),
        ("finished", "/timing/finished_at"),
        ("exit", "/exit/class"),
        ("status", "/exit/code"),
        ("watchdog", "/watchdog_fired"),
        ("gitleaks", "/gitleaks/status"),
        ("verdict", "/verdict/kind"),
        ("tip", "/commits/tip"),
        ("pull", "/publication/pull/url"),
        ("chain", "/operations_chain/status"),
        ("complete", "/complete"),
    ] {
        ui.result(label, &words(document.pointer(pointer).unwrap_or(&Value::Null)));
    }
    for line in operations {
        let sentence = line.pointer("/detail/sentence").map(&words);
        let text = sentence.unwrap_or_else(|| {
            format!(
                "{} {}: {}",
                words(&line["op"]),
                words(&line["target"]),
                words(&line["outcome"])
            )
        });
        ui.result(&words(&line["seq"]), &text);
    }
}
