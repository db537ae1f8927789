//! `bot-bottle provenance`: what a run was, from its records; and whether the signed statements about it hold.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use model::exit::BottleExit;
use run_store::operation_log;
use run_store::run_dir::RunDir;
use serde_json::{Value, json};

use crate::exit::{OrExit, Outcome, SUCCESS};
use crate::flow::attestation::{load_operations, signature_state};
use crate::flow::home::Home;
use crate::flow::run_record::BottleRunRecord;
use crate::flow::verification::{self, run_of};
use crate::rules::provenance::{OperationChain, render_provenance};
use crate::ui::Ui;

/// Records and statements of a run.
#[derive(Debug, Subcommand)]
pub(crate) enum ProvenanceCommand {
    /// Show the newest run of a bottle, or the run of this name
    Show {
        /// The bottle, or the run's name or the start of it
        name: String,
    },
    /// Check the signed statements about a run against its records, offline; 0 if they hold, 1 if not
    Verify {
        /// A file (provenance.json), the bottle (its newest run), or the run's name or the start of it
        name: String,
        /// The public key that must have signed, or one that rotations lead from [default: this home's key]
        #[arg(long, value_name = "PEM")]
        key: Option<PathBuf>,
    },
}

/// Shows or verifies the provenance of a run.
pub(crate) fn cmd_provenance(ui: &Ui, command: &ProvenanceCommand) -> Outcome {
    match command {
        ProvenanceCommand::Show { name } => show(ui, name),
        ProvenanceCommand::Verify { name, key } => verify(ui, name, key.as_deref()),
    }
}

/// Shows the newest run of a bottle, or the run of this name.
fn show(ui: &Ui, name: &str) -> Outcome {
    let home = Home::from_env()?;
    let dir = run_of(&home, name)?;
    let meta = BottleRunRecord::load(&dir).or_general()?;
    let operations = load_operations(&dir)?;
    let mut document = render_provenance(&meta, &operations, &check_chain(&dir, &meta));
    document["signature"] = signature_state(&home, &dir);
    match ui.is_json() {
        true => ui.document(&document),
        false => tell(ui, &document, &operations),
    }
    Ok(SUCCESS)
}

/// Verifies the statements of a run, or of a file, and says what holds and what does not.
fn verify(ui: &Ui, name: &str, key: Option<&Path>) -> Outcome {
    let home = Home::from_env()?;
    let report = verification::verify(&home, name, key)?;
    let verified = report.is_verified();
    if ui.is_json() {
        ui.document(&json!({
            "run": report.run, "keyid": report.keyid, "verified": verified, "checks": report.checks,
        }));
    } else {
        ui.result("run", &report.run);
        for check in &report.checks {
            ui.result(check.name, &format!("{}: {}", check.outcome.word(), check.words));
        }
        ui.result("verified", if verified { "yes" } else { "no" });
    }
    Ok(if verified { SUCCESS } else { BottleExit::General.code() })
}

/// Whether the log is the one that was written.
pub(crate) fn check_chain(dir: &RunDir, meta: &BottleRunRecord) -> OperationChain {
    match (operation_log::verify(&dir.operations(), dir.id()), &meta.operations_head) {
        (Err(fault), _) => OperationChain::Broken(fault.to_string()),
        (Ok(_), None) => OperationChain::Open,
        (Ok(end), Some(head)) if end.head == *head => OperationChain::Whole,
        (Ok(_), Some(_)) => {
            OperationChain::Broken("its end is not the one that was written down".to_owned())
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
        ("signature", "/signature/state"),
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
