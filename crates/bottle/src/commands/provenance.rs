//! `bot-bottle provenance`: what a run was, from its records; and whether the signed statements about it hold.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use model::exit::BottleExit;
use serde_json::{Value, json};
use shell::Ui;

use super::complete::bottle_names;
use crate::exit::{OrExit, Outcome, SUCCESS};
use crate::flow::attestation::load_provenance;
use crate::flow::home::Home;
use crate::flow::run_record::load_run;
use crate::flow::statement_export::{ExportForm, export};
use crate::flow::verification::{self, run_of};

#[derive(Debug, Subcommand)]
pub(crate) enum ProvenanceCommand {
    /// Show the newest run of a bottle, or the run of this name
    Show {
        /// The bottle, or the run's name or the start of it
        #[arg(add = ArgValueCandidates::new(bottle_names))]
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
    /// Print a statement about a run in a form that others know, signed with this home's key
    ///
    /// `agent-commit` is SLSA provenance with the shared build type for commits of agents; it is made only of records that
    /// verify. `vsa` is a verification summary for policy engines, which says PASSED or FAILED and why.
    Export {
        /// The bottle (its newest run), or the run's name or the start of it
        #[arg(add = ArgValueCandidates::new(bottle_names))]
        name: String,
        /// The form
        #[arg(long = "as", value_name = "FORM")]
        form: ExportForm,
    },
}

pub(crate) fn cmd_provenance(ui: &Ui, command: &ProvenanceCommand) -> Outcome {
    match command {
        ProvenanceCommand::Show { name } => show(ui, name),
        ProvenanceCommand::Verify { name, key } => verify(ui, name, key.as_deref()),
        ProvenanceCommand::Export { name, form } => {
            let envelope = export(&Home::from_env()?, name, *form)?;
            match ui.is_json() {
                true => ui.document(&envelope),
                false => ui.page(&serde_json::to_string(&envelope).or_exit(BottleExit::Internal)?),
            }
            Ok(SUCCESS)
        }
    }
}

fn show(ui: &Ui, name: &str) -> Outcome {
    let home = Home::from_env()?;
    let dir = run_of(&home, name)?;
    let document = load_provenance(&home, &dir, &load_run(&dir)?)?;
    match ui.is_json() {
        true => ui.document(&document),
        false => report(ui, &document),
    }
    Ok(SUCCESS)
}

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

fn report(ui: &Ui, document: &Value) {
    let text_of = |value: &Value| match value {
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
        ui.result(label, &text_of(document.pointer(pointer).unwrap_or(&Value::Null)));
    }
    for line in document["operations"].as_array().into_iter().flatten() {
        let sentence = line.pointer("/detail/sentence").map(&text_of);
        let text = sentence.unwrap_or_else(|| {
            format!(
                "{} {}: {}",
                text_of(&line["op"]),
                text_of(&line["target"]),
                text_of(&line["outcome"])
            )
        });
        ui.result(&text_of(&line["seq"]), &text);
    }
}
