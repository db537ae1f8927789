//! `bot-bottle fleet`: the hosts that share a database, and the logins of its workers.

use clap::{Args, Subcommand};
use orchestrator_db::HostRow;
use serde_json::{Value, json};
use shell::Ui;

use crate::exit::{Failure, OrGeneral, Outcome, SUCCESS};
use crate::flow::fleet::{fleet_of, open_store};
use crate::flow::home::Home;

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// List the hosts on the shared database: what each does, and how much room it has
    Status,
    /// Print the statements that make a login of the database for workers
    ///
    /// Such a login sees and writes what belongs to its own hosts. Run the statements in the database of the fleet, after its
    /// first `serve`, as its owner; then set a password. Give each worker a login of its own, so that one that is stolen
    /// reaches its own issues alone.
    Role(FleetRoleArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FleetRoleArgs {
    /// The name of the login: lower-case letters, digits and _
    name: String,
}

pub(crate) fn cmd_fleet(ui: &Ui, command: &FleetCommand) -> Outcome {
    match command {
        FleetCommand::Status => status(ui),
        FleetCommand::Role(args) => role(ui, &args.name),
    }
}

fn status(ui: &Ui) -> Outcome {
    let home = Home::from_env()?;
    if fleet_of(&home)?.is_none() {
        let remedy = "name it: bot-bottle config set fleet.database postgres://user@host/database";
        return Err(Failure::usage("there is no shared database").with_remedy(remedy));
    }
    let hosts = open_store(&home)?.hosts().or_general()?;
    if ui.is_json() {
        ui.document(&hosts.iter().map(document).collect::<Vec<Value>>());
        return Ok(SUCCESS);
    }
    if hosts.is_empty() {
        ui.line(
            "No host has reported itself. Start one with: bot-bottle serve, or bot-bottle worker",
        );
        return Ok(SUCCESS);
    }
    let cells = |host: &HostRow| {
        let HostRow { report, seen_at, is_live } = host;
        let state = if *is_live { "up" } else { "gone" };
        let slots = format!("{}/{}", report.busy, report.slots);
        let name = report.name.clone();
        vec![
            name,
            report.role.clone(),
            state.to_owned(),
            slots,
            report.version.clone(),
            seen_at.to_string(),
        ]
    };
    ui.table(&["HOST", "ROLE", "STATE", "BUSY", "VERSION", "LAST REPORT"], hosts.iter().map(cells));
    Ok(SUCCESS)
}

fn document(host: &HostRow) -> Value {
    let HostRow { report, seen_at, is_live } = host;
    json!({
        "name": report.name, "role": report.role, "process": report.process, "version": report.version,
        "is_live": is_live, "seen_at": seen_at.to_string(), "slots": report.slots, "busy": report.busy,
        "disk_free_bytes": report.disk_free_bytes,
    })
}

#[cfg(feature = "postgres")]
fn role(ui: &Ui, name: &str) -> Outcome {
    let sql = orchestrator_db::worker_role_sql(name).ok_or_else(|| {
        let words = format!("'{name}' cannot name a login: use lower-case letters, digits and _");
        Failure::usage(words).with_remedy("see: bot-bottle fleet role --help")
    })?;
    match ui.is_json() {
        true => ui.document(&json!({ "sql": sql })),
        false => ui.page(&sql),
    }
    Ok(SUCCESS)
}

#[cfg(not(feature = "postgres"))]
fn role(_ui: &Ui, _name: &str) -> Outcome {
    Err(Failure::usage("a fleet needs a bot-bottle that was built with --features postgres"))
}
