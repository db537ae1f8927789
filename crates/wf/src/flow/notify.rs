//! Desktop notifications: through the project's NOTIFY_CMD, or through `notify-send`.

use std::time::Duration;

use host::process::{Leftovers, RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::escape::escape_line;
use model::id::WorkstreamId;

use crate::disk::{Effect, ProjectEffects};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::profile::Profile;

const LIMIT: Duration = Duration::from_secs(10);
const OUTPUT_CAP: usize = 4 << 10;
const DESKTOP: &str = "notify-send";

/// Sends a notification. Without NOTIFY_CMD and without a desktop there is no receiver, which is not an error.
pub(crate) async fn notify(
    effects: &ProjectEffects,
    profile: &Profile,
    workstream: Option<&WorkstreamId>,
    message: &str,
) -> WfResult<()> {
    let Some(spec) = argv_notify(&profile.notify_cmd, message)? else { return Ok(()) };
    let program = spec.program.display().to_string();
    let effect = Effect { op: "notify", target: &program, workstream };
    effects.record(effect, send(&spec)).await?
}

async fn send(spec: &CommandSpec) -> WfResult<()> {
    let limits = RunLimits {
        timeout: Some(LIMIT),
        stdout_cap: OUTPUT_CAP,
        stderr_cap: OUTPUT_CAP,
        grace: Duration::from_secs(1),
        leftovers: Leftovers::Kill,
    };
    let output = run(spec, &limits, &Cancel::new()).await.or_exit(WfExit::General)?;
    match output.exit {
        CommandExit::Exited(0) => Ok(()),
        exit => {
            let message = format!("{} failed ({exit:?})", spec.program.display());
            Err(Failure::new(WfExit::General, message))
        }
    }
}

/// Builds the command with the message as its last argument; `None` if there is no way to notify.
fn argv_notify(command: &[String], message: &str) -> WfResult<Option<CommandSpec>> {
    let message = escape_line(message).into_owned();
    let mut spec = match command.split_first() {
        Some((program, rest)) => {
            let found = host::tool::which(program)
                .ok_or_else(|| Failure::usage(format!("NOTIFY_CMD: {program} was not found")))?;
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
