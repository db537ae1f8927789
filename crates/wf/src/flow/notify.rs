//! Desktop notifications: through the project's NOTIFY_CMD, or through `notify-send`.

use std::time::Duration;

use host::process::{Leftovers, RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::escape::escape_line;

use crate::rules::profile::Profile;

const LIMIT: Duration = Duration::from_secs(10);
const OUTPUT_CAP: usize = 4 << 10;
const DESKTOP: &str = "notify-send";

/// Sends a notification. Without NOTIFY_CMD and without a desktop there is no receiver, which is not an error.
pub(crate) async fn notify(profile: &Profile, message: &str) -> Result<(), String> {
    let Some(spec) = argv_notify(&profile.notify_cmd, message)? else { return Ok(()) };
    let limits = RunLimits {
        timeout: Some(LIMIT),
        stdout_cap: OUTPUT_CAP,
        stderr_cap: OUTPUT_CAP,
        grace: Duration::from_secs(1),
        leftovers: Leftovers::Kill,
    };
    let output = run(&spec, &limits, &Cancel::new()).await.map_err(|error| error.to_string())?;
    match output.exit {
        CommandExit::Exited(0) => Ok(()),
        exit => Err(format!("{} failed ({exit:?})", spec.program.display())),
    }
}

/// Builds the command with the message as its last argument; `None` if there is no way to notify.
fn argv_notify(command: &[String], message: &str) -> Result<Option<CommandSpec>, String> {
    let message = escape_line(message).into_owned();
    let mut spec = match command.split_first() {
        Some((program, rest)) => {
            let found = host::tool::which(program)
                .ok_or_else(|| format!("NOTIFY_CMD: {program} was not found"))?;
            CommandSpec::new(found).args(rest).arg(message)
        }
        None => match host::tool::which(DESKTOP) {
            Some(program) => {
                CommandSpec::new(program).args(["--app-name=wf", "--", "wf"]).arg(message)
            }
            None => return Ok(None),
        },
    };
    spec.env = host::env::vars_os();
    Ok(Some(spec))
}
