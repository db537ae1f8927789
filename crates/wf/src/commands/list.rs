//! `wf list`: the active workstreams, and which of them share files.

use clap::Args;
use serde_json::json;

use super::App;
use crate::disk::touched::TouchedLists;
use crate::disk::{ProjectDirs, Workstream, is_active};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::flow::product::{missing_branches, open_product};
use crate::rules::conflict::count_shared;
use crate::rules::touched::parse_touched;

/// List active workstreams
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Merged and closed ones too
    #[arg(long, short)]
    all: bool,
}

/// Lists them. A workstream that cannot be read causes a warning and status 2, and one without its branch a warning.
pub(crate) async fn cmd_list(app: &App, args: &ListArgs) -> Outcome {
    let dirs = app.dirs()?;
    let (all, mut faults) = dirs.load_workstreams()?;
    let listed: Vec<&Workstream> = all.iter().filter(|ws| args.all || is_active(ws)).collect();
    let touched = TouchedLists::load(&listed)?;
    let all_paths = touched.paths(&listed);
    let counts: Vec<usize> =
        all_paths.iter().map(|paths| parse_touched(paths.touched).count()).collect();
    let shared = count_shared(&all_paths, counts.iter().sum());
    let closed = match args.all {
        true => {
            let (closed, bad) = dirs.load_closed()?;
            faults.extend(bad);
            closed
        }
        false => Vec::new(),
    };
    let faults_of = branch_faults(&dirs, &listed).await;
    let view = ListView { counts: &counts, shared: &shared, faults: &faults_of };
    show(app, (&listed, &closed), &view, dirs.current().as_deref());
    for fault in faults_of.iter().flatten() {
        app.ui.warn(fault);
    }
    app.warn_remains(&dirs)?;
    app.warn_faults(&faults);
    Ok(if faults.is_empty() { WfExit::Success } else { WfExit::Config })
}

/// Facts about the active workstreams, in their order.
struct ListView<'a> {
    counts: &'a [usize],
    shared: &'a [usize],
    /// Why one cannot go on, if its branch is gone.
    faults: &'a [Option<String>],
}

/// A repository that cannot be read says so where it is needed.
async fn branch_faults(dirs: &ProjectDirs, listed: &[&Workstream]) -> Vec<Option<String>> {
    let found = async { missing_branches(&open_product(dirs).await?, listed).await };
    let found: WfResult<Vec<_>> = found.await;
    found.unwrap_or_else(|_| vec![None; listed.len()])
}

fn show(
    app: &App,
    (active, closed): (&[&Workstream], &[Workstream]),
    &ListView { counts, shared, faults }: &ListView<'_>,
    current: Option<&str>,
) {
    if app.ui.is_json() {
        let open = active.iter().enumerate().map(|(at, ws)| {
            json!({
                "meta": ws.meta, "touched_files": counts[at], "shared_files": shared[at],
                "needs": faults[at].as_deref().or(ws.meta.status.needs()), "fault": faults[at],
            })
        });
        let closed = closed.iter().map(|ws| json!({"meta": ws.meta, "closed": ws.dir}));
        let rows: Vec<_> = open.chain(closed).collect();
        app.ui.document(&rows);
        return;
    }
    if active.is_empty() && closed.is_empty() {
        app.ui.line("No active workstreams. Start one: wf new <id> \"<title>\" \"<paths>\"");
        return;
    }
    let open = active.iter().enumerate().map(|(at, ws)| {
        let mark = if current == Some(ws.meta.id.as_str()) { "*" } else { "" };
        let overlap = if shared[at] > 0 { format!("{} shared", shared[at]) } else { String::new() };
        let blocked = ws.meta.blocked_by.join(",");
        vec![
            format!("{}{mark}", ws.meta.id),
            match faults[at] {
                Some(_) => format!("{}, branch gone", ws.meta.status),
                None => ws.meta.status.to_string(),
            },
            ws.meta.branch.to_string(),
            counts[at].to_string(),
            overlap,
            blocked,
            ws.meta.title.clone(),
        ]
    });
    let closed = closed.iter().map(|ws| {
        let words = [ws.meta.id.as_str(), "closed", ws.meta.branch.as_str(), "", "", ""];
        let cells = words.into_iter().chain([ws.meta.title.as_str()]);
        cells.map(str::to_owned).collect()
    });
    let rows: Vec<Vec<String>> = open.chain(closed).collect();
    app.ui.table(&["ID", "STATUS", "BRANCH", "FILES", "OVERLAP", "WAITS FOR", "TITLE"], rows);
    let sharing = shared.iter().filter(|&&count| count > 0).count();
    if sharing > 0 {
        app.ui.warn(&format!(
            "{sharing} workstreams touch files that others touch too; see: wf conflicts ID"
        ));
    }
}
