//! `wf attach`: follows a run that was started in the background.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use model::exit::ExitStatus;
use model::id::WorkstreamId;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::{DiskError, ProjectDirs, StateFile};
use crate::exit::{Failure, Outcome, WfExit, WfResult};
use crate::flow::background::{BackgroundRun, start_background};

const PAUSE: Duration = Duration::from_millis(200);

/// Follow a run that was started with `wf run --detach`, until it ends
///
/// Leaving with ctrl-c does not stop the run. The exit status is that of the run.
#[derive(Debug, Args)]
pub(crate) struct BackgroundArgs {
    #[command(flatten)]
    which: Which,
}

/// Starts this command line in the background.
pub(super) fn detach(app: &App, dirs: &ProjectDirs, id: &WorkstreamId) -> Outcome {
    dirs.find_workstream(id.as_str())?;
    let mut words: Vec<String> =
        app.line.iter().filter(|word| *word != "--detach").cloned().collect();
    if app.project.is_none() {
        words.insert(0, format!("--project={}", dirs.project.name));
    }
    let pid = start_background(dirs, id, words, &app.here)?;
    app.ui.line(&format!("A run of {id} goes on in the background (process {pid})"));
    app.ui.document(&json!({"workstream": id, "pid": pid, "log": BackgroundRun::load(dirs, id)?.map(|run| run.log)}));
    app.ui.status(&format!("Follow it: wf attach {id}, or stop it: kill {pid}"));
    Ok(WfExit::Success)
}

pub(crate) async fn cmd_attach(app: &App, args: &BackgroundArgs) -> Outcome {
    let (dirs, workstream) = app.open(&args.which)?;
    let id = &workstream.meta.id;
    let none =
        || Failure::usage(format!("{id} has no background run; start one: wf run {id} --detach"));
    let run = BackgroundRun::load(&dirs, id)?.ok_or_else(none)?;
    let mut from = 0;
    loop {
        // Asked before the log is read: what was printed until the run ended is then all there is.
        let is_active = dirs.is_in_background(id);
        let text = read_from(&run.log, &mut from)?;
        if !app.ui.is_json() {
            app.ui.page(&text);
        }
        if !is_active {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    let ended = BackgroundRun::load(&dirs, id)?.and_then(|run| run.exit);
    let exit = ended.and_then(exit_of).ok_or_else(|| {
        let message = format!(
            "the background run ended without a result: it was killed; run it again: wf run {id}"
        );
        Failure::new(WfExit::General, message)
    })?;
    app.ui.status(&format!("The run ended with {}: {}", exit.code(), exit.meaning()));
    app.ui.document(&json!({"workstream": id, "exit_status": exit.code(), "log": run.log}));
    Ok(exit)
}

fn exit_of(code: u8) -> Option<WfExit> {
    WfExit::ALL.iter().copied().find(|exit| exit.code() == code)
}

/// Reads the whole lines of a log after a position, and moves it.
fn read_from(path: &Path, from: &mut u64) -> WfResult<String> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(*from))?;
        file.read_to_end(&mut bytes)
    });
    read.map_err(DiskError::io("read", path))?;
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    *from += end as u64;
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}
